"""Many kernels from a program, each test with exactly one outcome whatever the kernel does."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import torch

from profkit.core.errors import ProfkitError, UsageError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.progress import Silent
from profkit.core.types import TestResult
from profkit.evaluation.judging import (
    FixedTest,
    fix_test,
    mean_speedup,
    refuse_while_loading,
)
from profkit.evaluation.records import EvalResult, correctness_record, pass_share, performance_record
from profkit.kernels.evaluation.request import (
    SEED_BITS,
    EvaluationRequest,
    JudgeSettings,
    PairOptions,
)
from profkit.kernels.evaluation.run import run_evaluation
from profkit.kernels.evaluation.sources.functions import request_function, request_functions
from profkit.kernels.evaluation.sources.names import operation_name
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.user_file import OpTestSuite

_SUITE = """from pathlib import Path

from profkit.evaluation.evaluator import read_tests

SUITE = read_tests(Path(__file__).with_suffix(".pt"))
"""


@dataclass(frozen=True)
class Task:
    """A kernel and its tests."""

    number: int
    operation: str
    source: SourceRequest
    correctness_tests: Sequence[FixedTest]
    performance_tests: Sequence[FixedTest]


class MultiprocessingEvaluator:
    """Evaluate kernels in processes of their own: one that crashes, hangs or eats the memory costs its test alone.

        with MultiprocessingEvaluator() as evaluator:
            evaluator.submit_task(torch.ops.aten.relu.default, my_relu, correctness_tests, performance_tests)
            evaluator.start_evaluation()
            for result in evaluator.get_results():
                print(result.task_id, result.correctness_score)

    One judge works on a device at a time, since kernels that are timed beside each other disturb each other:
    `num_workers` is how many there may be at most: one for each GPU where tests are on CUDA, else one. `budget` is
    seconds of timing per test, `timeout` seconds of one call.
    """

    def __init__(self, num_workers: int = 1, *, budget: float = 1.0, timeout: float = 60.0) -> None:
        if num_workers < 1:
            raise UsageError(f"{num_workers} workers cannot do anything", "num_workers=1")
        refuse_while_loading()
        self._timing, self._timeout, self._workers = PairOptions(budget), timeout, num_workers
        self._tasks: list[Task] = []
        self._results: dict[int, EvalResult] = {}
        self._folder = TemporaryFolder("evaluator")

    def __enter__(self) -> MultiprocessingEvaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

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
        operation = operation_name(op)
        task = Task(
            len(self._tasks),
            operation,
            request_function(impl, operation),
            [fix_test(test) for test in correctness_tests],
            [fix_test(test) for test in performance_tests],
        )
        self._tasks.append(task)
        return task.number

    def start_evaluation(self) -> None:
        """Do all tasks that have not been done; it returns when they are done. Raises Interrupted after a Ctrl-C."""
        for batch in make_rounds([task for task in self._tasks if task.number not in self._results]):
            self._do(batch)

    def get_results(self) -> list[EvalResult]:
        """A result for every task, in the order they were submitted; those that were not started are done first.

        A test whose kernel crashed or hung is a test that failed. `error` says why a task could not be done at all.
        """
        self.start_evaluation()
        return [self._results[task.number] for task in self._tasks]

    def _do(self, tasks: Sequence[Task]) -> None:
        folder = Path(self._folder.name, f"round-{len(self._results)}")
        folder.mkdir()
        torch.save(
            [
                (
                    task.operation,
                    [(test.args, test.kwargs, test.on_cuda, test.skip) for test in task.correctness_tests],
                    [(test.args, test.kwargs, test.on_cuda, test.skip) for test in task.performance_tests],
                )
                for task in tasks
            ],
            folder / "suite.pt",
        )
        (folder / "suite.py").write_text(_SUITE)
        tests = [test for task in tasks for test in (*task.correctness_tests, *task.performance_tests)]
        on_cuda = any(test.on_cuda for test in tests)
        settings = JudgeSettings(
            suite=str(folder / "suite.py"),
            source=request_functions([task.source for task in tasks]),
            operations=tuple(task.operation for task in tasks),
            correctness_only=not any(task.performance_tests for task in tasks),
            timeout=self._timeout,
            seed=secrets.randbits(SEED_BITS),
            timing=self._timing,
            device="cuda:0" if on_cuda else "cpu",
        )
        workers = min(self._workers, torch.cuda.device_count()) if on_cuda else 1
        gpus = tuple(map(str, range(workers))) if workers > 1 else ()
        results: Sequence[TestResult] = ()
        error = None
        with_tests = any(task.correctness_tests or task.performance_tests for task in tasks)
        try:
            if with_tests:
                request = EvaluationRequest(settings, folder, "functions", gpus=gpus)
                results = run_evaluation(request, Silent()).results
        except ProfkitError as fault:
            if fault.exit_code == 130:
                raise
            error = fault.message
        for place, task in enumerate(tasks):
            own = [result for result in results if _place_of(result) == place]
            self._results[task.number] = _make_result(task, own, error)


def make_rounds(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks in rounds, in their order: a source has one kernel for an operation, so a round has it once."""
    rounds: list[list[Task]] = []
    for task in tasks:
        for batch in rounds:
            if task.operation not in [each.operation for each in batch]:
                batch.append(task)
                break
        else:
            rounds.append([task])
    return rounds


def _place_of(result: TestResult) -> int:
    source: Any = result.test.source
    return int(source["object"])


def _make_result(task: Task, results: Sequence[TestResult], error: str | None) -> EvalResult:
    correctness = [result for result in results if not result.test.timed]
    performance = [result for result in results if result.test.timed]
    return EvalResult(
        task.number,
        pass_share(correctness or performance),
        mean_speedup(performance),
        [correctness_record(result) for result in correctness],
        [performance_record(result) for result in performance],
        error,
    )


def read_tests(file: Path) -> OpTestSuite:
    """The tests that an evaluator left in a file of its own."""
    saved = torch.load(file, weights_only=False)
    return OpTestSuite(
        "given",
        tuple(
            SimpleNamespace(
                op=operation,
                correctness_tests=[FixedTest(*each) for each in correctness],
                performance_tests=[FixedTest(*each) for each in performance],
            )
            for operation, correctness, performance in saved
        ),
    )
