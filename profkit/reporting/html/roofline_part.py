"""The roofline of a run on its page."""

from __future__ import annotations

from profkit.analysis.summaries.roofline_points import Roofline, kernels_left_out, roofline_of
from profkit.core.types import RunDocument
from profkit.reporting.charts.roofline import roofline_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of
from profkit.reporting.html.part import Extras, Part

WORTH = 0.05  # of the GPU time: the floor under which kernels have no say


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The chart, or why there is none; None where nobody would look for one."""
    summary = summary_of(document, "roofline")
    headline = summary.headline if summary is not None else None
    rows = extras.kernels(document)
    found = roofline_of(document, rows)
    if found is not None:
        fix = _fix(document) if found.left_out else None
        missing = "Kernels that are not placed are more than 5 % of the time."
        more = sentence(missing, fix) if _much(found) and fix else ""
        note = (
            "Hollow points are estimated or simulated. Thick roofs limit something here, thin ones nothing."
        )
        return Part(
            "roofline",
            "Roofline",
            figures([roofline_chart(found, source=extras.sources.number)], note) + more,
            headline,
        )
    if summary is not None:
        fix = next((reading.fix for reading in summary.readings if reading.fix), None)
        return Part("roofline", "Roofline", sentence("", fix) if fix else "", headline)
    if rows:
        why = kernels_left_out(rows)[0]
        words = f"No kernel can be placed under the roofline. {why.first}: {why.reason}."
        return Part("roofline", "Roofline", sentence(words, _fix(document)))
    return None


def _much(found: Roofline) -> bool:
    return sum(one.share for one in found.left_out) > WORTH


def _fix(document: RunDocument) -> str | None:
    """The next deeper set of counters; None of a report of others, and where there is no deeper one."""
    deeper = {"gate": "--depth standard", "standard": "--depth full"}
    return deeper.get(document.plan.depth) if document.plan is not None else None
