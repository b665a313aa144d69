"""A share that falls step by step over a logarithmic axis: how many are faster than p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.core.formatting import format_figures, format_percent
from profkit.reporting.charts.axes import Box, Scale, box_for, logarithmic, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import LINE, curve, focusable, frame, line, tag
from profkit.reporting.view import Block, table

HEIGHT = 190.0


@dataclass(frozen=True)
class CurveStep:
    """From `at` on the share (0..1) is `share`, and before it it was `before`; the words that hover over it."""

    at: float
    before: float
    share: float
    hover: str


@dataclass(frozen=True)
class StepCurve(Block):
    """Shares over a logarithmic axis, with a line down at 1. `named` are the places that a table shows, as rows."""

    title: str
    description: str
    across: str
    steps: tuple[CurveStep, ...]
    named: tuple[tuple[float, float], ...]

    def plain(self) -> Sequence[Block]:
        """A table of the named places."""
        titles = (self.across, *(format_figures(at, 2) for at, _ in self.named))
        row = ("share", *(f"{format_percent(100 * share)} %" for _, share in self.named))
        return (table(titles, [row], title=self.title, note=self.description),)


def step_curve(chart: StepCurve) -> str | None:
    """The curve as SVG; None of no steps."""
    if not chart.steps:
        return None
    full = Scale(0.0, 100.0, 1.0, 0.0)
    marks, _ = ticks(full, "%", 5)
    inner = box_for(marks, HEIGHT, below=2 * LINE + 8)
    box = Box(inner.left, inner.top, inner.right, inner.bottom)
    x = logarithmic((1.0, *(step.at for step in chart.steps)), box.left, box.right, room=1.15)
    y = Scale(0.0, 100.0, box.bottom, box.top + 4)
    drawn = y_axis(box, y, marks, f"{chart.title} (%)")
    drawn += x_axis(box, x, ticks(x, "x", 6)[0], chart.across)
    drawn.append(line(x(1.0), box.top, x(1.0), box.bottom, "level"))
    points = [(box.left, y(100 * chart.steps[0].before))]
    for step in chart.steps:
        points += [(x(step.at), y(100 * step.before)), (x(step.at), y(100 * step.share))]
    drawn.append(curve([*points, (box.right, y(100 * chart.steps[-1].share))], "line l1"))
    for step in chart.steps:
        if step.share < step.before:
            dot = tag("circle", cx=x(step.at), cy=y(100 * step.share), r=2.2, class_="dot")
            drawn.append(focusable(dot, step.hover))
    return frame("steps", HEIGHT, chart.title, chart.description, drawn)
