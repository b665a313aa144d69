"""Where the time of a run goes, on its page: as parts of one bar."""

from __future__ import annotations

from profkit.analysis.summaries.gpu_time import TimeBreakdown, time_breakdowns
from profkit.analysis.summaries.metal_time import metal_time_breakdowns
from profkit.backends import backend_named
from profkit.core.formatting import percent, quantity
from profkit.core.types import RunDocument
from profkit.reporting.charts.bars import Bar, bar_chart
from profkit.reporting.charts.stacked import Piece, stacked_bar
from profkit.reporting.html.chart_figures import figures, sentence, summary_of
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import Sources

TITLE = "Where time goes"


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A bar for each whole that is known; why there is none where a trace was to tell it."""
    wholes = metal_time_breakdowns(document.metal) if document.metal is not None else ()
    wholes += time_breakdowns(document, extras.kernels(document))
    charts = [_bar(whole, extras.sources) for whole in wholes]
    if document.trace is not None and document.trace.device_busy:
        charts.append(_devices(document.trace.device_busy))
    summary = summary_of(document, backend_named(document.backend).time_concern)
    headline = summary.headline if summary is not None and document.metal is None else None  # told above it
    if charts:
        return Part("where-time", TITLE, figures(charts), headline)
    if summary is None or extras.of_metal(document):
        return None
    fix = next(
        (note.removeprefix("To have it: ") for note in summary.notes if note.startswith("To have it")), None
    )
    return Part("where-time", TITLE, sentence("", fix) if fix else "", summary.headline)


def _bar(whole: TimeBreakdown, sources: Sources) -> str:
    title = f"{whole.title} ({quantity(whole.seconds, 's')})" if whole.seconds else whole.title
    told = "; ".join(f"{one.name} {percent(100 * one.share)} %" for one in whole.parts[:12])
    pieces = [
        Piece(one.name, one.share, one.told, one.idle, sources.number(one.reading) if one.reading else 0)
        for one in whole.parts
    ]
    return stacked_bar("time", title, f"{told}.", pieces)


def _devices(busy: tuple[float, ...]) -> str:
    bars = [
        Bar(
            f"GPU {number}",
            min(1.0, share),
            f"{percent(100 * share)} %",
            f"GPU {number}: {percent(100 * share)} %",
        )
        for number, share in enumerate(busy)
    ]
    told = ", ".join(bar.told for bar in bars)
    return bar_chart("devices", "Busy, by device", f"Share of the time each was busy: {told}.", bars, 1.0)
