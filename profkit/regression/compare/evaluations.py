"""Two evaluations: which tests became wrong, and which operations faster or slower against PyTorch.

Tests are paired by id. A test that passed and fails is a regression, without any statistics. Speed-ups are held against
each other by operation and over all: each was measured in turns with PyTorch on its own machine, so what makes both
slower is not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log

from profkit.analysis.evaluation.scores import FAILED
from profkit.analysis.evaluation.speedups import log_interval, summed_interval
from profkit.core.inference import Ratio
from profkit.core.statistics import geometric_mean
from profkit.core.types import (
    RUN,
    UNDECIDED,
    Change,
    Comparison,
    EvaluationDocument,
    Fact,
    Sample,
    Scope,
    Side,
    TestResult,
)
from profkit.regression.compare.comparison import ALIKE, CompareOptions
from profkit.regression.compare.metrics import MetricPair, decide_ratios, rule_of, tested_count
from profkit.regression.compare.outcome import Decided, outcome_of, worst_first

# How far the speed-up of an operation moves from one evaluation of the same kernels to the next, beyond what the pairs
# of one show, as a standard deviation: the processes of kernel and reference are new. Over many operations most of it
# goes.
BETWEEN_OPERATIONS = 0.03
BETWEEN_WHOLES = 0.01
FIX = Fact("larger-budget")
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
    """What became of the tests and speed-ups of `baseline` in `candidate`.

    Refused where they have no test in common. Where the devices differ, speed-ups are not compared, unless `force`.
    """
    sides = _side(baseline, options.paths[0]), _side(candidate, options.paths[1])
    pairs = _pairs(baseline, candidate)
    if not pairs:
        return Comparison(*sides, "refused", Fact("no-test-in-common"))
    timed = baseline.device == candidate.device or options.force
    changes = (*_correctness_changes(pairs), *(_speed_changes(pairs, options.floor) if timed else ()))
    found = _with_lost_tests(outcome_of(changes), baseline, candidate, pairs)
    worst = next((c for c in worst_first(changes) if c.role == "decides" and c.course == "worse"), None)
    if found.word == "regressed" and worst is not None and worst.metric == _FAILED_TESTS:
        found = Decided("regressed", worst.doubts[0])
    if baseline == candidate:
        found = ALIKE
    return Comparison(
        *sides,
        found.word,
        found.why,
        forced=options.force and baseline.device != candidate.device,
        changes=worst_first(changes),
        looked_at=tested_count(changes),
        notes=tuple(_notes(baseline, candidate, pairs, changes, timed=timed)),
        fix=found.fix,
    )


def _side(document: EvaluationDocument, path: str) -> Side:
    return Side(document.name, path, document.device or "unknown device", document.started)


def _pairs(baseline: EvaluationDocument, candidate: EvaluationDocument) -> list[_Pair]:
    """Tests that were decided in both."""
    after = {result.test.id: result for result in candidate.results}
    return [
        _Pair(before, after[before.test.id])
        for before in baseline.results
        if before.test.id in after and not {before.status, after[before.test.id].status} & {*UNDECIDED}
    ]


def _by_operation(pairs: Sequence[_Pair]) -> Mapping[str, list[_Pair]]:
    groups: dict[str, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.candidate.test.operation].append(pair)
    return groups


# ---------------------------------------------------------------- correctness


def _correctness_changes(pairs: Sequence[_Pair]) -> list[Change]:
    """One for each operation of which a test changed, and one for all together."""
    changes = [
        change
        for operation, own in _by_operation(pairs).items()
        if (change := _correctness_change(own, Scope("region", operation))) is not None
    ]
    whole = _correctness_change(pairs, RUN)
    if whole is None:
        value = Sample(float(sum(pair.baseline.status in FAILED for pair in pairs)))
        return [Change(_FAILED_TESTS, "count", "lower", value, value, "same", "neither")]
    return [*changes, replace(whole, role="supports")]


def _correctness_change(pairs: Sequence[_Pair], scope: Scope) -> Change | None:
    """Worse where any test that passed fails now, whatever was mended beside it; None where nothing changed."""
    broken = [p for p in pairs if p.baseline.status == "passed" and p.candidate.status in FAILED]
    mended = [p for p in pairs if p.baseline.status in FAILED and p.candidate.status == "passed"]
    if not broken and not mended:
        return None
    before, after = (
        float(sum(result.status in FAILED for result in side))
        for side in ([pair.baseline for pair in pairs], [pair.candidate for pair in pairs])
    )
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
    """Of each operation, and of all tests together; what is open of an operation decides nothing."""
    timed = [pair for pair in pairs if _log_ratio(pair) is not None]
    ratios = []
    for operation, own in _by_operation(timed).items():
        ratios += _ratio_of(own, "speedup", Scope("region", operation))
    ratios += _ratio_of(timed, "speedup.geometric_mean", RUN)
    changes = decide_ratios(ratios, floor)
    return [
        replace(change, role="supports", fix=FIX)
        if change.word == "ambiguous" and change.scope.kind == "region"
        else replace(change, fix=FIX if change.word == "ambiguous" else None)
        for change in changes
    ]


def _log_ratio(pair: _Pair) -> float | None:
    """Of the speed-ups, the candidate's over the baseline's; None where not both passed and have an interval."""
    speedups = [result.speedup for result in (pair.baseline, pair.candidate) if result.status == "passed"]
    known = [one for one in speedups if one is not None and log_interval(one) is not None]
    return log(known[1].median / known[0].median) if len(known) == 2 else None


def _ratio_of(pairs: Sequence[_Pair], metric: str, scope: Scope) -> list[tuple[MetricPair, Ratio | None]]:
    """The geometric mean of the ratios, by the errors of its tests; nothing where one has no interval."""
    logs = [ratio for pair in pairs if (ratio := _log_ratio(pair)) is not None]
    if not logs:
        return []
    n, mean = len(logs), sum(logs) / len(logs)
    sides = [(p.candidate.speedup, 1 / n) for p in pairs] + [(p.baseline.speedup, -1 / n) for p in pairs]
    interval = summed_interval([(weight, one) for one, weight in sides if one is not None])
    if interval is None:
        return []  # of single values nothing is known
    within = max(interval) / _NORMAL  # by the wider side
    rule = rule_of(metric, "profkit")
    assert rule is not None
    before, after = (
        Sample(geometric_mean(result.speedup.median for result in side if result.speedup is not None) or 0.0)
        for side in ([p.baseline for p in pairs], [p.candidate for p in pairs])
    )
    pair = MetricPair(rule, metric, "x", "higher", scope, "profkit", before, after)
    between = BETWEEN_WHOLES if scope is RUN else BETWEEN_OPERATIONS
    return [(pair, Ratio(exp(mean), within, between, inf, (), (), assumed=True))]


# ---------------------------------------------------------------- what is not there any more


def _with_lost_tests(
    outcome: Decided, baseline: EvaluationDocument, candidate: EvaluationDocument, pairs: Sequence[_Pair]
) -> Decided:
    """A test that passed and is missing or skipped now may hide a failure, where the candidate is whole."""
    paired = {pair.baseline.test.id for pair in pairs}
    lost = [r.test for r in baseline.results if r.status == "passed" and r.test.id not in paired]
    if outcome.word in ("regressed", "refused") or not lost or not candidate.complete:
        return outcome
    first = f"{lost[0].operation} {lost[0].id}"
    why = Fact.of("lost-tests", count=len(lost), first=first, more=len(lost) - 1)
    return Decided("ambiguous", why, Fact("same-operations"))


def _notes(
    baseline: EvaluationDocument,
    candidate: EvaluationDocument,
    pairs: Sequence[_Pair],
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
    still = sum(change.word == "ambiguous" and change.scope.kind == "region" for change in changes)
    if still:
        yield Fact.of("open-operations", count=still)
    yield Fact.of("tests-decided", count=len(pairs))
    for side, document in (("baseline", baseline), ("candidate", candidate)):
        if not document.complete:
            yield Fact.of("interrupted", side=side)
