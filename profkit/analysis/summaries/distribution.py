"""How the samples of a timing lie: counted into bins per process, in their order, and the outliers apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

from profkit.core import statistics
from profkit.core.types import SampleSet, Timing

BINS = 60  # as many as can be told apart on a narrow screen
CALM = (2.5, 97.5)  # percentiles that are always on the axis; samples beyond them are, too,
NEAR = 0.75  # of that range: unless they lie further out than this
WIDE = 8.0  # times from the least to the most: beyond, a linear axis would show one bin
COLUMNS = 240  # points of all sequences; more samples go into one column together
FEWEST = 24  # of one process


@dataclass(frozen=True)
class ProcessSpread:
    """The samples of one process. Times in seconds; `bins` are counts from the axis' begin to its end.

    `below` and `above` lie beyond these ends. `low` and `high` are the 95 % interval of the median, None where there
    are too few samples for one. `sequence` holds (place 0..1, least, median, most) of the samples in their order, and
    `warmup` that of those before them; `drift` is relative, 0.0 where none stands out of the noise.
    """

    number: int
    count: int
    median: float
    low: float | None
    high: float | None
    bins: tuple[int, ...]
    below: int
    above: int
    outliers: int
    drift: float
    sequence: tuple[tuple[float, float, float, float], ...]
    warmup: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class Spread:
    """The samples of one timing: the axis from `begin` to `end` seconds, and every process on it."""

    name: str
    begin: float
    end: float
    log: bool
    median: float
    low: float | None
    high: float | None
    processes: tuple[ProcessSpread, ...]


def spread_of(timing: Timing, bins: int = BINS) -> Spread | None:
    """The distribution of a timing; None where it has no sample. Counts only: nothing is smoothed."""
    sets = [one for one in timing.processes if one.seconds]
    centre = statistics.combine([one.seconds for one in sets])
    if centre is None:
        return None
    begin, end = _ends([value for one in sets for value in one.seconds])
    log = begin > 0 and end / begin > WIDE
    counted = [(_counts(one.seconds, begin, end, bins, log=log), one) for one in sets]
    columns = max(FEWEST, COLUMNS // len(sets))
    processes = tuple(_process(n, one, counts, columns) for n, (counts, one) in enumerate(counted, 1))
    return Spread(timing.name, begin, end, log, centre.median, centre.low, centre.high, processes)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the most, or where a few lie far out, as far as all but those reach."""
    least, most = min(values), max(values)
    low, high = (statistics.percentile(values, percent) for percent in CALM)
    room = NEAR * (high - low)
    begin, end = max(least, low - room), min(most, high + room)
    if end - begin <= 1e-9 * abs(end):
        room = 0.01 * abs(end) or 1e-9
        return max(0.0, begin - room), end + room
    return begin, end


def _counts(
    values: Sequence[float], begin: float, end: float, bins: int, *, log: bool
) -> tuple[int, tuple[int, ...], int]:
    """How many lie below the axis, in each of its bins, and above it."""
    counts, below, above = [0] * bins, 0, 0
    for value in values:
        if value < begin:
            below += 1
        elif value > end:
            above += 1
        else:
            counts[min(bins - 1, int(bins * _place(value, begin, end, log=log)))] += 1
    return below, tuple(counts), above


def _process(
    number: int, one: SampleSet, counts: tuple[int, tuple[int, ...], int], columns: int
) -> ProcessSpread:
    known = statistics.interval(one.seconds)
    return ProcessSpread(
        number,
        len(one.seconds),
        statistics.median(one.seconds),
        known.low if known is not None else None,
        known.high if known is not None else None,
        counts[1],
        counts[0],
        counts[2],
        len(statistics.outliers(one.seconds)),
        statistics.drift(one.seconds),
        sequence(one.seconds, columns),
        sequence(one.warmup, columns),
    )


def _place(value: float, begin: float, end: float, *, log: bool) -> float:
    if log:
        return (log10(value) - log10(begin)) / (log10(end) - log10(begin))
    return (value - begin) / (end - begin)


def sequence(
    values: Sequence[float], columns: int = COLUMNS
) -> tuple[tuple[float, float, float, float], ...]:
    """(place 0..1, least, median, most) of values in their order, as many together as give at most `columns`."""
    each = ceil(len(values) / columns)
    found = []
    for start in range(0, len(values), max(1, each)):
        group = values[start : start + each]
        place = (start + len(group) / 2) / len(values)
        found.append((place, min(group), statistics.median(group), max(group)))
    return tuple(found)
