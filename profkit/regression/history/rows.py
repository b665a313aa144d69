"""Entries as rows of the tables, and back; each row sealed, so that no bit that flipped on a disk is told as fact."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.types import Accepted, Direction, Entry, Feature, Point, Scope, SeriesKey, Tier, Value
from profkit.core.types.readings import QUALITY_ORDER, Quality, ScopeKind
from profkit.regression.history.samples import packed, thinned, unpacked
from profkit.regression.history.times import iso, stamp

_HEAD = struct.Struct("<qqddd")
_NAN = math.nan


def seal(*content: object) -> int:
    """A CRC of the row's content. Not against malice: against a disk."""
    return zlib.crc32(repr(content).encode("utf-8", "surrogatepass"))


# ---------------------------------------------------------------- series


def series_row(key: SeriesKey, unit: str, better: str) -> tuple[str, ...]:
    """What makes a series, as one text that is unique, and its columns. Another unit is another series."""
    scope = key.scope
    columns = (key.workload, key.backend, key.metric, scope.kind, scope.name, scope.id, unit)
    clean = tuple(None if column is None else valid_text(column) for column in columns)
    return cast("tuple[str, ...]", (_key(clean), *clean, better))


SERIES_COLUMNS = "key, workload, backend, metric, scope, name, scope_id, unit, better, points, seal"


def series_of(row: tuple[Any, ...]) -> tuple[SeriesKey, str, Direction]:
    """Key, unit and direction behind SERIES_COLUMNS."""
    key, workload, backend, metric, kind, name, scope_id, unit, better, points, sealed = row
    if key != _key(row[1:8]) or seal(key, better, points) != sealed:
        raise UnreadableReport("the name of a series does not match its columns")
    return SeriesKey(workload, backend, metric, Scope(cast("ScopeKind", kind), name, scope_id)), unit, better


def _key(columns: tuple[str | None, ...]) -> str:
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- points


def point_row(series: int, entry: int, value: Value) -> tuple[Any, ...]:
    """series, entry, value, low, high, quality, doubt, taken, samples, seal. Raises UsageError for no number."""
    if not math.isfinite(value.value):
        raise UsageError(f"{value.key.metric} of {value.key.workload} is {value.value}, which is no number")
    groups, taken = thinned(value.groups)
    blob = packed(groups)
    doubt = None if value.doubt is None else valid_text(value.doubt)
    row = (
        float(value.value),
        _real(value.low),
        _real(value.high),
        value.quality,
        doubt,
        taken or value.taken,
    )
    return (series, entry, *row, blob, point_seal(series, entry, *row, blob))


def point_seal(
    series: int,
    entry: int,
    value: float,
    low: float | None,
    high: float | None,
    quality: str,
    doubt: str | None,
    taken: int | None,
    blob: bytes | None,
) -> int:
    """The seal of a point: by struct and not by repr, since a year of nights has a hundred thousand."""
    numbers = _HEAD.pack(series, entry, value, _NAN if low is None else low, _NAN if high is None else high)
    word = _QUALITIES.get(quality) if doubt is None and taken is None else None
    content = numbers + (word if word is not None else f"{quality}{_told(doubt, taken)}".encode())
    return zlib.crc32(content if blob is None else content + blob)


_QUALITIES: dict[str, bytes] = {quality: quality.encode() for quality in QUALITY_ORDER}


def _told(doubt: str | None, taken: int | None) -> str:
    return "" if doubt is None and taken is None else f"{doubt}{taken}"


def value_of(key: SeriesKey, unit: str, better: Direction, row: tuple[Any, ...]) -> Value:
    """The value of a whole point row."""
    number, entry, value, low, high, quality, doubt, taken, blob, sealed = row
    if point_seal(number, entry, value, low, high, quality, doubt, taken, blob) != sealed:
        raise UnreadableReport(f"a value of {key.metric} is not what was stored")
    known = cast("Quality", quality)
    return Value(key, unit, better, value, known, low, high, unpacked(blob), taken, doubt)


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
    )


def points_of(
    patterns: Mapping[int, Point], rows: Iterable[tuple[Any, ...]], *, samples: bool = True
) -> Iterator[Point]:
    """Whole point rows as points. A doubted value is not valid, whatever is said of its run.

    A year of nights has a hundred thousand of them, and the constructor of a frozen type would take half of the time;
    so each is a copy of its run's pattern, with its own fields laid over it.
    """
    for number, run, value, low, high, quality, doubt, taken, blob, sealed in rows:
        pattern = patterns[run]
        if point_seal(number, run, value, low, high, quality, doubt, taken, blob) != sealed:
            raise UnreadableReport(f"a value of the run of {pattern.started} is not what was stored")
        point = object.__new__(Point)
        fields = point.__dict__
        fields.update(pattern.__dict__)
        fields["value"], fields["low"], fields["high"] = value, low, high
        if samples and blob is not None:
            fields["groups"] = unpacked(blob)
        if doubt is not None and fields["valid"]:
            fields["valid"], fields["reason"] = False, doubt
        yield point


def _real(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


# ---------------------------------------------------------------- entries


def entry_row(entry: Entry, machine: int, points: int) -> tuple[Any, ...]:
    """ENTRY_COLUMNS: all but its number, its seal last."""
    row = (
        valid_text(entry.id),
        stamp(entry.started),
        valid_text(entry.workload),
        valid_text(entry.backend),
        valid_text(entry.state),
        valid_text(entry.source),
        machine,
        _text(entry.commit),
        None if entry.dirty is None else int(entry.dirty),
        _text(entry.path),
        _text(entry.night),
        _facts(entry.facts),
        _text(entry.outcome),
        int(entry.valid),
        _text(entry.reason),
        points,
    )
    return (*row, seal(*row))


ENTRY_COLUMNS = (
    "id, started, workload, backend, state, source, machine, commit_id, dirty, path, night, facts, outcome, valid,"
    " reason, points, seal"
)


def entry_of_row(row: tuple[Any, ...], machine: str, features: tuple[Feature, ...]) -> Entry:
    """The entry (without its values) behind ENTRY_COLUMNS. Raises UnreadableReport where the seal is broken."""
    if seal(*row[:-1]) != row[-1]:
        raise UnreadableReport("what is told of a run is not what was stored")
    return Entry(
        id=row[0],
        started=iso(row[1]),
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
    rows = [[feature.name, feature.value, feature.tier] for feature in features]
    return valid_text(json.dumps(rows, ensure_ascii=False, separators=(",", ":")))


def features_of(text: str) -> tuple[Feature, ...]:
    """The fields behind `features_text`."""
    return tuple(Feature(name, value, cast("Tier", tier)) for name, value, tier in json.loads(text))


def accepted_row(accepted: Accepted) -> tuple[Any, ...]:
    """workload, metric, since, word, by, seal."""
    row = (
        valid_text(accepted.workload),
        _text(accepted.metric),
        stamp(accepted.since),
        valid_text(accepted.word),
        _text(accepted.by),
    )
    return (*row, seal(*row))


def accepted_of(row: tuple[Any, ...]) -> Accepted:
    """The accepted change behind `accepted_row`."""
    if seal(*row[:-1]) != row[-1]:
        raise UnreadableReport("an accepted change is not what was stored")
    return Accepted(workload=row[0], metric=row[1], since=iso(row[2]), word=row[3], by=row[4])


def _facts(facts: Mapping[str, str]) -> str:
    return valid_text(json.dumps(dict(facts), ensure_ascii=False, separators=(",", ":")))


def _text(text: str | None) -> str | None:
    return None if text is None else valid_text(text)
