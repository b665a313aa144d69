"""Every concern with its readings, each linked to its source: what no chart shows, and what could not be measured."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.metrics import all_metrics
from profkit.model import Reading, RunDocument, Summary
from profkit.reports.html.part import Extras, Part
from profkit.reports.html.templates import filled
from profkit.reports.order import named, title_of

MOST = 60  # readings of one concern that are shown, of functions and kernels alike


def part(document: RunDocument, extras: Extras) -> Part | None:
    """One block for each concern: headline, readings, notes. None where nothing was summarized."""
    titles = {one.name: one.title for one in all_metrics()}
    told = []
    for summary in document.summaries:
        shown = _shown(summary)
        rows = [
            (titles.get(r.metric, r.metric), _scope(r), extras.sources.link(r), r.reason, r.fix)
            for r in shown[:MOST]
        ]
        if rows or summary.notes or summary.headline:
            told.append((title_of(summary.concern), summary, rows, len(shown) - len(rows[:MOST])))
    if not told:
        return None
    return Part("numbers", "All numbers", filled("numbers.html.j2", told=told))


def _shown(summary: Summary) -> Sequence[Reading]:
    return [r for r in summary.readings if r.scope.kind != "kernel"]


def _scope(reading: Reading) -> str:
    return named(reading.scope) if reading.scope.kind == "function" else ""
