"""Time: how long one iteration takes, and how well that is known."""

from __future__ import annotations

from profkit.analysis.summaries.readings import TOOL, unavailable_reading
from profkit.core import statistics
from profkit.core.types import RUN, Fact, Reading, Scope, Source, Timing

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
