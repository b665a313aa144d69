"""How the timed samples of a run lie, on its page."""

from __future__ import annotations

from profkit.analysis.summaries.time import distribution_of
from profkit.core.formatting import plural
from profkit.core.types import RunDocument
from profkit.reporting.charts.distribution import distribution_chart, sequence_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of
from profkit.reporting.html.part import Extras, Part

MOST = 4  # timings that are drawn: each is two charts


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A histogram and the order of the samples for each timing; why there is none of a run that was not timed."""
    summary = summary_of(document, "time")
    headline = summary.headline if summary is not None else None
    spreads = [spread for timing in document.timings if (spread := distribution_of(timing)) is not None]
    if spreads:
        charts = [chart(one) for one in spreads[:MOST] for chart in (distribution_chart, sequence_chart)]
        more = len(spreads) - MOST
        note = f"{plural(more, 'further timing')} not drawn." if more > 0 else ""
        return Part("distribution", "Timing", figures(charts, note), headline)
    if document.plan is None or summary is None:
        return None
    reading = next((r for r in summary.readings if r.value is None), None)
    words = f"{reading.reason}." if reading is not None and reading.reason else ""
    return Part(
        "distribution", "Timing", sentence(words, reading.fix if reading is not None else None), headline
    )
