"""Time: how long one iteration takes, how well that is known, and how much it varies."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.device_time import device_notes, device_words
from profkit.analysis.summaries.pick import TOOL, unavailable
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.core import statistics
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import RUN, Moment, Reading, Scope, Source, Summary, Table, Timing

APART = 2.0  # %; processes further apart than this get a word: twice what is asked of the median by default
TAIL = 1.25  # p95 over the median; a quarter is far beyond the noise of a quiet machine
FOR_P95, FOR_P99 = 20, 100  # samples; with fewer the percentile is the slowest sample under another name


def scope_of(timing: Timing) -> Scope:
    """The region that was timed, or the run where the whole process was."""
    return RUN if timing.kind == "process" else Scope("region", timing.name)


def time_readings(timing: Timing) -> tuple[Reading, ...]:
    """Every time.* metric of one timing: seconds per iteration, or per cent of the median.

    The median is that of the processes' medians, the interval 95 % by order statistics with the effective
    sample size (profkit.core.statistics.combine). Unavailable, with the reason, where there are too few samples.
    """
    scope = scope_of(timing)
    samples = [s for process in timing.processes for s in process.seconds]
    centre = statistics.combine([process.seconds for process in timing.processes])
    if centre is None or centre.median <= 0:
        return (unavailable("time.median", scope, "the timing pass took no sample"),)
    median = centre.median

    def told(name: str, value: float, unit: str, formula: str) -> Reading:
        return Reading(name, value, unit, "measured", scope, Source(TOOL, "seconds", formula=formula))

    found = [
        told("time.median", median, "s", "median of the processes' medians"),
        told("time.mean", sum(samples) / len(samples), "s", "mean of all samples"),
        told("time.minimum", min(samples), "s", "smallest sample"),
        told("time.maximum", max(samples), "s", "largest sample"),
        _interval(timing, scope, centre, len(samples)),
    ]
    if len(samples) > 1:
        width = statistics.percentile(samples, 75) - statistics.percentile(samples, 25)
        found.append(told("time.spread", 100 * width / median, "%", "100 * (p75 - p25) / median"))
        outside = len(statistics.outliers(samples))
        formula = f"100 * share of samples with |x - median| > {statistics.OUTLIER_LIMIT} MAD-sigma"
        found.append(told("time.outliers", 100 * outside / len(samples), "%", formula))
    for name, percent_, least in (("time.p95", 95, FOR_P95), ("time.p99", 99, FOR_P99)):
        if len(samples) >= least:
            formula = f"{percent_}th percentile of all samples"
            found.append(told(name, statistics.percentile(samples, percent_), "s", formula))
    first = [process.warmup[0] for process in timing.processes if process.warmup]
    if first:
        formula = "median of the processes' first iterations"
        found.append(told("time.first", statistics.median(first), "s", formula))
    single = [process.single_seconds for process in timing.processes if process.single_seconds is not None]
    if single:
        formula = "median of the processes' calls that were launched to an idle device and waited for"
        found.append(told("time.single", statistics.median(single), "s", formula))
    if centre.between_spread is not None:
        formula = "100 * (largest - smallest median of a process) / median"
        found.append(told("time.processes", 100 * centre.between_spread, "%", formula))
    return tuple(found)


def _interval(timing: Timing, scope: Scope, centre: statistics.Centre, count: int) -> Reading:
    if centre.low is None or centre.high is None:
        few = f"{plural(count, 'sample')} in {plural(len(timing.processes), 'process', 'processes')}"
        reason = f"{few} give no 95 % interval of the median"
        return unavailable("time.interval", scope, reason, "--budget SECONDS, for more samples")
    half = 100 * (centre.high - centre.low) / 2 / centre.median
    source = Source(TOOL, "seconds", formula="100 * half the 95 % interval of the median / median")
    return Reading("time.interval", half, "%", "measured", scope, source)


def summarize_time(
    timings: Sequence[Timing], others: Sequence[Reading] = (), moments: Sequence[Moment] = ()
) -> Summary:
    """Median and interval of every timing; `others` are time.* readings that a tool's report told.

    `moments` are looks at the machine beside the timing: a note says what held its clocks down.
    The headline is of the first timing; without one, of what the report says of time.
    """
    if not timings:
        table = metric_table("Times in the report", others)
        told = " The report tells other times." if table else ""
        return Summary(
            "time",
            f"No iteration was timed.{told}",
            tuple(others),
            (table,) if table else (),
            remarks(others),
        )
    per = [time_readings(timing) for timing in timings]
    pairs = list(zip(timings, per, strict=True))
    return Summary(
        "time",
        _headline(timings[0], per[0]),
        tuple(reading for readings in per for reading in readings),
        tuple(table for timing, readings in pairs if (table := _table(timing, readings)) is not None),
        (*(note for timing, readings in pairs for note in _notes(timing, readings)), *_held_down(moments)),
    )


def _held_down(moments: Sequence[Moment]) -> tuple[str, ...]:
    """What the system said of its clocks; macOS does."""
    reasons = dict.fromkeys(reason for moment in moments for reason in moment.slowed)
    return (
        (f"The system held its clocks down while this was timed: {'; '.join(reasons)}.",) if reasons else ()
    )


def _headline(timing: Timing, readings: Sequence[Reading]) -> str:
    median, half = _value(readings, "time.median"), _value(readings, "time.interval")
    if median is None:
        return f"{timing.name} was not timed: the timing pass took no sample."
    count = sum(len(process.seconds) for process in timing.processes)
    spread = f" {plus_minus(half)}" if half is not None else " (how exactly is not known)"
    what = {"process": "whole process", "region": "entry"}.get(timing.kind, "iteration")
    processes = plural(len(timing.processes), "process", "processes")
    return (
        f"{timing.name} takes {quantity(median, 's')}{spread} per {what}{device_words(timing)}:"
        f" {plural(count, 'sample')} in {processes}."
    )


def plus_minus(half: float) -> str:
    """`±2.2 %`; beyond half of the value there is no centre to speak of."""
    return f"±{percent(half)} %" if half <= 50 else f"±{half:.0f} % (too noisy to say more)"


def _table(timing: Timing, readings: Sequence[Reading]) -> Table | None:
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
        medians = [quantity(statistics.median(p.seconds), "s") for p in timing.processes if p.seconds]
        note = f"medians of the processes: {', '.join(medians)}"
    rows = [r for name in order for r in readings if r.metric == name]
    return metric_table(f"Time of {timing.name}", rows, note)


def _notes(timing: Timing, readings: Sequence[Reading]) -> list[str]:
    notes: list[str] = []
    name, asked, half = timing.name, 100 * timing.precision, _value(readings, "time.interval")
    if any(not process.precise for process in timing.processes):
        notes.append(f"{name}: the time budget ended before ±{asked:g} % was reached in every process.")
    elif half is not None and half > asked:
        notes.append(
            f"{name}: each process alone knows its median to ±{asked:g} %, but they differ from each other."
        )
    if any(not process.warm for process in timing.processes):
        notes.append(f"{name}: still drifting when sampling began; the median may be that of a warm-up.")
    apart = _value(readings, "time.processes")
    if apart is not None and apart > max(APART, asked):
        notes.append(f"{name}: processes differ by {percent(apart)} %: memory layout, or a busy machine.")
    median, tail = _value(readings, "time.median"), _value(readings, "time.p95")
    if median and tail and tail > TAIL * median:
        notes.append(f"{name}: 1 iteration in 20 takes {tail / median:.1f} times the median or more.")
    return [*notes, *device_notes(timing), *remarks(readings)]


def _value(readings: Sequence[Reading], name: str) -> float | None:
    return next((r.value for r in readings if r.metric == name), None)
