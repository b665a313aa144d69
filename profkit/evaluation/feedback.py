"""Kernels of a language model in a program of one's own: test one, and make the text for the next attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any, cast, get_args

from profkit.analysis.evaluation.feedback import JudgedKernel, format_feedback
from profkit.core.statistics import geometric_mean
from profkit.core.types import (
    STATUSES,
    EvaluationTest,
    Fault,
    Speedup,
    SpeedWord,
    TestResult,
    TestStatus,
)
from profkit.evaluation.judging import judge_tests, mean_speedup
from profkit.evaluation.records import (
    CorrectnessTestResult,
    PerformanceTestResult,
    correctness_record,
    decided_results,
    pass_share,
    performance_record,
)
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.evaluation.sources.files import StringSource
from profkit.kernels.evaluation.sources.names import operation_name
from profkit.kernels.evaluation.sources.text import with_imports

KERNEL_FILE = "kernel.py"
_BARE, _WITH_INTERVAL = 1, 2  # pairs: of a speed-up without an interval, and at least of one that has it


@dataclass
class FeedbackInfo:
    """A kernel with its tests: what an attempt of a model came to.

    `performance_results` are there where its speed was tested; whoever does that puts them here. `file` is what
    tracebacks call the kernel's file.
    """

    compilation_error: str | None = None
    correctness_results: list[CorrectnessTestResult] = field(default_factory=list)
    performance_results: list[PerformanceTestResult] = field(default_factory=list)
    summary: str = ""
    kernel_code: str = ""
    file: str = KERNEL_FILE

    @property
    def overall_speedup(self) -> float:
        """The geometric mean over the tests that ran; 0 where none was to be timed, NaN where none of those ran."""
        if not self.performance_results:
            return 0.0
        speedups = [
            row.speedup for row in self.performance_results if row.successfully_ran and row.speedup > 0
        ]
        mean = geometric_mean(speedups)
        return nan if mean is None else mean

    @property
    def correctness_score(self) -> float:
        """The share of all tests that passed, timed ones too; 0 after a compilation error, and without a test."""
        if self.compilation_error:
            return 0.0
        return pass_share(self._results())

    @property
    def is_correct(self) -> bool:
        """Whether there is a test on which something could be decided, and all of those passed."""
        return self.correctness_score == 1.0

    def format_for_llm(self) -> str:
        """The text for the next attempt: outcome, failed tests with their lines, times, and what to do."""
        results = self._results()
        if self.compilation_error and not any(result.status == "load-error" for result in results):
            test = EvaluationTest("", "", "", "", "")
            results = (TestResult(test, "load-error", self.compilation_error),)
        return format_feedback(JudgedKernel(self.kernel_code, self.file, results))

    def _results(self) -> tuple[TestResult, ...]:
        return (
            *map(_correctness_result, self.correctness_results),
            *map(_performance_result, self.performance_results),
        )


def summarize_results(results: Sequence[TestResult]) -> str:
    """`4 of 6 tests passed`, of those on which something could be decided."""
    decided = decided_results(results)
    return f"{sum(result.status == 'passed' for result in decided)} of {len(decided)} tests passed"


# ---------------------------------------------------------------- from records


def _correctness_result(row: CorrectnessTestResult) -> TestResult:
    status = _status(row.status, passed=row.is_correct)
    return TestResult(
        _test(row.op_name, row.args, timed=False),
        status,
        _reason(row.error_msg, status),
        cast("Fault", row.fault) if row.fault in get_args(Fault) else None,
        max_abs_error=row.max_abs_error if isfinite(row.max_abs_error) else None,
        max_rel_error=row.max_rel_error if isfinite(row.max_rel_error) else None,
        allowed_share=row.allowed_share,
        error_type=row.error_type,
        traceback=row.traceback,
        last_line=row.last_line,
    )


def _performance_result(row: PerformanceTestResult) -> TestResult:
    status = _status(row.status, passed=row.successfully_ran)
    speedup = None
    if row.successfully_ran and row.speedup > 0:
        known = isfinite(row.low) and isfinite(row.high)
        low, high = (row.low, row.high) if known else (row.speedup, row.speedup)
        word = cast("SpeedWord", row.word) if row.word in get_args(SpeedWord) else "AMBIGUOUS"
        speedup = Speedup(row.speedup, low, high, word, _WITH_INTERVAL if known else _BARE)
    return TestResult(
        _test(row.op_name, row.args, timed=True),
        status,
        _reason(row.error_msg, status),
        speedup=speedup,
        seconds=_seconds(row.benchmark_time_ms),
        reference_seconds=_seconds(row.reference_time_ms),
        bound_seconds=_seconds(row.bound_ms),
    )


def _test(operation: str, arguments: str, *, timed: bool) -> EvaluationTest:
    return EvaluationTest("", "", operation, "", arguments, timed=timed)


def _status(status: str, *, passed: bool) -> TestStatus:
    """The judge's word; of a record that somebody else made, what it says itself."""
    if status in STATUSES:
        return status
    return "passed" if passed else "incorrect"


def _reason(message: str, status: TestStatus) -> str:
    """The message without the status before it."""
    return "" if status == "passed" else message.removeprefix(status).removeprefix(": ")


def _seconds(milliseconds: float) -> float | None:
    return milliseconds / 1e3 if isfinite(milliseconds) else None


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
