"""Several lines over one axis of sizes or of counts: each has a colour, a mark of its own, and its letter."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_quantity
from profkit.reporting.chart_blocks import LineChart, LineSeries
from profkit.reporting.charts.axes import Box, Scale, Tick, box_for, logarithmic, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    curve,
    focusable,
    frame,
    hover,
    line,
    number,
    tag,
    text,
    width,
)

HEIGHT = 210.0
SERIES = 8  # colours there are
LEAST_SEEN = 2.5  # units: a shorter interval is inside of its mark
SHAPES = (
    "M{x} {y}m-2.8 0a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0z",  # disc
    "M{x} {y}m-2.5-2.5h5v5h-5z",  # square
    "M{x} {y}m0-3.4l3.2 5.6h-6.4z",  # triangle
    "M{x} {y}m0-3.6l3.6 3.6l-3.6 3.6l-3.6-3.6z",  # diamond
)


def line_chart(chart: LineChart) -> str:
    """The lines as SVG. Values are positive and in the chart's unit. Without any point it says so."""
    name = f"{chart.title}, over {chart.across}" + (f": {chart.of}" if chart.of else "")
    points = [point for line in chart.series for point in line.points]
    if not points:
        words = "Nothing was measured."
        return frame("lines", LINE + 8, name, words, [text((2, FONT), words)])
    ends = [end for line in chart.series if not line.spread for p in line.points for end in (p.low, p.high)]
    level = 1.0 if chart.unit == "x" else None
    values = [*(point.value for point in points), *ends, *([level] if level else [])]
    down = Scale(0.0, 100.0, 0, 1) if chart.unit == "%" else logarithmic(values, 0, 1, room=1.15)
    fine, named = ticks(down, chart.unit, 5)
    inner = box_for(fine, HEIGHT, below=2 * LINE + 8)
    box = Box(inner.left, inner.top, inner.right - 2 * FONT * 0.75, inner.bottom)
    y = Scale(down.low, down.high, box.bottom, box.top + (4 if not down.log else 0), log=down.log)
    places = sorted({point.at for point in points})
    x = (
        Scale(places[0], places[-1], box.left + 6, box.right - 6, log=not chart.counted)
        if len(places) > 1
        else Scale(places[0] / 2, places[0] * 2, box.left, box.right, log=True)
    )
    drawn = y_axis(box, y, fine, f"{chart.title} ({named.name})" if named.name else chart.title)
    drawn += x_axis(box, x, [Tick(place, f"{place:g}") for place in places], chart.across)
    if level is not None and y.holds(level):
        drawn.append(line(box.left, y(level), box.right, y(level), "level"))
    drawn += [_series(one, x, y, chart.unit) for one in reversed(chart.series)]
    drawn += _letters(chart.series, x, y, box)
    sentences = "; ".join(_sentence(one, chart.unit) for one in chart.series if one.points)
    return frame("lines", HEIGHT, name, f"Over {chart.across}. {sentences}.", drawn)


def _series(series: LineSeries, x: Scale, y: Scale, unit: str) -> str:
    color = series.number % SERIES + 1
    places = [(x(point.at), y(point.value)) for point in series.points]
    body = curve(places, f"line l{color}") if len(places) > 1 else ""
    for point, (across, down) in zip(series.points, places, strict=True):
        low, high = y(point.low), y(point.high)
        if not series.spread and low - high > LEAST_SEEN:
            body += line(across, low, across, high, f"line l{color}")
        shape = SHAPES[series.number % len(SHAPES)].format(x=number(across), y=number(down))
        body += tag("path", hover(point.hover), d=shape, class_=f"f{color}")
    return focusable(body, _sentence(series, unit))


def _letters(series: Sequence[LineSeries], x: Scale, y: Scale, box: Box) -> list[str]:
    """Each line's letter at its right end, moved apart where ends are near to each other, in their order."""
    ends = sorted((y(one.points[-1].value), index) for index, one in enumerate(series) if one.points)
    step = FONT * 0.95
    at: list[float] = []
    for place, _ in ends:
        at.append(max(place, at[-1] + step) if at else place)
    beyond = at[-1] - (box.bottom - 2)
    if beyond > 0:
        for index in range(len(at) - 1, -1, -1):
            most = box.bottom - 2 if index == len(at) - 1 else at[index + 1] - step
            at[index] = min(at[index], most)
    drawn = []
    for (_, index), place in zip(ends, at, strict=True):
        one = series[index]
        start = x(one.points[-1].at) + 7
        right = max(start, box.right - 6 + 7)
        drawn.append(
            text(
                (min(right, WIDTH - width(one.letter) - 1), place + FONT * 0.35),
                one.letter,
                f"f{one.number % SERIES + 1} t",
                one.name,
            )
        )
    return drawn


def _sentence(series: LineSeries, unit: str) -> str:
    values = ", ".join(f"{format_quantity(point.value, unit)} at {point.at:g}" for point in series.points)
    return f"{series.name}: {values}"
