"""Kernels of a language model in a program of one's own: test one, and make the text for the next attempt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from profkit.evaluation.feedback_info import KERNEL_FILE, FeedbackInfo, summarize_results
from profkit.evaluation.judging import judge_tests, mean_speedup
from profkit.evaluation.records import PerformanceTestResult, correctness_record, performance_record
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.evaluation.sources.files import StringSource
from profkit.kernels.evaluation.sources.names import operation_name
from profkit.kernels.evaluation.sources.text import with_imports


class LLMBackend:
    """Tests the texts that a model writes for operations, by the judge of `profkit evaluate`.

        backend = LLMBackend(model="a-model", llm_client=client)
        correct, feedback = backend.test_kernel_correctness(op, kernel_code, test_cases)
        if correct:
            score, feedback.performance_results = backend.test_kernel_performance(op, kernel_code, performance_tests)
        print(feedback.format_for_llm())

    `model` and `llm_client` are kept for the loop around it; nothing is asked here. A client is anything with
    `ask(messages)`. `budget`: seconds of timing per test at most; `timeout`: seconds of one call.
    """

    def __init__(
        self, model: str = "", llm_client: Any = None, *, budget: float = 1.0, timeout: float = 60.0
    ) -> None:
        self.model, self.llm_client = model, llm_client
        self._timing, self._timeout = PairOptions(budget), timeout

    def test_kernel_correctness(
        self, op: Any, kernel_code: str, test_cases: Iterable[Any]
    ) -> tuple[bool, FeedbackInfo]:
        """Whether the text's `relu_kernel_impl` passes its tests, and at least one; what to say of it.

        A text that is no Python, or lacks the function, has a `compilation_error`. Raises UsageError for what is no
        operation, and for what is no test.
        """
        kernel_code = with_imports(kernel_code)  # as its file has it, so that lines have its numbers
        results, _ = judge_tests(op, kernel_code, test_cases, (), self._timing, self._timeout)
        unloaded = next((result for result in results if result.status == "load-error"), None)
        feedback = FeedbackInfo(
            unloaded.reason or unloaded.error_type or "it cannot be loaded" if unloaded is not None else None,
            [correctness_record(result) for result in results],
            summary=summarize_results(results),
            kernel_code=kernel_code,
            file=_file_name(op, kernel_code),
        )
        return feedback.is_correct, feedback

    def test_kernel_performance(
        self, op: Any, kernel_code: str, performance_tests: Iterable[Any]
    ) -> tuple[float, list[PerformanceTestResult]]:
        """The geometric mean of the speed-ups over PyTorch, NaN where there is none; a record of each test.

        Raises as `test_kernel_correctness` does.
        """
        _, results = judge_tests(op, kernel_code, (), performance_tests, self._timing, self._timeout)
        return mean_speedup(results), [performance_record(result) for result in results]


def _file_name(op: Any, kernel_code: str) -> str:
    """What tracebacks call the file of the text."""
    operation = operation_name(op)
    source = StringSource(kernel_code, operation)
    return Path(source.where(operation)).name if source.has_kernel(operation) else KERNEL_FILE
