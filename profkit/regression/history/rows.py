"""Convert what a history keeps of a run to rows and back; times are UTC in microseconds, so that they sort."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from profkit.analysis.comparability import fingerprint_id, fingerprint_of, shown_features
from profkit.analysis.metrics.catalogue import direction_of
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.codec import from_plain_data, to_plain_data, valid_text
from profkit.core.errors import UsageError
from profkit.core.inference import combine_processes
from profkit.core.types import (
    AcceptedChange,
    Direction,
    Entry,
    Fact,
    Feature,
    HistoryPoint,
    Reading,
    RunDocument,
    Scope,
    SeriesKey,
    Tier,
    Timing,
    Value,
)
from profkit.core.types.readings import Quality, ScopeKind

ID_LENGTH = 16  # hexadecimal digits: a billion runs share one with a chance of 3 %
# Sums over all that was traced, and a trace repeats the work as often as fits its budget: kept for one iteration.
COUNTED = "counted iterations"  # the fact of a run that says what its counts per iteration are the mean of
_SUMS = ("time.gpu", "time.gpu.idle", "launch.count", "buffer.count", "transfer.bytes", "transfer.seconds")


def entry_of(
    document: RunDocument, *, path: str | None = None, night: str | None = None, id: str | None = None
) -> Entry:
    """Return what a history keeps of a run: all readings with a value, of the run and its regions.

    The median time of a region comes with its interval. Kernels and functions are not kept: their names change
    with the builds. `id` names a report that holds no run, by its content. Raises UsageError (2) for a run that
    is still under way, or does not say when it started.
    """
    if document.state == "running":
        raise UsageError(
            f"the run {path or document.name} is not finished: its run.json says `running`",
            "add it when it is; where it was killed, what it holds can be read: profkit summarize",
        )
    if not document.started:
        raise UsageError(f"the run {path or document.name} does not say when it started")
    features = shown_features(
        fingerprint_of(document)
    )  # a run goes by its workload's name, not by its command
    revision = document.revision
    iterations = traced_iterations(document)
    values = {value.key: value for value in _collect_values(document, iterations)}
    valid = document.state == "complete"
    why = Fact.message(document.failure) if document.failure else Fact.of("run-ended", state=document.state)
    return Entry(
        id=id or run_id(document),
        started=document.started,
        workload=document.workload.name or document.name,
        backend=document.backend,
        state=document.state,
        source=_source(document),
        machine=fingerprint_id(features),
        features=features,
        commit=revision.commit if revision is not None else None,
        dirty=revision.dirty if revision is not None else None,
        path=path,
        night=night,
        facts=_collect_facts(document),
        values=tuple(values.values()),
        valid=valid,
        reason=None if valid else why,
    )


def _source(document: RunDocument) -> str:
    """Return what measured: profkit for a run, else the tool whose report it is."""
    if document.passes or document.timings:
        return "profkit"
    return next(iter(document.tools), "profkit")


def run_id(document: RunDocument) -> str:
    """Return a permanent name of a run: made of what no copy, move or newer reading of it changes.

    That is its start, its samples, and how long each pass took, to the nanosecond.
    """
    passes = to_plain_data([[done.name, done.state, done.seconds] for done in document.passes])
    samples = [
        [timing.name, [process.seconds for process in timing.processes]] for timing in document.timings
    ]
    body = [document.started, document.backend, document.name, passes, to_plain_data(samples)]
    if not passes and not samples:
        body.append(to_plain_data(document.readings))
    return hashlib.sha256(json.dumps(body, allow_nan=False).encode()).hexdigest()[:ID_LENGTH]


def _collect_facts(document: RunDocument) -> dict[str, str]:
    facts = {
        "tools": ", ".join(f"{name} {version}" for name, version in sorted(document.tools.items())),
        "depth": document.plan.depth if document.plan is not None else "",
        COUNTED: document.facts.get(COUNTED, ""),
    }
    return {name: text for name, text in facts.items() if text}


# ---------------------------------------------------------------- values


def _collect_values(document: RunDocument, iterations: int) -> Iterator[Value]:
    timings = {timing.name: timing for timing in document.timings}
    for reading in document.readings:
        if reading.value is None or not math.isfinite(reading.value):
            continue
        if reading.scope.kind in ("run", "region"):
            yield _value(document, reading, timings.get(reading.scope.name or ""), iterations)


def _value(document: RunDocument, reading: Reading, timing: Timing | None, iterations: int) -> Value:
    value = float(reading.value or 0.0)
    low = high = None
    if reading.scope.kind == "run" and reading.metric in _SUMS:
        value /= iterations
    if reading.metric == "time.median" and timing is not None:
        groups = tuple(process.seconds for process in timing.processes if process.seconds)
        centre = combine_processes(groups)
        if centre is not None:
            low, high = centre.low, centre.high
    workload = document.workload.name or document.name
    key = SeriesKey(workload, document.backend, reading.metric, reading.scope)
    better = direction_of(reading.metric)
    return Value(key, reading.unit, better, value, reading.quality, low, high, reading.doubt)


# ---------------------------------------------------------------- moments


_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SPAN = re.compile(r"(\d+)\s*(h|d|w|m|y|hours?|days?|weeks?|months?|years?)")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 date or time to UTC; without an offset it is UTC already.

    Raises UsageError if the text is not one. Python 3.10 reads neither `Z` nor nanoseconds by itself.
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
    """Convert an ISO 8601 text to microseconds since 1970, by which rows are ordered. Raises UsageError."""
    return (parse_time(text) - _UNIX_EPOCH) // timedelta(microseconds=1)


def iso_time(micros: int) -> str:
    """Format a time as ISO 8601 in UTC; whole seconds without a fraction."""
    when = _UNIX_EPOCH + timedelta(microseconds=micros)
    return when.isoformat(timespec="microseconds" if when.microsecond else "seconds")


def parse_since(text: str, now: datetime) -> int:
    """Parse what people write for "since when": a date, a time, or a span before `now` (`30d`, `2 weeks`, `1y`).

    Returns microseconds since 1970. Raises UsageError.
    """
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


def series_row(key: SeriesKey, unit: str, better: str) -> tuple[Any, ...]:
    """Return the cells of SERIES_COLUMNS.

    All but the direction identify a series: another unit makes another series.
    """
    scope = key.scope
    columns = (key.workload, key.backend, key.metric, scope.kind, scope.name, scope.id, unit, better)
    return tuple(map(_cell, columns))


def series_of(row: tuple[Any, ...]) -> tuple[SeriesKey, str, Direction]:
    """Return the key, unit and direction from SERIES_COLUMNS."""
    workload, backend, metric, kind, name, scope_id, unit, better = row
    return SeriesKey(workload, backend, metric, Scope(cast("ScopeKind", kind), name, scope_id)), unit, better


# ---------------------------------------------------------------- points

POINT_COLUMNS = "series, entry, value, low, high, quality, doubt"


def point_row(series: int, entry: int, value: Value) -> tuple[Any, ...]:
    """Return the cells of POINT_COLUMNS. Raises UsageError for a value that is not finite."""
    if not math.isfinite(value.value):
        raise UsageError(
            f"{value.key.metric} of {value.key.workload} is {value.value}, which is not a number"
        )
    low, high = _finite_or_none(value.low), _finite_or_none(value.high)
    return series, entry, float(value.value), low, high, value.quality, _cell(value.doubt)


def value_of(key: SeriesKey, unit: str, better: Direction, row: tuple[Any, ...]) -> Value:
    """Return the value of a whole point row."""
    _, _, value, low, high, quality, doubt = row
    return Value(key, unit, better, value, cast("Quality", quality), low, high, _fact_of(doubt))


def point_of(entry: Entry) -> HistoryPoint:
    """Return what a run says about all of its points, as a pattern for `points_of`."""
    return HistoryPoint(
        entry=entry.id,
        started=entry.started,
        machine=entry.machine,
        value=0.0,
        commit=entry.commit,
        valid=entry.valid,
        reason=entry.reason,
    )


def points_of(
    patterns: Mapping[int, HistoryPoint], rows: Iterable[tuple[Any, ...]]
) -> Iterator[HistoryPoint]:
    """Convert whole point rows to points. A doubted value is not valid, whatever is said of its run."""
    for _, run, value, low, high, _, doubt in rows:
        point = replace(patterns[run], value=value, low=low, high=high)
        is_final = doubt is None or not point.valid
        yield point if is_final else replace(point, valid=False, reason=_fact_of(doubt))


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


# ---------------------------------------------------------------- entries

ENTRY_COLUMNS = (
    "id, started, workload, backend, state, source, machine, commit_id, dirty, path, night, facts, outcome, valid,"
    " reason"
)


def entry_row(entry: Entry, machine: int) -> tuple[Any, ...]:
    """Return the cells of ENTRY_COLUMNS, all but its number."""
    cells = {
        **vars(entry),
        "commit_id": entry.commit,
        "started": microseconds(entry.started),
        "machine": machine,
    }
    return tuple(_cell(cells[column]) for column in ENTRY_COLUMNS.split(", "))


def _cell(value: object) -> object:
    """Convert a value for SQLite: valid text, booleans as numbers, mappings and facts as JSON."""
    if isinstance(value, (Mapping, Fact)):
        return _json_text(to_plain_data(value))
    return valid_text(value) if isinstance(value, str) else int(value) if isinstance(value, bool) else value


def entry_of_row(row: tuple[Any, ...], machine: str, features: tuple[Feature, ...]) -> Entry:
    """Return the entry (without its values) from ENTRY_COLUMNS."""
    cells = dict(zip(ENTRY_COLUMNS.split(", "), row, strict=True))
    dirty, commit = cells.pop("dirty"), cells.pop("commit_id")
    cells |= {"started": iso_time(cells["started"]), "machine": machine, "features": features}
    cells |= {"facts": json.loads(cells["facts"]), "valid": bool(cells["valid"])}
    cells |= {"reason": _fact_of(cells["reason"])}
    return Entry(**cells, commit=commit, dirty=None if dirty is None else bool(dirty))


def features_text(features: tuple[Feature, ...]) -> str:
    """Encode the properties of a fingerprint as they are stored, in their order."""
    return _json_text([[feature.name, feature.value, feature.tier] for feature in features])


def features_of(text: str) -> tuple[Feature, ...]:
    """Decode `features_text`; those of older histories hold the whole command, which is left out."""
    rows = json.loads(text)
    return shown_features(tuple(Feature(name, value, cast("Tier", tier)) for name, value, tier in rows))


def accepted_row(accepted: AcceptedChange) -> tuple[Any, ...]:
    """Return the cells workload, metric, since, word, by."""
    since = microseconds(accepted.since)
    return tuple(map(_cell, (accepted.workload, accepted.metric, since, accepted.word, accepted.by)))


def accepted_of(row: tuple[Any, ...]) -> AcceptedChange:
    """Return the accepted change from `accepted_row`."""
    return AcceptedChange(workload=row[0], metric=row[1], since=iso_time(row[2]), word=row[3], by=row[4])


def _fact_of(text: str | None) -> Fact | None:
    return from_plain_data(Fact, json.loads(text)) if text is not None else None


def _json_text(content: object) -> str:
    return valid_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
