"""Two evaluations compared: a test that fails now is a regression, speed-ups by intervals, other programs' files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.core.types import Comparison, EvaluationDocument, Speedup, TestResult
from profkit.regression.compare import CompareOptions, compare_evaluations
from tests.evaluation_documents import a_test, evaluation, every_status, failed, passed
from tests.spoken import spoken, spoken_lines

NAMES = [f"op{number}.default" for number in range(8)]


def timed(values: Sequence[float] = (1.2,) * 8, half: float = 0.02) -> EvaluationDocument:
    return evaluation(*(passed(a_test(n), v, half) for n, v in zip(NAMES, values, strict=True)))


def compared(before: EvaluationDocument, after: EvaluationDocument, **options: object) -> Comparison:
    return compare_evaluations(before, after, CompareOptions(**options))  # type: ignore[arg-type]


def with_result(document: EvaluationDocument, number: int, result: TestResult) -> EvaluationDocument:
    results = list(document.results)
    results[number] = result
    return replace(document, results=tuple(results))


def test_a_test_that_passed_and_fails_is_a_regression_whatever_became_faster() -> None:
    after = timed((2.0,) * 8)
    after = with_result(after, 3, failed(after.results[3].test, "crashed", "SIGSEGV"))
    comparison = compared(timed(), after)
    assert comparison.outcome == "regressed"
    assert spoken(comparison) == (
        f"op3.default: 1 test passed before and failed now: {after.results[3].test.id} (crashed)."
    )
    assert compared(after, timed((2.0,) * 8)).outcome == "improved"


def test_speedups_are_decided_by_operation_and_over_all() -> None:
    assert compared(timed(), timed((1.21,) * 8)).outcome == "same"
    slower = compared(timed(), timed((1.2,) * 7 + (0.7,)))
    assert slower.outcome == "regressed"
    worst = slower.changes[0]
    assert (worst.metric, worst.scope.name, worst.course) == ("speedup", "op7.default", "worse")
    assert compared(timed(), timed((1.5,) * 8)).outcome == "improved"
    open_ = compared(timed(half=0.5), timed((1.35,) * 8, half=0.5))
    assert open_.outcome == "ambiguous"
    assert "run both again" in (spoken(open_.fix) or "")


def test_equal_kernels_on_a_busy_machine_are_not_called_different() -> None:
    """Medians of pairs that waited for processors, with the narrow intervals that such pairs may have."""
    sides = [
        evaluation(
            *(
                replace(passed(a_test(n), 1.0), speedup=Speedup(v, v / 1.05, v * 1.05, "AMBIGUOUS", 26))
                for n, v in zip(NAMES, values, strict=True)
            )
        )
        for values in ((3.5, 0.5, 1.9, 0.4, 2.2, 0.3, 1.2, 2.8), (0.3, 2.0, 0.6, 1.8, 0.5, 0.7, 0.2, 0.9))
    ]
    comparison = compared(*sides)
    assert comparison.outcome == "ambiguous"
    assert {change.word for change in comparison.changes if change.metric == "speedup"} == {"ambiguous"}


def test_times_of_another_device_are_not_compared() -> None:
    before, after = timed(), timed((0.5,) * 8)
    other = replace(after, device="cuda:0")
    assert compared(before, other).outcome == "same"
    assert "--force" in spoken_lines(compared(before, other).notes)[0]
    assert compared(before, other, force=True).outcome == "regressed"


def test_a_test_that_is_not_decided_any_more_may_hide_a_failure() -> None:
    before = timed()
    skipped = with_result(before, 0, failed(before.results[0].test, "skipped", "no memory"))
    assert compared(before, skipped).outcome == "ambiguous"
    unfinished = replace(before, results=before.results[:4], complete=False)
    assert compared(before, unfinished).outcome == "same"


def test_nothing_in_common_is_refused_and_an_evaluation_is_as_itself() -> None:
    assert compared(timed(), evaluation(passed(a_test("other.default")))).outcome == "refused"
    assert compared(every_status(), every_status()).outcome == "same"
