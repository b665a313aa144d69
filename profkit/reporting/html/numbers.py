"""Every concern with its readings, each linked to its source: what no chart shows, and what could not be measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.metrics import all_metrics
from profkit.core.types import Reading, RunDocument, Summary, Table
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled
from profkit.reporting.order import named, title_of

MOST = 60  # readings of one concern that are shown, of functions and kernels alike
AS_READINGS = "what"  # the first column of a table that tells the readings once more
_NUMBER = re.compile(r"[±+<-]?\d[^;:]{,25}|-|")  # with its unit, but no sentence
_BAR = re.compile(r"[█-▏]+")  # drawn with signs, for terminals


@dataclass(frozen=True)
class Concern:
    """One block: its summary, the readings in rows (value is finished HTML), and the tables that tell more."""

    title: str
    headline: str
    rows: Sequence[tuple[str, str, str, str | None, str | None]]
    left: int
    tables: Sequence[Grid]
    notes: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A summary's table, and which of its columns are numbers. What it says of kernels their own table says, too."""

    table: Table
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    of_kernels: bool


def part(document: RunDocument, extras: Extras) -> Part | None:
    """One block for each concern: headline, readings, tables, notes. None where nothing was summarized."""
    titles = {one.name: one.title for one in all_metrics()}
    told = [_concern(summary, titles, extras) for summary in document.summaries]
    if not told:
        return None
    return Part("numbers", "All numbers", filled("numbers.html.j2", told=told))


def _concern(summary: Summary, titles: dict[str, str], extras: Extras) -> Concern:
    shown = [reading for reading in summary.readings if reading.scope.kind != "kernel"]
    rows = [
        (titles.get(r.metric, r.metric), _scope(r), extras.sources.link(r), r.reason, r.fix)
        for r in shown[:MOST]
    ]
    told = summary.tables if summary.concern != "kernels" else ()  # they have a part of their own
    tables = [t for t in told if t.rows and not (shown and t.columns[:1] == (AS_READINGS,))]
    return Concern(
        title_of(summary.concern),
        summary.headline,
        rows,
        len(shown) - len(rows),
        [_grid(table) for table in tables],
        summary.notes,
    )


def _grid(table: Table) -> Grid:
    rows = [tuple(_BAR.sub("", cell).strip() for cell in row) for row in table.rows]
    numeric = [
        n > 0 and all(n < len(row) and _NUMBER.fullmatch(row[n]) for row in rows)
        for n in range(len(table.columns))
    ]
    return Grid(table, rows, numeric, table.columns[:1] == ("kernel",))


def _scope(reading: Reading) -> str:
    return named(reading.scope) if reading.scope.kind == "function" else ""
