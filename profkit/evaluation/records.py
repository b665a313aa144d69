"""The records of the kernel-evaluation guides for tests' results, and the text for a model's next attempt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite, nan

from profkit.core.statistics import geometric_mean
from profkit.core.types import UNDECIDED, EvaluationTest, Fact, TestResult
from profkit.kernels.evaluation.outputs import Row, error_message, is_right, operator_summaries
from profkit.reporting.facts import fact_text
from profkit.reporting.feedback import JudgedKernel, format_feedback

KERNEL_FILE = "kernel.py"


@dataclass
class CorrectnessTestResult:
    """Whether a kernel was right on the arguments of a test.

    Errors are against the result in float64, -inf if nothing was compared; relative ones are shares. `is_correct`
    is the judge's decision and follows from no fixed tolerance: an error may be a few times what PyTorch's own
    kernel has.
    """

    op_name: str
    args: str  # in the notation of operator traces
    is_correct: bool = False
    error_msg: str = ""  # the status and its reason: `incorrect: output 0 at [3] is 1.5 and not 1.25; ...`
    error_type: str = ""  # of what the kernel raised
    traceback: str = ""
    max_abs_error: float = -inf
    max_rel_error: float = -inf
    test_type: str = "correctness"
    status: str = ""  # the judge's word: passed, incorrect, crashed, ...
    # all of it; None: made by hand
    result: TestResult | None = field(default=None, repr=False, compare=False)


@dataclass
class PerformanceTestResult:
    """How fast a kernel was on the arguments of a test, in milliseconds of one call; NaN if not measured.

    `speedup` is the median of paired measurements, so it need not be exactly the ratio of the two times; `word`
    says what it is worth: FASTER, SAME, SLOWER or AMBIGUOUS against PyTorch eager, with the interval `low` to
    `high`.
    """

    op_name: str
    args: str
    speedup: float = nan  # the reference's time over the kernel's
    benchmark_time_ms: float = nan
    reference_time_ms: float = nan
    error_msg: str = ""
    successfully_ran: bool = False
    test_type: str = "performance"
    word: str = ""
    low: float = nan
    high: float = nan
    status: str = ""
    result: TestResult | None = field(default=None, repr=False, compare=False)


@dataclass
class EvalResult:
    """The result of a task: `correctness_score` is the share of tests that passed; crashed ones count as failed.

    `performance_score` is the geometric mean of the speed-ups of correct, timed tests; NaN if there is none.
    """

    task_id: int
    correctness_score: float = 0.0
    performance_score: float = 0.0
    correctness_results: list[CorrectnessTestResult] = field(default_factory=list)
    performance_results: list[PerformanceTestResult] = field(default_factory=list)
    error: str | None = None  # why the task could not be done at all

    @property
    def combined_score(self) -> float:
        """Return correctness score x performance score, the guides' one number.

        0 if nothing is correct and timed.
        """
        return self.correctness_score * self.performance_score if isfinite(self.performance_score) else 0.0


@dataclass
class FeedbackInfo:
    """A kernel with its tests: the result of a model's attempt.

    `performance_results` are there if its speed was tested; whoever does that puts them here. `file` is the name
    of the kernel's file in tracebacks.
    """

    compilation_error: str | None = None
    correctness_results: list[CorrectnessTestResult] = field(default_factory=list)
    performance_results: list[PerformanceTestResult] = field(default_factory=list)
    summary: str = ""
    kernel_code: str = ""
    file: str = KERNEL_FILE

    @property
    def overall_speedup(self) -> float:
        """Return the geometric mean over the timed tests; 0 if none was to be timed, NaN if none of those ran."""
        if not self.performance_results:
            return 0.0
        ran = [row.speedup for row in self.performance_results if row.successfully_ran and row.speedup > 0]
        mean = geometric_mean(ran)
        return nan if mean is None else mean

    @property
    def correctness_score(self) -> float:
        """Return the share of all tests that passed, timed ones too.

        0 after a compilation error, or without a test.
        """
        return 0.0 if self.compilation_error else pass_share(self._results())

    @property
    def is_correct(self) -> bool:
        """Return whether something could be decided on at least one test, and all of those passed."""
        return self.correctness_score == 1.0

    def format_for_llm(self) -> str:
        """Format the text for the next attempt: outcome, failed tests with their lines, times, and what to do."""
        results = self._results()
        if self.compilation_error and not any(result.status == "load-error" for result in results):
            test = EvaluationTest("", "", "", "", "")
            results = (TestResult(test, "load-error", Fact.message(self.compilation_error)),)
        return format_feedback(JudgedKernel(self.kernel_code, self.file, results))

    def _results(self) -> tuple[TestResult, ...]:
        return (
            *(row.result or _by_hand(row, row.is_correct) for row in self.correctness_results),
            *(row.result or _by_hand(row, row.successfully_ran) for row in self.performance_results),
        )


def _by_hand(row: CorrectnessTestResult | PerformanceTestResult, passed: bool) -> TestResult:
    test = EvaluationTest("", "", row.op_name, "", row.args, timed=False)
    return TestResult(
        test, "passed" if passed else "incorrect", None if passed else Fact.message(row.error_msg)
    )


def decided_results(results: Iterable[TestResult]) -> list[TestResult]:
    """Return the results of tests on which something could be decided."""
    return [result for result in results if result.status not in UNDECIDED]


def pass_share(results: Iterable[TestResult]) -> float:
    """Return the share of tests that passed, of those on which something could be decided; 0 if there is none."""
    decided = decided_results(results)
    return sum(result.status == "passed" for result in decided) / len(decided) if decided else 0.0


def correctness_record(result: TestResult) -> CorrectnessTestResult:
    """Make the correctness record of a result. Only what passed is correct."""
    return CorrectnessTestResult(
        result.test.operation,
        result.test.arguments,
        result.status == "passed",
        error_message(result),
        result.error_type,
        result.traceback,
        -inf if result.max_abs_error is None else result.max_abs_error,
        -inf if result.max_rel_error is None else result.max_rel_error,
        status=result.status,
        result=result,
    )


def performance_record(result: TestResult) -> PerformanceTestResult:
    """Make the speed record of a result; it ran successfully only if it is correct and was timed."""
    speedup = result.speedup if result.status == "passed" else None
    record = PerformanceTestResult(
        result.test.operation,
        result.test.arguments,
        reference_time_ms=_milliseconds(result.reference_seconds),
        error_msg=error_message(result),
        status=result.status,
        result=result,
    )
    if speedup is None:
        record.error_msg = record.error_msg or "; ".join(("not timed", *map(fact_text, result.remarks)))
        return record
    record.speedup, record.low, record.high = speedup.median, speedup.low, speedup.high
    record.word = speedup.word
    record.benchmark_time_ms = _milliseconds(result.seconds)
    record.successfully_ran = True
    return record


def prepare_results_data(
    correctness_results: Iterable[CorrectnessTestResult], performance_results: Iterable[PerformanceTestResult]
) -> tuple[list[Row], list[Row], dict[str, Row]]:
    """Return all records as rows, those of failed tests, and a summary by operation, in the guides' form."""
    rows = [*map(_row, correctness_results), *map(_row, performance_results)]
    rows.sort(key=lambda row: (row["op_name"], row["args"]))
    summaries = {
        row["operator"]: {
            **row,
            "max_abs_error": row["max_absolute_error"],
            "max_rel_error": row["max_relative_error"],
        }
        for row in operator_summaries(rows)
    }
    return rows, [row for row in rows if not is_right(row)], summaries


def _row(record: CorrectnessTestResult | PerformanceTestResult) -> Row:
    row = asdict(replace(record, result=None))
    del row["result"]
    return row


def _milliseconds(seconds: float | None) -> float:
    return nan if seconds is None else 1e3 * seconds
