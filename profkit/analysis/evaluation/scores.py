"""One evaluation in a few numbers, each with the number of tests or operations behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from profkit.analysis.evaluation.operations import (
    FAILED,
    OperationResult,
    counts,
    is_timed_well,
    operation_results,
)
from profkit.analysis.evaluation.speedups import (
    MeanSpeedup,
    least_speedup,
    mean_speedup,
    summed_interval,
    word_of_parts,
)
from profkit.core.statistics import median
from profkit.core.types import STATUSES, EvaluationDocument, Speedup, SpeedWord, TestStatus


@dataclass(frozen=True)
class FastPoint:
    """fast_p at one p: the share of the operations that are correct and more than `p` times as fast as PyTorch."""

    p: float
    share: float


@dataclass(frozen=True)
class ModelSpeedup:
    """What a recorded program would gain from these kernels: its time by PyTorch over that by the kernels.

    Times are `calls` x the reference's time of a call, summed; a call that no correct kernel serves keeps the
    reference's. `calls` are those of the tests that have both times, of `all_calls` that the trace counts in this
    evaluation. `kernel_share` is the part of PyTorch's time in calls that the kernels serve: by Amdahl's law the
    speed-up cannot be larger than 1 / (1 - kernel_share).
    """

    value: float
    low: float | None
    high: float | None
    word: SpeedWord
    seconds: float  # of PyTorch for those calls
    calls: int
    all_calls: int
    kernel_share: float

    @property
    def covered(self) -> float:
        """Share of the recorded calls whose time is known."""
        return self.calls / self.all_calls


@dataclass(frozen=True)
class EvaluationScores:
    """The numbers of an evaluation. What is None has nothing behind it.

    `correctness_score` is the share of operations whose counted tests all passed (BackendBench prints this share and
    calls it the mean pass rate); `mean_pass_rate` is the mean over operations of the share of their tests that passed.
    Both are over `counted_operations`: those with a test that counts. `geomean` is over correct timed tests,
    `geomean_with_fallback` over all timed tests, where each that failed counts as 1.0 (PyTorch does it then); None
    where no test is correct and timed: kernels that never work are not as fast as PyTorch.
    """

    operations: int
    counted_operations: int
    correct_operations: int
    tests: int
    counted_tests: int
    passed_tests: int  # of the counted
    skipped_tests: int
    statuses: Mapping[TestStatus, int]
    correctness_score: float | None
    mean_pass_rate: float | None
    geomean: MeanSpeedup | None
    geomean_with_fallback: MeanSpeedup | None
    compiled: MeanSpeedup | None
    words: Mapping[SpeedWord, int]  # of the operations that have a speed-up
    fast: tuple[FastPoint, ...]
    gap_closed: float | None  # median over operations
    model: ModelSpeedup | None


def scores_of(
    document: EvaluationDocument, operations: Sequence[OperationResult] | None = None
) -> EvaluationScores:
    """The scores; `operations` where they are known already."""
    operations = operation_results(document) if operations is None else operations
    counted = [one for one in operations if one.counted]
    timed = [result for result in document.results if is_timed_well(result)]
    fallen = sum(result.status in FAILED and result.test.timed for result in document.results)
    rates = [one.pass_rate for one in counted if one.pass_rate is not None]
    gaps = [one.gap_closed for one in operations if one.gap_closed is not None]
    return EvaluationScores(
        operations=len(operations),
        counted_operations=len(counted),
        correct_operations=sum(one.correct for one in counted),
        tests=len(document.results),
        counted_tests=sum(map(counts, document.results)),
        passed_tests=sum(result.status == "passed" for result in document.results),
        skipped_tests=sum(result.status == "skipped" for result in document.results),
        statuses=status_counts(document),
        correctness_score=sum(one.correct for one in counted) / len(counted) if counted else None,
        mean_pass_rate=sum(rates) / len(rates) if rates else None,
        geomean=mean_speedup(timed, document.floor),
        geomean_with_fallback=mean_speedup(timed, document.floor, unchanged=fallen),
        compiled=mean_speedup(timed, document.floor, against_compiled=True),
        words=Counter(one.speedup.word for one in operations if one.speedup is not None),
        fast=fast_p_curve(operations),
        gap_closed=median(gaps) if gaps else None,
        model=model_speedup(document),
    )


def status_counts(document: EvaluationDocument) -> Mapping[TestStatus, int]:
    """How many tests ended so, in the order of STATUSES, without those that none did; they add up to all tests."""
    counts = Counter(result.status for result in document.results)
    return {status: counts[status] for status in STATUSES if counts[status]}


# ---------------------------------------------------------------- fast_p


def fast_p(operations: Sequence[OperationResult], p: float) -> float | None:
    """Share of the operations that are correct and more than `p` times as fast as PyTorch; None where nobody can tell.

    Faster than p is what has its whole 95 % interval above p, and above 1 only what is FASTER: else an unchanged
    PyTorch would be faster than 1 half of the time (KernelBench issue 166). The denominator are all operations with a
    test that counts. After KernelBench (arXiv 2502.10517). Speed-ups without intervals tell nothing.
    """
    counted = [one for one in operations if one.counted]
    if not any(one.speedup is not None and one.speedup.low is not None for one in counted):
        return None
    return sum(surely_faster_than(one) > p for one in counted) / len(counted)


def fast_p_curve(operations: Sequence[OperationResult]) -> tuple[FastPoint, ...]:
    """fast_p at 1, and at every p where it changes, from small to large; empty where nobody can tell."""
    if fast_p(operations, 1.0) is None:
        return ()
    places = sorted({1.0, *(least for one in operations if (least := surely_faster_than(one)) > 0)})
    return tuple(FastPoint(p, fast_p(operations, p) or 0.0) for p in places)


def surely_faster_than(operation: OperationResult) -> float:
    """How many times as fast as PyTorch a correct operation is at least; 0 of all others."""
    return least_speedup(operation.speedup) if operation.correct else 0.0


# ---------------------------------------------------------------- a whole model


def model_speedup(document: EvaluationDocument) -> ModelSpeedup | None:
    """The estimate for the program whose trace the tests come from; None where no call is counted and timed.

    sum(calls x reference) / sum(calls x (reference / speed-up of a correct kernel, else reference)). It counts the
    operations' own times one after the other: what happens between them, and overlap, is not in it.
    """
    before = after = served = 0.0
    calls = 0
    parts: list[tuple[float, Speedup]] = []
    for result in document.results:
        reference = result.reference_seconds
        if not result.test.calls or not reference:
            continue
        calls += result.test.calls
        time = result.test.calls * reference
        before += time
        speedup = result.speedup
        if speedup is None or not is_timed_well(result) or speedup.median <= 0:
            after += time
            continue
        served += time
        after += time / speedup.median
        parts.append((time / speedup.median, speedup))
    if before <= 0 or not served:
        return None
    value = before / after
    # As shares of the time after, which is what the logarithm of the whole changes by
    interval = summed_interval([(time / after, speedup) for time, speedup in parts])
    low, high = (None, None) if interval is None else (value * exp(-interval[0]), value * exp(interval[1]))
    return ModelSpeedup(
        value,
        low,
        high,
        word_of_parts(value, low, high, document.floor, [speedup for _, speedup in parts]),
        before,
        calls,
        sum(result.test.calls for result in document.results),
        served / before,
    )
