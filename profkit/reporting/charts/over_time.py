"""Shares over time, and what a program holds after each of its iterations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from profkit.core.formatting import format_percent, format_quantity
from profkit.reporting.charts.axes import Scale, box_for, linear, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    curve,
    fitted,
    focusable,
    frame,
    rect,
    tag,
    text,
    wrapped,
)

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


HEIGHT = 150.0
STRIP = 12.0  # the height of the strip of states
COLOURS = 6


def over_time_chart(
    title: str,
    description: str,
    seconds: float,
    outer: Sequence[float],
    inner: Sequence[float],
    states: Sequence[str] = (),
    legend: str = "",
) -> str | None:
    """Shares (0..1) of equal slices: `outer` as a light area, `inner` as a solid one before it, `states` as a strip.

    None where nothing is known of any slice.
    """
    count = max(len(outer), len(inner), len(states))
    if count < 1 or seconds <= 0:
        return None
    full = Scale(0.0, 100.0, 1.0, 0.0)
    marks, _ = ticks(full, "%", 3)
    box = box_for(marks, HEIGHT, below=LINE + 10)
    y, x = Scale(0.0, 100.0, box.bottom, box.top), Scale(0.0, seconds, box.left, box.right)
    drawn = y_axis(box, y, marks, f"{title} (%)")
    for values, kind in ((outer, "soft"), (inner, "bins")):
        if values:
            drawn.append(_area(values, kind, x, y, seconds))
    found, unit = ticks(x, "s", 5)
    drawn += x_axis(box, x, found)
    drawn.append(text((box.right, HEIGHT + 6), f"time ({unit.name})", "note e"))
    at = HEIGHT + LINE
    if any(states):
        drawn += _strip(states, x, seconds, at)
        at += STRIP + 6
        drawn += _names(states, at)
        at += LINE * len(_kinds(states))
    for words in wrapped(legend, WIDTH - 4):
        drawn.append(text((2, at + FONT), words, "note"))
        at += LINE
    return frame("over-time", at + 6, title, description, drawn)


def _area(values: Sequence[float], kind: str, x: Scale, y: Scale, seconds: float) -> str:
    """The outline of the slices over the lower edge, each as wide as it is long."""
    width = seconds / len(values)
    points = [(x(0.0), y(0.0))]
    for place, share in enumerate(values):
        level = y(100 * min(1.0, max(0.0, share)))
        points += [(x(place * width), level), (x((place + 1) * width), level)]
    return curve([*points, (x(seconds), y(0.0))], kind, closed=True)


def _kinds(states: Sequence[str]) -> list[str]:
    """The states by how many slices they hold, most first."""
    names = [name for name in dict.fromkeys(states) if name]
    return sorted(names, key=lambda name: -states.count(name))


def _strip(states: Sequence[str], x: Scale, seconds: float, at: float) -> list[str]:
    colours = {name: f"s{place % COLOURS + 1} cut" for place, name in enumerate(_kinds(states))}
    drawn, place, width = [], 0, seconds / len(states)
    for name, same in groupby(states):
        begin, count = place * width, len(list(same))
        place += count
        end = place * width
        label = f"{name or 'not known'}: {format_quantity(begin, 's')} to {format_quantity(end, 's')}"
        mark = rect(x(begin), at, x(end) - x(begin), STRIP, colours.get(name, "s0"))
        drawn.append(focusable(mark, label) if len(states) > count else mark)
    return drawn


def _names(states: Sequence[str], at: float) -> list[str]:
    drawn = []
    for place, name in enumerate(_kinds(states)):
        share = f"{format_percent(100 * states.count(name) / len(states))} %"
        drawn.append(rect(2, at + 2, 11, 11, f"s{place % COLOURS + 1}"))
        drawn.append(text((18, at + FONT), fitted(name, WIDTH - 100)))
        drawn.append(text((WIDTH - 2, at + FONT), share, "e"))
        at += LINE
    return drawn
