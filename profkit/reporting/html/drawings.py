"""Charts as inline SVG: which function draws which block."""

from __future__ import annotations

from collections.abc import Callable

from profkit.reporting.chart_blocks import TrendChart
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.view import Block, Footnote


def svg_of(chart: Block, number: Callable[[Footnote | None], int]) -> str | None:
    """The chart as finished SVG; `number` gives the place of a footnote. None where there is nothing to draw."""
    match chart:
        case TrendChart():
            return trend_chart(chart.trend, chart.band, chart.title)
    return None
