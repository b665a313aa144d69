"""Compare two sweeps or two evaluations, each of many cases; those of one operation are decided together.

A case was timed in one process of each sweep, and one process does not show how far the next would lie from
it. A thousand cases do: their differences from one sweep to the other are that noise, except for those that
changed. So an implementation over all shapes decides, by the geometric mean of its ratios, and no single
case.

Tests of evaluations are paired by id. A test that passed and now fails is a regression, without any
statistics. Speed-ups are compared by operation and over all: each was measured alternately with PyTorch on
its own machine, so what makes both slower is not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, inf, log, sqrt
from typing import TypeVar

from profkit.analysis.evaluation.scores import FAILED, log_interval, summed_interval
from profkit.analysis.ranking import FRAMEWORK
from profkit.core.formatting import plural
from profkit.core.inference import BETWEEN, Ratio
from profkit.core.statistics import geometric_mean, mad_sigma, median
from profkit.core.types import (
    RUN,
    UNDECIDED,
    Change,
    Comparison,
    Direction,
    EvaluationDocument,
    Fact,
    RunDocument,
    Sample,
    Scope,
    Side,
    TestResult,
)
from profkit.regression.compare.metrics import MetricPair, decide_ratios, rule_of, tested_count
from profkit.regression.compare.outcome import ALIKE, CompareOptions, Decided, outcome_of, worst_first

MEAN_METRIC = "time.geometric_mean"
LARGER = Fact("larger-budget")
_T = TypeVar("_T")


def _grouped(items: Iterable[_T], name: Callable[[_T], str]) -> Mapping[str, list[_T]]:
    groups: dict[str, list[_T]] = defaultdict(list)
    for item in items:
        groups[name(item)].append(item)
    return groups


def _mean_pair(
    metric: str, unit: str, better: Direction, scope: Scope, before: Iterable[float], after: Iterable[float]
) -> MetricPair:
    """Build the pair of both sides' geometric means."""
    rule = rule_of(metric, "profkit")
    assert rule is not None
    first, second = (Sample(geometric_mean(values) or 0.0) for values in (before, after))
    return MetricPair(rule, metric, unit, better, scope, "profkit", first, second)


def _lost(code: str, names: Sequence[str], fix: Fact) -> Decided:
    """Decide on cases that a complete candidate lacks: ambiguous, since they may hide anything."""
    return Decided("ambiguous", Fact.of(code, count=len(names), first=names[0], more=len(names) - 1), fix)


# ---------------------------------------------------------------- sweeps

# How far all cases of one implementation of one operation move together from one sweep to the next of the same code, as
# a standard deviation of the geometric mean's logarithm. On the device's clock: 0.96 % over 110 of them (11 pairs of
# seven sweeps on three hosts with H200s, 160 to 1,680 cases; 0.25 % within one host and setting).
GROUP_SIGMA = 0.01
# A single case from one sweep to the next, likewise: 1.5 % is the median of 30 such spreads.
CASE_SIGMA = 0.015
MIN_SPREAD = 0.003  # and never less: two steady chips of one kind differ by as much
MIN_CASES = 30  # cases in all: from these on they show their own spread
RESUME = Fact("resume-sweep")
TAIL_FACTOR = 2.0  # standard deviations over robust spreads of such cases: 1.2 to 1.9 in those pairs


@dataclass(frozen=True)
class SweepDecision:
    """The decisions on two sweeps.

    `controls`: why nothing can be said of the code, as unchanged code changed, too.
    """

    changes: tuple[Change, ...]  # of each group
    cases: frozenset[Scope] = frozenset()  # whose times are in them
    controls: Fact | None = None
    lost: tuple[str, ...] = ()  # cases that only the baseline has a time of
    nothing: bool = False  # no case has a time in both


def decide_sweep(
    baseline: RunDocument, candidate: RunDocument, pairs: Sequence[MetricPair], floor: float | None
) -> SweepDecision:
    """Decide the cases of `pairs` together; pairs that are not a case of the same group in both runs are ignored."""
    groups = _pairs_by_group(baseline, candidate, pairs)
    if not groups:
        return SweepDecision((), lost=_lost_cases(baseline, candidate), nothing=True)
    controls = _control_groups(baseline, candidate, tuple(groups))
    changes = _group_changes(groups, controls, floor)
    return SweepDecision(
        changes,
        frozenset(pair.scope for group in groups.values() for pair in group),
        _changed_controls(changes, controls),
        _lost_cases(baseline, candidate),
    )


def _pairs_by_group(
    baseline: RunDocument, candidate: RunDocument, pairs: Sequence[MetricPair]
) -> Mapping[str, list[MetricPair]]:
    before, after = ({timing.name: timing.group for timing in run.timings} for run in (baseline, candidate))

    def group(pair: MetricPair) -> str:
        name = before.get(pair.scope.name or "")
        timed = pair.metric == "time.median" and pair.baseline.value > 0 and pair.candidate.value > 0
        return name or "" if timed and name == after.get(pair.scope.name or "") else ""

    return {name: own for name, own in _grouped(pairs, group).items() if name}


def _control_groups(baseline: RunDocument, candidate: RunDocument, names: Sequence[str]) -> frozenset[str]:
    """Return the groups that no change of the code can have touched: the framework's own, in the same versions.

    Empty unless there are other groups beside them.
    """
    alike = all(baseline.packages.get(word) == candidate.packages.get(word) for word in ("torch", "triton"))
    own = frozenset(name for name in names if name.rpartition(": ")[0] in FRAMEWORK)
    has_version = baseline.packages.get("torch") is not None
    return own if alike and has_version and len(own) < len(names) else frozenset()


# ---------------------------------------------------------------- an implementation over all its shapes


def _group_changes(
    groups: Mapping[str, Sequence[MetricPair]], controls: frozenset[str], floor: float | None
) -> tuple[Change, ...]:
    device = all(pair.between < BETWEEN for group in groups.values() for pair in group)
    usual = GROUP_SIGMA if device else BETWEEN * sqrt(2)
    spread = _case_spread(groups)
    ratios = []
    for name, group in groups.items():
        scope = Scope("region", f"{name}, {plural(len(group), 'shape')}")
        values = [[pair.baseline.value for pair in group], [pair.candidate.value for pair in group]]
        pair = _mean_pair(MEAN_METRIC, "s", "lower", scope, *values)
        if name in controls:
            pair = replace(pair, rule=replace(pair.rule, role="supports"))
        mean = sum(map(_log_ratio, group)) / len(group)
        error = hypot(usual, TAIL_FACTOR * spread / sqrt(len(group)))
        ratios.append((pair, Ratio(exp(mean), 0.0, error, inf)))
    changes = decide_ratios(ratios, floor)
    return tuple(replace(c, fix=LARGER) if c.word == "ambiguous" else c for c in changes)


def _case_spread(groups: Mapping[str, Sequence[MetricPair]]) -> float:
    """Return the standard deviation of cases from the median of their own group, over all groups."""
    off: list[float] = []
    for group in groups.values():
        logs = [_log_ratio(pair) for pair in group]
        off += [value - median(logs) for value in logs]
    return max(mad_sigma(off), MIN_SPREAD) if len(off) >= MIN_CASES else CASE_SIGMA


def _changed_controls(changes: Sequence[Change], controls: frozenset[str]) -> Fact | None:
    """Return the fact that the machine and not the code differs, if a control group changed; else None."""
    changed = [c for c in changes if c.role == "supports" and c.word == "different" and c.ratio is not None]
    if not changed or not controls:
        return None
    largest = max(changed, key=lambda c: abs(log(c.ratio or 1.0)))
    share = (largest.ratio or 1.0) - 1
    return Fact.of("controls-changed", name=largest.scope.name or "", more=len(changed) - 1, share=share)


def _log_ratio(pair: MetricPair) -> float:
    return log(pair.candidate.value / pair.baseline.value)


def _lost_cases(baseline: RunDocument, candidate: RunDocument) -> tuple[str, ...]:
    """List the cases that only the baseline has a time of, if the candidate is complete."""
    if candidate.state != "complete":
        return ()
    timed = {timing.name for timing in candidate.timings}
    return tuple(t.name for t in baseline.timings if t.group is not None and t.name not in timed)


def outcome_of_sweep(outcome: Decided, grouped: SweepDecision, changes: Sequence[Change]) -> Decided:
    """Return the outcome of two sweeps, adjusted by what their cases say beside the means."""
    if outcome.word == "regressed" or not (grouped.changes or grouped.nothing):
        return outcome
    if grouped.nothing:
        return Decided("ambiguous", Fact("no-case"), RESUME)
    if grouped.controls is not None:
        return Decided("ambiguous", grouped.controls, LARGER)
    if grouped.lost:
        return _lost("lost-cases", grouped.lost, RESUME)
    if outcome.word not in ("same", "changed"):
        return outcome
    means = [c for c in changes if c.metric == MEAN_METRIC and c.role == "decides"]
    seen = max((c.detectable for c in means if c.detectable is not None), default=0.0)
    why = Fact.of("means-same", count=len(means), detectable=seen)
    return Decided(outcome.word, why, outcome.fix)


# ---------------------------------------------------------------- evaluations

# How far the speed-up of an operation moves from one evaluation of the same kernels to the next, beyond what the pairs
# of one show, as a standard deviation: the processes of kernel and reference are new. Over many operations most of it
# goes.
BETWEEN_OPERATIONS = 0.03
BETWEEN_WHOLES = 0.01
_FAILED_TESTS = "tests.failed"
_NORMAL = 1.96  # the two-sided 95 % quantile of the normal distribution
_NAMED = 3  # tests that a fact names


@dataclass(frozen=True)
class _Pair:
    baseline: TestResult
    candidate: TestResult


def compare_evaluations(
    baseline: EvaluationDocument, candidate: EvaluationDocument, options: CompareOptions
) -> Comparison:
    """Compare the tests and speed-ups of two evaluations.

    Refused if they have no test in common. If the devices differ, speed-ups are not compared, unless `force`.
    """
    sides = _side(baseline, options.paths[0]), _side(candidate, options.paths[1])
    pairs = _pairs(baseline, candidate)
    if not pairs:
        return Comparison(*sides, "refused", Fact("no-test-in-common"))
    timed = baseline.device == candidate.device or options.force
    changes = (*_correctness_changes(pairs), *(_speed_changes(pairs, options.floor) if timed else ()))
    decided = _with_lost_tests(outcome_of(changes), baseline, candidate, pairs)
    worst = next((c for c in worst_first(changes) if c.role == "decides" and c.course == "worse"), None)
    if decided.word == "regressed" and worst is not None and worst.metric == _FAILED_TESTS:
        decided = Decided("regressed", worst.doubts[0])
    if baseline == candidate:
        decided = ALIKE
    return Comparison(
        *sides,
        decided.word,
        decided.why,
        forced=options.force and baseline.device != candidate.device,
        changes=worst_first(changes),
        looked_at=tested_count(changes),
        notes=tuple(_notes(baseline, candidate, changes, timed=timed)),
        fix=decided.fix,
    )


def _side(document: EvaluationDocument, path: str) -> Side:
    return Side(document.name, path, document.device or "unknown device", document.started)


def _pairs(baseline: EvaluationDocument, candidate: EvaluationDocument) -> list[_Pair]:
    """Pair the tests that were decided in both."""
    after = {result.test.id: result for result in candidate.results}
    return [
        _Pair(before, after[before.test.id])
        for before in baseline.results
        if before.test.id in after and not {before.status, after[before.test.id].status} & {*UNDECIDED}
    ]


def _by_operation(pairs: Sequence[_Pair]) -> Mapping[str, list[_Pair]]:
    return _grouped(pairs, lambda pair: pair.candidate.test.operation)


# ---------------------------------------------------------------- correctness


def _correctness_changes(pairs: Sequence[_Pair]) -> list[Change]:
    """Return a change for each operation of which a test changed; if none did, a single one that says so."""
    changes = [_correctness_change(own, Scope("region", name)) for name, own in _by_operation(pairs).items()]
    if changed := [change for change in changes if change is not None]:
        return changed
    value = Sample(float(sum(pair.baseline.status in FAILED for pair in pairs)))
    return [Change(_FAILED_TESTS, "count", "lower", value, value, "same", "neither")]


def _correctness_change(pairs: Sequence[_Pair], scope: Scope) -> Change | None:
    """Return the change of an operation: worse if any test that passed fails now, even if others were fixed.

    None where nothing changed.
    """
    broken = [p for p in pairs if p.baseline.status == "passed" and p.candidate.status in FAILED]
    mended = [p for p in pairs if p.baseline.status in FAILED and p.candidate.status == "passed"]
    if not broken and not mended:
        return None
    before = float(sum(pair.baseline.status in FAILED for pair in pairs))
    after = float(sum(pair.candidate.status in FAILED for pair in pairs))
    named = ", ".join(f"{pair.candidate.test.id} ({pair.candidate.status})" for pair in broken[:_NAMED])
    return Change(
        _FAILED_TESTS,
        "count",
        "lower",
        Sample(before),
        Sample(after),
        "different",
        "worse" if broken else "better",
        scope,
        ratio=after / before if before else None,
        doubts=(
            Fact.of(
                "tests-broken" if broken else "tests-mended",
                operation=scope.name or "",
                broken=len(broken),
                mended=len(mended),
                tests=named,
                more=max(0, len(broken) - _NAMED),
            ),
        ),
    )


# ---------------------------------------------------------------- speed


def _speed_changes(pairs: Sequence[_Pair], floor: float | None) -> list[Change]:
    """Decide the speed-ups of each operation, and of all tests together; an open operation decides nothing."""
    timed = [pair for pair in pairs if _log_of_speedups(pair) is not None]
    ratios = []
    for operation, own in _by_operation(timed).items():
        ratios += _ratio_of(own, "speedup", Scope("region", operation))
    ratios += _ratio_of(timed, "speedup.geometric_mean", RUN)
    changes = decide_ratios(ratios, floor)
    return [
        replace(change, role="supports", fix=LARGER)
        if change.word == "ambiguous" and change.scope.kind == "region"
        else replace(change, fix=LARGER if change.word == "ambiguous" else None)
        for change in changes
    ]


def _log_of_speedups(pair: _Pair) -> float | None:
    """Return the log ratio of the speed-ups, candidate over baseline.

    None unless both passed and have an interval.
    """
    speedups = [result.speedup for result in (pair.baseline, pair.candidate) if result.status == "passed"]
    usable = [speedup for speedup in speedups if speedup is not None and log_interval(speedup) is not None]
    return log(usable[1].median / usable[0].median) if len(usable) == 2 else None


def _ratio_of(pairs: Sequence[_Pair], metric: str, scope: Scope) -> list[tuple[MetricPair, Ratio | None]]:
    """Return the geometric mean of the ratios, with the error of its tests; an empty list if one has no interval."""
    logs = [ratio for pair in pairs if (ratio := _log_of_speedups(pair)) is not None]
    if not logs:
        return []
    n, mean = len(logs), sum(logs) / len(logs)
    sides = [(p.candidate.speedup, 1 / n) for p in pairs] + [(p.baseline.speedup, -1 / n) for p in pairs]
    interval = summed_interval([(weight, speedup) for speedup, weight in sides if speedup is not None])
    if interval is None:
        return []  # of single values nothing is known
    within = max(interval) / _NORMAL  # by the wider side
    before, after = (
        [result.speedup.median for result in side if result.speedup is not None]
        for side in ([p.baseline for p in pairs], [p.candidate for p in pairs])
    )
    pair = _mean_pair(metric, "x", "higher", scope, before, after)
    between = BETWEEN_WHOLES if scope is RUN else BETWEEN_OPERATIONS
    return [(pair, Ratio(exp(mean), within, between, inf, assumed=True))]


# ---------------------------------------------------------------- what is not there any more


def _with_lost_tests(
    outcome: Decided, baseline: EvaluationDocument, candidate: EvaluationDocument, pairs: Sequence[_Pair]
) -> Decided:
    """Adjust the outcome for tests that passed and are now missing or skipped: they may hide a failure.

    Only if the candidate is complete.
    """
    paired = {pair.baseline.test.id for pair in pairs}
    lost = [r.test for r in baseline.results if r.status == "passed" and r.test.id not in paired]
    if outcome.word in ("regressed", "refused") or not lost or not candidate.complete:
        return outcome
    return _lost("lost-tests", [f"{test.operation} {test.id}" for test in lost], Fact("same-operations"))


def _notes(
    baseline: EvaluationDocument,
    candidate: EvaluationDocument,
    changes: Sequence[Change],
    *,
    timed: bool,
) -> Iterator[Fact]:
    if not timed:
        devices = {"before": baseline.device or "unknown", "after": candidate.device or "unknown"}
        yield Fact("other-devices", {}, devices)
    for change in changes:
        if change.metric == _FAILED_TESTS and change.scope.kind == "region":
            yield change.doubts[0]
    for side, document in (("baseline", baseline), ("candidate", candidate)):
        if not document.complete:
            yield Fact.of("interrupted", side=side)
