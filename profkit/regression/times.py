"""Moments as a history keeps them: UTC, to the microsecond, so that text and order agree."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from profkit.core.errors import UsageError

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|UTC|[+-]\d\d:?\d\d|[+-]\d\d)?)?"
)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SPAN = re.compile(r"(\d+)\s*(h|d|w|m|y|hours?|days?|weeks?|months?|years?)")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


def parse_time(text: str) -> datetime:
    """An ISO 8601 date or time with its offset, as UTC; without an offset it is UTC already.

    Raises UsageError where the text is no moment. Python 3.10 reads neither `Z` nor nanoseconds by itself.
    """
    match = _FORM.fullmatch(text.strip())
    if match is not None:
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        micro = int((fraction or "0").ljust(6, "0")[:6])
        try:
            naive = datetime(
                int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
            )
            return (naive.replace(tzinfo=timezone.utc) + timedelta(microseconds=micro)) - _offset(zone)
        except (ValueError, OverflowError):
            pass
    raise UsageError(
        f"{text[:60]!r} is not a date or time", "write it as 2026-11-20 or 2026-11-20T05:47:00+01:00"
    )


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "z", "UTC"):
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -ahead if zone[0] == "-" else ahead


def microseconds(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 text: what rows are ordered by. Raises UsageError."""
    return (parse_time(text) - _UNIX_EPOCH) // timedelta(microseconds=1)


def iso_time(micros: int) -> str:
    """The moment as ISO 8601 in UTC; whole seconds without a fraction."""
    when = _UNIX_EPOCH + timedelta(microseconds=micros)
    return when.isoformat(timespec="microseconds" if when.microsecond else "seconds")


def parse_since(text: str, now: datetime) -> int:
    """What people write for "from when on": a date, a time, or a span before `now` (`30d`, `2 weeks`, `1y`)."""
    span = _SPAN.fullmatch(text.strip().lower())
    if span is None:
        return microseconds(text)
    try:
        hours = int(span[1]) * _HOURS[span[2][0]]
        begin = now.astimezone(timezone.utc) - timedelta(hours=hours)
        return (begin - _UNIX_EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise UsageError(f"{text[:60]!r} is too long a time span", "30d, 12w or 1y") from error
