"""LLMBackend on texts as models write them; by the real judge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from profkit.evaluation import LLMBackend  # noqa: E402

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


def test_a_loop_around_it_ends_with_a_kernel_that_is_correct_and_timed() -> None:
    wrong = RIGHT.replace("min=0", "max=0")
    broken = RIGHT.replace("min=0)", "min=0")
    client = Client(broken, wrong, RIGHT)
    backend = LLMBackend(model="a-model", llm_client=client, budget=0.2)
    said, prompt = [], "write relu"
    for _ in range(3):
        code = backend.llm_client.ask([prompt])
        correct, feedback = backend.test_kernel_correctness("relu.default", code, cases())
        said.append((correct, bool(feedback.compilation_error), feedback.summary))
        prompt = feedback.format_for_llm()
    assert said == [
        (False, True, "0 of 2 tests passed"),
        (False, False, "0 of 2 tests passed"),
        (True, False, "2 of 2 tests passed"),
    ]
    assert "never closed" in client.asked[1]
    assert "->    4      return torch.clamp(x, min=0" in client.asked[1]
    assert "incorrect" in client.asked[2]
    score, feedback.performance_results = backend.test_kernel_performance(
        torch.ops.aten.relu.default, RIGHT, [Case(torch.randn(256, 256))]
    )
    assert score == pytest.approx(feedback.overall_speedup)
    assert score > 0
    assert feedback.performance_results[0].successfully_ran
    assert "times as fast as PyTorch" in feedback.format_for_llm()


def test_a_text_without_the_function_is_told_its_name() -> None:
    correct, feedback = LLMBackend(budget=0.2).test_kernel_correctness("relu.default", "x = 1\n", cases()[:1])
    assert not correct
    assert "does not define relu_kernel_impl" in feedback.format_for_llm()


def test_a_kernel_that_ends_its_process_is_a_failed_test_with_a_text() -> None:
    code = "import os\n\ndef relu_kernel_impl(x):\n    os._exit(0)\n"
    correct, feedback = LLMBackend(budget=0.2).test_kernel_correctness("relu", code, cases()[:1])
    assert not correct
    assert feedback.compilation_error is None
    assert feedback.correctness_results[0].status == "crashed"
    assert "It must end by returning its result" in feedback.format_for_llm()
