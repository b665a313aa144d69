"""What a model's kernel came to, with the text for the next attempt; by the real judge, too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.core.types import TestResult
from profkit.evaluation import CorrectnessTestResult, FeedbackInfo, LLMBackend, PerformanceTestResult
from profkit.evaluation.records import correctness_record, performance_record
from tests.evaluation_documents import a_test, failed, passed

pytestmark = pytest.mark.torch

CODE = "import torch\n\n\ndef relu_kernel_impl(x):\n    return x.clamp(max=0)\n"


def feedback_of(*results: TestResult, timed: tuple[TestResult, ...] = ()) -> FeedbackInfo:
    return FeedbackInfo(
        None, list(map(correctness_record, results)), list(map(performance_record, timed)), "", CODE
    )


def test_without_any_test_nothing_is_correct_and_nothing_fast() -> None:
    feedback = FeedbackInfo()
    assert (feedback.correctness_score, feedback.overall_speedup, feedback.is_correct) == (0.0, 0.0, False)
    assert "Nothing could be decided" in feedback.format_for_llm()


def test_the_score_counts_timed_tests_too_and_what_was_skipped_not() -> None:
    skipped = failed(a_test("relu.default", (3,)), "skipped", "its result is random")
    feedback = feedback_of(passed(a_test("relu.default")), skipped)
    assert feedback.is_correct
    feedback.performance_results = [
        performance_record(passed(a_test("relu.default"), 2.0)),
        performance_record(failed(a_test("relu.default"), "cheat", "wrong in 3 of 9 timed calls")),
        performance_record(passed(a_test("relu.default"))),  # right, and not timed
    ]
    assert feedback.correctness_score == pytest.approx(3 / 4)
    assert not feedback.is_correct
    assert feedback.overall_speedup == pytest.approx(2.0)


def test_after_a_compilation_error_the_score_is_0_and_the_line_is_shown() -> None:
    feedback = FeedbackInfo("kernel.py, line 5: invalid syntax", kernel_code=CODE)
    assert (feedback.correctness_score, feedback.is_correct) == (0.0, False)
    text = feedback.format_for_llm()
    assert text.startswith("**It cannot be loaded.** kernel.py, line 5: invalid syntax")
    assert "->    5      return x.clamp(max=0)" in text


def test_records_that_somebody_else_made_are_taken_by_what_they_say() -> None:
    feedback = FeedbackInfo(
        correctness_results=[CorrectnessTestResult("relu", "(x,)", False, "shapes differ")],
        performance_results=[PerformanceTestResult("relu", "(x,)", 1.5, 2.0, 3.0, successfully_ran=True)],
        kernel_code=CODE,
    )
    assert (feedback.correctness_score, feedback.overall_speedup) == (0.5, pytest.approx(1.5))
    assert "`(x,)`: incorrect: shapes differ" in feedback.format_for_llm()


pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux"),
]
RIGHT = "import torch\n\ndef relu_kernel_impl(x):\n    return torch.clamp(x, min=0)\n"


class Case:
    def __init__(self, *args: Any) -> None:
        self.args, self.kwargs = args, {}


class Client:
    """A model that answers with the next text, and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), []  # type: ignore[var-annotated]

    def ask(self, messages: Sequence[str]) -> str:
        self.asked.append(messages[-1])
        return self.answers.pop(0)


def cases() -> list[Case]:
    return [Case(torch.randn(5, 7)), Case(torch.randn(64))]


@pytest.mark.thorough
def test_a_loop_around_it_ends_with_a_kernel_that_is_correct_and_timed() -> None:
    broken = RIGHT.replace("min=0)", "min=0")
    client = Client(broken, RIGHT)
    backend = LLMBackend(model="a-model", llm_client=client, budget=0.1)
    said, prompt = [], "write relu"
    for _ in range(2):
        code = backend.llm_client.ask([prompt])
        correct, feedback = backend.test_kernel_correctness("relu.default", code, cases())
        said.append((correct, bool(feedback.compilation_error), feedback.summary))
        prompt = feedback.format_for_llm()
    assert said == [(False, True, "0 of 2 tests passed"), (True, False, "2 of 2 tests passed")]
    assert "never closed" in client.asked[1]
    assert "->    4      return torch.clamp(x, min=0" in client.asked[1]
    score, feedback.performance_results = backend.test_kernel_performance(
        torch.ops.aten.relu.default, RIGHT, [Case(torch.randn(256, 256))]
    )
    assert score == pytest.approx(feedback.overall_speedup)
    assert score > 0
    assert feedback.performance_results[0].successfully_ran
    assert "times as fast as PyTorch" in feedback.format_for_llm()
