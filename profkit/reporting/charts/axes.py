"""Axes: the lines behind a chart, and round values beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from profkit.reporting.charts.scale import Scale, Tick, apart
from profkit.reporting.charts.svg import WIDTH, line, text
from profkit.reporting.charts.text import FONT, LINE, fitted, width

Anchor = Literal["start", "middle", "end"]
_KINDS: dict[Anchor, str | None] = {"start": None, "middle": "m", "end": "e"}


@dataclass(frozen=True)
class Box:
    """The part of a chart in which values are drawn; axes and titles stand around it."""

    left: float
    top: float
    right: float
    bottom: float


def box_for(ticks: Sequence[Tick], height: float, *, top: float = LINE + 6, below: float = LINE + 6) -> Box:
    """The box that leaves room at its left for the labels of the y axis, and below for one line."""
    left = max((width(tick.label) for tick in ticks), default=0.0) + 8
    return Box(left, top, WIDTH - 8, height - below)


def y_axis(box: Box, scale: Scale, ticks: Sequence[Tick], title: str) -> list[str]:
    """Lines across the box with their values at its left, and the axis' title above."""
    drawn = [text((2, FONT), fitted(title, WIDTH - 4), "t")]
    for tick in ticks:
        y = scale(tick.value)
        drawn.append(line(box.left, y, box.right, y, "grid"))
        drawn.append(text((box.left - 5, y + FONT * 0.35), tick.label, "e"))
    return drawn


def x_axis(box: Box, scale: Scale, ticks: Sequence[Tick], title: str = "") -> list[str]:
    """The lower edge with values below it, as many as stand apart, and the axis' title below these."""
    drawn = [line(box.left, box.bottom, box.right, box.bottom, "axis")]
    placed = [_placed(tick.label, scale(tick.value)) for tick in ticks]
    for index in apart([(begin, begin + width(label)) for label, _, begin, _ in placed]):
        label, anchor, _, at = placed[index]
        x = scale(ticks[index].value)
        drawn.append(line(x, box.bottom, x, box.bottom + 4, "axis"))
        drawn.append(text((at, box.bottom + FONT + 4), label, _KINDS[anchor]))
    if title:
        drawn.append(text((box.right, box.bottom + FONT + 4 + LINE), fitted(title, WIDTH - 16), "t e"))
    return drawn


def _placed(label: str, at: float) -> tuple[str, Anchor, float, float]:
    """A label under its place, moved to the side where it would leave the chart: its anchor, begin, and anchor's x."""
    room = width(label)
    if at - room / 2 < 2:
        return label, "start", 2.0, 2.0
    if at + room / 2 > WIDTH - 2:
        return label, "end", WIDTH - 2 - room, WIDTH - 2
    return label, "middle", at - room / 2, at
