"""Charts as inline SVG: which function draws which block."""

from __future__ import annotations

from profkit.reporting.chart_blocks import (
    Bars,
    CloudChart,
    Distribution,
    Growth,
    LineChart,
    OverTime,
    RooflineChart,
    StackedBar,
    TrendChart,
    WinnerMap,
)
from profkit.reporting.charts.bars import bar_chart, stacked_bar
from profkit.reporting.charts.cases import cloud_chart
from profkit.reporting.charts.commit_row import CommitRow, commit_row
from profkit.reporting.charts.distribution import distribution_chart, sequence_chart
from profkit.reporting.charts.intervals import IntervalChart, interval_chart
from profkit.reporting.charts.lines import line_chart
from profkit.reporting.charts.over_time import growth_chart, over_time_chart
from profkit.reporting.charts.roofline import roofline_chart
from profkit.reporting.charts.step_curve import StepCurve, step_curve
from profkit.reporting.charts.svg import Number
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.charts.winner_map import winner_map
from profkit.reporting.view import Block


def svg_of(chart: Block, number: Number) -> str | None:
    """The chart as finished SVG; `number` gives the place of a footnote. None where there is nothing to draw."""
    match chart:
        case Bars(kind, title, description, bars, most, legend):
            return bar_chart(kind, title, description, bars, most, legend, number)
        case StackedBar(kind, title, description, pieces):
            return stacked_bar(kind, title, description, pieces, number)
        case Distribution(spread, ordered):
            return sequence_chart(spread) if ordered else distribution_chart(spread)
        case Growth(title, description, points, unit):
            return growth_chart(points, title, description, unit)
        case OverTime(title, description, seconds, outer, inner, states, legend):
            return over_time_chart(title, description, seconds, outer, inner, states, legend)
        case RooflineChart(roofline):
            return roofline_chart(roofline, number=number)
        case TrendChart(trend, band, title):
            return trend_chart(trend, band, title)
        case LineChart():
            return line_chart(chart)
        case WinnerMap():
            return winner_map(chart)
        case CloudChart():
            return cloud_chart(chart)
        case StepCurve():
            return step_curve(chart)
        case IntervalChart():
            return interval_chart(chart)
        case CommitRow():
            return commit_row(chart)
    return None
