"""Entries as rows of the tables, and back. Each row has a seal: a bit that flipped on a disk is found.

Raw samples are stored as bytes in a row: float32, one group per process, thinned where there are very many.

    1 byte   `f` float32, `d` float64 where a sample is beyond what float32 can hold
    u16      number of groups, then u32 the length of each
    ...      the samples of all groups, one after the other; little endian throughout

Four bytes a sample are enough: float32 is exact to 6e-8, and the steadiest clock of a GPU to 1e-4.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, cast

from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport, UsageError
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
_SMALLEST = 1.2e-38  # below it float32 loses digits
_SAMPLES_HEAD = struct.Struct("<cH")
_CODES = {b"f": "f", b"d": "d"}
_MOST_READ = 1 << 20  # samples: what was damaged must not ask for memory without end

Groups = tuple[tuple[float, ...], ...]


def thin_samples(groups: Sequence[Sequence[float]]) -> tuple[Groups, int | None]:
    """The groups with at most MOST_SAMPLES in all, and how many samples there were where some were left out.

    Every process keeps its share, spread evenly over its samples in the order in which they were taken, so that
    neither the distribution nor a drift is bent.
    """
    numbers = (tuple(sample for sample in group if math.isfinite(sample)) for group in groups)
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
    narrow = all(sample == 0 or _SMALLEST < abs(sample) < _LARGEST for sample in flat)
    code = "f" if narrow else "d"
    lengths = [len(group) for group in groups]
    return struct.pack(f"<cH{len(groups)}I{len(flat)}{code}", code.encode(), len(groups), *lengths, *flat)


def unpack_samples(blob: bytes | None) -> Groups:
    """The groups behind `packed` bytes. Raises ValueError where the bytes are not what `packed` makes."""
    if blob is None:
        return ()
    try:
        code, count = _SAMPLES_HEAD.unpack_from(blob)
        samples, ends = _layout(blob[: _SAMPLES_HEAD.size + 4 * count], code, count)
        flat = samples.unpack_from(blob, _SAMPLES_HEAD.size + 4 * count)
    except (struct.error, KeyError) as error:
        raise ValueError(f"no packed samples: {error}") from error
    if len(blob) != _SAMPLES_HEAD.size + 4 * count + samples.size:
        raise ValueError("no packed samples: the lengths of the groups do not add up")
    return (flat,) if count == 1 else tuple([flat[part] for part in ends])


@lru_cache(maxsize=1024)
def _layout(head: bytes, code: bytes, count: int) -> tuple[struct.Struct, tuple[slice, ...]]:
    """The layout of samples with this head: a year of one metric has a few heads at most."""
    lengths = struct.unpack_from(f"<{count}I", head, _SAMPLES_HEAD.size)
    ends = list(accumulate(lengths))
    if ends and ends[-1] > _MOST_READ:
        raise ValueError("no packed samples: more than anybody packs")
    samples = struct.Struct(f"<{ends[-1] if ends else 0}{_CODES[code]}")
    return samples, tuple(slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))


def _even_indices(count: int, most: int) -> list[int]:
    """At most `most` of the indices 0..count-1, evenly, both ends among them."""
    if count <= most:
        return list(range(count))
    return [round(step * (count - 1) / (most - 1)) for step in range(most)]


_POINT_HEAD = struct.Struct("<qqddd")
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
    return cast("tuple[str, ...]", (_series_text(clean), *clean, better))


POINT_COLUMNS = "series, entry, value, low, high, quality, doubt, taken, samples, seal"
SERIES_COLUMNS = "key, workload, backend, metric, scope, name, scope_id, unit, better, points, seal"


def series_of(row: tuple[Any, ...]) -> tuple[SeriesKey, str, Direction]:
    """Key, unit and direction behind SERIES_COLUMNS."""
    key, workload, backend, metric, kind, name, scope_id, unit, better, points, sealed = row
    if key != _series_text(row[1:8]) or seal(key, better, points) != sealed:
        raise UnreadableReport("the name of a series does not match its columns")
    return SeriesKey(workload, backend, metric, Scope(cast("ScopeKind", kind), name, scope_id)), unit, better


def _series_text(columns: tuple[str | None, ...]) -> str:
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- points


def point_row(series: int, entry: int, value: Value) -> tuple[Any, ...]:
    """series, entry, value, low, high, quality, doubt, taken, samples, seal. Raises UsageError for no number."""
    if not math.isfinite(value.value):
        raise UsageError(f"{value.key.metric} of {value.key.workload} is {value.value}, which is no number")
    groups, taken = thin_samples(value.groups)
    blob = pack_samples(groups)
    doubt = None if value.doubt is None else valid_text(value.doubt)
    row = (
        float(value.value),
        _finite_or_none(value.low),
        _finite_or_none(value.high),
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
    numbers = _POINT_HEAD.pack(
        series, entry, value, _NAN if low is None else low, _NAN if high is None else high
    )
    words = quality if doubt is None and taken is None else f"{quality}{doubt}{taken}"
    content = numbers + words.encode()
    return zlib.crc32(content if blob is None else content + blob)


def value_of(key: SeriesKey, unit: str, better: Direction, row: tuple[Any, ...]) -> Value:
    """The value of a whole point row."""
    number, entry, value, low, high, quality, doubt, taken, blob, sealed = row
    if point_seal(number, entry, value, low, high, quality, doubt, taken, blob) != sealed:
        raise UnreadableReport(f"a value of {key.metric} is not what was stored")
    known = cast("Quality", quality)
    return Value(key, unit, better, value, known, low, high, unpack_samples(blob), taken, doubt)


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
    for number, run, value, low, high, quality, doubt, taken, blob, sealed in rows:
        pattern = patterns[run]
        if point_seal(number, run, value, low, high, quality, doubt, taken, blob) != sealed:
            raise UnreadableReport(f"a value of the run of {pattern.started} is not what was stored")
        point = object.__new__(Point)
        fields = point.__dict__
        fields.update(pattern.__dict__)
        fields["value"], fields["low"], fields["high"] = value, low, high
        if samples and blob is not None:
            fields["groups"] = unpack_samples(blob)
        if doubt is not None and fields["valid"]:
            fields["valid"], fields["reason"] = False, doubt
        yield point


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


# ---------------------------------------------------------------- entries


def entry_row(entry: Entry, machine: int, points: int) -> tuple[Any, ...]:
    """ENTRY_COLUMNS: all but its number, its seal last."""
    row = (
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
        _facts_text(entry.facts),
        _valid_text_or_none(entry.outcome),
        int(entry.valid),
        _valid_text_or_none(entry.reason),
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
        raise UnreadableReport("the row of a run is not what was stored")
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
    rows = [[feature.name, feature.value, feature.tier] for feature in features]
    return valid_text(json.dumps(rows, ensure_ascii=False, separators=(",", ":")))


def features_of(text: str) -> tuple[Feature, ...]:
    """The fields behind `features_text`."""
    return tuple(Feature(name, value, cast("Tier", tier)) for name, value, tier in json.loads(text))


def accepted_row(accepted: AcceptedChange) -> tuple[Any, ...]:
    """workload, metric, since, word, by, seal."""
    row = (
        valid_text(accepted.workload),
        _valid_text_or_none(accepted.metric),
        microseconds(accepted.since),
        valid_text(accepted.word),
        _valid_text_or_none(accepted.by),
    )
    return (*row, seal(*row))


def accepted_of(row: tuple[Any, ...]) -> AcceptedChange:
    """The accepted change behind `accepted_row`."""
    if seal(*row[:-1]) != row[-1]:
        raise UnreadableReport("an accepted change is not what was stored")
    return AcceptedChange(workload=row[0], metric=row[1], since=iso_time(row[2]), word=row[3], by=row[4])


def _facts_text(facts: Mapping[str, str]) -> str:
    return valid_text(json.dumps(dict(facts), ensure_ascii=False, separators=(",", ":")))


def _valid_text_or_none(text: str | None) -> str | None:
    return None if text is None else valid_text(text)
