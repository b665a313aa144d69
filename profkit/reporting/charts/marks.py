"""A chart as data: marks on two axes, the places of their values, and the round values beside an axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import NamedTuple, TypeAlias

from profkit.analysis.stacks.files import FlameTree
from profkit.core.formatting import format_quantity, shorten
from profkit.reporting.view import Block, Paragraph, Span, Style, Text

_PAD = 0.06  # of the range, left free above and below what is drawn
_MIN_RANGE = 1e-5  # relative: a smaller range is the rounding of the clock, and has no digits to tell it by
_LARGEST = 1e300  # beyond it differences overflow


class Tick(NamedTuple):
    """A value of an axis, and its label."""

    value: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Maps `low`..`high` to `start`..`end`; `log`: equal ratios to equal lengths, for values above 0."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value; outside of the range it is that of the nearer end."""
        value = min(self.high, max(self.low, value))
        if self.log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def linear(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a scale over all finite `values` with some room. Values that are all alike stand in the middle."""
    known = [min(_LARGEST, max(-_LARGEST, value)) for value in values if isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    size = max(abs(low), abs(high))
    if high - low <= _MIN_RANGE * size or high == low:
        room = 0.05 * size or 1.0
        return Scale(low - room, high + room, start, end)
    room = _PAD * (high - low)
    # No measured time, rate or share is below 0, so room is not made there either.
    return Scale(max(0.0, low - room) if low >= 0 else low - room, high + room, start, end)


@dataclass(frozen=True)
class Axis:
    """One direction. Without `low` and `high` it reaches as far as the marks do; `ticks` None: at round values.

    `log`: a logarithmic one, of values above 0.
    """

    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    ticks: tuple[Tick, ...] | None = None
    log: bool = False

    def scale(self, values: Iterable[float], start: float, end: float) -> Scale:
        """Return the scale from `start` to `end` over the values, unless its reach is given."""
        known = [value for value in values if isfinite(value)]
        alike = len(set(known)) < 2
        found = linear(known, start, end) if alike else Scale(min(known), max(known), start, end)
        low = found.low if self.low is None else self.low
        return Scale(low, found.high if self.high is None else self.high, start, end, self.log)

    def marked(self, scale: Scale) -> tuple[Tick, ...]:
        """Return the ticks on a scale."""
        return ticks(scale, self.unit) if self.ticks is None else self.ticks


def ticks(scale: Scale, unit: str = "", most: int = 5) -> tuple[Tick, ...]:
    """Return at most `most` ticks at even round values, with more figures if their labels would be equal."""
    if scale.log and (decades := _log_ticks(scale, most)):
        return tuple(Tick(value, format_quantity(value, unit)) for value in decades)
    extent = scale.high - scale.low
    power = 10.0 ** floor(log10(extent / most))
    step = next(power * times for times in (1, 2, 5, 10, 20) if power * times * most >= extent * 0.999)
    if floor(scale.high / step + 1e-9) - ceil(scale.low / step - 1e-9) + 1 > most:
        step *= 2
    begin = ceil(scale.low / step - 1e-9)
    values = [(begin + n) * step for n in range(max(0, floor(scale.high / step + 1e-9) - begin + 1))]
    labels = [format_quantity(value, unit) for value in values]
    if len(set(labels)) < len(labels):
        labels = [f"{value:.7g} {unit}".strip() for value in values]
    return tuple(map(Tick, values, labels))


def _log_ticks(scale: Scale, most: int) -> list[float]:
    """Return 1, 2 and 5 of each power of ten, or fewer; empty if fewer than two lie on the scale."""
    first, last = floor(log10(scale.low)), ceil(log10(scale.high))
    steps = [(1, (1, 2, 5)), (1, (1, 3)), *((apart, (1,)) for apart in range(1, last - first + 1))]
    for apart, digits in steps:
        powers = range(-(-first // apart) * apart - apart, last + 1, apart)
        found = [digit * 10.0**power for power in powers for digit in digits]
        found = [
            value for value in found if scale.low <= value * (1 + 1e-9) and value <= scale.high * (1 + 1e-9)
        ]
        if len(found) <= most:
            return found if len(found) > 1 else []
    return []


# ---------------------------------------------------------------- marks


@dataclass(frozen=True)
class Line:
    """A line through points. `style` are classes of charts.css, here and below; `label` stands behind its end."""

    points: tuple[tuple[float, float], ...]
    style: str = "line"
    hover: str = ""
    label: str = ""


@dataclass(frozen=True)
class Area:
    """An area between two edges, as (x, low, high) from left to right."""

    edges: tuple[tuple[float, float, float], ...]
    style: str = "area"
    hover: str = ""


@dataclass(frozen=True)
class AxisRule:
    """A line down the whole chart at `x`, with a name at its end."""

    x: float
    style: str
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Point:
    """A value at a place."""

    x: float
    y: float
    hover: str = ""
    style: str = "dot"
    size: float = 2.4  # units: its radius


@dataclass(frozen=True)
class TextMark:
    """Words beside a place; left out where others stand, or where they have no room."""

    x: float
    y: float
    text: str
    style: str = ""
    apart: float = 3.0  # units between the place and the words
    sides: str = "rlab"  # where they may stand, the best first: right, left, above, below


@dataclass(frozen=True)
class PointGroup:
    """Points, of which `hover` says together what they are."""

    points: tuple[Point, ...]
    hover: str = ""


AnyMark: TypeAlias = Line | Area | AxisRule | PointGroup | TextMark


def places(marks: Sequence[AnyMark]) -> tuple[list[float], list[float]]:
    """Return all values of the marks, across and up."""
    across: list[float] = []
    up: list[float] = []
    for mark in marks:
        match mark:
            case Line():
                across += [x for x, _ in mark.points]
                up += [y for _, y in mark.points]
            case Area():
                across += [x for x, _, _ in mark.edges]
                up += [y for _, low, high in mark.edges for y in (low, high)]
            case AxisRule():
                across.append(mark.x)
            case TextMark():
                across.append(mark.x)
                up.append(mark.y)
            case PointGroup():
                across += [point.x for point in mark.points]
                up += [point.y for point in mark.points]
    return across, up


@dataclass(frozen=True)
class Chart(Block):
    """Marks on two axes. `kind` is a short word for styles."""

    kind: str
    title: str
    description: str
    x: Axis
    y: Axis
    marks: tuple[AnyMark, ...]


_ROWS, _WIDTH = 5, 70  # of bars; a narrow terminal folds them
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class FlameGraph(Block):
    """Stacks that were sampled, callers above what they call; only a page has it."""

    flame: FlameTree


@dataclass(frozen=True)
class ChartGroup(Block):
    """Charts side by side with a note below. `repeats`: other blocks of the view hold the same numbers."""

    charts: tuple[Chart, ...]
    note: Text = ""
    repeats: bool = False

    def plain(self) -> Sequence[Block]:
        """Return a title and rows of bars for each."""
        shown = () if self.repeats else self.charts
        return [Paragraph(Span(line, Style.CODE)) for chart in shown for line in text_plot(chart)]


# ---------------------------------------------------------------- with characters


def text_plot(chart: Chart) -> list[str]:
    """Return the range, and the last values as bars side by side; [] of less than two values.

    `▲` stands before a change, `┊` where a segment begins.
    """
    points = [point for mark in chart.marks if isinstance(mark, PointGroup) for point in mark.points]
    if len({point.x for point in points}) < 2:
        return []
    height = chart.y.scale(places(chart.marks)[1], 0, len(_BARS) - 1)
    signs = [(point.x, _BARS[round(height(point.y))]) for point in points]
    rules = [mark for mark in chart.marks if isinstance(mark, AxisRule)]
    signs += [(rule.x, "▲" if rule.style == "change" else "┊") for rule in rules]
    drawn = "".join(sign for _, sign in sorted(signs))[-_ROWS * _WIDTH :]
    ends = (format_quantity(end(point.y for point in points), chart.y.unit) for end in (min, max))
    title = f"{chart.y.title}: {' to '.join(ends)}"
    return [shorten(title, _WIDTH), *(drawn[at : at + _WIDTH] for at in range(0, len(drawn), _WIDTH))]
