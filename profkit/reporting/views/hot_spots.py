"""Where the time goes: a row for each place of a run, with its share of the wall time and what it does there."""

from __future__ import annotations

import re

from profkit.analysis.hot_spots import DOES
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import HotSpot, RunDocument
from profkit.reporting.columns import Column, data_table
from profkit.reporting.view import Section
from profkit.reporting.views.run_insights import relative_path

BRIEF = 8  # rows on a short screen
BAR = 8  # characters
LEAST = 0.01  # of the wall time: smaller places are added up in the last row
_ARGUMENTS = re.compile(r"\(.*\)$")


def spots_section(document: RunDocument) -> Section | None:
    """The places, the largest first; None where nothing was sampled."""
    known = [spot for spot in document.hot_spots if spot.kind != "rest" and spot.share >= LEAST]
    if not known:
        return None
    rest = 1 - sum(spot.share for spot in known)
    rows = (
        [*known, HotSpot(rest, rest * known[0].seconds / known[0].share, "rest")] if rest >= LEAST else known
    )
    folder = document.workload.folder
    columns: list[Column[HotSpot]] = [
        Column("share", _share, meaning="of the wall time"),
        Column("place", lambda spot: f"{_function(spot)} {_place(spot, folder)}".strip()),
        Column("what it does", _does),
    ]
    return Section("Where the time goes", (data_table(columns, rows, brief=BRIEF),), anchor="hot-spots")


def _share(spot: HotSpot) -> str:
    """`██████     62 %  1.24 s`."""
    bar = "█" * round(BAR * spot.share) or "▏"
    return f"{bar:{BAR}} {100 * spot.share:3.0f} %  {format_quantity(spot.seconds, 's')}"


def _function(spot: HotSpot) -> str:
    if spot.kind == "rest":
        return "all else"
    name = (spot.where.function or "-").replace("<locals>.", "")
    return "top level" if name == "<module>" else _ARGUMENTS.sub("", name)[-28:]


def _place(spot: HotSpot, folder: str) -> str:
    if spot.where.file is None:
        return ""
    file = relative_path(spot.where.file, folder)
    return (
        f"{file if len(file) < 30 else file.rpartition('/')[2]}:{spot.where.line}"
        if spot.where.line
        else file
    )


def _does(spot: HotSpot) -> str:
    """`computes: 2,000 calls of Cursor.fetchall`; `sleeps, in 8 threads`."""
    under = spot.under
    text = DOES.get(spot.kind, "")
    least = "≥ " if spot.partial else ""
    if under is not None and under.name:
        calls = f"{least}{under.calls:,} x " if under.calls else ""
        each = (
            f", {format_quantity(under.seconds_per_call, 's')} each"
            if under.calls and under.seconds_per_call
            else ""
        )
        text += f": {calls}{_ARGUMENTS.sub('', under.name)[-32:]}{each}"
    elif spot.calls and spot.calls > 1:
        text += f", called {least}{spot.calls:,} times"
    if spot.processes:
        count = spot.processes + 1 if spot.kind == "import" else spot.processes
        text += f", in {plural(count, 'process', 'processes')}"
    elif spot.threads > 1:
        text += f", in {spot.threads} threads"
    return text
