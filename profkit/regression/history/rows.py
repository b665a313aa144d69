"""Entries as rows of the tables, and back.

Raw samples are stored as bytes in a row: float32, one group per process, thinned where there are very many.

    u16      number of groups, then u32 the length of each
    ...      the samples of all groups, one after the other; little endian throughout

Four bytes a sample are enough: float32 is exact to 6e-8, and the steadiest clock of a GPU to 1e-4.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

from profkit.core.codec import valid_text
from profkit.core.errors import UsageError
from profkit.core.types import AcceptedChange, Direction, Entry, Feature, Point, Scope, SeriesKey, Tier, Value
from profkit.core.types.readings import Quality, ScopeKind
from profkit.regression.history.entry import lost_of
from profkit.regression.times import iso_time, microseconds

# A run of the full depth takes some thousand samples in ten processes. 2048 tell every quantile to a per mille, and
# at 8 kB a value a year of ten workloads stays below 100 MB.
MOST_SAMPLES = 2048
MOST_GROUPS = 64
LEAST_PER_GROUP = 16
_LARGEST = 3.4028234e38  # of float32

Groups = tuple[tuple[float, ...], ...]


def thin_samples(groups: Sequence[Sequence[float]]) -> tuple[Groups, int | None]:
    """The groups with at most MOST_SAMPLES in all, and how many samples there were where some were left out.

    Every process keeps its share, spread evenly over its samples in the order in which they were taken, so that
    neither the distribution nor a drift is bent.
    """
    numbers = (tuple(sample for sample in group if abs(sample) <= _LARGEST) for group in groups)
    processes = [group for group in numbers if group]
    taken = sum(len(group) for group in processes)
    if taken <= MOST_SAMPLES and len(processes) <= MOST_GROUPS:
        return tuple(processes), None
    chosen = [processes[index] for index in _even_indices(len(processes), MOST_GROUPS)]
    each = max(LEAST_PER_GROUP, MOST_SAMPLES // len(chosen))
    return tuple(tuple(group[index] for index in _even_indices(len(group), each)) for group in chosen), taken


def pack_samples(groups: Groups) -> bytes | None:
    """The groups as bytes; None where there are none."""
    if not groups:
        return None
    flat = [sample for group in groups for sample in group]
    lengths = map(len, groups)
    return struct.pack(f"<H{len(groups)}I{len(flat)}f", len(groups), *lengths, *flat)


def unpack_samples(blob: bytes | None) -> Groups:
    """The groups behind packed bytes. Raises ValueError for what `pack_samples` never makes."""
    if blob is None:
        return ()
    try:
        (count,) = struct.unpack_from("<H", blob)
        lengths = struct.unpack_from(f"<{count}I", blob, 2)
        flat = struct.unpack(f"<{sum(lengths)}f", blob[2 + 4 * count :])
    except (struct.error, OverflowError, MemoryError) as error:
        raise ValueError(f"no packed samples: {error}") from error
    ends = list(accumulate(lengths, initial=0))
    return tuple(flat[begin:end] for begin, end in pairwise(ends))


def _even_indices(count: int, most: int) -> list[int]:
    """At most `most` of the indices 0..count-1, evenly, both ends among them."""
    if count <= most:
        return list(range(count))
    return [round(step * (count - 1) / (most - 1)) for step in range(most)]


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

POINT_COLUMNS = "series, entry, value, low, high, quality, doubt, taken, samples"


def point_row(series: int, entry: int, value: Value) -> tuple[Any, ...]:
    """POINT_COLUMNS. Raises UsageError for no number."""
    if not math.isfinite(value.value):
        raise UsageError(f"{value.key.metric} of {value.key.workload} is {value.value}, which is no number")
    groups, taken = thin_samples(value.groups)
    low, high = _finite_or_none(value.low), _finite_or_none(value.high)
    doubt, taken = _valid_text_or_none(value.doubt), taken or value.taken
    return (series, entry, float(value.value), low, high, value.quality, doubt, taken, pack_samples(groups))


def value_of(key: SeriesKey, unit: str, better: Direction, row: tuple[Any, ...]) -> Value:
    """The value of a whole point row."""
    _, _, value, low, high, quality, doubt, taken, blob = row
    return Value(
        key, unit, better, value, cast("Quality", quality), low, high, unpack_samples(blob), taken, doubt
    )


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


def points_of(
    patterns: Mapping[int, Point], rows: Iterable[tuple[Any, ...]], *, samples: bool = True
) -> Iterator[Point]:
    """Whole point rows as points. A doubted value is not valid, whatever is said of its run.

    A year of nights has a hundred thousand of them, and the constructor of a frozen type would take half of the time;
    so each is a copy of its run's pattern, with its own fields laid over it.
    """
    for _, run, value, low, high, _, doubt, _, blob in rows:
        point = object.__new__(Point)
        fields = point.__dict__
        fields.update(patterns[run].__dict__)
        fields["value"], fields["low"], fields["high"] = value, low, high
        if samples and blob is not None:
            fields["groups"] = unpack_samples(blob)
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
