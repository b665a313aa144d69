"""Axes: values to places, round values beside them, and the lines behind a chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Literal, NamedTuple

from profkit.reporting.charts.svg import FONT, LINE, WIDTH, fitted, line, text, width

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((1024.0**4, "Ti"), (1024.0**3, "Gi"), (1024.0**2, "Mi"), (1024.0, "Ki"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_RATES = ("B/s", "FLOP", "FLOP/s", "Hz", "J")


class AxisUnit(NamedTuple):
    """What values are divided by before they stand beside a tick, and the unit that they are in then."""

    factor: float
    name: str


def axis_unit(unit: str, size: float) -> AxisUnit:
    """The unit in which the largest value of an axis, `size`, has one to four digits before the point."""
    size = abs(size)
    if unit == "s":
        steps = tuple((factor, name) for factor, name in _TIMES)
        return next((AxisUnit(f, name) for f, name in steps if size >= f * 0.9995), AxisUnit(*_TIMES[-1]))
    if unit.split("/")[0] == "B" and unit != "B/s":
        return _prefixed(unit, size, _BINARY)
    if unit in _RATES:
        return _prefixed(unit, size, _DECIMAL)
    if unit in ("", "count", "samples", "cycles", "instructions") or size >= 1e4:
        found = _prefixed("", size, _DECIMAL)
        rest = "" if unit in ("", "count") else unit
        return AxisUnit(found.factor, f"{found.name} {rest}".strip())
    return AxisUnit(1.0, unit)


def _prefixed(unit: str, size: float, steps: tuple[tuple[float, str], ...]) -> AxisUnit:
    factor, prefix = next((step for step in steps if size >= step[0] * 0.9995), steps[-1])
    return AxisUnit(factor, f"{prefix}{unit}")


PAD = 0.06  # of the range, left free above and below what is drawn
LEAST_RANGE = 1e-5  # relative: a smaller range is the rounding of the clock, and has no digits to tell it by
LARGEST = 1e300  # beyond it differences overflow


class Tick(NamedTuple):
    """A value and what stands beside it, without the unit: that stands once, at the axis."""

    value: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Maps `low`..`high` to `start`..`end`. A logarithmic one needs a `low` above 0."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; outside of the range it is that of the nearer end."""
        value = min(self.high, max(self.low, value))
        if self.log:
            share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Whether a value lies inside of the range."""
        return self.low <= value <= self.high


def linear(values: Iterable[float], start: float, end: float, *, zero: bool = False) -> Scale:
    """A scale over all finite `values` with some room; `zero`: from 0 on, as bars need it.

    Values that are all alike stand in the middle; with none at all the range is 0 to 1.
    """
    known = [min(LARGEST, max(-LARGEST, value)) for value in values if isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
        if low == high:
            return Scale(0.0, 1.0, start, end)
        room = PAD * (high - low)
        return Scale(low - (room if low < 0 else 0.0), high + (room if high > 0 else 0.0), start, end)
    size = max(abs(low), abs(high))
    if high - low <= LEAST_RANGE * size or high == low:
        room = 0.05 * size or 1.0
        return Scale(low - room, high + room, start, end)
    room = PAD * (high - low)
    # No measured time, rate or share is below 0, so room is not made there either.
    return Scale(max(0.0, low - room) if low >= 0 else low - room, high + room, start, end)


def logarithmic(values: Iterable[float], start: float, end: float, *, room: float = 2.0) -> Scale:
    """A scale over all `values` above 0, wider by the factor `room` at both ends. Without any it is 1 to 10."""
    known = [min(LARGEST, max(1 / LARGEST, value)) for value in values if isfinite(value) and value > 0]
    low, high = min(known, default=1.0), max(known, default=10.0)
    return Scale(low / room, high * room, start, end, log=True)


def ticks(scale: Scale, unit: str = "", most: int = 5) -> tuple[tuple[Tick, ...], AxisUnit]:
    """At most `most` ticks at round values (1, 2 or 5 times a power of ten of the axis' own unit), and that unit."""
    if scale.log:
        return _decades(scale, unit, most)
    found = axis_unit(unit, max(abs(scale.low), abs(scale.high)))
    low, high = scale.low / found.factor, scale.high / found.factor
    step = _step(high - low, most)
    while (number := floor(high / step + 1e-9) - ceil(low / step - 1e-9) + 1) > most:
        step = _next(step)
    first = ceil(low / step - 1e-9)
    values = [(first + i) * step for i in range(max(0, number))]
    return tuple(Tick(v * found.factor, _plain(v, step)) for v in values), found


def _step(extent: float, most: int) -> float:
    power = 10.0 ** floor(log10(extent / most))
    return next(power * times for times in (1, 2, 5, 10, 20) if power * times * most >= extent * 0.999)


def _next(step: float) -> float:
    """The next larger round step: 1, 2, 5, 10."""
    first = round(step / 10.0 ** floor(log10(step) + 1e-9))
    return step * (2.5 if first == 2 else 2)


def _plain(value: float, step: float) -> str:
    """`4.10`, and of what is too long or too small for that `1.2e+18`, with as many digits as tell steps apart."""
    digits = max(0, -floor(log10(step) + 1e-9))
    text = f"{value:.{digits}f}" if digits < 10 else ""
    if text and len(text) <= 9:
        return text
    return f"{value:.{max(1, ceil(log10(max(abs(value), step) / step) + 1e-9) + 1)}g}"


def _decades(scale: Scale, unit: str, most: int) -> tuple[tuple[Tick, ...], AxisUnit]:
    """Powers of ten, or where there are fewer than two, 1, 2 and 5 times them; of less than that linear ticks."""
    first, last = ceil(log10(scale.low) - 1e-9), floor(log10(scale.high) + 1e-9)
    stride = max(1, ceil((last - first + 1) / most))
    values = [10.0**power for power in range(first + (-first % stride), last + 1, stride)]
    if len(values) < 3:
        powers = range(first - 1, last + 1)
        finer = [times * 10.0**power for power in powers for times in (1, 2, 5)]
        inside = [value for value in finer if scale.holds(value)]
        values = inside if len(inside) <= most else values
    if len(values) < 2:
        return ticks(Scale(scale.low, scale.high, scale.start, scale.end), unit, most)
    # Decades span prefixes, so each tick has its own: 100 M, 10 G; of seconds the whole unit, as m alone is a metre.
    found = []
    for value in values:
        own = axis_unit(unit, value)
        sign = own.name if unit == "s" else own.name.removesuffix(unit)
        found.append(Tick(value, f"{value / own.factor:.6g} {sign}".strip()))
    return tuple(found), AxisUnit(1.0, "" if unit == "s" else unit)


def apart(places: Sequence[tuple[float, float]], gap: float = 4.0) -> list[int]:
    """Which of the stretches (begin, end), taken in order, overlap none that was taken before; first and last win."""
    kept: list[int] = []
    order = [0, len(places) - 1, *range(1, len(places) - 1)] if len(places) > 1 else [*range(len(places))]
    for index in order:
        begin, end = places[index]
        if all(end + gap <= places[k][0] or begin - gap >= places[k][1] for k in kept):
            kept.append(index)
    return sorted(kept)


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
