"""The roofline of a run on its page."""

from __future__ import annotations

from profkit.model import RunDocument
from profkit.reports.charts.roofline import roofline_chart
from profkit.reports.html.chart_figures import figures, sentence, summary_of
from profkit.reports.html.part import Extras, Part
from profkit.summaries.roofline_points import roofline_of


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The chart, or why there is none; None where nobody would look for one."""
    summary = summary_of(document, "roofline")
    headline = summary.headline if summary is not None else None
    found = roofline_of(document, extras.kernels(document))
    if found is not None:
        note = "Hollow points are estimated or simulated. Thin roofs are not those that anything here stands under."
        return Part("roofline", "Roofline", figures([roofline_chart(found)], note), headline)
    if summary is not None:
        fix = next((reading.fix for reading in summary.readings if reading.fix), None)
        return Part("roofline", "Roofline", sentence("", fix) if fix else "", headline)
    if extras.kernels(document):
        words = "No kernel has both its FLOPs and its memory traffic counted, so none can be placed."
        return Part("roofline", "Roofline", sentence(words, _fix(document)))
    return None


def _fix(document: RunDocument) -> str | None:
    """What would count them: of a run the standard depth; of a report of others nothing that is known."""
    return "profkit profile --depth standard" if document.plan is not None else None
