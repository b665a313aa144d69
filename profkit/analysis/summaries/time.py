"""Time: how long one iteration takes, how well that is known, and how its samples are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite, log10

from profkit.analysis.summaries.readings import (
    TOOL,
    absence_notes,
    make_summary,
    metric_table,
    unavailable_reading,
)
from profkit.core import statistics
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural
from profkit.core.types import RUN, Moment, Reading, SampleSet, Scope, Source, Summary, Table, Timing

# Device and host alone nearer to each other than this share neither side clearly, and the wall clock's own noise.
SIDES_APART = 0.1
WALL_APART = 1.05  # wall over device clock; below it they say the same
MPS = "mps-synchronized"
FIRST_APART = 2.0  # times a later iteration: below it the first is no news
CLOCKS_APART = 0.02  # largest over smallest SM clock - 1; cards step in 15 MHz, about 1 %


def device_text(timing: Timing) -> str:
    """` on the device, with a cold cache` behind the headline; nothing where no device was timed."""
    sets = _on_device(timing)
    if not sets:
        return ""
    cold = any(samples.cache == "cold" for samples in sets)
    if any(samples.clock == MPS for samples in sets):
        return f" (GPU waited for{', with cold caches' if cold else ''})"
    return f" (CUDA events{' with a cold L2' if cold else ''})"


def device_notes(timing: Timing) -> list[str]:
    """What must be known of a device's times to believe and compare them, one sentence each."""
    sets = _on_device(timing)
    if not sets:
        return []
    name = timing.name
    notes = [
        *_first_iteration_notes(name, sets),
        *_host_and_device_notes(name, sets),
        *_cache_notes(name, sets),
    ]
    batched = list(dict.fromkeys(samples.batching for samples in sets if samples.batching))
    if batched:
        notes.append(f"{name}: launches amortised: {'; '.join(batched)}.")
    notes += _clock_notes(name, sets)
    return [*notes, *dict.fromkeys(f"{name}: {remark}" for samples in sets for remark in samples.remarks)]


def _on_device(timing: Timing) -> list[SampleSet]:
    return [
        samples for samples in timing.processes if samples.clock == "cuda-events" or samples.cache is not None
    ]


def _median_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _host_and_device_notes(name: str, sets: Sequence[SampleSet]) -> list[str]:
    device = _median_known([samples.device_seconds for samples in sets])
    host = _median_known([samples.host_seconds for samples in sets])
    if device is not None and host is not None:
        alone = f"the device alone takes {format_quantity(device, 's')}, the host alone {format_quantity(host, 's')}"
        if host > device * (1 + SIDES_APART):
            return [f"{name}: host-bound: {alone} to launch it."]
        if device > host * (1 + SIDES_APART):
            return [f"{name}: {alone} to launch it, so the launch is hidden."]
        return [f"{name}: {alone} to launch it: both decide."]
    ratio = _median_known([samples.wall_ratio for samples in sets])
    if ratio is not None and ratio > WALL_APART:
        return [
            f"{name}: by the wall clock an iteration takes {format_figures(ratio)} times as long: the host adds it."
        ]
    return []


def _first_iteration_notes(name: str, sets: Sequence[SampleSet]) -> list[str]:
    """What compiling for these shapes adds to the first iteration, where that is worth a word."""
    warmed = [samples for samples in sets if samples.warmup and samples.seconds]
    if not warmed or any(samples.clock != MPS for samples in sets):
        return []
    first = statistics.median([samples.warmup[0] for samples in warmed])
    later = statistics.median([statistics.median(samples.seconds) for samples in warmed])
    if first < FIRST_APART * later:
        return []
    return [
        f"{name}: the first iteration took {format_quantity(first, 's')}, in which Metal and MPSGraph compile for these"
        " shapes; no sample has that in it."
    ]


def _cache_notes(name: str, sets: Sequence[SampleSet]) -> list[str]:
    states = {samples.cache for samples in sets if samples.cache is not None}
    if any(samples.clock == MPS for samples in sets):
        if states == {"cold"}:
            return [f"{name}: more than the GPU's caches hold was written before each iteration (cold)."]
        return [f"{name}: the GPU's caches were left as they were (warm)."]
    if states == {"cold"}:
        return [f"{name}: the L2 was flushed before each iteration (cold)."]
    if states == {"warm"}:
        return [f"{name}: the L2 was left as it was (warm); --cold flushes it before each."]
    return []


def _clock_notes(name: str, sets: Sequence[SampleSet]) -> list[str]:
    notes = []
    clocks = [clock for samples in sets for clock in samples.clocks]
    if clocks:
        low, high = min(clocks), max(clocks)
        apart = f"between {format_quantity(low, 'Hz')} and {format_quantity(high, 'Hz')}"
        steady = high <= low * (1 + CLOCKS_APART)
        notes.append(
            f"{name}: SM clock {format_quantity(statistics.median(clocks), 'Hz')}{'' if steady else ', ' + apart}."
        )
    reasons = ", ".join(dict.fromkeys(reason for samples in sets for reason in samples.throttle_reasons))
    thrown, used = sum(samples.throttled for samples in sets), sum(len(samples.seconds) for samples in sets)
    if thrown:
        share = format_percent(100 * thrown / (thrown + used))
        why = f" ({reasons})" if reasons else ""
        notes.append(
            f"{name}: {plural(thrown, 'sample')} of {thrown + used} ({share} %) thrown away: the device slowed itself"
            f" down{why}."
        )
    elif reasons:
        notes.append(f"{name}: the device slowed itself down all the time ({reasons}).")
    return notes


APART = 2.0  # %; processes further apart than this get a word: twice what is asked of the median by default
TAIL = 1.25  # p95 over the median; a quarter is far beyond the noise of a quiet machine
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
        return (unavailable_reading("time.median", scope, "the timing pass took no sample"),)
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
    single = [process.single_seconds for process in timing.processes if process.single_seconds is not None]
    if single:
        formula = "median of the processes' calls that were launched to an idle device and waited for"
        readings.append(reading("time.single", statistics.median(single), "s", formula))
    if centre.between_spread is not None:
        formula = "100 * (largest - smallest median of a process) / median"
        readings.append(reading("time.processes", 100 * centre.between_spread, "%", formula))
    return tuple(readings)


def _interval_reading(timing: Timing, scope: Scope, centre: statistics.Centre, count: int) -> Reading:
    if centre.low is None or centre.high is None:
        few = f"{plural(count, 'sample')} in {plural(len(timing.processes), 'process', 'processes')}"
        reason = f"{few} give no 95 % interval of the median"
        return unavailable_reading("time.interval", scope, reason, "--sampling SECONDS, for more samples")
    half = 100 * (centre.high - centre.low) / 2 / centre.median
    source = Source(TOOL, "seconds", formula="100 * half the 95 % interval of the median / median")
    return Reading("time.interval", half, "%", "measured", scope, source)


def summarize_time(
    timings: Sequence[Timing], reported: Sequence[Reading] = (), moments: Sequence[Moment] = ()
) -> Summary:
    """Median and interval of every timing; `reported` are the time.* readings of a tool's report.

    `moments` are looks at the machine beside the timing: a note says what held its clocks down.
    The headline is of the first timing; without one, of what the report says of time.
    """
    if not timings:
        table = metric_table("Times in the report", reported)
        headline = f"No iteration was timed.{' The report has other times.' if table else ''}"
        return make_summary("time", headline, reported, [table], absence_notes(reported))
    pairs = [(timing, time_readings(timing)) for timing in timings]
    return make_summary(
        "time",
        _time_headline(*pairs[0]),
        [reading for _, readings in pairs for reading in readings],
        [_time_table(timing, readings) for timing, readings in pairs],
        [note for pair in pairs for note in _time_notes(*pair)] + _slowdown_notes(moments),
    )


def _slowdown_notes(moments: Sequence[Moment]) -> list[str]:
    """What the system said of its clocks; macOS does."""
    reasons = dict.fromkeys(reason for moment in moments for reason in moment.slowed)
    because = "; ".join(reasons)
    return [f"The system held its clocks down while this was timed: {because}."] if reasons else []


def _time_headline(timing: Timing, readings: Sequence[Reading]) -> str:
    median, half = _value_of(readings, "time.median"), _value_of(readings, "time.interval")
    if median is None:
        return f"{timing.name} was not timed: the timing pass took no sample."
    count = sum(len(process.seconds) for process in timing.processes)
    spread = f" {format_half_width(half)}" if half is not None else " (precision not known)"
    what = {"process": "whole process", "region": "entry"}.get(timing.kind, "iteration")
    processes = plural(len(timing.processes), "process", "processes")
    return (
        f"{timing.name} takes {format_quantity(median, 's')}{spread} per {what}{device_text(timing)}:"
        f" {plural(count, 'sample')} in {processes}."
    )


def format_half_width(half: float) -> str:
    """`±2.2 %`; beyond half of the value there is no centre to speak of."""
    return f"±{format_percent(half)} %" if half <= 50 else f"±{half:.0f} % (very noisy)"


def _time_table(timing: Timing, readings: Sequence[Reading]) -> Table | None:
    """Fastest to slowest, then what is said in per cent of the median."""
    order = (
        "time.minimum",
        "time.median",
        "time.mean",
        "time.p95",
        "time.p99",
        "time.maximum",
        "time.first",
        "time.single",
        "time.spread",
        "time.outliers",
        "time.processes",
    )
    note = None
    if len(timing.processes) > 1:
        medians = [format_quantity(statistics.median(p.seconds), "s") for p in timing.processes if p.seconds]
        note = f"medians of the processes: {', '.join(medians)}"
    rows = [r for name in order for r in readings if r.metric == name]
    return metric_table(f"Time of {timing.name}", rows, note)


def _time_notes(timing: Timing, readings: Sequence[Reading]) -> list[str]:
    notes: list[str] = []
    name, asked, half = timing.name, 100 * timing.precision, _value_of(readings, "time.interval")
    if any(not process.precise for process in timing.processes):
        notes.append(f"{name}: the time budget ended before ±{asked:g} % was reached in every process.")
    elif half is not None and half > asked:
        notes.append(
            f"{name}: each process alone knows its median to ±{asked:g} %, but they differ from each other."
        )
    if any(not process.warm for process in timing.processes):
        notes.append(f"{name}: still drifting when sampling began; the median may be that of a warm-up.")
    apart = _value_of(readings, "time.processes")
    if apart is not None and apart > max(APART, asked):
        notes.append(
            f"{name}: processes differ by {format_percent(apart)} %: memory layout, or a busy machine."
        )
    median, tail = _value_of(readings, "time.median"), _value_of(readings, "time.p95")
    if median and tail and tail > TAIL * median:
        notes.append(f"{name}: 1 iteration in 20 takes {tail / median:.1f} times the median or more.")
    return [*notes, *device_notes(timing), *absence_notes(readings)]


def _value_of(readings: Sequence[Reading], name: str) -> float | None:
    return next((r.value for r in readings if r.metric == name), None)


BINS = 60  # as many as can be told apart on a narrow screen
CALM = (2.5, 97.5)  # percentiles that are always on the axis; samples beyond them are, too,
NEAR = 0.75  # of that range: unless they lie further out than this
WIDE = 8.0  # times from the least to the most: beyond, a linear axis would show one bin
COLUMNS = 240  # points of all sequences; more samples go into one column together
FEWEST = 24  # of one process


@dataclass(frozen=True)
class ProcessDistribution:
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
    columns = max(FEWEST, COLUMNS // len(sets))
    processes = tuple(
        _process_distribution(n, samples, counts, columns) for n, (counts, samples) in enumerate(counted, 1)
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
    number: int, samples: SampleSet, counts: tuple[int, tuple[int, ...], int], columns: int
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
        sample_sequence(samples.seconds, columns),
        sample_sequence(samples.warmup, columns),
    )


def _axis_place(value: float, begin: float, end: float, *, log: bool) -> float:
    if log:
        return (log10(value) - log10(begin)) / (log10(end) - log10(begin))
    return (value - begin) / (end - begin)


def sample_sequence(
    values: Sequence[float], columns: int = COLUMNS
) -> tuple[tuple[float, float, float, float], ...]:
    """(place 0..1, least, median, most) of values in their order, as many together as give at most `columns`."""
    each = ceil(len(values) / columns)
    columns_of_values = []
    for start in range(0, len(values), max(1, each)):
        group = values[start : start + each]
        place = (start + len(group) / 2) / len(values)
        columns_of_values.append((place, min(group), statistics.median(group), max(group)))
    return tuple(columns_of_values)
