"""Reads the table of `perf report --stdio`, in columns or with a separator (`-t '|'`); call graphs are passed over.

The percentages are all there is: two decimals of a share of the event count. They are kept as `%`, since
counts made from them would look more exact than they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profkit.analysis.stacks.merge import UNKNOWN
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import Frame, Hotspot, Profile, ProfileKind, Report
from profkit.profilers.perf.samples import frame_of, library_of

_SAMPLES = re.compile(r"# Samples:\s*(\S+)\s+of events? '(.{1,500}?)'")
_COUNT = re.compile(r"# Event count \(approx\.\): (\d{1,20})")
_TITLES = re.compile(r"#\s*(?:Overhead|Children)\b")
_LOST = re.compile(r"# Total Lost Samples: (\d{1,18})")
_FACT = re.compile(r"# (perf version|arch|cpudesc) : (.{1,200})")
_DOTS = re.compile(r"\.{2,}")
_PERCENT = re.compile(r"\s*(\d{1,3}[.,]\d{2})%\s*")  # a comma where perf ran in such a locale
_SYMBOL = re.compile(r"\[[.kgHuh]\] (.*)")
_ROW = re.compile(r"\s*\d{1,3}[.,]\d{2}%")
MOST_LINE = 1 << 16  # a C++ symbol may be some thousand characters wide, and every row is padded to it
MOST_ROWS = 1_000_000
# By the column that names what a row is of.
_KINDS: dict[str, tuple[str, ProfileKind | None]] = {
    "Symbol": ("function", "functions"),
    "Shared Object": ("library", "libraries"),
    "": ("command", None),
}


def looks_like_report_text(head: bytes) -> bool:
    """True where the title line of perf report's table is among the first lines, or its header begins the file."""
    if b"\0" in head:
        return False
    text = head.decode("utf-8", "replace")
    titles = any(_TITLES.match(line) for line in text.splitlines()[:500])
    header_only = head.startswith(b"# ========\n# captured on") and all(
        line.startswith("#") or not line.strip() for line in text.splitlines()
    )
    return header_only or (titles and ("# Event count" in text or _SAMPLES.search(text) is not None))


@dataclass
class _Section:
    """One event's table."""

    event: str
    samples: str
    count: int | None = None
    titles: tuple[str, ...] = ()
    separator: str = ""
    spans: tuple[tuple[int, int | None], ...] = ()
    rows: dict[Frame, _FunctionRow] = field(default_factory=dict)


@dataclass
class _FunctionRow:
    """One function. Threads are disjoint, so their inclusive shares add up; those of two rows of one thread
    do not
    (one may have called the other): then there is no total."""

    own: float = 0
    total: float | None = None
    samples: int | None = None
    threads: set[str | None] = field(default_factory=set)
    nested: bool = False


def read_report_text(path: Path) -> Report:
    """A profile per event, by function where the report has symbols, else by library or command; unit `%`.

    `Hotspot.total` is the Children column where there is one. Rows of one function in several threads are
    added up. `counters["samples"]` where the report has that column. Raises UnreadableReport where there is
    no such table.
    """
    sections: list[_Section] = []
    facts: dict[str, str] = {}
    version: str | None = None
    odd = lost = 0
    for line in _lines(path):
        if not line.startswith("#"):
            if sections and sections[-1].titles and _ROW.match(line):
                odd += not _take_row(sections[-1], line)
        elif found := _SAMPLES.match(line):
            if len(sections) >= 1000:
                raise UnreadableReport(f"{path}: more than 1000 events: not a report of perf")
            sections.append(_Section(found[2], found[1]))
        elif sections and (found := _COUNT.match(line)):
            sections[-1].count = int(found[1])
        elif _TITLES.match(line):
            if not sections or sections[-1].titles:
                sections.append(_Section("samples", ""))
            _take_titles(sections[-1], line)
        elif sections and not sections[-1].separator and not sections[-1].spans and "...." in line:
            sections[-1].spans = _column_spans(line, len(sections[-1].titles))
        elif found := _LOST.match(line):
            lost += int(found[1])
        elif found := _FACT.match(line):
            if found[1] == "perf version":
                version = found[2].strip()
            else:
                facts["cpu" if found[1] == "cpudesc" else found[1]] = found[2].strip()
    sections = [section for section in sections if section.rows]
    if not sections and version is not None:
        return Report(
            "perf", "perf-report", version, facts, warnings=("the report has a header and no sample",)
        )
    if not sections:
        raise UnreadableReport(f"{path} holds no table of perf report")
    facts["events"] = " ".join(section.event for section in sections)
    facts["samples"] = " ".join(section.samples for section in sections)
    if counts := [str(section.count) for section in sections if section.count is not None]:
        facts["event count"] = " ".join(counts)
    warnings: tuple[str, ...] = (f"perf lost {lost} samples while recording",) if lost else ()
    warnings += (f"{odd} rows were not understood and left out",) if odd else ()
    profiles = tuple(_profile(section) for section in sections)
    return Report("perf", "perf-report-text", version, facts, profiles=profiles, warnings=warnings)


def _lines(path: Path) -> Iterator[str]:
    try:
        with open_regular(path) as file:
            while line := file.readline(MOST_LINE):
                if b"\0" in line:
                    raise UnreadableReport(f"{path} is a binary file, not the text of perf report")
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error


def _take_titles(section: _Section, line: str) -> None:
    """`# Overhead  Command  Shared Object  Symbol`, or the same with the separator between."""
    text = line[1:].strip()
    # Column titles hold letters, spaces and little else, so that anything else between them is the separator.
    other = re.search(r"[^\w\s/().]", text)
    section.separator = other[0] if other else ""
    parts = text.split(section.separator) if other else re.split(r"\s{2,}", text)
    section.titles = tuple(part.strip() for part in parts)


def _column_spans(line: str, columns: int) -> tuple[tuple[int, int | None], ...]:
    """The columns' places, from the line of dots under the titles; the last one is open."""
    found: list[tuple[int, int | None]] = [match.span() for match in _DOTS.finditer(line)]
    if len(found) != columns or not found:
        return ()
    return (*found[:-1], (found[-1][0], None))


def _take_row(section: _Section, line: str) -> bool:
    """Add one row; False where it cannot be told apart."""
    if section.separator:
        parts = [part.strip() for part in line.split(section.separator, len(section.titles) - 1)]
    elif section.spans:
        parts = [line[start:end].strip() for start, end in section.spans]
    else:
        parts = re.split(r"\s{2,}", line.strip(), maxsplit=len(section.titles) - 1)
    if len(parts) != len(section.titles):
        return False
    if not _PERCENT.fullmatch(parts[0]):
        return True  # a share within a call graph, further to the right
    cells = dict(zip(section.titles, parts, strict=True))
    total = _percent(cells.get("Children"))
    own = _percent(cells.get("Self") or cells.get("Overhead"))
    if own is None:
        return False
    row = section.rows.get(frame := _frame(cells))
    if row is None:
        if len(section.rows) >= MOST_ROWS:
            return False
        row = section.rows[frame] = _FunctionRow()
    row.own = round(row.own + own, 2)
    thread = cells.get("Command")
    row.nested |= thread in row.threads
    row.threads.add(thread)
    if total is not None:
        row.total = None if row.nested else round((row.total or 0) + total, 2)
    if (samples := cells.get("Samples", "")).isdecimal():
        row.samples = (row.samples or 0) + int(samples[:18])
    return True


def _percent(cell: str | None) -> float | None:
    found = _PERCENT.fullmatch(cell) if cell else None
    return float(found[1].replace(",", ".")) if found else None


def _frame(cells: dict[str, str]) -> Frame:
    """By symbol where there is one. An address that perf could not resolve stays: one row, one name."""
    dso = cells.get("Shared Object")
    symbol = cells.get("Symbol")
    if symbol is None:
        name = library_of(dso) if dso else cells.get("Command")
        return Frame(name or UNKNOWN, name if dso else None)
    found = _SYMBOL.fullmatch(symbol)
    name = (found[1] if found else symbol).strip()
    frame = frame_of(name, dso)
    return Frame(name or UNKNOWN, frame.library) if frame.function == UNKNOWN else frame


def _profile(section: _Section) -> Profile:
    hotspots = [
        Hotspot(
            frame.function,
            row.own,
            row.total,
            file=frame.file,
            library=frame.library,
            counters={} if row.samples is None else {"samples": row.samples},
        )
        for frame, row in section.rows.items()
    ]
    hotspots.sort(key=lambda h: (-h.own, -(h.total or 0), h.function))
    title, kind = _KINDS[
        "Symbol"
        if "Symbol" in section.titles
        else "Shared Object"
        if "Shared Object" in section.titles
        else ""
    ]
    return Profile(f"{section.event} by {title}", "%", 100.0, tuple(hotspots), kind)
