"""Several lines over one axis of sizes, both axes logarithmic: each has a colour, a mark of its own, and its letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profkit.core.formatting import format_quantity
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


@dataclass(frozen=True)
class Dot:
    """A value at a size, the ends of what it may be, and what is said of it."""

    at: float
    value: float
    low: float
    high: float
    told: str


@dataclass(frozen=True)
class Series:
    """One line: its name, its letter, its place among the colours (from 0), its dots from left to right.

    `spread`: the ends are no interval but the least and the largest of many, and are told, not drawn.
    """

    name: str
    letter: str
    place: int
    dots: tuple[Dot, ...]
    spread: bool = False


def lines_chart(
    series: Sequence[Series],
    title: str,
    across: str,
    unit: str = "",
    *,
    of: str = "",
    level: float | None = None,
    label: Callable[[float], str] | None = None,
) -> str:
    """The series as SVG; `across` says what stands below, `level` is a value with a line of its own,
    `of` what the chart is about, for those who hear its name.

    Values are positive and in `unit`. Without any dot it says so.
    """
    name = f"{title}, over {across}" + (f": {of}" if of else "")
    dots = [dot for one in series for dot in one.dots]
    if not dots:
        return frame(
            "lines", LINE + 8, name, "Nothing was measured.", [text((2, FONT), "Nothing was measured.")]
        )
    values = [dot.value for dot in dots] + [
        end for one in series if not one.spread for d in one.dots for end in (d.low, d.high)
    ]
    down = logarithmic([*values, *([level] if level else [])], 0, 1, room=1.15)
    fine, named = ticks(down, unit, 5)
    inner = box_for(fine, HEIGHT, below=2 * LINE + 8)
    box = Box(inner.left, inner.top, inner.right - 2 * FONT * 0.75, inner.bottom)
    y = Scale(down.low, down.high, box.bottom, box.top, log=True)
    places = sorted({dot.at for dot in dots})
    x = (
        Scale(places[0], places[-1], box.left + 6, box.right - 6, log=True)
        if len(places) > 1
        else Scale(places[0] / 2, places[0] * 2, box.left, box.right, log=True)
    )
    say = label or (lambda value: format_quantity(value, unit))
    drawn = y_axis(box, y, fine, f"{title} ({named.name})" if named.name else title)
    drawn += x_axis(box, x, [Tick(place, f"{place:g}") for place in places], across)
    if level is not None and y.holds(level):
        drawn.append(line(box.left, y(level), box.right, y(level), "level"))
    for one in reversed(series):
        drawn.append(_series(one, x, y, say))
    drawn += _letters(series, x, y, box)
    return frame("lines", HEIGHT, name, _told(series, across, say), drawn)


def _series(one: Series, x: Scale, y: Scale, say: Callable[[float], str]) -> str:
    kind = one.place % SERIES + 1
    body = (
        curve([(x(dot.at), y(dot.value)) for dot in one.dots], f"line l{kind}") if len(one.dots) > 1 else ""
    )
    for dot in one.dots:
        low, high = y(dot.low), y(dot.high)
        if not one.spread and low - high > LEAST_SEEN:
            body += line(x(dot.at), low, x(dot.at), high, f"line l{kind}")
        shape = SHAPES[one.place % len(SHAPES)].format(x=number(x(dot.at)), y=number(y(dot.value)))
        body += tag("path", hover(dot.told), d=shape, class_=f"f{kind}")
    return focusable(body, _sentence(one, say))


def _letters(series: Sequence[Series], x: Scale, y: Scale, box: Box) -> list[str]:
    """Each line's letter at its right end, moved apart where ends are near to each other, in their order."""
    ends = sorted((y(one.dots[-1].value), index) for index, one in enumerate(series) if one.dots)
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
        start = x(one.dots[-1].at) + 7
        right = max(start, box.right - 6 + 7)
        drawn.append(
            text(
                (min(right, WIDTH - width(one.letter) - 1), place + FONT * 0.35),
                one.letter,
                f"f{one.place % SERIES + 1} t",
                one.name,
            )
        )
    return drawn


def _sentence(one: Series, say: Callable[[float], str]) -> str:
    return f"{one.name}: " + ", ".join(f"{say(dot.value)} at {dot.at:g}" for dot in one.dots)


def _told(series: Sequence[Series], across: str, say: Callable[[float], str]) -> str:
    return f"Over {across}. " + "; ".join(_sentence(one, say) for one in series if one.dots) + "."
