"""Entries as rows of the tables, and back; moments as they are kept: UTC, to the microsecond, so that they sort."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from profkit.core.codec import valid_text
from profkit.core.errors import UsageError
from profkit.core.types import AcceptedChange, Direction, Entry, Feature, Point, Scope, SeriesKey, Tier, Value
from profkit.core.types.readings import Quality, ScopeKind
from profkit.regression.history.entry import lost_of

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SPAN = re.compile(r"(\d+)\s*(h|d|w|m|y|hours?|days?|weeks?|months?|years?)")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


def parse_time(text: str) -> datetime:
    """An ISO 8601 date or time with its offset, as UTC; without an offset it is UTC already.

    Raises UsageError where the text is no moment. Python 3.10 reads neither `Z` nor nanoseconds by itself.
    """
    plain = re.sub(r"\s*(Z|z|UTC)$", "+00:00", text.strip())
    plain = re.sub(r"[.,](\d+)", lambda match: "." + match[1].ljust(6, "0")[:6], plain)
    try:
        moment = datetime.fromisoformat(plain)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:60]!r} is not a date or time", "write it as 2026-11-20 or 2026-11-20T05:47:00+01:00"
        ) from None


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
        begin = now.astimezone(timezone.utc) - timedelta(hours=int(span[1]) * _HOURS[span[2][0]])
        return (begin - _UNIX_EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise UsageError(f"{text[:60]!r} is too long a time span", "30d, 12w or 1y") from error


# ---------------------------------------------------------------- series

SERIES_COLUMNS = "workload, backend, metric, scope, name, scope_id, unit, better"


def series_row(key: SeriesKey, unit: str, better: str) -> tuple[str | None, ...]:
    """SERIES_COLUMNS. All but the direction make a series: another unit is another one."""
    scope = key.scope
    columns = (key.workload, key.backend, key.metric, scope.kind, scope.name, scope.id, unit, better)
    return tuple(map(_valid_text_or_none, columns))


def series_of(row: tuple[Any, ...]) -> tuple[SeriesKey, str, Direction]:
    """Key, unit and direction behind SERIES_COLUMNS."""
    workload, backend, metric, kind, name, scope_id, unit, better = row
    return SeriesKey(workload, backend, metric, Scope(cast("ScopeKind", kind), name, scope_id)), unit, better


# ---------------------------------------------------------------- points

POINT_COLUMNS = "series, entry, value, low, high, quality, doubt"


def point_row(series: int, entry: int, value: Value) -> tuple[Any, ...]:
    """POINT_COLUMNS. Raises UsageError for no number."""
    if not math.isfinite(value.value):
        raise UsageError(f"{value.key.metric} of {value.key.workload} is {value.value}, which is no number")
    low, high = _finite_or_none(value.low), _finite_or_none(value.high)
    return series, entry, float(value.value), low, high, value.quality, _valid_text_or_none(value.doubt)


def value_of(key: SeriesKey, unit: str, better: Direction, row: tuple[Any, ...]) -> Value:
    """The value of a whole point row."""
    _, _, value, low, high, quality, doubt = row
    return Value(key, unit, better, value, cast("Quality", quality), low, high, doubt)


def point_of(entry: Entry) -> Point:
    """What a run says of all of its points: a pattern for `points_of`."""
    return Point(
        entry=entry.id,
        started=entry.started,
        machine=entry.machine,
        value=0.0,
        commit=entry.commit,
        valid=entry.valid,
        reason=entry.reason,
        night=entry.night,
        outcome=entry.outcome,
        lost=lost_of(entry),
    )


def points_of(patterns: Mapping[int, Point], rows: Iterable[tuple[Any, ...]]) -> Iterator[Point]:
    """Whole point rows as points. A doubted value is not valid, whatever is said of its run.

    A year of nights has a hundred thousand of them, and the constructor of a frozen type would take half of the time;
    so each is a copy of its run's pattern, with its own fields laid over it.
    """
    for _, run, value, low, high, _, doubt in rows:
        point = object.__new__(Point)
        fields = point.__dict__
        fields.update(patterns[run].__dict__)
        fields["value"], fields["low"], fields["high"] = value, low, high
        if doubt is not None and fields["valid"]:
            fields["valid"], fields["reason"] = False, doubt
        yield point


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


# ---------------------------------------------------------------- entries

ENTRY_COLUMNS = (
    "id, started, workload, backend, state, source, machine, commit_id, dirty, path, night, facts, outcome, valid,"
    " reason"
)


def entry_row(entry: Entry, machine: int) -> tuple[Any, ...]:
    """ENTRY_COLUMNS: all but its number."""
    return (
        valid_text(entry.id),
        microseconds(entry.started),
        valid_text(entry.workload),
        valid_text(entry.backend),
        valid_text(entry.state),
        valid_text(entry.source),
        machine,
        _valid_text_or_none(entry.commit),
        None if entry.dirty is None else int(entry.dirty),
        _valid_text_or_none(entry.path),
        _valid_text_or_none(entry.night),
        _json_text(dict(entry.facts)),
        _valid_text_or_none(entry.outcome),
        int(entry.valid),
        _valid_text_or_none(entry.reason),
    )


def entry_of_row(row: tuple[Any, ...], machine: str, features: tuple[Feature, ...]) -> Entry:
    """The entry (without its values) behind ENTRY_COLUMNS."""
    return Entry(
        id=row[0],
        started=iso_time(row[1]),
        workload=row[2],
        backend=row[3],
        state=row[4],
        source=row[5],
        machine=machine,
        features=features,
        commit=row[7],
        dirty=None if row[8] is None else bool(row[8]),
        path=row[9],
        night=row[10],
        facts=json.loads(row[11]),
        outcome=row[12],
        valid=bool(row[13]),
        reason=row[14],
    )


def features_text(features: tuple[Feature, ...]) -> str:
    """The fields of a fingerprint as they are stored, in their order."""
    return _json_text([[feature.name, feature.value, feature.tier] for feature in features])


def features_of(text: str) -> tuple[Feature, ...]:
    """The fields behind `features_text`."""
    return tuple(Feature(name, value, cast("Tier", tier)) for name, value, tier in json.loads(text))


def accepted_row(accepted: AcceptedChange) -> tuple[Any, ...]:
    """workload, metric, since, word, by."""
    return (
        valid_text(accepted.workload),
        _valid_text_or_none(accepted.metric),
        microseconds(accepted.since),
        valid_text(accepted.word),
        _valid_text_or_none(accepted.by),
    )


def accepted_of(row: tuple[Any, ...]) -> AcceptedChange:
    """The accepted change behind `accepted_row`."""
    return AcceptedChange(workload=row[0], metric=row[1], since=iso_time(row[2]), word=row[3], by=row[4])


def _json_text(content: object) -> str:
    return valid_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def _valid_text_or_none(text: str | None) -> str | None:
    return None if text is None else valid_text(text)
