"""What two runs both have: each metric of each scope with its two values, and the samples where there are some."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from profkit.analysis.metrics import all_metrics
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.inference.ratio import BETWEEN
from profkit.core.statistics import combine
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
from profkit.regression.compare.device_time import between_processes
from profkit.regression.compare.match import KernelPair
from profkit.regression.compare.rules import Rule, rule_of

SHARE = 0.01  # of the GPU time: the counters of smaller kernels are not looked at


@dataclass(frozen=True)
class Pair:
    """One metric in one scope of both runs. `rule` says what counts as a change."""

    rule: Rule
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
) -> tuple[Pair, ...]:
    """Every metric that both tell and a rule (or `wanted`) names, timings first.

    `kernels` are those of both runs that matter; `barred` are the differences that forbid to
    compare what some tools measured.
    """
    return (
        *_timings(baseline, candidate, wanted),
        *_readings(baseline, candidate, kernels, wanted, barred),
    )


def _timings(baseline: RunDocument, candidate: RunDocument, wanted: Collection[str]) -> Iterator[Pair]:
    rule = rule_of("time.median", "profkit")
    if rule is None or (wanted and "time.median" not in wanted):
        return
    after = {(timing.name, timing.kind): timing for timing in candidate.timings}
    for timing in baseline.timings:
        other = after.get((timing.name, timing.kind))
        if other is None:
            continue
        first, second = _sample(timing), _sample(other)
        if first is not None and second is not None:
            scope = RUN if timing.kind == "process" else Scope("region", timing.name)
            between = between_processes(timing, other)
            yield Pair(rule, "time.median", "s", "lower", scope, "profkit", first, second, between=between)


def _sample(timing: Timing) -> Sample | None:
    """The centre, its interval and the samples, one group for each process. Of whole processes each sample is one."""
    groups = tuple(process.seconds for process in timing.processes if process.seconds)
    if timing.kind == "process":
        groups = tuple((value,) for group in groups for value in group)
    centre = combine(groups)
    return None if centre is None else Sample(centre.median, centre.low, centre.high, groups)


def _readings(
    baseline: RunDocument,
    candidate: RunDocument,
    kernels: Collection[KernelPair],
    wanted: Collection[str],
    barred: Collection[Difference],
) -> Iterator[Pair]:
    counted = {d.trace.tool for d in (baseline, candidate) if d.trace is not None} == {"ncu"}
    passed = {"time.gpu"} if counted else set()  # the sum of as many launches as ncu was told to count
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
            rule = Rule(reading.metric, "decides")
        other = after.get((reading.metric, reading.scope, reading.source.tool))
        if rule is None or other is None or other.quality != reading.quality:
            continue
        if reading.scope.kind == "kernel" and (not rule.kernels or reading.scope not in known):
            continue
        yield _pair(rule, reading, other, divisors if rule.per == "iteration" else (1.0, 1.0))


def _is_barred(reading: Reading, barred: Collection[Difference]) -> bool:
    return any(
        reading.source.tool in difference.tools
        and (not difference.metrics or reading.metric.startswith(difference.metrics))
        for difference in barred
    )


def _pair(rule: Rule, before: Reading, after: Reading, divisors: tuple[float, float]) -> Pair:
    assert before.value is not None
    assert after.value is not None
    return Pair(
        rule,
        before.metric,
        before.unit,
        rule.better or _direction(before.metric),
        before.scope,
        before.source.tool,
        Sample(before.value / divisors[0]),
        Sample(after.value / divisors[1]),
        before.quality,
    )


def readings_of(document: RunDocument) -> Iterator[Reading]:
    """Every reading with a value that nothing contradicts, those of the summaries too, each metric of a scope and a
    tool once."""
    seen: set[tuple[str, Scope, str]] = set()
    told = [*document.readings, *(reading for summary in document.summaries for reading in summary.readings)]
    for reading in told:
        key = (reading.metric, reading.scope, reading.source.tool)
        if reading.value is not None and reading.doubt is None and key not in seen:
            seen.add(key)
            yield reading


def _direction(name: str) -> Direction:
    return next((info.direction for info in all_metrics() if info.name == name), "none")
