"""The text of `nsys stats` as tables, CSV or columns: several in one, each with its header, and what was skipped."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from profkit.profilers.nsys.stats_columns import Layout, has_decimal_comma, layout, ungrouped

# "Total Time (ns)": what it is, and in which unit. "Time (%)" and "Time(%)" are the same column of two versions.
_HEADER = re.compile(r"^\s*(.*?)\s*(?:\(([^()]*)\))?\s*$")
_SKIPPED = re.compile(r"SKIPPED: (.*)")
_NOTICE = re.compile(
    r"^(?:Processing \[|Running \[|\[\d+/\d+\] |Generating |NOTICE:|WARNING|ERROR|Using |SKIPPED:|\s+It is|\s+Consider|"
    r"\s?\*\* |\s*$)"
)
_ROWS = frozenset('0123456789" ')  # how those of tables begin
# How the versions say which report comes next; the last is that of 2020, whose headers have no units.
_NAMED = (
    re.compile(r"with \[(?:[^\]]*[/\\])?(\w+)\.py\]"),
    re.compile(r"^Running \[(?:[^\]]*[/\\])?(\w+)\.py(?: [^\]]*)?\]"),
    re.compile(r"^\[\d+/\d+\] Executing '(\w+)' stats report"),
    re.compile(r"^([A-Z][\w ]*) Statistics \((nanoseconds|KiB)\)\s*$"),
)
_ALIASES = {
    "average": "avg",
    "minimum": "min",
    "maximum": "max",
    "median": "med",
    "num calls": "count",
    "calls": "count",
    "instances": "count",
    "operations": "count",
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
SIGN = re.compile(
    r"^(?:Processing \[[^\n]*\] with \[[^\n]*\.py\]|SKIPPED: "
    r"|Running \[[^\n]*\.py [^\n]*\]|\[\d+/\d+\] Executing '\w+' stats report|CUDA \w+ Statistics \(nanoseconds\)"
    r'|"?Time ?\(%\)"?,"?Total Time|[ ]{0,4}Time ?\(%\)[ ]{2,}Total Time'
    r'|"?Start(?: \([a-z]+\))?"?,"?Duration[^\n]*CorrId'
    r'|"?Total(?: \([A-Za-z]+\))?"?,"?(?:Count|Operations)|"?(?:NVTX )?Range"?,"?Style"?,|PID,TID,DevId,)',
    re.MULTILINE,
)


@dataclass
class Section:
    """One report: its kind, its columns with their units, and its rows as texts by column."""

    kind: str
    columns: tuple[str, ...]
    units: dict[str, str]
    report: str | None = None  # as nsys called it: cuda_gpu_kern_sum
    counted: str = ""  # what it counts, in the words of its header: instances, num calls
    rows: list[dict[str, str]] = field(default_factory=list)


@dataclass
class Text:
    """What a text held. `odd` rows did not fit their header."""

    sections: list[Section] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    odd: int = 0


def parse(lines: Iterable[str], take: Callable[[Section, dict[str, str]], None]) -> Text:
    """The tables of a text. A row belongs to the last header above it.

    `take` gets the rows of `gpu-trace`, one per launch: there may be millions.
    """
    text = Text()
    current: Section | None = None
    columns: Layout | None = None  # of a table that is not CSV
    report, unit, previous, comma = None, None, "", False
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        if (named := _named(line)) is not None:
            (report, unit), current, columns = named, None, None
            continue
        if _NOTICE.match(line):
            continue
        if (found := layout(line)) is not None:
            columns, current = found, _header(found.cells(previous) or [])
            if current is not None:
                _begin(text, current, report, unit)
            continue
        previous = line
        cells = columns.cells(line) if columns is not None else next(_cells(line), None)
        if cells is None:
            text.odd += columns is None
        elif columns is None and (section := _header(cells)) is not None:
            current = section
            _begin(text, current, report, unit)
        elif current is not None and len(cells) == len(current.columns):
            comma = comma or (columns is not None and has_decimal_comma(cells[0]))
            row = dict(zip(current.columns, cells, strict=True))
            if columns is not None or '"' in line:  # without quotes no cell of CSV has a comma in it
                row = {name: v if name == "name" else ungrouped(v, comma=comma) for name, v in row.items()}
            if columns is not None and not row[current.columns[0]][:1].isdigit():
                continue  # what the workload printed below the table
            if current.kind == "gpu-trace":
                take(current, row)
            else:
                current.rows.append(row)
        elif current is not None:
            text.odd += 1
    return text


def _named(line: str) -> tuple[str, str | None] | None:
    """The report that a line announces, and the unit of its sizes where the line tells it."""
    if line[:1] in _ROWS:  # there may be millions
        return None
    for pattern in _NAMED:
        if (found := pattern.search(line)) is not None:
            unit = found[2] if pattern.groups > 1 else None
            return found[1], unit if unit == "KiB" else None
    return None


def _begin(text: Text, section: Section, report: str | None, unit: str | None) -> None:
    section.report = report
    if unit is not None:
        section.units.setdefault("total", unit)
    text.sections.append(section)


def _cells(line: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([line.rstrip("\r\n")])
    except csv.Error:  # a field of more than 128 KiB
        return


def _header(cells: list[str]) -> Section | None:
    names, units, counted = [], {}, ""
    for cell in cells:
        matched = _HEADER.match(cell)
        told = matched[1].lower() if matched else cell.lower()
        name = _ALIASES.get(told, told)
        counted = told if name == "count" else counted
        names.append(name)
        if matched and matched[2] is not None:
            units[name] = matched[2]
    there = set(names)
    for kind, needed in KINDS:
        if needed <= there:
            return Section(kind, tuple(names), units, counted=counted)
    return None
