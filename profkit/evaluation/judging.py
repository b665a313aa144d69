"""Kernels from a program: whether they are right, and how fast they are, by the judge of `profkit evaluate`."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import torch

from profkit.core import codec
from profkit.core.errors import ProfkitError, UsageError
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.statistics import geometric_mean
from profkit.core.types import EvaluationTest, TestResult
from profkit.evaluation.records import (
    KERNEL_FILE,
    CorrectnessTestResult,
    EvalResult,
    FeedbackInfo,
    PerformanceTestResult,
    correctness_record,
    decided_results,
    pass_share,
    performance_record,
)
from profkit.kernels.evaluation.judging.judge import Judge
from profkit.kernels.evaluation.judging.reference import FunctionOperation
from profkit.kernels.evaluation.request import JudgeSettings, PairOptions
from profkit.kernels.evaluation.sources.files import StringSource, is_running_file, request_function
from profkit.kernels.evaluation.sources.names import operation_name, with_imports
from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import NotationError, format_call
from profkit.kernels.evaluation.suites.suite import Arguments, make_test
from profkit.kernels.operations.in_float64 import flat_tensors
from profkit.reporting.facts import fact_text

# What judging the tests of one kernel gives: those that were checked, and those that were timed.
_Task: TypeAlias = Callable[[], tuple[list[TestResult], list[TestResult]]]


def eval_correctness_test(op: Any, impl: Callable[..., Any] | str, test: Any) -> CorrectnessTestResult:
    """Whether `impl` does what `op` does on the `args` and `kwargs` of a test.

    `impl` runs in a process of its own, with its own copy of the arguments and a minute for a call; what is correct
    follows from the result in float64, and is written in the record's error message where it is not. See `eval_one_op`
    for what `op` and `impl` may be.
    """
    ((result,), _) = judge_tests(op, impl, (test,), (), PairOptions())
    return correctness_record(result)


def eval_performance(
    op: Any, impl: Callable[..., Any] | str, tests: Iterable[Any], *, budget: float = 1.0
) -> tuple[float, list[PerformanceTestResult]]:
    """How many times as fast as PyTorch `impl` is: the geometric mean over its tests, and a record of each.

    A test that is wrong, or fails, has no speed-up and is in no mean: NaN where none is left. `budget`: seconds of
    timing per test at most. See `eval_one_op`.
    """
    _, results = judge_tests(op, impl, (), tests, PairOptions(budget))
    return mean_speedup(results), [performance_record(result) for result in results]


def eval_one_op(
    op: Any,
    impl: Callable[..., Any] | str,
    correctness_tests: Iterable[Any],
    performance_tests: Iterable[Any],
    *,
    budget: float = 1.0,
) -> tuple[float, float, list[CorrectnessTestResult], list[PerformanceTestResult]]:
    """(correctness score, performance score, correctness records, performance records) of a kernel.

    `op` is an overload of aten, or its name; or a function that gives what is right, which is called here in float64,
    too, and timed in another process. A test has `args` and `kwargs`, which are read once. `impl` is called in another
    process: a function at the top of a file (what the file does at its top is done there again, but not what is
    under `if __name__ == "__main__"`), one of a library, or the text of a file that defines `relu_kernel_impl`.

    The correctness score is the share of tests that passed, of those on which something can be decided. The
    performance score is the geometric mean of the speed-ups of correct tests; NaN where there is none. Kernels that use
    CUDA streams are tested like others.

    Raises UsageError for what is no operation and for a kernel that cannot be taken to another process.
    """
    correctness, performance = judge_tests(
        op, impl, correctness_tests, performance_tests, PairOptions(budget)
    )
    return (
        pass_share(correctness),
        mean_speedup(performance),
        [correctness_record(result) for result in correctness],
        [performance_record(result) for result in performance],
    )


def mean_speedup(results: Sequence[TestResult]) -> float:
    """The geometric mean of the speed-ups of tests that passed; NaN where there is none."""
    speedups = [result.speedup.median for result in results if result.speedup and result.status == "passed"]
    mean = geometric_mean(speedups)
    return nan if mean is None else mean


@dataclass(frozen=True)
class FixedTest:
    """The arguments of a test as they were when it was read, on the CPU; where they came from decides the device."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    on_cuda: bool = False


def fix_test(test: Any) -> FixedTest:
    """Read a test once: some draw new values whenever they are asked. Raises UsageError for what is no test."""
    if isinstance(test, FixedTest):
        return test
    try:
        args, kwargs = tuple(test.args), dict(test.kwargs)
    except (AttributeError, TypeError) as error:
        raise UsageError(f"{test!r:.80} is no test: {error}", "a test has args and kwargs") from error
    return FixedTest(
        _on_cpu(args), _on_cpu(kwargs), any(tensor.is_cuda for tensor in flat_tensors([args, kwargs]))
    )


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {name: _on_cpu(each) for name, each in value.items()}
    return type(value)(map(_on_cpu, value)) if isinstance(value, (list, tuple)) else value


def refuse_while_loading() -> None:
    """Raises UsageError in the process that runs a file again to get a kernel of it."""
    if is_running_file():
        raise UsageError(
            "the file of a kernel evaluates it when it is run: so it does in the process that calls the kernel",
            'if __name__ == "__main__": around the evaluation',
        )


class _Given:
    """A suite of tests that a program gave: to be checked, and to be timed, too. Raises UsageError for what is none."""

    def __init__(self, operation: str, correctness: Iterable[Any], performance: Iterable[Any]) -> None:
        self.tests: list[EvaluationTest] = []
        self.on_cuda = False
        self._arguments: dict[str, Arguments] = {}
        for timed, given in ((False, correctness), (True, performance)):
            for fixed in map(fix_test, given):
                self._add(operation, fixed, timed)

    def _add(self, operation: str, fixed: FixedTest, timed: bool) -> None:
        try:
            call = describe_call(fixed.args, fixed.kwargs)
        except NotationError as error:
            raise UsageError(f"a test of {operation} has {error}", "tensors and plain values") from error
        forms = call.tensors()
        dtype = next((form.dtype for form in (*(f for f in forms if "float" in f.dtype), *forms)), "")
        test = make_test("given", operation, dtype, format_call(call), len(self.tests), timed=timed)
        self.tests.append(test)
        self.on_cuda |= fixed.on_cuda
        self._arguments[test.id] = Arguments(fixed.args, fixed.kwargs)

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:  # noqa: ARG002
        """The arguments as they were read, which the judge copies."""
        return self._arguments[test.id]


def judge_tests(
    op: Any,
    impl: Callable[..., Any] | str,
    correctness: Iterable[Any],
    performance: Iterable[Any],
    timing: PairOptions,
) -> tuple[list[TestResult], list[TestResult]]:
    """The results of the correctness tests, and those of the performance tests."""
    refuse_while_loading()
    function = _function_of(op)
    operation = operation_name(op) if function is None else function.request.operation
    if function is not None and isinstance(impl, str):
        raise UsageError("a text is a kernel of an operation of PyTorch", "give the kernel as a function")
    given, source = _Given(operation, correctness, performance), request_function(impl, operation)
    with _kept.lock, torch.no_grad():
        device = "cuda:0" if given.on_cuda else "cpu"
        threads = torch.get_num_threads()
        try:
            judge = _kept.judge_of(JudgeSettings(timing=timing, device=device))
            judge.use(given, source, function)
            results = [judge.judge(test) for test in given.tests]
        finally:
            torch.set_num_threads(threads)  # a judge computes small truths on one
    timed = [result for result in results if result.test.timed]
    return [result for result in results if not result.test.timed], timed


def _function_of(op: Any) -> FunctionOperation | None:
    """A reference of the user's own; None for an operation of torch's, and what is none at all."""
    if isinstance(op, (str, torch._ops.OpOverload, torch._ops.OpOverloadPacket)) or not callable(op):
        return None
    return FunctionOperation(op, request_function(op, getattr(op, "__name__", type(op).__name__)))


class MultiprocessingEvaluator:
    """Evaluate many kernels: one that crashes, hangs or eats the memory costs its test alone.

        with MultiprocessingEvaluator() as evaluator:
            evaluator.submit_task(torch.ops.aten.relu.default, my_relu, correctness_tests, performance_tests)
            evaluator.start_evaluation()
            for result in evaluator.get_results():
                print(result.task_id, result.correctness_score)

    Kernels run in a process of their own, one after the other, whatever `num_workers` is: kernels that are timed beside
    each other disturb each other. `budget` is seconds of timing per test.
    """

    def __init__(self, num_workers: int = 1, *, budget: float = 1.0) -> None:
        if num_workers < 1:
            raise UsageError(f"{num_workers} workers cannot do anything", "num_workers=1")
        refuse_while_loading()
        self._timing = PairOptions(budget)
        self._tasks: list[_Task] = []
        self._results: list[EvalResult] = []

    def __enter__(self) -> MultiprocessingEvaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks = self._tasks[: len(self._results)]

    def submit_task(
        self,
        op: Any,
        impl: Callable[..., Any] | str,
        correctness_tests: Iterable[Any],
        performance_tests: Iterable[Any] = (),
    ) -> int:
        """The number of the task, from 0. Tests are read here, once, and are not changed.

        Raises UsageError for what is no operation, no test, or a kernel that cannot be taken to another process.
        """
        request_function(impl, operation_name(op))
        correctness, performance = map(fix_test, correctness_tests), map(fix_test, performance_tests)
        self._tasks.append(partial(judge_tests, op, impl, [*correctness], [*performance], self._timing))
        return len(self._tasks) - 1

    def start_evaluation(self) -> None:
        """Do all tasks that have not been done; it returns when they are done."""
        for task in self._tasks[len(self._results) :]:
            self._results.append(self._do(len(self._results), task))

    def get_results(self) -> list[EvalResult]:
        """A result for every task, in the order they were submitted; those that were not started are done first.

        A test whose kernel crashed or hung is a test that failed. `error` says why a task could not be done at all.
        """
        self.start_evaluation()
        return list(self._results)

    def _do(self, number: int, task: _Task) -> EvalResult:
        try:
            correctness, performance = task()
        except ProfkitError as fault:
            return EvalResult(number, error=fault.message)
        return EvalResult(
            number,
            pass_share(correctness or performance),
            mean_speedup(performance),
            list(map(correctness_record, correctness)),
            list(map(performance_record, performance)),
        )


class LLMBackend:
    """Tests the texts that a model writes for operations, by the judge of `profkit evaluate`.

        backend = LLMBackend(model="a-model", llm_client=client)
        correct, feedback = backend.test_kernel_correctness(op, kernel_code, test_cases)
        if correct:
            score, feedback.performance_results = backend.test_kernel_performance(op, kernel_code, performance_tests)
        print(feedback.format_for_llm())

    `model` and `llm_client` are kept for the loop around it; nothing is asked here. A client is anything with
    `ask(messages)`. `budget`: seconds of timing per test at most.
    """

    def __init__(self, model: str = "", llm_client: Any = None, *, budget: float = 1.0) -> None:
        self.model, self.llm_client = model, llm_client
        self._timing = PairOptions(budget)

    def test_kernel_correctness(
        self, op: Any, kernel_code: str, test_cases: Iterable[Any]
    ) -> tuple[bool, FeedbackInfo]:
        """Whether the text's `relu_kernel_impl` passes its tests, and at least one; what to say of it.

        A text that is no Python, or lacks the function, has a `compilation_error`. Raises UsageError for what is no
        operation, and for what is no test.
        """
        kernel_code = with_imports(kernel_code)  # as its file has it, so that lines have its numbers
        results, _ = judge_tests(op, kernel_code, test_cases, (), self._timing)
        decided = decided_results(results)
        unloaded = next((result for result in results if result.status == "load-error"), None)
        feedback = FeedbackInfo(
            fact_text(unloaded.reason) or unloaded.error_type or "it cannot be loaded"
            if unloaded is not None
            else None,
            [correctness_record(result) for result in results],
            summary=f"{sum(each.status == 'passed' for each in decided)} of {len(decided)} tests passed",
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
        _, results = judge_tests(op, kernel_code, (), performance_tests, self._timing)
        return mean_speedup(results), [performance_record(result) for result in results]


def _file_name(op: Any, kernel_code: str) -> str:
    """What tracebacks call the file of the text."""
    operation = operation_name(op)
    source = StringSource(kernel_code, operation)
    return Path(source.where(operation)).name if source.has_kernel(operation) else KERNEL_FILE


class _KeptJudge:
    """The last judge: its processes need seconds to start, and serve all tests of a kernel."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._settings: JudgeSettings | None = None
        self._judge: Judge | None = None
        self._logs: TemporaryFolder | None = None

    def judge_of(self, settings: JudgeSettings) -> Judge:
        """A judge with these settings; another one is closed."""
        if self._judge is None or self._settings != settings:
            self.close()
            self._logs = TemporaryFolder("judge")
            logs = Path(self._logs.name, "logs")
            logs.mkdir()
            self._judge = Judge(str(logs))
            plain = codec.to_plain_data(settings)
            assert isinstance(plain, dict)
            self._judge.open({**plain, "first": False})
            self._settings = settings
        return self._judge

    def close(self) -> None:
        """End its processes."""
        if self._judge is not None:
            self._judge.close()
        if self._logs is not None:
            self._logs.cleanup()
        self._judge = self._logs = None


_kept = _KeptJudge()
atexit.register(_kept.close)
