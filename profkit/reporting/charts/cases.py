"""Thousands of cases under their roofs: one path of dots for each implementation, read by the page's script.

A mark of its own for each dot would be a hundred bytes, and as slow; a path takes ten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from profkit.core.formatting import format_quantity
from profkit.reporting.charts.axes import Box, Scale, box_for, logarithmic, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import LINE, focusable, frame, line, number, tag, text

HEIGHT = 300.0
ALL = 100.0  # %
SIDE = 3.4  # units from one implementation's dots to the next one's, where they would stand on each other


@dataclass(frozen=True)
class Cloud:
    """Dots of one implementation, as (across, up, row): the row is that of the table of all cases."""

    name: str
    letter: str
    place: int
    dots: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class Frame:
    """What the axes say, and their units. `aside`: implementations stand beside each other, as many have one place."""

    title: str
    across: str
    unit: str
    across_unit: str = ""
    aside: bool = False


def roofline_of_cases(clouds: Sequence[Cloud], frame_: Frame, bandwidth: float, flops: float) -> str:
    """FLOP/s over FLOP per byte, both logarithmic, below the roofs: `bandwidth` in bytes/s, `flops` in FLOP/s."""
    dots = [dot for cloud in clouds for dot in cloud.dots]
    across = logarithmic([*(x for x, _, _ in dots), flops / bandwidth], 0, 1, room=2)
    up = logarithmic([*(y for _, y, _ in dots), flops, bandwidth * across.low], 0, 1, room=1.6)
    x, y, box, drawn = _axes(across, up, frame_)
    ridge = flops / bandwidth
    low = max(across.low, up.low / bandwidth)
    slope = line(x(low), y(low * bandwidth), x(ridge), y(flops), "roof")
    told = format_quantity(bandwidth, "B/s")
    at = exp(log(low) + 0.75 * (log(ridge) - log(low)))
    slope += text((x(at) - 6, y(at * bandwidth) - 6), f"memory: {told}", "note e")
    drawn.append(focusable(slope, f"memory: {told}, measured"))
    told = format_quantity(flops, "FLOP/s")
    level = line(x(ridge), y(flops), box.right, y(flops), "roof")
    level += text((box.right, y(flops) - 5), f"arithmetic: {told}", "note e")
    drawn.append(focusable(level, f"arithmetic: {told}, measured"))
    drawn += _clouds(clouds, x, y, box, frame_)
    roofs = f"{format_quantity(bandwidth, 'B/s')} and {told}"
    words = f"{len(dots)} cases below {roofs}; the table of all cases has their numbers."
    return frame("cases", HEIGHT, frame_.title, words, drawn)


def share_of_cases(clouds: Sequence[Cloud], frame_: Frame) -> str:
    """Shares of the roofline in % over a size; both logarithmic, with a line at 100."""
    dots = [dot for cloud in clouds for dot in cloud.dots]
    across = logarithmic([x for x, _, _ in dots], 0, 1, room=1.5)
    up = logarithmic([*(y for _, y, _ in dots), ALL], 0, 1, room=1.3)
    x, y, box, drawn = _axes(across, up, frame_)
    drawn.append(focusable(line(box.left, y(ALL), box.right, y(ALL), "roof"), "100 %: the roofline"))
    drawn += _clouds(clouds, x, y, box, frame_)
    return frame(
        "cases", HEIGHT, frame_.title, f"{len(dots)} cases; the table of all cases has their numbers.", drawn
    )


def _axes(across: Scale, up: Scale, frame_: Frame) -> tuple[Scale, Scale, Box, list[str]]:
    fine, unit = ticks(up, frame_.unit, 6)
    box = box_for(fine, HEIGHT, below=2 * LINE + 10)
    x = Scale(across.low, across.high, box.left, box.right, log=True)
    y = Scale(up.low, up.high, box.bottom, box.top, log=True)
    drawn = y_axis(box, y, fine, f"{frame_.title} ({unit.name})" if unit.name else frame_.title)
    drawn += x_axis(box, x, ticks(x, frame_.across_unit, 6)[0], frame_.across)
    return x, y, box, drawn


def _clouds(clouds: Sequence[Cloud], x: Scale, y: Scale, box: Box, frame_: Frame) -> list[str]:
    """The dots, and above them the area by which a script tells the nearest one."""
    drawn, rows = [], []
    for cloud in clouds:
        aside = SIDE * (cloud.place - (len(clouds) - 1) / 2) if frame_.aside else 0.0
        seen: dict[tuple[int, int], tuple[str, int]] = {}  # what would stand on another one is told once
        for across, up, row in cloud.dots:
            at = (x(across) + aside, y(up))
            seen.setdefault((round(at[0]), round(at[1])), (f"M{number(at[0])} {number(at[1])}h0", row))
        drawn.append(
            tag("path", d="".join(path for path, _ in seen.values()), class_=f"cloud p{cloud.place % 8 + 1}")
        )
        rows.append([row for _, row in seen.values()])
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
        )
    )
    return drawn
