"""Which tests of an evaluation deserve a closer look: timed and correct ones, of other operations first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from profkit.analysis.evaluation.operations import is_timed_well
from profkit.analysis.evaluation.speedups import slowness
from profkit.core.types import EvaluationDocument, TestResult


def slowest_tests(document: EvaluationDocument, count: int) -> tuple[TestResult, ...]:
    """The tests whose kernels take longest."""
    return _take_first(_timed_tests(document), lambda result: -(result.seconds or 0.0), count)


def least_speedups(document: EvaluationDocument, count: int) -> tuple[TestResult, ...]:
    """The tests with the lowest speed-up over PyTorch, those that are surely slower first."""
    return _take_first(_timed_tests(document), slowness, count)


def farthest_tests(document: EvaluationDocument, count: int) -> tuple[TestResult, ...]:
    """The tests with most time above the hardware's bound; those without a bound come last, by their whole time."""
    timed = _timed_tests(document)
    bounded = [result for result in timed if result.bound_seconds]
    others = [result for result in timed if not result.bound_seconds]
    chosen = _take_first(bounded, lambda r: (r.bound_seconds or 0.0) - (r.seconds or 0.0), count)
    return (*chosen, *_take_first(others, lambda r: -(r.seconds or 0.0), count - len(chosen)))


def _timed_tests(document: EvaluationDocument) -> list[TestResult]:
    return [result for result in document.results if is_timed_well(result)]


def _take_first(
    results: Iterable[TestResult], rank: Callable[[TestResult], float | tuple[bool, float]], count: int
) -> tuple[TestResult, ...]:
    """The first by rank, one of each operation before a second one of any: three shapes of one tell less."""
    seen: Counter[str] = Counter()
    ranked = []
    for result in sorted(results, key=rank):
        ranked.append((seen[result.test.operation], rank(result), result))
        seen[result.test.operation] += 1
    return tuple(result for _, _, result in sorted(ranked, key=lambda place: place[:2])[:count])
