"""Moments: whatever clock wrote them down, their order is that of what happened."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from profkit.core.errors import UsageError
from profkit.regression.history.rows import iso_time, microseconds, parse_since


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-20T05:47:00+00:00", "2026-11-20T05:47:00+00:00"),
        ("2026-11-20T05:47:00Z", "2026-11-20T05:47:00+00:00"),
        ("2026-11-20 05:47:00", "2026-11-20T05:47:00+00:00"),
        ("2026-11-20T05:47", "2026-11-20T05:47:00+00:00"),
        ("2026-11-20", "2026-11-20T00:00:00+00:00"),
        ("2026-11-20T05:47:00+05:30", "2026-11-20T00:17:00+00:00"),
        ("2026-11-20T05:47:00.25+01:00", "2026-11-20T04:47:00.250000+00:00"),
        ("2026-11-20T05:47:00.123456789Z", "2026-11-20T05:47:00.123456+00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59+00:00"),
    ],
)
def test_a_moment_is_told_in_utc(text: str, utc: str) -> None:
    assert iso_time(microseconds(text)) == utc


@pytest.mark.parametrize(
    "text", ["", "now", "20.11.2026", "2026-02-30", "2026-11-20T25:00", "1763617620", "2026-11-20T05:47:00+1"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a date or time"):
        microseconds(text)


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("30d", "2026-10-21T12:00:00+00:00"),
        ("2 weeks", "2026-11-06T12:00:00+00:00"),
        ("12h", "2026-11-20T00:00:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
    ],
)
def test_people_say_from_when_on(text: str, begin: str) -> None:
    assert iso_time(parse_since(text, datetime(2026, 11, 20, 12, tzinfo=timezone.utc))) == begin


def test_a_span_beyond_all_time_is_refused() -> None:
    with pytest.raises(UsageError, match="too long a time span"):
        parse_since("99999999999y", datetime(2026, 11, 20, tzinfo=timezone.utc))
