"""Judge kernels from a program, for correctness and speed, by the judge of `profkit evaluate`."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Sequence
from math import nan
from pathlib import Path
from types import TracebackType
from typing import Any

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
from profkit.kernels.evaluation.evaluator import Evaluator
from profkit.kernels.evaluation.judging.reference import FunctionOperation
from profkit.kernels.evaluation.request import JudgeSettings, PairOptions
from profkit.kernels.evaluation.sources.files import StringSource
from profkit.kernels.evaluation.sources.functions import is_running_file, request_function
from profkit.kernels.evaluation.sources.names import operation_name, with_imports
from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import NotationError, format_call
from profkit.kernels.evaluation.suites.op_tests import main_dtype
from profkit.kernels.evaluation.suites.suite import Arguments, Skip, make_test
from profkit.kernels.operations.in_float64 import flat_tensors
from profkit.reporting.facts import fact_text


def eval_correctness_test(op: Any, impl: Callable[..., Any] | str, test: Any) -> CorrectnessTestResult:
    """Test whether `impl` does what `op` does on the `args` and `kwargs` of a test.

    `impl` runs in a separate process, with its own copy of the arguments and a minute for a call; what is
    correct follows from the result in float64, and is written in the record's error message if it is not. See
    `eval_one_op` for what `op` and `impl` may be.
    """
    ((result,), _) = KernelTests(op, impl, (test,)).judge(PairOptions())
    return correctness_record(result)


def eval_performance(
    op: Any, impl: Callable[..., Any] | str, tests: Iterable[Any], *, budget: float = 1.0
) -> tuple[float, list[PerformanceTestResult]]:
    """Return how many times as fast as PyTorch `impl` is, as geometric mean over its tests, and a record of each.

    A test that is wrong, or fails, has no speed-up and is in no mean: NaN if none is left. `budget`: seconds of
    timing per test at most. See `eval_one_op`.
    """
    _, results = KernelTests(op, impl, (), tests).judge(PairOptions(budget))
    return mean_speedup(results), [performance_record(result) for result in results]


def eval_one_op(
    op: Any,
    impl: Callable[..., Any] | str,
    correctness_tests: Iterable[Any],
    performance_tests: Iterable[Any],
    *,
    budget: float = 1.0,
) -> tuple[float, float, list[CorrectnessTestResult], list[PerformanceTestResult]]:
    """Return (correctness score, performance score, correctness records, performance records) of a kernel.

    `op` is an overload of aten, or its name; or a function that gives what is right, which is called here in
    float64, too, and timed in another process. A test has `args` and `kwargs`, which are read once. `impl` is
    called in another process: a function at the top of a file (what the file does at its top is done there again,
    but not what is under `if __name__ == "__main__"`), one of a library, or the text of a file that defines
    `relu_kernel_impl`.

    The correctness score is the share of tests that passed, of those on which something can be decided. The
    performance score is the geometric mean of the speed-ups of correct tests; NaN if there is none. Kernels that
    use CUDA streams are tested like others.

    Raises UsageError for what is no operation and for a kernel that cannot be taken to another process.
    """
    tests = KernelTests(op, impl, correctness_tests, performance_tests)
    correctness, performance = tests.judge(PairOptions(budget))
    return (
        pass_share(correctness),
        mean_speedup(performance),
        [correctness_record(result) for result in correctness],
        [performance_record(result) for result in performance],
    )


def mean_speedup(results: Sequence[TestResult]) -> float:
    """Return the geometric mean of the speed-ups of tests that passed; NaN if there is none."""
    speedups = [result.speedup.median for result in results if result.speedup and result.status == "passed"]
    mean = geometric_mean(speedups)
    return nan if mean is None else mean


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {name: _on_cpu(item) for name, item in value.items()}
    return type(value)(map(_on_cpu, value)) if isinstance(value, (list, tuple)) else value


def refuse_while_loading() -> None:
    """Raise UsageError in the process that runs a file again to get a kernel of it."""
    if is_running_file():
        raise UsageError(
            "the file of a kernel evaluates it when it is run: so it does in the process that calls the kernel",
            'if __name__ == "__main__": around the evaluation',
        )


class KernelTests:
    """A kernel with its tests, as a suite for a judge. Tests are read once: some draw new values on each read.

    Raises UsageError for what is no operation, no test, and for a kernel that cannot be taken to another process.
    """

    def __init__(
        self,
        op: Any,
        impl: Callable[..., Any] | str,
        correctness: Iterable[Any] = (),
        performance: Iterable[Any] = (),
    ) -> None:
        refuse_while_loading()
        self._function = _function_of(op)
        self.operation = operation_name(op) if self._function is None else self._function.request.operation
        if self._function is not None and isinstance(impl, str):
            raise UsageError("a text is a kernel of an operation of PyTorch", "give the kernel as a function")
        self._source = request_function(impl, self.operation)
        self._tests: list[EvaluationTest] = []
        self._arguments: dict[str, Arguments | Skip] = {}
        self._on_cuda = False
        for test in correctness:
            self._add(test, timed=False)
        for test in performance:
            self._add(test, timed=True)

    def _add(self, test: Any, *, timed: bool) -> None:
        try:
            args, kwargs = tuple(test.args), dict(test.kwargs)
            call = describe_call(args, kwargs)
            text, dtype = format_call(call), main_dtype(call)
            arguments: Arguments | Skip = Arguments(_on_cpu(args), _on_cpu(kwargs))
        except Skip as why:  # of a suite: they cannot be made here
            args, kwargs, arguments = (), {}, why
            text, dtype = test.test.arguments, test.test.dtype
        except (AttributeError, TypeError) as error:
            raise UsageError(f"{test!r:.80} is not a test: {error}", "a test has args and kwargs") from error
        except NotationError as error:
            raise UsageError(f"a test of {self.operation} has {error}", "tensors and plain values") from error
        self._on_cuda |= any(tensor.is_cuda for tensor in flat_tensors([args, kwargs]))
        made = make_test("given", self.operation, dtype, text, len(self._tests), timed=timed)
        self._tests.append(made)
        self._arguments[made.id] = arguments

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:  # noqa: ARG002
        """Return the arguments as they were read, on the CPU; the judge copies them.

        Raises Skip if reading them did.
        """
        arguments = self._arguments[test.id]
        if isinstance(arguments, Skip):
            raise arguments
        return arguments

    def judge(self, timing: PairOptions) -> tuple[list[TestResult], list[TestResult]]:
        """Return the results of the correctness tests, and those of the performance tests."""
        with _kept.lock, torch.no_grad():
            threads = torch.get_num_threads()
            try:
                evaluator = _kept.evaluator_on("cuda:0" if self._on_cuda else "cpu")
                evaluator.use(self, self._source, self._function, timing)
                results = [evaluator.evaluate(test) for test in self._tests]
            finally:
                torch.set_num_threads(threads)  # a judge computes small truths on one
        timed = [result for result in results if result.test.timed]
        return [result for result in results if not result.test.timed], timed


def _function_of(op: Any) -> FunctionOperation | None:
    """Return a reference of the user's own; None for an operation of torch's, or what is none at all."""
    if isinstance(op, (str, torch._ops.OpOverload, torch._ops.OpOverloadPacket)) or not callable(op):
        return None
    return FunctionOperation(op, request_function(op, getattr(op, "__name__", type(op).__name__)))


class MultiprocessingEvaluator:
    """Evaluate many kernels: one that crashes, hangs or uses up the memory costs its test alone.

        with MultiprocessingEvaluator() as evaluator:
            evaluator.submit_task(torch.ops.aten.relu.default, my_relu, correctness_tests, performance_tests)
            evaluator.start_evaluation()
            for result in evaluator.get_results():
                print(result.task_id, result.correctness_score)

    Kernels run in a separate process, one after the other, whatever `num_workers` is: kernels that are timed
    side by side disturb each other. `budget` is seconds of timing per test.
    """

    def __init__(self, num_workers: int = 1, *, budget: float = 1.0) -> None:
        if num_workers < 1:
            raise UsageError(f"{num_workers} workers cannot do anything", "num_workers=1")
        refuse_while_loading()
        self._timing = PairOptions(budget)
        self._tasks: list[KernelTests] = []
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
        """Add a task and return its number, from 0. Tests are read here, once, and are not changed.

        Raises UsageError for what is no operation, no test, or a kernel that cannot be taken to another process.
        """
        self._tasks.append(KernelTests(op, impl, correctness_tests, performance_tests))
        return len(self._tasks) - 1

    def start_evaluation(self) -> None:
        """Do all tasks that have not been done, and return when they are done."""
        for number, task in [*enumerate(self._tasks)][len(self._results) :]:
            self._results.append(self._do(number, task))

    def get_results(self) -> list[EvalResult]:
        """Return a result for every task, in the order of submission.

        Those that were not started are done first. A test whose kernel crashed or hung is a test that failed. `error`
        says why a task could not be done at all.
        """
        self.start_evaluation()
        return list(self._results)

    def _do(self, number: int, task: KernelTests) -> EvalResult:
        try:
            correctness, performance = task.judge(self._timing)
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
        """Test whether the text's `relu_kernel_impl` passes its tests, at least one.

        Return that and the feedback. A text that is no Python, or lacks the function, has a `compilation_error`.
        Raises UsageError for what is no operation, and for what is no test.
        """
        kernel_code = with_imports(kernel_code)  # as its file has it, so that lines have its numbers
        results, _ = KernelTests(op, kernel_code, test_cases).judge(self._timing)
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
        """Return the geometric mean of the speed-ups over PyTorch, NaN if there is none.

        And a record of each test. Raises what `test_kernel_correctness` raises.
        """
        _, results = KernelTests(op, kernel_code, (), performance_tests).judge(self._timing)
        return mean_speedup(results), [performance_record(result) for result in results]


def _file_name(op: Any, kernel_code: str) -> str:
    """Return the name of the text's file in tracebacks."""
    operation = operation_name(op)
    source = StringSource(kernel_code, operation)
    return Path(source.where(operation)).name if source.has_kernel(operation) else KERNEL_FILE


class _KeptEvaluator:
    """The last evaluator: its processes need seconds to start, and serve all tests of a kernel."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._device = ""
        self._evaluator: Evaluator | None = None
        self._logs: TemporaryFolder | None = None

    def evaluator_on(self, device: str) -> Evaluator:
        """Return an evaluator on this device; an evaluator on another device is closed."""
        if self._evaluator is None or self._device != device:
            self.close()
            self._logs = TemporaryFolder("judge")
            logs = Path(self._logs.name, "logs")
            logs.mkdir()
            self._evaluator = Evaluator(str(logs))
            plain = codec.to_plain_data(JudgeSettings(device=device))
            assert isinstance(plain, dict)
            self._evaluator.open({**plain, "first": False})
            self._device = device
        return self._evaluator

    def close(self) -> None:
        """End its processes."""
        if self._evaluator is not None:
            self._evaluator.close()
        if self._logs is not None:
            self._logs.cleanup()
        self._evaluator = self._logs = None


_kept = _KeptEvaluator()
atexit.register(_kept.close)
