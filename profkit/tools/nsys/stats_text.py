"""The text of `nsys stats --format csv` as tables: several in one, each with its header, and what was skipped."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

# "Total Time (ns)": what it is, and in which unit. "Time (%)" and "Time(%)" are the same column of two versions.
_HEADER = re.compile(r"^\s*(.*?)\s*(?:\(([^()]*)\))?\s*$")
_SKIPPED = re.compile(r"SKIPPED: (.*)")
_NOTICE = re.compile(
    r"^(?:Processing \[|Generating |NOTICE:|WARNING|ERROR|Using |SKIPPED:|\s+It is|\s+Consider|\*\* |\s*$)"
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
    r'|"?Time ?\(%\)"?,"?Total Time|"?Start(?: \([a-z]+\))?"?,"?Duration[^\n]*CorrId'
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
    report: str | None = None
    for line in lines:
        if (skipped := _SKIPPED.search(line)) is not None:
            text.skipped.append(skipped[1].strip())
        if _NOTICE.match(line):
            if (named := re.search(r"with \[(?:[^\]]*[/\\])?(\w+)\.py\]", line)) is not None:
                report, current = named[1], None
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


def _cells(line: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([line.rstrip("\r\n")])
    except csv.Error:  # a field of more than 128 KiB
        return


def _header(cells: list[str]) -> Section | None:
    names, units = [], {}
    for cell in cells:
        matched = _HEADER.match(cell)
        name = matched[1].lower() if matched else cell.lower()
        name = _ALIASES.get(name, name)
        names.append(name)
        if matched and matched[2] is not None:
            units[name] = matched[2]
    there = set(names)
    for kind, needed in KINDS:
        if needed <= there:
            return Section(kind, tuple(names), units)
    return None
