"""Reads the CSV of `nsys stats`: kernels, copies, ranges and calls, summed up or (`cuda_gpu_trace`) one by one."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.analysis.timeline.records import Collected, Configuration, Recording, TransferKind
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular_text
from profkit.core.types import ApiCall, GpuRange, GpuTrace, Kernel, KernelTime, Report, Transfer
from profkit.profilers.files import lines_of
from profkit.profilers.nsys.command import explain
from profkit.profilers.nsys.database import call_name

# "Total Time (ns)": what it is, and in which unit. "Time (%)" and "Time(%)" are the same column of two versions.
_HEADER = re.compile(r"^\s*(.*?)\s*(?:\(([^()]*)\))?\s*$")
_SKIPPED = re.compile(r"SKIPPED: (.*)")
_NOTICE = re.compile(
    r"^(?:Processing \[|Running \[|\[\d+/\d+\] |Generating |NOTICE:|WARNING|ERROR|Using |SKIPPED:|\s+It is|\s+Consider|"
    r"\s?\*\* |\s*$)"
)
_ROWS = frozenset('0123456789" ')  # how those of tables begin
# How nsys says which report comes next.
_NAMED = (
    re.compile(r"with \[(?:[^\]]*[/\\])?(\w+)\.py\]"),
    re.compile(r"^\[\d+/\d+\] Executing '(\w+)' stats report"),
)
_ALIASES = {
    "num calls": "count",
    "instances": "count",
    "nvtx range": "range",
    "range instances": "range inst",
    "nvtx inst": "range inst",
    "kern inst": "count",
    "kernel name": "name",
    "operation": "name",
}
# Of each report the columns that no other has together.
KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("gpu-trace", frozenset({"start", "duration", "corrid", "device", "name"})),
    ("nvtx-kernels", frozenset({"range", "range inst", "total time", "name"})),
    ("nvtx-projection", frozenset({"range", "total proj time", "total range time", "range inst"})),
    ("execution", frozenset({"pid", "tid", "devid", "api name", "name"})),
    ("sizes", frozenset({"total", "count", "name"})),
    ("kernels-by-shape", frozenset({"total time", "count", "gridxyz", "blockxyz", "name"})),
    ("times", frozenset({"total time", "count", "name"})),
)
# How a table begins, and what nsys stats itself says between them.
_SIGN = re.compile(
    r"^(?:Processing \[[^\n]*\] with \[[^\n]*\.py\]|SKIPPED: "
    r'|"?Time ?\(%\)"?,"?Total Time'
    r'|"?Start(?: \([a-z]+\))?"?,"?Duration[^\n]*CorrId'
    r'|"?Total(?: \([A-Za-z]+\))?"?,"?(?:Count|Operations)|"?(?:NVTX )?Range"?,"?Style"?,|PID,TID,DevId,)',
    re.MULTILINE,
)


def looks_like_stats(head: bytes) -> bool:
    """True where a table of nsys stats begins, or a line of nsys stats itself stands."""
    return _SIGN.search(head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")) is not None


@dataclass
class StatsTable:
    """One report: its kind, its columns with their units, and its rows as texts by column."""

    kind: str
    columns: tuple[str, ...]
    units: dict[str, str]
    report: str | None = None  # as nsys called it: cuda_gpu_kern_sum
    counted: str = ""  # what it counts, in the words of its header: instances, num calls
    rows: list[dict[str, str]] = field(default_factory=list)


@dataclass
class StatsText:
    """What a text held. `odd` rows did not fit their header."""

    sections: list[StatsTable] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    odd: int = 0


def parse_tables(lines: Iterable[str], take: Callable[[StatsTable, dict[str, str]], None]) -> StatsText:
    """The tables of a text. A row belongs to the last header above it.

    `take` gets the rows of `gpu-trace`, one per launch: there may be millions.
    """
    text = StatsText()
    current: StatsTable | None = None
    report: str | None = None
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        if (title := _parse_title(line)) is not None:
            report, current = title, None
            continue
        if _NOTICE.match(line):
            continue
        cells = next(_cells(line), None)
        if cells is None:
            text.odd += 1
        elif (section := _header(cells)) is not None:
            section.report, current = report, section
            text.sections.append(section)
        elif current is not None and len(cells) == len(current.columns):
            row = dict(zip(current.columns, cells, strict=True))
            if current.kind == "gpu-trace":
                take(current, row)
            else:
                current.rows.append(row)
        elif current is not None:
            text.odd += 1
    return text


def _parse_title(line: str) -> str | None:
    """The report that a line announces."""
    if line[:1] in _ROWS:  # there may be millions
        return None
    return next((match[1] for pattern in _NAMED if (match := pattern.search(line)) is not None), None)


def _cells(line: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([line.rstrip("\r\n")])
    except csv.Error:  # a field of more than 128 KiB
        return


def _header(cells: list[str]) -> StatsTable | None:
    names, units, counted = [], {}, ""
    for cell in cells:
        matched = _HEADER.match(cell)
        title = matched[1].lower() if matched else cell.lower()
        name = _ALIASES.get(title, title)
        counted = title if name == "count" else counted
        names.append(name)
        if matched and matched[2] is not None:
            units[name] = matched[2]
    there = set(names)
    for kind, needed in KINDS:
        if needed <= there:
            return StatsTable(kind, tuple(names), units, counted=counted)
    return None


_SECONDS = {
    "ns": 1e-9,
    "nsec": 1e-9,
    "us": 1e-6,
    "usec": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
}
_BYTES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
COPY = re.compile(r"\[(?:CUDA )?(?:Unified Memory )?(memcpy|memset|copy)\s*([^\]]*)\]", re.IGNORECASE)
_DIRECTIONS = {
    "htod": "host to device",
    "dtoh": "device to host",
    "dtod": "device to device",
    "htoh": "host to host",
    "ptop": "peer to peer",
}


def split_range(text: str) -> tuple[str, str | None]:
    """A range's name and domain: nsys writes `domain:name`, and `:name` for the default domain."""
    domain, colon, name = text.partition(":")
    return (name, domain or None) if colon else (text, None)


def copy_kind(name: str) -> str:
    """`[CUDA memcpy Host-to-Device]` and `[CUDA memcpy HtoD]` in the words that all traces use."""
    matched = COPY.match(name)
    if matched is None:
        return name
    if matched[1].lower() == "memset":
        return "memset"
    direction = matched[2].strip()
    return _DIRECTIONS.get(direction.lower(), direction.replace("-", " ").lower() or "copy")


def parse_number(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_MOST_SECONDS = 4e9  # since 1970, as no clock says more; in ns it is a number of 64 bits
_MOST_BYTES = 1 << 63


def whole_number(text: str | None) -> int | None:
    """A whole number that is not negative, or None."""
    value = parse_number(text)
    return int(value) if value is not None and 0 <= value < _MOST_BYTES else None


def cell_seconds(section: StatsTable, row: dict[str, str], column: str) -> float | None:
    """A time in seconds, by the unit in its header; without one all times are ns."""
    value = parse_number(row.get(column))
    factor = _SECONDS.get(section.units.get(column, "ns").lower())
    if value is None or factor is None:
        return None
    seconds = value * factor
    return seconds if 0 <= seconds < _MOST_SECONDS else None


def cell_bytes(section: StatsTable, row: dict[str, str], column: str) -> int | None:
    """Bytes, by the unit in the header."""
    value = parse_number(row.get(column))
    factor = _BYTES.get(section.units.get(column, "b").lower())
    if value is None or factor is None or not abs(value * factor) < _MOST_BYTES:
        return None
    return round(value * factor)


def parse_triple(text: str | None) -> tuple[int, ...]:
    """`   4    1    1` as three numbers; zeros where it is not told."""
    numbers = [int(part) for part in re.findall(r"\d{1,10}", text or "")][:3]
    return tuple((*numbers, 1, 1)[:3]) if numbers else (0, 0, 0)


_DEVICE = re.compile(r"\((\d{1,4})\)\s*$")  # "NVIDIA H200 (0)"


@dataclass
class LaunchRows:
    """Takes one row after the other. `odd` rows have no time."""

    collected: Collected = field(default_factory=Collected)
    odd: int = 0

    def take(self, section: StatsTable, row: dict[str, str]) -> None:
        """Take note of a row."""
        start, length = cell_seconds(section, row, "start"), cell_seconds(section, row, "duration")
        if start is None or length is None:
            self.odd += 1
            return
        begin = round(start * 1e9)
        end = begin + round(length * 1e9)
        named = _DEVICE.search(row["device"])
        device = int(named[1]) if named else 0
        key, name = whole_number(row["corrid"]), row["name"]
        key = -1 if key is None else key
        stream = whole_number(row.get("strm")) or 0
        if COPY.match(name):
            size = cell_bytes(section, row, "bytes") or 0
            kind = TransferKind(copy_kind(name))
            self.collected.transfer(kind, begin, end, size, key=key, device=device, stream=stream)
        else:
            self.collected.kernel(
                _configuration(section, row), begin, end, key=key, device=device, stream=stream
            )

    def trace(self) -> tuple[GpuTrace, list[str]]:
        """What the rows tell, and what is to be said of it."""
        collected = self.collected
        from profkit.analysis.timeline.trace import build_trace  # whether a file is one is asked of many

        trace, notes = build_trace(
            Recording("nsys", collected.activities(), collected.calls(), collected.tables)
        )
        return trace, list(notes)


def _configuration(section: StatsTable, row: dict[str, str]) -> Configuration:
    def three(names: tuple[str, str, str]) -> tuple[int, int, int]:
        x, y, z = (whole_number(row.get(name)) or 0 for name in names)
        return x, y, z

    parts = [cell_bytes(section, row, name) for name in ("stcsmem", "dymsmem")]
    # In MB with three digits the memory of a kernel is 1 kB more or less: what is told, but no number of bytes.
    exact = section.units.get("stcsmem", "B").lower() == "b"
    return Configuration(
        row["name"],
        three(("grdx", "grdy", "grdz")),
        three(("blkx", "blky", "blkz")),
        None,
        whole_number(row.get("reg/trd")),
        sum(part or 0 for part in parts) if exact and None not in parts else None,
    )


Tables = list[StatsTable]
UNNAMED = "[unnamed]"
_OF_KERNELS = re.compile(
    "kern|gpu_?sum", re.IGNORECASE
)  # cuda_gpu_kern_sum, gpukernsum, CUDA Kernel Statistics


def read_stats(path: Path) -> Report:
    """The trace that the tables tell. Raises UnreadableReport where all were skipped, as nsys says with exit code 0."""
    launches = LaunchRows()
    try:
        with open_regular_text(path, encoding="utf-8-sig", errors="replace") as file:
            text = parse_tables(lines_of(file, path), launches.take)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # an embedded null byte in the name
        raise UnreadableReport(f"{str(path)!r} is no file name: {error}") from error
    one_by_one = bool(launches.collected.devices)
    if not one_by_one and not any(section.rows for section in text.sections):
        raise _empty_report_error(path, text)
    trace, warnings = launches.trace() if one_by_one else (GpuTrace("nsys", ()), [])
    trace, more = _with_sums(trace, text.sections)
    warnings += [*more, *(f"nsys stats: {said}" for said in dict.fromkeys(text.skipped))]
    if odd := text.odd + launches.odd:
        warnings.append(f"{odd} rows were not understood and left out")
    reports = sorted({section.report for section in text.sections if section.report is not None})
    facts = {"reports": ", ".join(reports)} if reports else {}
    return Report("nsys", "nsys-stats-csv", facts=facts, trace=trace, warnings=tuple(warnings))


def _empty_report_error(path: Path, text: StatsText) -> UnreadableReport:
    remark = f"SKIPPED: {text.skipped[0]}" if text.skipped else ""
    fault = explain(remark, 0) if remark else None
    if fault is not None:
        return UnreadableReport(f"{path} holds no table: {fault.reason}", fault.fix)
    remark = remark or "the trace has nothing of what was asked for"
    return UnreadableReport(
        f"{path} holds no table of nsys stats in CSV with a row in it: {remark}",
        "nsys stats --format csv REPORT",
    )


def _with_sums(trace: GpuTrace, sections: Iterable[StatsTable]) -> tuple[GpuTrace, list[str]]:
    """`trace`, and what the tables of sums add to it."""
    by_kind: dict[str, Tables] = {}
    for section in sections:
        by_kind.setdefault(_section_kind(section), []).append(section)
    warnings: list[str] = []
    if not trace.kernels:
        tables = by_kind.get("kernels-by-shape") or by_kind.get("times") or by_kind.get("nvtx-kernels")
        kernels = _kernel_times(tables or [])
        trace = replace(trace, kernels=kernels, launches=sum(kernel.launches for kernel in kernels))
        if any(not sum(kernel.kernel.grid) for kernel in kernels):
            warnings.append(
                "grids and blocks are missing from this report: nsys stats --report cuda_gpu_kern_gb_sum has them"
            )
    copies, sizes, calls = (by_kind.get(kind, []) for kind in ("copies", "sizes", "calls"))
    if copies and not sizes and not trace.transfers:
        warnings.append("copies have no sizes here: nsys stats --report cuda_gpu_mem_size_sum has them")
    trace = replace(
        _with_ranges(trace, by_kind.get("nvtx-kernels", []), by_kind.get("nvtx-projection", [])),
        transfers=trace.transfers or _transfers(copies, sizes),
        api=_calls(calls),
        launch_call=_launch_call(calls),
    )
    return trace, warnings


def _section_kind(section: StatsTable) -> str:
    """Its kind. Kernels, copies and calls of CUDA, of the system and of OpenACC have the same columns.

    What tells them apart is the report's name, how the header calls what it counts, or else the rows.
    """
    if section.kind != "times" or not section.rows:
        return section.kind
    names = [row["name"] for row in section.rows]
    if all(COPY.match(name) for name in names):
        return "copies"
    if section.counted == "num calls":
        return "calls" if all(re.match(r"cu(?:da)?[A-Z]", name) for name in names[:50]) else "others"
    if section.report is not None and not _OF_KERNELS.search(section.report):
        return "others"
    return section.kind


def _kernel_times(sections: Tables) -> tuple[KernelTime, ...]:
    times: dict[Kernel, KernelTime] = {}
    for section in sections:
        for row in section.rows:
            total, launches = cell_seconds(section, row, "total time"), whole_number(row.get("count"))
            if total is None or launches is None or COPY.match(row["name"]):
                continue
            kernel = Kernel(
                row["name"] or UNNAMED, parse_triple(row.get("gridxyz")), parse_triple(row.get("blockxyz"))
            )
            median, least, most = (cell_seconds(section, row, column) for column in ("med", "min", "max"))
            new = KernelTime(kernel, launches, total, median, least, most)
            times[kernel] = _merge_kernel_times(times[kernel], new) if kernel in times else new
    return tuple(sorted(times.values(), key=lambda k: -k.total))


def _merge_kernel_times(first: KernelTime, second: KernelTime) -> KernelTime:
    """Of a kernel that comes twice, as in two ranges. Two medians make none."""
    least = [time for time in (first.least, second.least) if time is not None]
    most = [time for time in (first.most, second.most) if time is not None]
    launches, total = first.launches + second.launches, first.total + second.total
    return KernelTime(first.kernel, launches, total, None, min(least, default=None), max(most, default=None))


def _calls(sections: Tables) -> tuple[ApiCall, ...]:
    calls = [
        ApiCall(call_name(row["name"]), count, spent)
        for section in sections
        for row in section.rows
        if (count := whole_number(row.get("count"))) is not None
        and (spent := cell_seconds(section, row, "total time")) is not None
    ]
    return tuple(sorted(calls, key=lambda call: -call.seconds))


def _launch_call(sections: Tables) -> float | None:
    """The median of the launch call that was made most often."""
    launches = [
        (whole_number(row.get("count")) or 0, cell_seconds(section, row, "med"))
        for section in sections
        for row in section.rows
        if "Launch" in row["name"]
    ]
    return max(launches, key=lambda pair: pair[0], default=(0, None))[1]


def _transfers(times: Tables, sizes: Tables) -> tuple[Transfer, ...]:
    size = {
        row["name"]: total
        for section in sizes
        for row in section.rows
        if (total := cell_bytes(section, row, "total")) is not None
    }
    transfers = [
        Transfer(copy_kind(row["name"]), count, size[row["name"]], spent)
        for section in times
        for row in section.rows
        # Without its bytes it is no transfer: 0 of them would be invented.
        if row["name"] in size
        and (count := whole_number(row.get("count"))) is not None
        and (spent := cell_seconds(section, row, "total time")) is not None
    ]
    return tuple(sorted(transfers, key=lambda transfer: -transfer.seconds))


def _with_ranges(trace: GpuTrace, kernels: Tables, projections: Tables) -> GpuTrace:
    """The ranges of each kernel by its name; the ranges themselves where their wall time is told as well."""
    names: dict[str, dict[str, None]] = {}
    launched: dict[str, int] = {}
    busy: dict[str, float] = {}
    for section in kernels:
        for row in section.rows:
            key = row["range"]
            names.setdefault(row["name"], {})[split_range(key)[0]] = None
            launches, spent = whole_number(row.get("count")), cell_seconds(section, row, "total time")
            if launches is not None and spent is not None:
                launched[key] = launched.get(key, 0) + launches
                busy[key] = busy.get(key, 0.0) + spent
    ranges = [
        GpuRange(*split_range(row["range"]), entries, wall, launched[row["range"]], busy[row["range"]])
        for section in projections
        for row in section.rows
        if row["range"] in launched
        and (entries := whole_number(row.get("range inst"))) is not None
        and (wall := cell_seconds(section, row, "total range time")) is not None
    ]
    marked = tuple(
        kernel if kernel.ranges else replace(kernel, ranges=tuple(names.get(kernel.kernel.name, {})))
        for kernel in trace.kernels
    )
    return replace(trace, kernels=marked, ranges=tuple(sorted(ranges, key=lambda r: -r.gpu_seconds)))
