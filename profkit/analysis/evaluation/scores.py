"""The tests of an evaluation by operation: which count, whether it is correct, how much faster it is.

A test counts unless it was skipped or not run.
What crashed, hung or could not be loaded stays in every denominator: else crashing would raise a score. An operation
that could not be run here was requested, too: it is in the denominators of operations, and not correct.

One evaluation in a few numbers, each with the number of tests or operations behind it.

Which tests of an evaluation deserve a closer look: timed and correct ones, of other operations first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from typing import NamedTuple

from profkit.core.inference import Interval, decide
from profkit.core.types import (
    STATUSES,
    UNDECIDED,
    ChangeWord,
    EvaluationDocument,
    Fact,
    Speedup,
    SpeedWord,
    TestResult,
    TestStatus,
)

# Worst first. Wrong results come before loud failures, since they go unnoticed.
FAILED: tuple[TestStatus, ...] = (
    "cheat",
    "incorrect",
    "crashed",
    "timeout",
    "out-of-memory",
    "load-error",
    "lost",
)


@dataclass(frozen=True)
class OperationResult:
    """One operation over all its tests. What is None is not known.

    `status` is the worst of its tests (the order of `FAILED`); else `not-run` where some test was not run, so that
    to claim it never makes an operation correct; `passed` where all that count passed, `skipped` where none counts.
    `first_failure` is a test of that status. `tests` are all, `counted` those in the denominators.
    """

    operation: str
    status: TestStatus
    results: tuple[TestResult, ...]
    tests: int
    counted: int
    passed: int  # of the counted
    skipped: int
    not_run: int
    speedup: MeanSpeedup | None = None  # over its correct timed tests
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    allowed_share: float | None = None  # the largest error as a share of what is allowed
    bound_share: float | None = None  # least time by the hardware over its own, over all calls: at most 1
    own_share: float | None = None  # the least of its tests
    bottleneck: Fact | None = None  # of the timed test that takes longest, of those that were profiled
    insight: Fact | None = None  # of the same
    first_failure: TestResult | None = None

    @property
    def correct(self) -> bool:
        """Return whether every test that counts passed, and there is one."""
        return self.status == "passed"

    @property
    def is_decidable(self) -> bool:
        """Return whether it is in the denominators of operations: something of it was tested, or would be on a GPU."""
        return bool(self.counted or self.not_run)

    @property
    def pass_rate(self) -> float | None:
        """Share of its counted tests that passed."""
        return self.passed / self.counted if self.counted else None


def counts(result: TestResult) -> bool:
    """Return whether the test is in the denominators."""
    return result.status not in UNDECIDED


def is_timed_well(result: TestResult) -> bool:
    """Return whether its speed-up belongs in a mean: it is correct, and was timed."""
    return result.status == "passed" and result.speedup is not None


def operation_results(document: EvaluationDocument) -> tuple[OperationResult, ...]:
    """Return every operation, in the order of the evaluation."""
    groups: dict[str, list[TestResult]] = defaultdict(list)
    for result in document.results:
        groups[result.test.operation].append(result)
    return tuple(_operation_result(name, tuple(own), document.floor) for name, own in groups.items())


def _operation_result(operation: str, results: tuple[TestResult, ...], floor: float) -> OperationResult:
    counted = [result for result in results if counts(result)]
    failures = sorted(
        (result for result in counted if result.status in FAILED), key=lambda r: FAILED.index(r.status)
    )
    not_run = sum(result.status == "not-run" for result in results)
    status: TestStatus = "not-run" if not_run else "passed" if counted else "skipped"
    status = failures[0].status if failures else status
    timed = [result for result in results if is_timed_well(result)]
    slowest = max(
        (r for r in timed if r.bottleneck or r.insight), key=lambda r: r.seconds or 0.0, default=None
    )
    return OperationResult(
        operation,
        status,
        results,
        tests=len(results),
        counted=len(counted),
        passed=sum(result.status == "passed" for result in counted),
        skipped=sum(result.status == "skipped" for result in results),
        not_run=not_run,
        speedup=mean_speedup(timed, floor),
        max_abs_error=_largest(result.max_abs_error for result in results),
        max_rel_error=_largest(result.max_rel_error for result in results),
        allowed_share=_largest(result.allowed_share for result in results),
        bound_share=_bound_share(timed),
        own_share=min((r.own_share for r in timed if r.own_share is not None), default=None),
        bottleneck=slowest.bottleneck if slowest is not None else None,
        insight=slowest.insight if slowest is not None else None,
        first_failure=failures[0] if failures else None,
    )


def _largest(values: Iterable[float | None]) -> float | None:
    """Return the largest value; NaN (an error that is not a number) counts as larger than any."""
    known = [value for value in values if value is not None]
    return next((value for value in known if value != value), max(known, default=None))


# ---------------------------------------------------------------- speed


def _bound_share(results: Sequence[TestResult]) -> float | None:
    """Return the least times by the roofline over the measured ones, each summed over the tests that have both.

    A time that is below its bound by the error of a measurement is at its bound.
    """
    known = [(r.bound_seconds, r.seconds) for r in results if r.bound_seconds and r.seconds]
    return sum(bound for bound, _ in known) / sum(map(max, known)) if known else None


@dataclass(frozen=True)
class EvaluationScores:
    """The numbers of an evaluation. What is None has nothing behind it.

    `correctness_score` is the share of operations whose counted tests all passed (BackendBench prints this share and
    calls it the mean pass rate); `mean_pass_rate` is the mean over operations of the share of their tests that passed.
    The first is over `counted_operations`: those with a test that counts, or that was not run; the second over those
    with a test that counts. `geomean` is over correct timed tests,
    `geomean_with_fallback` over all timed tests, where each that failed counts as 1.0 (PyTorch does it then); None
    where no test is correct and timed: kernels that never work are not as fast as PyTorch.
    """

    operations: int
    counted_operations: int
    correct_operations: int
    not_run_operations: int  # of the counted: those that wait for a GPU
    tests: int
    counted_tests: int
    passed_tests: int  # of the counted
    skipped_tests: int
    statuses: Mapping[TestStatus, int]
    correctness_score: float | None
    mean_pass_rate: float | None
    geomean: MeanSpeedup | None
    geomean_with_fallback: MeanSpeedup | None
    words: Mapping[SpeedWord, int]  # of the operations that have a speed-up


def scores_of(
    document: EvaluationDocument, operations: Sequence[OperationResult] | None = None
) -> EvaluationScores:
    """Return the scores; `operations` where they are known already."""
    operations = operation_results(document) if operations is None else operations
    counted = [operation for operation in operations if operation.is_decidable]
    timed = [result for result in document.results if is_timed_well(result)]
    fallen = sum(result.status in FAILED and result.test.timed for result in document.results)
    rates = [operation.pass_rate for operation in counted if operation.pass_rate is not None]
    ended = Counter(result.status for result in document.results)
    return EvaluationScores(
        operations=len(operations),
        counted_operations=len(counted),
        correct_operations=sum(operation.correct for operation in counted),
        not_run_operations=sum(operation.status == "not-run" for operation in counted),
        tests=len(document.results),
        counted_tests=sum(map(counts, document.results)),
        passed_tests=sum(result.status == "passed" for result in document.results),
        skipped_tests=sum(result.status == "skipped" for result in document.results),
        statuses={status: ended[status] for status in STATUSES if ended[status]},
        correctness_score=sum(operation.correct for operation in counted) / len(counted) if rates else None,
        mean_pass_rate=sum(rates) / len(rates) if rates else None,
        geomean=mean_speedup(timed, document.floor),
        geomean_with_fallback=mean_speedup(timed, document.floor, unchanged=fallen),
        words=Counter(operation.speedup.word for operation in operations if operation.speedup is not None),
    )


# ---------------------------------------------------------------- fast_p


def fast_p(operations: Sequence[OperationResult], p: float) -> float | None:
    """Share of the operations that are correct and more than `p` times as fast as PyTorch; None where it is not known.

    Faster than p is what has its whole 95 % interval above p, and above 1 only what is FASTER: else an unchanged
    PyTorch would be faster than 1 half of the time (KernelBench issue 166). The denominator are all operations on which
    something can be decided. After KernelBench (arXiv 2502.10517). Speed-ups without intervals do not count.
    """
    counted = [operation for operation in operations if operation.is_decidable]
    if not any(operation.speedup is not None and operation.speedup.low is not None for operation in counted):
        return None
    return sum(operation.correct and least_speedup(operation.speedup) > p for operation in counted) / len(
        counted
    )


# ---------------------------------------------------------------- a closer look


def slowest_tests(document: EvaluationDocument, count: int) -> tuple[TestResult, ...]:
    """Return the tests whose kernels take longest, one of each operation before a second of any, since three of
    one operation show less.
    """
    seen: Counter[str] = Counter()
    ranked = []
    for result in sorted(filter(is_timed_well, document.results), key=lambda each: -(each.seconds or 0.0)):
        ranked.append((seen[result.test.operation], result))
        seen[result.test.operation] += 1
    return tuple(result for _, result in sorted(ranked, key=lambda place: place[0])[:count])


@dataclass(frozen=True)
class MeanSpeedup:
    """The geometric mean of the speed-ups of `n` tests, exp(mean(ln s)).

    `low` and `high` are its 95 % interval by the error of the measurements alone: the tests are given and no sample of
    others. They are None where some test has no interval. `word`: see `word_of_parts`.
    """

    value: float
    low: float | None
    high: float | None
    word: SpeedWord
    n: int


# ---------------------------------------------------------------- the word


def speed_word(value: float, low: float | None, high: float | None, floor: float) -> SpeedWord:
    """Return the word for a speed-up (baseline's time / candidate's) with its interval from `low` to `high`.

    SAME: the whole interval lies within the floor. FASTER or SLOWER: `value` lies beyond the floor, above or below 1,
    and the interval leaves 1 out. AMBIGUOUS: neither, or there is no interval. `decide` with `by_middle` decides it.
    """
    interval = None if low is None or high is None else Interval(low, value, high)
    words: dict[ChangeWord, SpeedWord] = {
        "different": "FASTER" if value > 1 else "SLOWER",
        "same": "SAME",
        "ambiguous": "AMBIGUOUS",
    }
    return words[decide(interval, floor, by_middle=True)]


def doubted(speedup: Speedup) -> Speedup:
    """Return the speed-up of which something is known that its pairs do not show: AMBIGUOUS, and as low or as
    high as 1.
    """
    return replace(speedup, low=min(1.0, speedup.low), high=max(1.0, speedup.high), word="AMBIGUOUS")


def least_speedup(speedup: Speedup | MeanSpeedup | None) -> float:
    """Return what it is surely faster than: at most 1 unless it is FASTER; 0 of what has no interval, and of None."""
    if speedup is None or speedup.low is None or (isinstance(speedup, Speedup) and speedup.pairs < 2):
        return 0.0
    return speedup.low if speedup.word == "FASTER" else min(1.0, speedup.low)


def slowness(result: TestResult) -> tuple[bool, float]:
    """Return the key that sorts tests from the slowest on: those that are surely SLOWER come first."""
    speedup = result.speedup
    return (True, inf) if speedup is None else (speedup.word != "SLOWER", speedup.median)


# ---------------------------------------------------------------- several


class LogInterval(NamedTuple):
    """How far the ends of an interval lie from the median, in logarithms; 0 or more."""

    below: float
    above: float


def log_interval(speedup: Speedup) -> LogInterval | None:
    """Return the interval of the logarithm around that of the median, 1 within it where it is AMBIGUOUS; None
    without one.

    One pair of times has none.
    """
    if speedup.pairs < 2 or min(speedup.low, speedup.median, speedup.high) <= 0:
        return None
    known = doubted(speedup) if speedup.word == "AMBIGUOUS" else speedup
    if known.high / known.median <= 0:  # too small for a number: it was written by hand
        return None
    return LogInterval(max(0.0, log(known.median / known.low)), max(0.0, log(known.high / known.median)))


def summed_interval(parts: Sequence[tuple[float, Speedup]]) -> LogInterval | None:
    """Return the interval of a weighted sum of logarithms of speed-ups; a divisor has a negative weight.

    None where one of them has no interval.

    Errors of measurement are independent, and add up by their squares. What is AMBIGUOUS is so because of the machine,
    which is the same for all of them: that adds up as it is.
    """
    squares, sums = [0.0, 0.0], [0.0, 0.0]
    for weight, speedup in parts:
        interval = log_interval(speedup)
        if interval is None:
            return None
        for side, width in enumerate(interval if weight > 0 else reversed(interval)):
            if speedup.word == "AMBIGUOUS":
                sums[side] += abs(weight) * width
            else:
                squares[side] += (weight * width) ** 2
    return LogInterval(sums[0] + sqrt(squares[0]), sums[1] + sqrt(squares[1]))


def word_of_parts(
    value: float, low: float | None, high: float | None, floor: float, parts: Iterable[Speedup]
) -> SpeedWord:
    """Return the word of the whole's own interval; AMBIGUOUS if every part is AMBIGUOUS."""
    if all(part.word == "AMBIGUOUS" for part in parts):
        return "AMBIGUOUS"
    return speed_word(value, low, high, floor)


def mean_speedup(results: Iterable[TestResult], floor: float, *, unchanged: int = 0) -> MeanSpeedup | None:
    """Return the geometric mean of the results that have a speed-up; None without any. See `mean_of_speedups`."""
    speedups = (result.speedup for result in results)
    return mean_of_speedups(
        (speedup for speedup in speedups if speedup is not None), floor, unchanged=unchanged
    )


def mean_of_speedups(speedups: Iterable[Speedup], floor: float, *, unchanged: int = 0) -> MeanSpeedup | None:
    """Return the geometric mean of them, with its interval and word; None without any.

    That of one test has the test's own interval, and lopsided ones stay so. `unchanged` tests more have a speed-up of
    exactly 1: what failed, and falls back to PyTorch.
    """
    known = [speedup for speedup in speedups if speedup.median > 0]
    if not known:
        return None
    n = len(known) + unchanged
    centre = sum(log(speedup.median) for speedup in known) / n
    interval = summed_interval([(1 / n, speedup) for speedup in known])
    value = exp(centre)
    low, high = (None, None) if interval is None else (exp(centre - interval[0]), exp(centre + interval[1]))
    return MeanSpeedup(value, low, high, word_of_parts(value, low, high, floor, known), n)


def combined_score(correctness: float | None, mean: MeanSpeedup | None) -> float | None:
    """Return correctness score x geometric mean, the single number of the guides; None if one of them is not known."""
    return None if correctness is None or mean is None else correctness * mean.value
