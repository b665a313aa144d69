"""Thousands of dots: one path for each name, read by the page's script.

A mark of its own for each dot would be a hundred bytes, and as slow; a path takes ten.
"""

from __future__ import annotations

import json
from math import sqrt

from profkit.core.formatting import format_quantity
from profkit.reporting.chart_blocks import ALL, CloudChart
from profkit.reporting.charts.axes import Box, Scale, box_for, logarithmic, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import LINE, focusable, frame, line, number, tag, text

HEIGHT = 300.0
SIDE = 3.4  # units from one name's dots to the next one's: many stand at one place across


def cloud_chart(chart: CloudChart) -> str:
    """The dots below their ceilings, or with a line at 100; both axes are logarithmic."""
    dots = [dot for cloud in chart.clouds for dot in cloud.dots]
    xs, ys = [x for x, _, _ in dots], [y for _, y, _ in dots]
    if chart.ceilings is not None:
        bandwidth, flops = chart.ceilings
        across = logarithmic([*xs, flops / bandwidth], 0, 1, room=2)
        up = logarithmic([*ys, flops, bandwidth * across.low], 0, 1, room=1.6)
    else:
        across = logarithmic(xs, 0, 1, room=1.5)
        up = logarithmic([*ys, ALL], 0, 1, room=1.3)
    fine, unit = ticks(up, chart.unit, 6)
    box = box_for(fine, HEIGHT, below=2 * LINE + 10)
    x = Scale(across.low, across.high, box.left, box.right, log=True)
    y = Scale(up.low, up.high, box.bottom, box.top, log=True)
    drawn = y_axis(box, y, fine, f"{chart.title} ({unit.name})" if unit.name else chart.title)
    drawn += x_axis(box, x, ticks(x, "", 6)[0], chart.across)
    limits = ""
    if chart.ceilings is not None:
        drawn += _ceilings(bandwidth, flops, x, y, box)
        limits = f" below {format_quantity(bandwidth, 'B/s')} and {format_quantity(flops, 'FLOP/s')}"
    else:
        level = line(box.left, y(ALL), box.right, y(ALL), "ceiling")
        drawn.append(focusable(level, f"{ALL:.0f} {chart.unit}"))
    drawn += _clouds(chart, x, y, box)
    words = f"{len(dots)} cases{limits}; the table of all cases has their numbers."
    return frame("cases", HEIGHT, chart.title, words, drawn)


def _ceilings(bandwidth: float, flops: float, x: Scale, y: Scale, box: Box) -> list[str]:
    """The slope of memory up to the ridge, and from there on the level of arithmetic, each with its name."""
    ridge, low = flops / bandwidth, max(x.low, y.low / bandwidth)
    memory, arithmetic = (
        f"memory: {format_quantity(bandwidth, 'B/s')}",
        f"arithmetic: {format_quantity(flops, 'FLOP/s')}",
    )
    at = sqrt(sqrt(low * ridge**3))  # three quarters of the way
    slope = line(x(low), y(low * bandwidth), x(ridge), y(flops), "ceiling")
    slope += text((x(at) - 6, y(at * bandwidth) - 6), memory, "note e")
    level = line(x(ridge), y(flops), box.right, y(flops), "ceiling")
    level += text((box.right, y(flops) - 5), arithmetic, "note e")
    return [focusable(slope, f"{memory}, measured"), focusable(level, f"{arithmetic}, measured")]


def _clouds(chart: CloudChart, x: Scale, y: Scale, box: Box) -> list[str]:
    """The dots, and above them the area by which a script tells the nearest one."""
    drawn, rows = [], []
    for cloud in chart.clouds:
        aside = SIDE * (cloud.number - (len(chart.clouds) - 1) / 2)
        places: dict[
            tuple[int, int], tuple[str, int]
        ] = {}  # of dots that would cover each other one is drawn
        for across, up, row in cloud.dots:
            at = (x(across) + aside, y(up))
            places.setdefault((round(at[0]), round(at[1])), (f"M{number(at[0])} {number(at[1])}h0", row))
        path = "".join(path for path, _ in places.values())
        drawn.append(tag("path", d=path, class_=f"cloud p{cloud.number % 8 + 1}"))
        rows.append([row for _, row in places.values()])
    drawn.append(
        tag(
            "rect",
            x=box.left,
            y=box.top,
            width=box.right - box.left,
            height=box.bottom - box.top,
            class_="reader",
            tabindex="0",
            role="img",
            aria_label="Dots: arrow keys go from one to the next; the table of all cases has the same numbers",
            data_rows=json.dumps(rows, separators=(",", ":")),
            data_columns=json.dumps(chart.columns),
        )
    )
    return drawn
