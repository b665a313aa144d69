"""What two runs both have: each metric of each scope with its two values, and what counts as a change of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.analysis.metrics import direction_of
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.inference.ratio import BETWEEN
from profkit.core.statistics import combine_processes, mad_sigma, median
from profkit.core.tables import load_yaml
from profkit.core.types import (
    RUN,
    Difference,
    Direction,
    Quality,
    Reading,
    RunDocument,
    Sample,
    Scope,
    Timing,
)
from profkit.regression.compare.kernels import KernelPair, counts_chosen_launches

# Of a metric that has no rule and was asked for by name: its noise is not known.
FLOOR = 0.02


@dataclass(frozen=True)
class ChangeRule:
    """What counts as a change of one metric; the fields are explained at the head of rules.yaml."""

    metric: str
    role: Literal["decides", "stands-in", "supports"] = "supports"
    floor: float = FLOOR
    least: float = 0.0
    repeat: float | None = None  # None: how far a single value may lie from the next is not known
    spread: float | None = None
    tools: tuple[str, ...] = ()
    kernels: bool = False
    per: Literal["iteration"] | None = None
    better: Direction | None = None

    @property
    def exact(self) -> bool:
        """Whether one value is as good as many: the same program gives the same again."""
        return self.repeat == 0


@lru_cache(maxsize=1)
def all_rules() -> tuple[ChangeRule, ...]:
    """Every rule in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("rules.yaml"))
    return tuple(ChangeRule(**{**row, "tools": tuple(row.get("tools", ()))}) for row in rows)


def rule_of(metric: str, tool: str) -> ChangeRule | None:
    """The first rule of `metric` as `tool` measures it; None where none does."""
    return next((r for r in _rules_by_metric(metric) if not r.tools or tool in r.tools), None)


@lru_cache(maxsize=512)
def _rules_by_metric(metric: str) -> tuple[ChangeRule, ...]:
    return tuple(rule for rule in all_rules() if rule.metric == metric)


# Standard deviations, relative, of the medians of single processes of one program, one after the other, timed by CUDA
# events on H200s whose clocks were left alone.
# At the power limit: a product of matrices in 8 processes on one machine (0.46 %) and in 8 on another (0.80 %), a
# larger one in 6 (0.68 %). Together 0.66 % with 19 degrees of freedom, of which the upper 95 % bound is 0.91 %.
DEVICE_SIGMA = 0.01
# At one clock from beginning to end: a norm, bound by memory, in 8 processes on each of the same two machines (0.14 %
# and 0.10 %). Together 0.12 % with 14 degrees of freedom, upper bound 0.17 %. Twice that and more, since it is one
# program: two of these machines, alike in all that profkit compares, differed by 1.2 % from each other.
STEADY_DEVICE_SIGMA = 0.003
# A series is steady where its samples lie closer together than this (MAD as a standard deviation) and no throttling was
# seen. Those at one clock came to 0.06 to 0.13 %, nearly all at the power limit to 0.4 to 2.5 %. It also keeps out what
# waits for its host and so is the host's time, not the device's: that was not measured.
STEADY_SPREAD = 0.002


def between_processes(first: Timing, second: Timing) -> float:
    """The standard deviation, relative, that two timings are taken to differ by from process to process.

    `inference.ratio.BETWEEN` for what a host's clock timed; of what CUDA events timed less, and least where all samples
    of both lie close together and the device was not throttled.
    """
    processes = [p for p in (*first.processes, *second.processes) if p.seconds]
    if not processes or any(p.clock != "cuda-events" for p in processes):
        return BETWEEN
    steady = all(
        not p.throttle_reasons and mad_sigma(p.seconds) <= STEADY_SPREAD * median(p.seconds)
        for p in processes
    )
    return STEADY_DEVICE_SIGMA if steady else DEVICE_SIGMA


KERNEL_SHARE = 0.01  # of the GPU time: the counters of smaller kernels are not looked at


@dataclass(frozen=True)
class MetricPair:
    """One metric in one scope of both runs. `rule` says what counts as a change."""

    rule: ChangeRule
    metric: str
    unit: str
    better: Direction
    scope: Scope
    tool: str
    baseline: Sample
    candidate: Sample
    quality: Quality = "measured"
    between: float = BETWEEN

    @property
    def sampled(self) -> bool:
        """Whether there are samples on both sides, and so an interval of its own."""
        return bool(self.baseline.groups) and bool(self.candidate.groups)


def pairs_of(
    baseline: RunDocument,
    candidate: RunDocument,
    kernels: Collection[KernelPair] = (),
    wanted: Collection[str] = (),
    barred: Collection[Difference] = (),
) -> tuple[MetricPair, ...]:
    """Every metric that both tell and a rule (or `wanted`) names, timings first.

    `kernels` are those of both runs that matter; `barred` are the differences that forbid to
    compare what some tools measured.
    """
    return (
        *_timing_pairs(baseline, candidate, wanted),
        *_reading_pairs(baseline, candidate, kernels, wanted, barred),
    )


def _timing_pairs(
    baseline: RunDocument, candidate: RunDocument, wanted: Collection[str]
) -> Iterator[MetricPair]:
    rule = rule_of("time.median", "profkit")
    if rule is None or (wanted and "time.median" not in wanted):
        return
    after = {(timing.name, timing.kind): timing for timing in candidate.timings}
    for timing in baseline.timings:
        counterpart = after.get((timing.name, timing.kind))
        if counterpart is None:
            continue
        first, second = _sample_of(timing), _sample_of(counterpart)
        if first is not None and second is not None:
            scope = RUN if timing.kind == "process" else Scope("region", timing.name)
            between = between_processes(timing, counterpart)
            yield MetricPair(
                rule, "time.median", "s", "lower", scope, "profkit", first, second, between=between
            )


def _sample_of(timing: Timing) -> Sample | None:
    """The centre, its interval and the samples, one group for each process. Of whole processes each sample is one."""
    groups = tuple(process.seconds for process in timing.processes if process.seconds)
    if timing.kind == "process":
        groups = tuple((value,) for group in groups for value in group)
    centre = combine_processes(groups)
    return None if centre is None else Sample(centre.median, centre.low, centre.high, groups)


def _reading_pairs(
    baseline: RunDocument,
    candidate: RunDocument,
    kernels: Collection[KernelPair],
    wanted: Collection[str],
    barred: Collection[Difference],
) -> Iterator[MetricPair]:
    traces = [document.trace for document in (baseline, candidate) if document.trace is not None]
    passed = {"time.gpu"} if traces and all(map(counts_chosen_launches, traces)) else set()
    timed = (
        passed | {"time.median", "time.geometric_mean"} if baseline.timings and candidate.timings else passed
    )
    same = {pair.candidate.scope: pair.baseline.scope for pair in kernels}
    after = {
        (reading.metric, same.get(reading.scope, reading.scope), reading.source.tool): reading
        for reading in readings_of(candidate)
        if reading.scope.kind != "kernel" or reading.scope in same
    }
    known = set(same.values())
    divisors = traced_iterations(baseline), traced_iterations(candidate)
    for reading in readings_of(baseline):
        if reading.metric in timed or reading.scope.kind == "function" or _is_barred(reading, barred):
            continue
        if wanted and reading.metric not in wanted:
            continue
        rule = rule_of(reading.metric, reading.source.tool)
        if rule is None and reading.metric in wanted:
            rule = ChangeRule(reading.metric, "decides")
        counterpart = after.get((reading.metric, reading.scope, reading.source.tool))
        if rule is None or counterpart is None or counterpart.quality != reading.quality:
            continue
        if reading.scope.kind == "kernel" and (not rule.kernels or reading.scope not in known):
            continue
        yield _metric_pair(rule, reading, counterpart, divisors if rule.per == "iteration" else (1.0, 1.0))


def _is_barred(reading: Reading, barred: Collection[Difference]) -> bool:
    return any(
        reading.source.tool in difference.tools
        and (not difference.metrics or reading.metric.startswith(difference.metrics))
        for difference in barred
    )


def _metric_pair(
    rule: ChangeRule, before: Reading, after: Reading, divisors: tuple[float, float]
) -> MetricPair:
    assert before.value is not None
    assert after.value is not None
    return MetricPair(
        rule,
        before.metric,
        before.unit,
        rule.better or direction_of(before.metric),
        before.scope,
        before.source.tool,
        Sample(before.value / divisors[0]),
        Sample(after.value / divisors[1]),
        before.quality,
    )


def readings_of(document: RunDocument) -> Iterator[Reading]:
    """Every reading with a value that nothing contradicts, those of the summaries too, each metric of a scope and a
    tool once."""
    keys: set[tuple[str, Scope, str]] = set()
    readings = [
        *document.readings,
        *(reading for summary in document.summaries for reading in summary.readings),
    ]
    for reading in readings:
        key = (reading.metric, reading.scope, reading.source.tool)
        if reading.value is not None and reading.doubt is None and key not in keys:
            keys.add(key)
            yield reading
