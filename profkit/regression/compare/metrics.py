"""Decide each metric that two runs have in common: its values in each scope, and what counts as a change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.analysis.metrics.catalogue import direction_of
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.inference import (
    BETWEEN,
    Interval,
    Ratio,
    benjamini_hochberg,
    combine_processes,
    course_of,
    coverage_of_selected,
    decide,
    ratio_of,
    ratio_of_values,
)
from profkit.core.statistics import mad_sigma, median
from profkit.core.tables import load_yaml
from profkit.core.types import (
    RUN,
    Change,
    ChangeWord,
    Direction,
    Fact,
    Quality,
    Reading,
    RunDocument,
    Sample,
    Scope,
    Timing,
)
from profkit.regression.compare.kernels import KernelPair, counts_chosen_launches


@dataclass(frozen=True)
class ChangeRule:
    """What counts as a change of one metric; the head of rules.yaml explains the fields."""

    metric: str
    role: Literal["decides", "stands-in", "supports"] = "supports"
    floor: float = 0.02
    least: float = 0.0
    repeat: float | None = None  # None: how far a single value may lie from the next is not known
    spread: float | None = None
    tools: tuple[str, ...] = ()
    kernels: bool = False
    per: Literal["iteration"] | None = None
    better: Direction | None = None

    @property
    def exact(self) -> bool:
        """Return whether one value is as good as many: the same program gives the same again."""
        return self.repeat == 0


@lru_cache(maxsize=1)
def all_rules() -> tuple[ChangeRule, ...]:
    """Return every rule in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("rules.yaml"))
    return tuple(ChangeRule(**{**row, "tools": tuple(row.get("tools", ()))}) for row in rows)


def rule_of(metric: str, tool: str) -> ChangeRule | None:
    """Return the first rule for `metric` as `tool` measures it; None if there is none."""
    return next((r for r in all_rules() if r.metric == metric and (not r.tools or tool in r.tools)), None)


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
    """Return the relative standard deviation that two timings are assumed to have from process to process.

    `BETWEEN` for what a host's clock timed; less for what runs on a GPU, and least where all samples of both lie
    close together and the device was not throttled.
    """
    processes = [p for p in (*first.processes, *second.processes) if p.seconds]
    if not processes or not all(process.on_device for process in processes):
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
        """Return whether there are samples on both sides, and so an interval of its own."""
        return bool(self.baseline.groups) and bool(self.candidate.groups)


def pairs_of(
    baseline: RunDocument,
    candidate: RunDocument,
    kernels: Collection[KernelPair] = (),
) -> tuple[MetricPair, ...]:
    """Pair every metric that both runs have and a rule names, timings first; `kernels` are the ones that matter."""
    return (*_timing_pairs(baseline, candidate), *_reading_pairs(baseline, candidate, kernels))


def _timing_pairs(baseline: RunDocument, candidate: RunDocument) -> Iterator[MetricPair]:
    rule = rule_of("time.median", "profkit")
    assert rule is not None
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
    """Return the centre, its interval and the samples, one group per process.

    For whole processes, one per sample.
    """
    groups = tuple(process.seconds for process in timing.processes if process.seconds)
    if timing.kind == "process":
        groups = tuple((value,) for group in groups for value in group)
    centre = combine_processes(groups)
    return None if centre is None else Sample(centre.median, centre.low, centre.high, groups)


def _reading_pairs(
    baseline: RunDocument,
    candidate: RunDocument,
    kernels: Collection[KernelPair],
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
    kernel_scopes = set(same.values())
    divisors = traced_iterations(baseline), traced_iterations(candidate)
    for reading in readings_of(baseline):
        if reading.metric in timed or reading.scope.kind == "function":
            continue
        rule = rule_of(reading.metric, reading.source.tool)
        counterpart = after.get((reading.metric, reading.scope, reading.source.tool))
        if rule is None or counterpart is None or counterpart.quality != reading.quality:
            continue
        if reading.scope.kind == "kernel" and (not rule.kernels or reading.scope not in kernel_scopes):
            continue
        yield _metric_pair(rule, reading, counterpart, divisors if rule.per == "iteration" else (1.0, 1.0))


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
    """Yield every reading with a value that nothing contradicts, also those of the summaries.

    Each metric of a scope and a tool comes once.
    """
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


# ---------------------------------------------------------------- the word on each

LONGER, PROCESSES = Fact("sample-longer"), Fact("more-processes")
FALSE_SHARE = 0.05  # of what is called different, on average


def decide_pairs(pairs: Sequence[MetricPair], floor: float | None = None) -> tuple[Change, ...]:
    """Return one change for each pair, in their order. `floor` overrides every metric's own relative floor."""
    sampled = [
        (pair, ratio_of(pair.baseline.groups, pair.candidate.groups, pair.between))
        for pair in pairs
        if pair.sampled
    ]
    changes = iter(decide_ratios(sampled, floor))
    return tuple(next(changes) if pair.sampled else _decide_single(pair, floor) for pair in pairs)


def decide_ratios(sampled: Sequence[tuple[MetricPair, Ratio | None]], floor: float | None) -> list[Change]:
    """Decide the changes of sampled pairs, tested together: p is adjusted after Benjamini and Hochberg.

    The intervals of those that are selected are widened for the selection. One that is "different" by itself but
    was not selected is chance among so many.
    """
    adjusted = iter(benjamini_hochberg([ratio.p for _, ratio in sampled if ratio is not None]))
    ps = [None if ratio is None else next(adjusted) for _, ratio in sampled]
    tested = [p for p in ps if p is not None]
    wide = coverage_of_selected(sum(p <= FALSE_SHARE for p in tested), len(tested), FALSE_SHARE)
    changes = []
    for (pair, ratio), p in zip(sampled, ps, strict=True):
        picked = p is not None and p <= FALSE_SHARE
        change = _decide_sampled(pair, ratio, wide if picked else 1 - FALSE_SHARE, p, floor)
        if change.word == "different" and not picked:
            change = _decide_sampled(pair, ratio, wide, p, floor)
        changes.append(change)
    return changes


def tested_count(changes: Sequence[Change]) -> int:
    """Count the changes that were tested, and so could be called different by chance."""
    return sum(change.p is not None for change in changes)


def _decide_sampled(
    pair: MetricPair, ratio: Ratio | None, confidence: float, p: float | None, floor: float | None
) -> Change:
    """Decide by the interval of the ratio of the medians at `confidence`.

    `p` is adjusted for how many were tested.
    """
    counts = _floor_of(pair, floor)
    if ratio is None:
        return _change_of(pair, "ambiguous", counts, doubts=(Fact("no-ratio-interval"),), fix=LONGER)
    low, high = ratio.interval(confidence)
    interval = Interval(low, ratio.value, high)
    word = decide(interval, counts)
    doubts = [Fact("one-process")] if ratio.assumed else []
    fix = PROCESSES if ratio.assumed and ratio.between >= ratio.within else LONGER
    if ratio.independent is not None:
        doubts.append(Fact.of("correlated", independent=ratio.independent))
        fix = PROCESSES
    return _change_of(
        pair,
        word,
        counts,
        interval,
        p=p,
        detectable=(1 + counts) * (1 + ratio.detectable(confidence)) - 1,
        doubts=tuple(doubts),
        fix=fix if word == "ambiguous" else None,
    )


def _decide_single(pair: MetricPair, floor: float | None) -> Change:
    """Decide on one value per side: exactly if the metric is exact, else by how far such values usually differ.

    A value whose noise no rule gives is "ambiguous", however large the change; so are equal ones.
    """
    rule, before, after = pair.rule, pair.baseline.value, pair.candidate.value
    counts, ratio = _floor_of(pair, floor), ratio_of_values(before, after)
    if before == after and (rule.exact or before == 0):
        interval = Interval(1.0, 1.0, 1.0) if ratio is not None else None
        # of nothing no share says anything
        return _change_of(pair, "same", counts, interval, detectable=counts if before else None)
    if rule.repeat is None and rule.spread is None:
        return _change_of(pair, "ambiguous", counts, doubts=(Fact("unknown-noise"),))
    noise = max((rule.repeat or 0.0) * max(abs(before), abs(after)), rule.spread or 0.0)
    limit = max((rule.floor if floor is None else floor) * abs(before), rule.least)
    change = after - before
    word = decide(Interval(change - noise, change, change + noise), limit, around=0)
    interval = None
    if ratio is not None:
        interval = Interval(max(0.0, (after - noise) / before), ratio, (after + noise) / before)
    detectable = (limit + noise) / abs(before) if before else None
    return _change_of(pair, word, counts, interval, limit=limit, detectable=detectable)


def _floor_of(pair: MetricPair, floor: float | None) -> float:
    """Return the relative change that counts: the rule's or the requested one, and at least the absolute one."""
    size = min(abs(pair.baseline.value), abs(pair.candidate.value))
    relative = pair.rule.floor if floor is None else floor
    return max(relative, pair.rule.least / size) if size > 0 else relative


def _change_of(
    pair: MetricPair,
    word: ChangeWord,
    floor: float,
    interval: Interval | None = None,
    *,
    p: float | None = None,
    limit: float | None = None,
    detectable: float | None = None,
    doubts: tuple[Fact, ...] = (),
    fix: Fact | None = None,
) -> Change:
    before, after = pair.baseline.value, pair.candidate.value
    return Change(
        metric=pair.metric,
        unit=pair.unit,
        better=pair.better,
        baseline=pair.baseline,
        candidate=pair.candidate,
        word=word,
        course=course_of(before, after, pair.better) if word == "different" else "neither",
        scope=pair.scope,
        ratio=interval.middle if interval is not None else ratio_of_values(before, after),
        low=interval.low if interval is not None else None,
        high=interval.high if interval is not None else None,
        p=p,
        floor=floor,
        limit=limit,
        detectable=detectable,
        tool=pair.tool,
        role=pair.rule.role,
        doubts=doubts,
        fix=fix,
    )
