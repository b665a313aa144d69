"""Values to places on a chart, and the round values beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

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
        return next((AxisUnit(f, name) for f, name in _TIMES if size >= f * 0.9995), AxisUnit(*_TIMES[-1]))
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


def linear(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale over all finite `values` with some room. Values that are all alike stand in the middle."""
    known = [min(LARGEST, max(-LARGEST, value)) for value in values if isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
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


@dataclass(frozen=True)
class Axis:
    """One direction. Without `low` and `high` it reaches as far as the marks do; `ticks` None: at round values."""

    title: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: tuple[Tick, ...] | None = None

    def scale(self, values: Iterable[float], start: float, end: float, *, room: bool = True) -> Scale:
        """From `start` to `end` over the values; with `room` at both ends, where it is not said how far it reaches."""
        known = [value for value in values if isfinite(value) and (value > 0 or not self.log)]
        if self.log:
            found = logarithmic(known, start, end, room=1.15 if room or len(set(known)) < 2 else 1.0)
        elif room or len(set(known)) < 2:
            found = linear(known, start, end)
        else:
            found = Scale(min(known), max(known), start, end)
        low, high = (
            (found.low if self.low is None else self.low),
            (found.high if self.high is None else self.high),
        )
        return Scale(low, high, start, end, self.log)

    def marked(self, scale: Scale, most: int = 5) -> tuple[tuple[Tick, ...], str]:
        """The ticks on a scale, and the unit that they are in."""
        found, unit = ticks(scale, self.unit, most)
        return (found, unit.name) if self.ticks is None else (self.ticks, self.unit)


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


# ---------------------------------------------------------------- dates

DAY = 86400.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 2, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_STEPS_OF_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 1200, 12000)


def seconds(started: str) -> float | None:
    """Seconds since 1970 of a time as ISO 8601, in UTC where it names no zone; None where it is none."""
    try:
        moment = datetime.fromisoformat(started.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None


def in_order(started: Sequence[str]) -> list[float] | None:
    """All of them as seconds; None where one is no time, or comes before the one before it, or all are the same."""
    found: list[float] = []
    for one in started:
        at = seconds(one)
        if at is None or (found and at < found[-1]):
            return None
        found.append(at)
    return found if len(found) > 1 and found[-1] > found[0] else None


def date_ticks(first: float, last: float, most: int = 5) -> tuple[Tick, ...]:
    """At most `most` round times between two: whole minutes, hours, midnights, or firsts of months."""
    days = (last - first) / DAY
    for minutes in _MINUTES:
        if days * 1440 / minutes <= most - 1:
            return _even(first, last, minutes * 60, hours_only=True)
    for hours in _HOURS:
        if days * 24 / hours <= most - 1:
            return _even(first, last, hours * 3600, hours_only=True)
    for step in _DAYS:
        if days / step <= most - 1:
            return _even(first, last, step * DAY)
    months = next(n for n in _STEPS_OF_MONTHS if days / 30.5 / n <= most - 1 or n == _STEPS_OF_MONTHS[-1])
    return _months(_utc(first), last, months)


def _utc(at: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at)


def _even(first: float, last: float, step: float, *, hours_only: bool = False) -> tuple[Tick, ...]:
    count = int(-(-first // step))
    found = []
    while count * step <= last:
        moment = _utc(count * step)
        midnight = moment.hour == 0
        label = f"{moment.day} {_MONTHS[moment.month - 1]}" if midnight else f"{moment:%H:%M}"
        found.append(Tick(count * step, f"{moment:%H:%M}" if hours_only and not midnight else label))
        count += 1
    return tuple(found)


def _months(begin: datetime, last: float, step: int) -> tuple[Tick, ...]:
    """Firsts of months; January bears the year, or the first tick does."""
    number = begin.year * 12 + begin.month - 1
    number += -number % step
    found: list[Tick] = []
    while number // 12 < 9999:
        year, month = divmod(number, 12)
        at = datetime(year, month + 1, 1, tzinfo=timezone.utc).timestamp()
        if at > last:
            break
        label = str(year) if month == 0 and found else _MONTHS[month]
        if at >= begin.timestamp():
            found.append(Tick(at, label if found or step % 12 else str(year)))
        number += step
    if found and step % 12:
        first = _utc(found[0].value)
        found[0] = Tick(found[0].value, f"{_MONTHS[first.month - 1]} {first.year}")
    return tuple(found)
