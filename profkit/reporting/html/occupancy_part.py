"""Occupancy on the page of a run: achieved of what is possible, and what allows no more."""

from __future__ import annotations

from profkit.analysis.summaries.gpu_kernels import limiters_clause, occupancy_limiters
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import percent, plural
from profkit.core.types import RunDocument
from profkit.reporting.charts.bars import Bar, Mark, bar_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of, threshold
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import Sources

MOST = 12  # kernels, those with most time first


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A bar for each kernel; why there is none on a GPU whose counters do not tell it."""
    summary = summary_of(document, "occupancy")
    names = ("occupancy.theoretical", "occupancy.achieved")
    rows = [row for row in extras.kernels(document) if any(row.value(name) is not None for name in names)]
    headline = summary.headline if summary is not None else None
    if not rows:
        if summary is None or extras.of_metal(document):
            return None
        reading = next((r for r in summary.readings if r.fix), None)
        return Part("occupancy", "Occupancy", sentence("", reading.fix) if reading else "", headline)
    bars = [_bar(document, row, extras.sources) for row in rows[:MOST]]
    told = ". ".join(bar.told for bar in bars[:6])
    more = len(rows) - len(bars)
    legend = "Solid: achieved. Light: what launch and resources allow. Dotted line: target."
    legend += f" {plural(more, 'further kernel')} in the table." if more else ""
    chart = bar_chart(
        "occupancy", "Occupancy: warps that were there, of those that fit", f"{told}.", bars, 100.0, legend
    )
    return Part("occupancy", "Occupancy", figures([chart]), headline)


def _bar(document: RunDocument, row: KernelRow, sources: Sources) -> Bar:
    achieved, most = row.value("occupancy.achieved"), row.value("occupancy.theoretical")
    held = occupancy_limiters(row)
    parts = [f"{percent(achieved)} %" if achieved is not None else "not counted"]
    parts += [f"of {percent(most)} %"] if most is not None else []
    words = " ".join(parts)
    share = f" ({percent(100 * row.share)} % of the GPU time)" if row.share is not None else ""
    why = limiters_clause(held)
    target = threshold(document, "occupancy.achieved", row.scope)
    reading = row.readings.get("occupancy.achieved")
    return Bar(
        row.label,
        achieved,
        words,
        f"{row.label}{share}: {words}{'; ' if why else ''}{why}",
        most,
        (Mark(target[0], "target", target[1]),) if target else (),
        doubtful=reading is not None and (reading.doubt is not None or reading.quality == "estimated"),
        note=why,
        source=sources.number(reading) if reading is not None else 0,
    )
