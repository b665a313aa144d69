"""What follows from the tests of an evaluation: who counts, means with intervals, fast_p."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, prod, sqrt

import pytest

from profkit.analysis.evaluation.scores import (
    fast_p,
    mean_speedup,
    operation_results,
    scores_of,
    speed_word,
)
from profkit.core.types import Speedup
from tests.evaluation_documents import a_test, evaluation, every_status, failed, passed, speedup

ADD, MUL, NEG, SIN = (a_test(f"{name}.default") for name in ("add", "mul", "neg", "sin"))


def test_every_test_is_in_one_status_and_a_crash_stays_in_the_denominator() -> None:
    scores = scores_of(every_status())
    assert sum(scores.statuses.values()) == scores.tests == 21
    assert (scores.correct_operations, scores.counted_operations) == (4, 12)
    assert scores.correctness_score == pytest.approx(4 / 12)
    assert (scores.counted_tests, scores.skipped_tests) == (17, 3)


def test_an_operation_is_as_its_worst_test_and_skipped_ones_have_no_say() -> None:
    results = (
        passed(ADD),
        failed(a_test("add.default", (2,)), "crashed"),
        failed(a_test("add.default", (3,))),
    )
    (operation,) = operation_results(evaluation(*results))
    assert (operation.status, operation.pass_rate) == ("incorrect", pytest.approx(1 / 3))
    (operation,) = operation_results(evaluation(results[0], failed(a_test("add.default", (2,)), "skipped")))
    assert (operation.status, operation.counted, operation.skipped) == ("passed", 1, 1)
    (operation,) = operation_results(evaluation(failed(ADD, "skipped")))
    assert (operation.status, operation.pass_rate) == ("skipped", None)


def test_the_geometric_mean_has_the_interval_of_its_tests_errors() -> None:
    values, halves = (2.0, 0.5, 1.5), (0.02, 0.05, 0.10)
    tests = [a_test("add.default", (size,)) for size in (8, 16, 32)]
    document = evaluation(*(passed(t, v, h) for t, v, h in zip(tests, values, halves, strict=True)))
    mean = scores_of(document).geomean
    assert mean is not None
    assert mean.value == pytest.approx(prod(values) ** (1 / 3))
    half = sqrt(sum(log(1 + h) ** 2 for h in halves)) / 3
    assert (mean.low, mean.high) == (
        pytest.approx(mean.value / exp(half)),
        pytest.approx(mean.value * exp(half)),
    )


def test_the_mean_of_one_test_has_that_tests_interval_however_lopsided() -> None:
    lopsided = Speedup(5.3, 0.8, 14.0, "AMBIGUOUS", 26)
    mean = scores_of(evaluation(replace(passed(ADD), speedup=lopsided))).geomean
    assert mean is not None
    assert (mean.low, mean.high, mean.word) == (pytest.approx(0.8), pytest.approx(14.0), "AMBIGUOUS")


def test_what_failed_is_pytorch_in_the_mean_over_all_and_kernels_that_never_work_have_no_mean() -> None:
    scores = scores_of(evaluation(passed(ADD, 4.0), failed(MUL, "crashed")))
    assert scores.geomean is not None
    assert scores.geomean_with_fallback is not None
    assert (scores.geomean.n, scores.geomean_with_fallback.n) == (1, 2)
    assert scores.geomean_with_fallback.value == pytest.approx(2.0)
    scores = scores_of(evaluation(failed(ADD), failed(MUL, "crashed")))
    assert (scores.geomean, scores.geomean_with_fallback) == (None, None)


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (1.2, 1.1, 1.3, "FASTER"),
        (1.01, 1.001, 1.02, "SAME"),
        (1.02, 1.001, 1.04, "AMBIGUOUS"),  # surely faster, and perhaps by less than counts
        (1.2, 0.9, 1.5, "AMBIGUOUS"),
        (0.8, 0.7, 0.9, "SLOWER"),
        (1.5, None, None, "AMBIGUOUS"),
    ],
)
def test_the_word_is_that_of_the_interval(
    value: float, low: float | None, high: float | None, word: str
) -> None:
    assert speed_word(value, low, high, 0.03) == word


def test_fast_p_takes_the_interval_and_all_operations() -> None:
    document = evaluation(
        passed(ADD, 1.01, 0.05),  # as an unchanged PyTorch is half of the time
        passed(MUL, 2.0),
        failed(NEG),
        failed(SIN, "skipped"),
    )
    operations = operation_results(document)
    assert fast_p(operations, 1.0) == pytest.approx(1 / 3)
    assert fast_p(operations, 2.0) == 0
    assert fast_p(operations, 0.97) == pytest.approx(1 / 3)


def test_without_an_interval_nothing_is_called_faster() -> None:
    bare = replace(passed(ADD), speedup=speedup(1.5, 0.0, pairs=1))
    (operation,) = operation_results(evaluation(bare))
    assert operation.speedup is not None
    assert (operation.speedup.low, operation.speedup.word) == (None, "AMBIGUOUS")
    assert fast_p((operation,), 1.0) is None


def test_what_is_the_same_is_not_faster_though_its_interval_lies_above_1() -> None:
    tests = [passed(a_test(f"op{number}.default"), 1.01, 0.005) for number in range(13)]
    operations = operation_results(evaluation(*tests))
    assert {one.speedup.word for one in operations if one.speedup} == {"SAME"}
    assert (fast_p(operations, 1.0), fast_p(operations, 0.95)) == (0, 1)


@pytest.mark.parametrize(
    ("middles", "word"),
    [
        ((1.5,), "AMBIGUOUS"),
        ((0.5,), "AMBIGUOUS"),
        ((1.0,), "AMBIGUOUS"),
        ((1.5, 1.6, 1.7, 1.8), "AMBIGUOUS"),  # one busy machine is one reason for all of them
    ],
)
def test_an_operation_of_which_every_test_is_ambiguous_is_so_whatever_their_intervals_say(
    middles: tuple[float, ...], word: str
) -> None:
    busy = [Speedup(middle, middle / 1.02, middle * 1.02, "AMBIGUOUS", 26) for middle in middles]
    tests = [
        replace(passed(a_test("gelu.default", (size + 8,), calls=3), 1.0), speedup=one)
        for size, one in enumerate(busy)
    ]
    document = evaluation(*tests)
    operations = operation_results(document)
    scores = scores_of(document, operations)
    assert scores.geomean is not None
    assert scores.geomean.low is not None
    assert scores.geomean.low <= 1.0 + 1e-12 or scores.geomean.value == 1.0
    assert (scores.words, scores.geomean.word) == ({word: 1}, word)
    assert fast_p(operations, 1.0) == 0


def test_an_ambiguous_test_among_sure_ones_counts_as_if_it_might_be_equal() -> None:
    busy = replace(passed(a_test("add.default", (5,)), 1.0), speedup=Speedup(8.0, 7.0, 9.0, "AMBIGUOUS", 26))
    same, faster = (
        mean_speedup([passed(a_test("add.default", (size,)), value) for size in (8, 9)] + [busy], 0.03)
        for value in (1.0, 3.0)
    )
    assert same is not None
    assert faster is not None
    assert (same.word, faster.word) == ("AMBIGUOUS", "FASTER")


def test_a_test_that_was_not_run_makes_no_operation_correct_and_is_in_no_denominator_of_tests() -> None:
    document = evaluation(
        passed(a_test("relu.default")),
        failed(a_test("relu.default", (8,)), "not-run", "Triton needs a GPU"),
        failed(a_test("mm.default"), "not-run", "Triton needs a GPU"),
    )
    relu, mm = operation_results(document)
    assert (relu.status, relu.counted, relu.passed, relu.not_run, relu.correct) == ("not-run", 1, 1, 1, False)
    assert (mm.status, mm.counted, mm.pass_rate) == ("not-run", 0, None)
    scores = scores_of(document)
    assert scores.statuses == {"passed": 1, "not-run": 2}
    assert (scores.counted_tests, scores.counted_operations, scores.correct_operations) == (1, 2, 0)
