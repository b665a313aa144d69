"""Time as an axis: minutes, hours, days, months or years as ticks, named as briefly as they can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from profkit.reporting.charts.scale import Tick

DAY = 86400.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 2, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_STEPS_OF_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 1200, 12000)


def seconds(started: str) -> float | None:
    """Seconds since 1970 of a time as ISO 8601, in UTC where it names no zone; None where it is none."""
    try:
        told = datetime.fromisoformat(started.replace("Z", "+00:00"))
        return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
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


def day(at: float) -> str:
    """`2026-01-31`."""
    return _utc(at).strftime("%Y-%m-%d")


def _utc(at: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at)


def _even(first: float, last: float, step: float, *, hours_only: bool = False) -> tuple[Tick, ...]:
    count = int(-(-first // step))
    found = []
    while count * step <= last:
        told = _utc(count * step)
        midnight = told.hour == 0
        label = f"{told.day} {_MONTHS[told.month - 1]}" if midnight else f"{told:%H:%M}"
        found.append(Tick(count * step, f"{told:%H:%M}" if hours_only and not midnight else label))
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
