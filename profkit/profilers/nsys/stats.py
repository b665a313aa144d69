"""Reads the CSV of `nsys stats`: kernels, copies and calls, summed up by name. Of a trace SQLite has more."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular_text
from profkit.core.types import ApiCall, GpuTrace, Kernel, KernelTime, Report, Transfer
from profkit.profilers.files import lines_of, reading
from profkit.profilers.nsys.command import explain
from profkit.profilers.nsys.database import call_name

# "Total Time (ns)": what it is, and in which unit. "Time (%)" and "Time(%)" are the same column of two versions.
_HEADER = re.compile(r"^\s*(.*?)\s*(?:\(([^()]*)\))?\s*$")
_SKIPPED = re.compile(r"SKIPPED: (.*)")
_NOTICE = re.compile(
    r"^(?:Processing \[|Running \[|\[\d+/\d+\] |Generating |NOTICE:|WARNING|ERROR|Using |SKIPPED:|\s+It is|\s+Consider|"
    r"\s?\*\* |\s*$)"
)
# How nsys says which report comes next.
_NAMED = (
    re.compile(r"with \[(?:[^\]]*[/\\])?(\w+)\.py\]"),
    re.compile(r"^\[\d+/\d+\] Executing '(\w+)' stats report"),
)
_ALIASES = {"num calls": "count", "instances": "count", "kernel name": "name", "operation": "name"}
# Of each report the columns that no other has together. Of ranges and single launches SQLite has more, so those are
# not read here.
_NOT_READ = frozenset({"range", "nvtx range", "corrid", "api name"})
KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("sizes", frozenset({"total", "count", "name"})),
    ("kernels-by-shape", frozenset({"total time", "count", "gridxyz", "blockxyz", "name"})),
    ("times", frozenset({"total time", "count", "name"})),
)
# How a table begins, and what nsys stats itself says between them.
_SIGN = re.compile(
    r"^(?:Processing \[[^\n]*\] with \[[^\n]*\.py\]|SKIPPED: "
    r'|"?Time ?\(%\)"?,"?Total Time'
    r'|"?Total(?: \([A-Za-z]+\))?"?,"?(?:Count|Operations))',
    re.MULTILINE,
)
_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "usec", "μs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec"), 1.0),
}
_BYTES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_MOST = 1 << 63
COPY = re.compile(r"\[(?:CUDA )?(?:Unified Memory )?(memcpy|memset|copy)\s*([^\]]*)\]", re.IGNORECASE)
_DIRECTIONS = {
    "htod": "host to device",
    "dtoh": "device to host",
    "dtod": "device to device",
    "htoh": "host to host",
    "ptop": "peer to peer",
}
# cuda_gpu_kern_sum, gpukernsum, CUDA Kernel Statistics
_OF_KERNELS = re.compile("kern|gpu_?sum", re.IGNORECASE)
UNNAMED = "[unnamed]"


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

    tables: list[StatsTable] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    odd: int = 0


def parse_tables(lines: Iterable[str]) -> StatsText:
    """The tables of a text. A row belongs to the last header above it."""
    text = StatsText()
    current: StatsTable | None = None
    report: str | None = None
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        title = next((match[1] for pattern in _NAMED if (match := pattern.search(line)) is not None), None)
        if title is not None:
            report, current = title, None
            continue
        if _NOTICE.match(line):
            continue
        try:
            cells = next(csv.reader([line.rstrip("\r\n")]), [])
        except csv.Error:  # a field of more than 128 KiB
            cells = []
        if (table := _header(cells)) is not None:
            table.report, current = report, table
            text.tables.append(table)
        elif current is not None and len(cells) == len(current.columns):
            current.rows.append(dict(zip(current.columns, cells, strict=True)))
        else:
            text.odd += current is not None
    return text


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
    if there & _NOT_READ:
        return None
    kind = next((kind for kind, needed in KINDS if needed <= there), None)
    return StatsTable(kind, tuple(names), units, counted=counted) if kind is not None else None


def _number(text: str | None, factor: float | None = 1.0) -> float | None:
    """A finite number that is not negative, times a unit; None for any other, and for a unit that is not known."""
    try:
        value = float(text or "") * (math.nan if factor is None else factor)
    except ValueError:
        return None
    return value if 0 <= value < _MOST else None


def _seconds(table: StatsTable, row: dict[str, str], column: str) -> float | None:
    """A time by the unit in its header; without one all times are ns."""
    return _number(row.get(column), _SECONDS.get(table.units.get(column, "ns").lower()))


def _count(row: dict[str, str]) -> int | None:
    value = _number(row.get("count"))
    return None if value is None else int(value)


def _copy_kind(name: str) -> str:
    """`[CUDA memcpy Host-to-Device]` and `[CUDA memcpy HtoD]` in the words that all traces use."""
    matched = COPY.match(name)
    if matched is None:
        return name
    if matched[1].lower() == "memset":
        return "memset"
    direction = matched[2].strip()
    return _DIRECTIONS.get(direction.lower(), direction.replace("-", " ").lower() or "copy")


def _parse_triple(text: str | None) -> tuple[int, ...]:
    """`   4    1    1` as three numbers; zeros where it is not told."""
    numbers = [int(part) for part in re.findall(r"\d{1,10}", text or "")][:3]
    return tuple((*numbers, 1, 1)[:3]) if numbers else (0, 0, 0)


def read_stats(path: Path) -> Report:
    """The trace that the tables tell. Raises UnreadableReport where all were skipped, as nsys says with exit code 0."""
    with reading(path), open_regular_text(path, encoding="utf-8-sig", errors="replace") as file:
        text = parse_tables(lines_of(file, path))
    if not any(table.rows for table in text.tables):
        raise _empty_report_error(path, text)
    trace, warnings = _trace_of(text.tables)
    warnings += [f"nsys stats: {said}" for said in dict.fromkeys(text.skipped)]
    if text.odd:
        warnings.append(f"{text.odd} rows were not understood and left out")
    reports = sorted({table.report for table in text.tables if table.report is not None})
    facts = {"reports": ", ".join(reports)} if reports else {}
    return Report("nsys", "nsys-stats-csv", facts=facts, trace=trace, warnings=tuple(warnings))


def _empty_report_error(path: Path, text: StatsText) -> UnreadableReport:
    remark = f"SKIPPED: {text.skipped[0]}" if text.skipped else ""
    fault = explain(remark, 0) if remark else None
    if fault is not None:
        return UnreadableReport(f"{path} holds no table: {fault.reason}", fault.fix)
    return UnreadableReport(
        f"{path} holds no table of nsys stats in CSV with a row of kernels, copies or calls in it",
        "nsys stats --report cuda_gpu_kern_gb_sum --format csv REPORT; of ranges and single launches SQLite is read",
    )


def _trace_of(tables: Iterable[StatsTable]) -> tuple[GpuTrace, list[str]]:
    """What the tables tell, and what is to be said of it."""
    by_kind: dict[str, list[StatsTable]] = {}
    for table in tables:
        by_kind.setdefault(_table_kind(table), []).append(table)
    kernels = _kernel_times(by_kind.get("kernels-by-shape") or by_kind.get("times") or [])
    copies, sizes, calls = (by_kind.get(kind, []) for kind in ("copies", "sizes", "calls"))
    warnings = []
    if any(not sum(kernel.kernel.grid) for kernel in kernels):
        warnings.append(
            "grids and blocks are missing from this report: nsys stats --report cuda_gpu_kern_gb_sum has them"
        )
    if copies and not sizes:
        warnings.append("copies have no sizes here: nsys stats --report cuda_gpu_mem_size_sum has them")
    trace = GpuTrace(
        "nsys",
        kernels,
        launches=sum(kernel.launches for kernel in kernels),
        transfers=_transfers(copies, sizes),
        api=_calls(calls),
        launch_call=_launch_call(calls),
    )
    return trace, warnings


def _table_kind(table: StatsTable) -> str:
    """Its kind. Kernels, copies and calls of CUDA, of the system and of OpenACC have the same columns.

    What tells them apart is the report's name, how the header calls what it counts, or else the rows.
    """
    if table.kind != "times" or not table.rows:
        return table.kind
    names = [row["name"] for row in table.rows]
    if all(COPY.match(name) for name in names):
        return "copies"
    if table.counted == "num calls":
        return "calls" if all(re.match(r"cu(?:da)?[A-Z]", name) for name in names[:50]) else "others"
    if table.report is not None and not _OF_KERNELS.search(table.report):
        return "others"
    return table.kind


def _kernel_times(tables: Iterable[StatsTable]) -> tuple[KernelTime, ...]:
    times: dict[Kernel, KernelTime] = {}
    for table in tables:
        for row in table.rows:
            total, launches = _seconds(table, row, "total time"), _count(row)
            if total is None or launches is None or COPY.match(row["name"]):
                continue
            kernel = Kernel(
                row["name"] or UNNAMED, _parse_triple(row.get("gridxyz")), _parse_triple(row.get("blockxyz"))
            )
            median, least, most = (_seconds(table, row, column) for column in ("med", "min", "max"))
            times.setdefault(kernel, KernelTime(kernel, launches, total, median, least, most))
    return tuple(sorted(times.values(), key=lambda k: -k.total))


def _calls(tables: Iterable[StatsTable]) -> tuple[ApiCall, ...]:
    calls = [
        ApiCall(call_name(row["name"]), count, spent)
        for table in tables
        for row in table.rows
        if (count := _count(row)) is not None and (spent := _seconds(table, row, "total time")) is not None
    ]
    return tuple(sorted(calls, key=lambda call: -call.seconds))


def _launch_call(tables: Iterable[StatsTable]) -> float | None:
    """The median of the launch call that was made most often."""
    launches = [
        (_count(row) or 0, _seconds(table, row, "med"))
        for table in tables
        for row in table.rows
        if "Launch" in row["name"]
    ]
    return max(launches, key=lambda pair: pair[0], default=(0, None))[1]


def _transfers(times: Iterable[StatsTable], sizes: Iterable[StatsTable]) -> tuple[Transfer, ...]:
    size = {
        row["name"]: round(total)
        for table in sizes
        for row in table.rows
        if (total := _number(row.get("total"), _BYTES.get(table.units.get("total", "b").lower()))) is not None
    }
    transfers = [
        Transfer(_copy_kind(row["name"]), count, size[row["name"]], spent)
        for table in times
        for row in table.rows
        # Without its bytes it is no transfer: 0 of them would be invented.
        if row["name"] in size
        and (count := _count(row)) is not None
        and (spent := _seconds(table, row, "total time")) is not None
    ]
    return tuple(sorted(transfers, key=lambda transfer: -transfer.seconds))
