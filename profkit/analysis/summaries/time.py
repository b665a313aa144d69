"""Time: how long one iteration takes, how well that is known, and how its samples are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, log10

from profkit.analysis.summaries.readings import TOOL, unavailable_reading
from profkit.core import statistics
from profkit.core.types import RUN, Fact, Reading, SampleSet, Scope, Source, Timing

FOR_P95, FOR_P99 = 20, 100  # samples; with fewer the percentile is the slowest sample under another name


def scope_of(timing: Timing) -> Scope:
    """The region that was timed, or the run where the whole process was."""
    return RUN if timing.kind == "process" else Scope("region", timing.name)


def time_readings(timing: Timing) -> tuple[Reading, ...]:
    """Every time.* metric of one timing: seconds per iteration, or per cent of the median.

    The median is that of the processes' medians, the interval 95 % by order statistics with the effective
    sample size (`combine_processes`). Unavailable, with the reason, where there are too few samples.
    """
    scope = scope_of(timing)
    samples = [s for process in timing.processes for s in process.seconds]
    centre = statistics.combine_processes([process.seconds for process in timing.processes])
    if centre is None or centre.median <= 0:
        return (unavailable_reading("time.median", scope, Fact("no-sample")),)
    median = centre.median

    def reading(name: str, value: float, unit: str, formula: str) -> Reading:
        return Reading(name, value, unit, "measured", scope, Source(TOOL, "seconds", formula=formula))

    readings = [
        reading("time.median", median, "s", "median of the processes' medians"),
        reading("time.mean", sum(samples) / len(samples), "s", "mean of all samples"),
        reading("time.minimum", min(samples), "s", "smallest sample"),
        reading("time.maximum", max(samples), "s", "largest sample"),
        _interval_reading(timing, scope, centre, len(samples)),
    ]
    if len(samples) > 1:
        width = statistics.percentile(samples, 75) - statistics.percentile(samples, 25)
        readings.append(reading("time.spread", 100 * width / median, "%", "100 * (p75 - p25) / median"))
        outside = len(statistics.outlier_indices(samples))
        formula = f"100 * share of samples with |x - median| > {statistics.OUTLIER_LIMIT} MAD-sigma"
        readings.append(reading("time.outliers", 100 * outside / len(samples), "%", formula))
    for name, percent_, least in (("time.p95", 95, FOR_P95), ("time.p99", 99, FOR_P99)):
        if len(samples) >= least:
            formula = f"{percent_}th percentile of all samples"
            readings.append(reading(name, statistics.percentile(samples, percent_), "s", formula))
    first = [process.warmup[0] for process in timing.processes if process.warmup]
    if first:
        formula = "median of the processes' first iterations"
        readings.append(reading("time.first", statistics.median(first), "s", formula))
    if centre.between_spread is not None:
        formula = "100 * (largest - smallest median of a process) / median"
        readings.append(reading("time.processes", 100 * centre.between_spread, "%", formula))
    return tuple(readings)


def _interval_reading(timing: Timing, scope: Scope, centre: statistics.Centre, count: int) -> Reading:
    if centre.low is None or centre.high is None:
        few = Fact.of("no-interval", samples=count, processes=len(timing.processes))
        return unavailable_reading("time.interval", scope, few, "--sampling SECONDS, for more samples")
    half = 100 * (centre.high - centre.low) / 2 / centre.median
    source = Source(TOOL, "seconds", formula="100 * half the 95 % interval of the median / median")
    return Reading("time.interval", half, "%", "measured", scope, source)


BINS = 60  # as many as can be told apart on a narrow screen
CALM = (2.5, 97.5)  # percentiles that are always on the axis; samples beyond them are, too,
NEAR = 0.75  # of that range: unless they lie further out than this
WIDE = 8.0  # times from the least to the most: beyond, a linear axis would show one bin


@dataclass(frozen=True)
class ProcessDistribution:
    """The samples of one process. Times in seconds; `bins` are counts from the axis' begin to its end.

    `below` and `above` lie beyond these ends. `low` and `high` are the 95 % interval of the median, None where there
    are too few samples for one; `drift` is relative, 0.0 where none stands out of the noise.
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


@dataclass(frozen=True)
class SampleDistribution:
    """The samples of one timing: the axis from `begin` to `end` seconds, and every process on it."""

    name: str
    begin: float
    end: float
    log: bool
    median: float
    low: float | None
    high: float | None
    processes: tuple[ProcessDistribution, ...]


def distribution_of(timing: Timing, bins: int = BINS) -> SampleDistribution | None:
    """The distribution of a timing; None where it has no sample. Counts only: nothing is smoothed.

    A sample that is no number, which a stored run of others may have, has no place on the axis and is left out.
    """
    numbers = [replace(one, seconds=tuple(filter(isfinite, one.seconds))) for one in timing.processes]
    sets = [samples for samples in numbers if samples.seconds]
    centre = statistics.combine_processes([samples.seconds for samples in sets])
    if centre is None:
        return None
    begin, end = _axis_ends([value for samples in sets for value in samples.seconds])
    log = begin > 0 and end / begin > WIDE
    counted = [(_bin_counts(samples.seconds, begin, end, bins, log=log), samples) for samples in sets]
    processes = tuple(
        _process_distribution(n, samples, counts) for n, (counts, samples) in enumerate(counted, 1)
    )
    return SampleDistribution(timing.name, begin, end, log, centre.median, centre.low, centre.high, processes)


def _axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the most, or where a few lie far out, as far as all but those reach."""
    least, most = min(values), max(values)
    low, high = (statistics.percentile(values, percent) for percent in CALM)
    margin = NEAR * (high - low)
    begin, end = max(least, low - margin), min(most, high + margin)
    if end - begin <= 1e-9 * abs(end):
        margin = 0.01 * abs(end) or 1e-9
        return max(0.0, begin - margin), end + margin
    return begin, end


def _bin_counts(
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
            counts[min(bins - 1, int(bins * _axis_place(value, begin, end, log=log)))] += 1
    return below, tuple(counts), above


def _process_distribution(
    number: int, samples: SampleSet, counts: tuple[int, tuple[int, ...], int]
) -> ProcessDistribution:
    known = statistics.median_interval(samples.seconds)
    return ProcessDistribution(
        number,
        len(samples.seconds),
        statistics.median(samples.seconds),
        known.low if known is not None else None,
        known.high if known is not None else None,
        counts[1],
        counts[0],
        counts[2],
        len(statistics.outlier_indices(samples.seconds)),
        statistics.relative_drift(samples.seconds),
    )


def _axis_place(value: float, begin: float, end: float, *, log: bool) -> float:
    if log:
        return (log10(value) - log10(begin)) / (log10(end) - log10(begin))
    return (value - begin) / (end - begin)
