"""The charts of a run, a section each. Their numbers stand in the run's tables too, so text formats leave them out."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.stacks.files import flame_of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.roofline_points import roofline_of
from profkit.analysis.summaries.time import distribution_of
from profkit.core.formatting import format_quantity
from profkit.core.types import RunDocument
from profkit.reporting.chart_blocks import Charts, FlameGraph
from profkit.reporting.charts.of_run import distribution_chart, growth_chart, roofline_chart, time_bars
from profkit.reporting.extras import Extras
from profkit.reporting.view import Block, Section

_TIMINGS, _FLAMES = 4, 3  # timings and sampled events that are drawn


def chart_sections(document: RunDocument, kernels: Sequence[KernelRow], extras: Extras) -> list[Section]:
    """Where the time goes, the roofline, how the samples lie, flame graphs, and what is held after each iteration."""
    bars = time_bars(document, kernels)
    sections = [_section("Where time goes", "where-time", bars)]
    if (roofline := roofline_of(document, kernels)) is not None:
        note = (
            "Hollow points are estimated or simulated. Thick lines limit something here, thin ones nothing."
        )
        sections.append(_section("Roofline", "roofline", [roofline_chart(roofline)], note))
    spreads = [spread for timing in document.timings if (spread := distribution_of(timing)) is not None]
    sections.append(
        _section("Timing", "distribution", [distribution_chart(one) for one in spreads[:_TIMINGS]])
    )
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    how = "Widths are shares of the samples; callers stand above what they call."
    sections.append(
        _section("Flame graph", "flame-graph", [FlameGraph(one) for one in flames[:_FLAMES]], how)
    )
    if (found := extras.allocations) is not None:
        words = found.growth.reason[:1].upper() + found.growth.reason[1:]
        if found.growth.per_iteration is not None:
            words += f": {format_quantity(found.growth.per_iteration, 'B')} each iteration."
        points = [(float(x), float(y)) for x, y in found.points]
        chart = growth_chart(points, "Held by Python after each iteration", words)
        sections.append(_section("Memory", "memory", [chart] if chart.marks else [], words))
    return [section for section in sections if section.blocks]


def _section(title: str, anchor: str, charts: Sequence[Block], note: str = "") -> Section:
    blocks = (Charts(tuple(charts), note, repeats=True),) if charts else ()
    return Section(title, blocks, anchor=anchor, repeats=True)
