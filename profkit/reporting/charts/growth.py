"""What a program holds after each of its iterations: flat, or growing."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.reporting.charts.axes import box_for, x_axis, y_axis
from profkit.reporting.charts.scale import Scale, linear, ticks
from profkit.reporting.charts.svg import curve, frame, tag
from profkit.reporting.charts.text import LINE

GROWTH_HEIGHT = 170.0
MOST_POINTS = 300  # points that are drawn; of more every so many


def growth_chart(
    points: Sequence[tuple[float, float]], title: str, description: str, unit: str = "B"
) -> str | None:
    """A line through (iteration, value); None of fewer than two points."""
    if len(points) < 2:
        return None
    stride = -(-len(points) // MOST_POINTS)
    kept = [*points[::stride], *([points[-1]] if (len(points) - 1) % stride else [])]
    values = [value for _, value in kept]
    fine, named = ticks(linear(values, 1.0, 0.0), unit, 4)
    box = box_for(fine, GROWTH_HEIGHT, below=2 * LINE + 10)
    y = linear(values, box.bottom, box.top)
    first, last = min(x for x, _ in kept), max(x for x, _ in kept)
    if last <= first:
        return None
    x = Scale(first, last, box.left + 4, box.right - 4)
    drawn = y_axis(box, y, fine, f"{title} ({named.name})")
    whole = [tick for tick in ticks(x, "", 5)[0] if tick.value == round(tick.value)]
    drawn += x_axis(box, x, whole, "iteration")
    drawn.append(curve([(x(at), y(value)) for at, value in kept], "line"))
    end_x, end_y = kept[-1]
    drawn.append(tag("circle", cx=x(end_x), cy=y(end_y), r=2.4, class_="dot"))
    return frame("growth", GROWTH_HEIGHT, title, description, drawn)
