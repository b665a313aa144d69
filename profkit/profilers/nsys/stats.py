"""Reads the CSV of `nsys stats`: kernels and calls, summed up by name.

The SQLite export of a trace has more, such as copies.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import ApiCall, Fact, GpuTrace, Kernel, KernelTime, Report
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
_NAMED = re.compile(r"with \[(?:[^\]]*[/\\])?(\w+)\.py\]|^\[\d+/\d+\] Executing '(\w+)' stats report")
_ALIASES = {"num calls": "count", "instances": "count", "kernel name": "name", "operation": "name"}
# Of ranges and single launches SQLite has more, so tables with such a column are not read here.
_NOT_READ = frozenset({"range", "nvtx range", "corrid", "api name"})
# How a table begins, and what nsys stats itself says between them.
_SIGN = re.compile(
    r"^(?:Processing \[[^\n]*\] with \[[^\n]*\.py\]|SKIPPED: "
    r'|"?Time ?\(%\)"?,"?Total Time)',
    re.MULTILINE,
)
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
_TIMES = ("total time", "avg", "med", "min", "max")
_INTEGER_LIMIT = 1 << 63
COPY = re.compile(r"\[(?:CUDA )?(?:Unified Memory )?(memcpy|memset|copy)\s*([^\]]*)\]", re.IGNORECASE)
# cuda_gpu_kern_sum, gpukernsum, CUDA Kernel Statistics
_OF_KERNELS = re.compile("kern|gpu_?sum", re.IGNORECASE)
UNNAMED = "[unnamed]"


def looks_like_stats(head: bytes) -> bool:
    """Return whether the text has the header of an nsys stats table, or a line of nsys stats itself."""
    return _SIGN.search(head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")) is not None


@dataclass
class StatsTable:
    """One report of nsys stats: its columns with their units, and its rows as texts by column."""

    columns: tuple[str, ...]
    units: dict[str, str]
    counted: str  # what it counts, in the words of its header: instances, num calls
    report: str | None = None  # as nsys called it: cuda_gpu_kern_sum
    rows: list[dict[str, str]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Return what the table is about: kernels, shapes, copies, calls or others.

        Kernels, copies and calls of CUDA, of the system and of OpenACC have the same columns. What tells them apart
        is the header's name for what it counts, the report's name, or else the rows.
        """
        if "gridxyz" in self.columns:
            return "shapes"
        names = [row["name"] for row in self.rows]
        if all(COPY.match(name) for name in names):
            return "copies"
        if self.counted == "num calls":
            return "calls" if all(re.match(r"cu(?:da)?[A-Z]", name) for name in names[:50]) else "others"
        return "kernels" if self.report is None or _OF_KERNELS.search(self.report) else "others"

    def unknown_units(self) -> set[str]:
        """Return the units of the times that are not known."""
        return {unit for name, unit in self.units.items() if name in _TIMES and unit.lower() not in _SECONDS}

    def time(self, row: dict[str, str], column: str) -> float | None:
        """Return a time in seconds, by the unit in the header; without one all times are ns."""
        return _number(row.get(column), _SECONDS.get(self.units.get(column, "ns").lower()))


@dataclass
class StatsText:
    """The content of a text. `odd` counts rows that did not fit their header."""

    tables: list[StatsTable] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    odd: int = 0


def parse_tables(lines: Iterable[str]) -> StatsText:
    """Parse the tables of a text. A row belongs to the last header above it."""
    text = StatsText()
    current: StatsTable | None = None
    report: str | None = None
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        if (title := _NAMED.search(line)) is not None:
            report, current = title[1] or title[2], None
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
    present = set(names)
    if present & _NOT_READ or not {"count", "name", "total time"} <= present:
        return None
    return StatsTable(tuple(names), units, counted)


def _number(text: str | None, factor: float | None = 1.0) -> float | None:
    """Return a finite number that is not negative, times a factor; None for any other, or without a factor."""
    try:
        value = float(text or "") * (float("nan") if factor is None else factor)
    except ValueError:
        return None
    return value if 0 <= value < _INTEGER_LIMIT else None


def _parse_triple(text: str | None) -> tuple[int, ...]:
    """Parse `   4    1    1` into three numbers; zeros where it is missing."""
    numbers = [int(part) for part in re.findall(r"\d{1,10}", text or "")][:3]
    return tuple((*numbers, 1, 1)[:3]) if numbers else (0, 0, 0)


def read_stats(path: Path) -> Report:
    """Read the trace from the tables. Raises UnreadableReport where none has kernels or calls.

    nsys ends with exit code 0 even where it skipped all of them.
    """
    with reading(path), io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", errors="replace") as file:
        text = parse_tables(lines_of(file, path))
    if not any(table.rows and table.kind != "copies" for table in text.tables):
        fault = explain(f"SKIPPED: {text.skipped[0]}", 0) if text.skipped else None
        if fault is not None:
            raise UnreadableReport(f"{path} holds no table: {fault.reason}", fault.fix)
        raise UnreadableReport(
            f"{path} has no CSV table of nsys stats with kernels or calls in it",
            "nsys stats --report cuda_gpu_kern_gb_sum --format csv REPORT; for ranges and single launches: SQLite",
        )
    if unknown := sorted({unit for table in text.tables for unit in table.unknown_units()}):
        raise UnreadableReport(
            f"{path} has times in {unknown[0][:40]!r}, which is not a unit that nsys knows"
        )
    trace, warnings = _trace_of(text.tables)
    warnings += [
        Fact.of("says", program="nsys stats", said=message) for message in dict.fromkeys(text.skipped)
    ]
    if text.odd:
        warnings.append(Fact.of("rows-left-out", count=text.odd))
    reports = sorted({table.report for table in text.tables if table.report is not None})
    facts = {"reports": ", ".join(reports)} if reports else {}
    return Report("nsys", "nsys-stats-csv", facts=facts, trace=trace, warnings=tuple(warnings))


_Rows = list[tuple[dict[str, str], StatsTable, int, float]]  # a row, its table, how often, seconds


def _trace_of(tables: Iterable[StatsTable]) -> tuple[GpuTrace, list[Fact]]:
    """Build the trace from the tables, with remarks on it."""
    by_kind: dict[str, list[StatsTable]] = {}
    for table in tables:
        by_kind.setdefault(table.kind, []).append(table)

    def rows(*kinds: str) -> _Rows:
        chosen = next((by_kind[kind] for kind in kinds if kind in by_kind), [])
        return [
            (row, table, int(count), spent)
            for table in chosen
            for row in table.rows
            if (count := _number(row.get("count"))) is not None
            and (spent := table.time(row, "total time")) is not None
        ]

    kernels = _kernel_times(rows("shapes", "kernels"))
    calls = [
        (ApiCall(call_name(row["name"]), count, spent), table.time(row, "med"))
        for row, table, count, spent in rows("calls")
    ]
    launches = [(call.calls, median) for call, median in calls if "Launch" in call.name]
    no_grids = any(not sum(kernel.kernel.grid) for kernel in kernels)
    trace = GpuTrace(
        "nsys",
        kernels,
        launches=sum(kernel.launches for kernel in kernels),
        api=tuple(sorted((call for call, _ in calls), key=lambda call: -call.seconds)),
        launch_call=max(launches, key=lambda pair: pair[0], default=(0, None))[1],
    )
    return trace, [Fact("no-grids")] if no_grids else []


def _kernel_times(rows: _Rows) -> tuple[KernelTime, ...]:
    times: dict[Kernel, KernelTime] = {}
    for row, table, launches, total in rows:
        if COPY.match(row["name"]):
            continue
        grid, block = _parse_triple(row.get("gridxyz")), _parse_triple(row.get("blockxyz"))
        kernel = Kernel(row["name"] or UNNAMED, grid, block)
        median, least, most = (table.time(row, column) for column in ("med", "min", "max"))
        times.setdefault(kernel, KernelTime(kernel, launches, total, median, least, most))
    return tuple(sorted(times.values(), key=lambda k: -k.total))
