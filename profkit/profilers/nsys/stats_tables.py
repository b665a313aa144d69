"""The text of `nsys stats` as tables, CSV or columns: several in one, each with its header, and what was skipped."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

_RULE = re.compile(r"^\s*-{3,}(?:\s+-{3,})+\s*$")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?$")  # 27,216,868.0
_DECIMAL_COMMA = re.compile(r"\d{1,3},\d+$")  # 33,0 % in a locale that groups with points


@dataclass(frozen=True)
class ColumnLayout:
    """From where to where each column goes, by the dashes under its header."""

    spans: tuple[tuple[int, int], ...]

    def cells(self, line: str) -> list[str] | None:
        """The cells of a line; None where it is no row of this table. Of the last column there may be more."""
        line = line.rstrip("\r\n")
        edges = [end for _, end in self.spans[:-1]]
        if all(not line[end : end + 1].strip() for end in edges):
            starts = [0, *edges]
            return [line[a:b].strip() for a, b in zip(starts, [*edges, len(line)], strict=True)]
        cells = re.split(r"\s{2,}", line.strip(), maxsplit=len(self.spans) - 1)
        return cells if len(cells) == len(self.spans) else None


def find_layout(line: str) -> ColumnLayout | None:
    """The layout that a rule of dashes tells; None of any other line."""
    if "---" not in line or len(line) > 1 << 16 or _RULE.match(line) is None:
        return None
    return ColumnLayout(tuple(match.span() for match in re.finditer("-+", line)))


def has_decimal_comma(share: str) -> bool:
    """Whether a percentage is written as `33,0`: then points are what groups digits."""
    return _DECIMAL_COMMA.match(share) is not None


def strip_grouping(cell: str, *, comma: bool) -> str:
    """A number without what groups its digits, and with a decimal point; any other text as it is."""
    if comma and re.fullmatch(r"[\d.]+(?:,\d+)?", cell):
        return cell.replace(".", "").replace(",", ".")
    return cell.replace(",", "") if _GROUPED.match(cell) else cell


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
_SIGN = re.compile(
    r"^(?:Processing \[[^\n]*\] with \[[^\n]*\.py\]|SKIPPED: "
    r"|Running \[[^\n]*\.py [^\n]*\]|\[\d+/\d+\] Executing '\w+' stats report|CUDA \w+ Statistics \(nanoseconds\)"
    r'|"?Time ?\(%\)"?,"?Total Time|[ ]{0,4}Time ?\(%\)[ ]{2,}Total Time'
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
    columns: ColumnLayout | None = None  # of a table that is not CSV
    report, unit, previous, comma = None, None, "", False
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        if (named := _parse_title(line)) is not None:
            (report, unit), current, columns = named, None, None
            continue
        if _NOTICE.match(line):
            continue
        if (found := find_layout(line)) is not None:
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
                row = {
                    name: v if name == "name" else strip_grouping(v, comma=comma) for name, v in row.items()
                }
            if columns is not None and not row[current.columns[0]][:1].isdigit():
                continue  # what the workload printed below the table
            if current.kind == "gpu-trace":
                take(current, row)
            else:
                current.rows.append(row)
        elif current is not None:
            text.odd += 1
    return text


def _parse_title(line: str) -> tuple[str, str | None] | None:
    """The report that a line announces, and the unit of its sizes where the line tells it."""
    if line[:1] in _ROWS:  # there may be millions
        return None
    for pattern in _NAMED:
        if (found := pattern.search(line)) is not None:
            unit = found[2] if pattern.groups > 1 else None
            return found[1], unit if unit == "KiB" else None
    return None


def _begin(text: StatsText, section: StatsTable, report: str | None, unit: str | None) -> None:
    section.report = report
    if unit is not None:
        section.units.setdefault("total", unit)
    text.sections.append(section)


def _cells(line: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([line.rstrip("\r\n")])
    except csv.Error:  # a field of more than 128 KiB
        return


def _header(cells: list[str]) -> StatsTable | None:
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
            return StatsTable(kind, tuple(names), units, counted=counted)
    return None
