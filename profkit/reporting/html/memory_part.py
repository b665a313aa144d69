"""Memory on the page of a run: peaks side by side, what is held after each iteration, and who allocated most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.core.formatting import plural, quantity
from profkit.core.types import RunDocument
from profkit.reporting.charts.bars import Bar, bar_chart
from profkit.reporting.charts.growth import growth_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import Sources

if TYPE_CHECKING:
    from profkit.runtime.passes.read_tracemalloc import Line

PEAKS = ("memory.device_peak", "memory.rss_peak", "memory.python_peak")
MOST = 10  # lines of source


def part(document: RunDocument, extras: Extras) -> Part | None:
    """Charts of what is known of memory; why it is not where a run was to tell it."""
    summary = summary_of(document, "memory")
    charts = [chart for chart in (_peaks(document, extras.sources), *_allocated(extras)) if chart is not None]
    headline = summary.headline if summary is not None else None
    if charts:
        return Part(
            "memory",
            "Memory",
            figures(charts, " ".join(map(_sentence, summary.notes)) if summary else ""),
            headline,
        )
    if summary is None or document.plan is None:
        return None
    fix = next((reading.fix for reading in summary.readings if reading.fix), None)
    return Part("memory", "Memory", sentence("", fix) if fix else "", headline)


def _sentence(note: str) -> str:
    """A remark as one of several sentences in a row."""
    return note[:1].upper() + note[1:].rstrip(".") + "."


def _peaks(document: RunDocument, sources: Sources) -> str | None:
    scopes = main_scopes(document)
    found = [
        reading for name in PEAKS if (reading := best_reading(document.readings, name, scopes)) is not None
    ]
    bars = []
    for reading in found:
        if reading.value is not None:
            title, words = metric(reading.metric).title, quantity(reading.value, reading.unit)
            number = sources.number(reading)
            bars.append(Bar(title, reading.value, words, f"{title}: {words}", source=number))
    if not bars:
        return None
    return bar_chart("memory", "Peaks of memory", ". ".join(bar.told for bar in bars) + ".", bars)


def _allocated(extras: Extras) -> list[str | None]:
    found = extras.allocations
    if found is None:
        return []
    growth = found.growth
    told = growth.reason[:1].upper() + growth.reason[1:]
    if growth.per_iteration is not None:
        told += f": {quantity(growth.per_iteration, 'B')} each iteration."
    points = [(float(x), float(y)) for x, y in found.points]
    return [
        growth_chart(points, "Held by Python after each iteration", told),
        _lines("Lines that hold most", found.top),
        _lines("Lines that grow", [line for line in found.growing if line.size > 0]) if growth.leak else None,
    ]


def _lines(title: str, lines: Sequence[Line]) -> str | None:
    bars = [
        Bar(
            f"{'/'.join(line.file.replace(chr(92), '/').split('/')[-2:])}:{line.line}",
            float(line.size),
            quantity(float(line.size), "B"),
            f"{line.file}:{line.line}: {quantity(float(line.size), 'B')} in {plural(line.count, 'block')}",
        )
        for line in lines[:MOST]
    ]
    if not bars:
        return None
    return bar_chart("allocations", title, ". ".join(bar.told for bar in bars[:4]) + ".", bars)
