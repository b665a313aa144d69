"""The tests of an evaluation by operation: which count, whether it is correct, how much faster it is.

A test counts unless it was skipped or not run.
What crashed, hung or could not be loaded stays in every denominator: else crashing would raise a score.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from profkit.analysis.evaluation.speedups import MeanSpeedup, mean_speedup
from profkit.core.types import UNDECIDED, EvaluationDocument, TestResult, TestStatus

# Worst first. Wrong results come before loud failures: nobody notices them.
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
    compiled: MeanSpeedup | None = None  # the same against torch.compile
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    allowed_share: float | None = None  # the largest error as a share of what is allowed
    bound_share: float | None = None  # least time by the hardware over its own, over all calls: at most 1
    gap_closed: float | None = None  # see `gap_closed`
    own_share: float | None = None  # the least of its tests
    bottleneck: str | None = None  # of the timed test that takes longest, of those that were profiled
    insight: str | None = None  # of the same
    first_failure: TestResult | None = None

    @property
    def correct(self) -> bool:
        """Whether every test that counts passed, and there is one."""
        return self.status == "passed"

    @property
    def pass_rate(self) -> float | None:
        """Share of its counted tests that passed."""
        return self.passed / self.counted if self.counted else None


def counts(result: TestResult) -> bool:
    """Whether the test is in the denominators."""
    return result.status not in UNDECIDED


def is_timed_well(result: TestResult) -> bool:
    """Whether its speed-up belongs in a mean: it is correct, and was timed."""
    return result.status == "passed" and result.speedup is not None


def operation_results(document: EvaluationDocument) -> tuple[OperationResult, ...]:
    """Every operation, in the order of the evaluation."""
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
        compiled=mean_speedup(timed, floor, against_compiled=True),
        max_abs_error=_largest(result.max_abs_error for result in results),
        max_rel_error=_largest(result.max_rel_error for result in results),
        allowed_share=_largest(result.allowed_share for result in results),
        bound_share=_bound_share(timed),
        gap_closed=gap_closed(timed),
        own_share=min((r.own_share for r in timed if r.own_share is not None), default=None),
        bottleneck=slowest.bottleneck if slowest is not None else None,
        insight=slowest.insight if slowest is not None else None,
        first_failure=failures[0] if failures else None,
    )


def _largest(values: Iterable[float | None]) -> float | None:
    """NaN (an error that is no number) is larger than any."""
    known = [value for value in values if value is not None]
    return next((value for value in known if value != value), max(known, default=None))


# ---------------------------------------------------------------- speed


def _bound_share(results: Sequence[TestResult]) -> float | None:
    """The least times by the roofline over the measured ones, each summed over the tests that have both.

    A time that is below its bound by the error of a measurement is at its bound.
    """
    known = [(r.bound_seconds, r.seconds) for r in results if r.bound_seconds and r.seconds]
    return sum(bound for bound, _ in known) / sum(map(max, known)) if known else None


def gap_closed(results: Sequence[TestResult]) -> float | None:
    """How much of the way from PyTorch to the hardware's bound is gone: sum(ref - own) / sum(ref - bound).

    1 is at the bound, 0 at PyTorch, below 0 slower than that (after SOL-ExecBench, arXiv 2603.19173, which asks for the
    same share). None where PyTorch is at its bound already: there is no gap. At most 1: a time below its bound by the
    error of a measurement is at it.
    """
    known = [
        (r.reference_seconds, r.seconds, r.bound_seconds)
        for r in results
        if r.reference_seconds and r.seconds and r.bound_seconds and r.bound_seconds < r.reference_seconds
    ]
    gap = sum(reference - bound for reference, _, bound in known)
    return sum(reference - max(own, bound) for reference, own, bound in known) / gap if gap > 0 else None


# ---------------------------------------------------------------- arguments

_TENSOR = re.compile(r"T\(\[([0-9, ]*)\]")


def elements_of(arguments: str) -> int | None:
    """How many elements the largest tensor has, in the notation of operator traces; None without a tensor."""
    sizes = [
        prod(int(size) for size in found.split(",") if size.strip()) for found in _TENSOR.findall(arguments)
    ]
    return max(sizes, default=None)
