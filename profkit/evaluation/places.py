"""Run code where a configuration says: in processes here, or on a GPU at another place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core.errors import Silent, UsageError
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.types import TestResult
from profkit.evaluation.judging import eval_one_op, mean_speedup
from profkit.evaluation.records import (
    CorrectnessTestResult,
    PerformanceTestResult,
    correctness_record,
    pass_share,
    performance_record,
)
from profkit.evaluation.suites import SuiteTest
from profkit.execution.places.files import Sending
from profkit.execution.places.kinds import ExecutionPlace, parse_places
from profkit.kernels.evaluation.request import PairOptions, make_request
from profkit.kernels.evaluation.run import run_evaluation
from profkit.kernels.evaluation.sources.names import operation_name
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.op_tests import OpTest
from profkit.kernels.places import PlaceSlots

# What Modal calls each: of the A100 it has two, of which the guides mean the larger one.
GPUS = {
    "T4": "T4",
    "L4": "L4",
    "A100": "A100-80GB",
    "H100": "H100",
    "H200": "H200",
    "B200": "B200",
}
Scores = tuple[float, float, list[CorrectnessTestResult], list[PerformanceTestResult]]


@dataclass(frozen=True)
class EvaluatorConfig:
    """Where code is evaluated: `local`, a GPU rented from Modal, or another place as in `--on` (`ssh:HOST`).

    Raises UsageError for what is no place.
    """

    gpu: str = "T4"

    def __post_init__(self) -> None:
        _ = self.place

    @property
    def place(self) -> ExecutionPlace:
        """Return the place. Raises UsageError for what is none."""
        text = f"modal:{GPUS[self.gpu]}" if self.gpu in GPUS else self.gpu
        if text != "local" and ":" not in text:
            raise UsageError(
                f"there is no GPU called {text!r} here", f"one of local, {', '.join(GPUS)}; or ssh:HOST"
            )
        places = parse_places([text])
        if len(places) != 1:
            raise UsageError(f"{text} is more than one place", "one evaluator for each")
        return places[0]


class CodeEvaluator:
    """Evaluate texts of kernels where the configuration says.

        evaluator = CodeEvaluator(EvaluatorConfig("local"))
        for op_test in open_suite("smoke", ops="relu"):
            score, speedup, correctness, performance = evaluator.run_code(op_test, code)

    Here evaluations wait for each other. Elsewhere the name of the suite, the ids of the tests and the text
    travel, and each call has a machine of its own: `await asyncio.to_thread(evaluator.run_code, op_test, code)`
    for several at once. `device` is the one there; `budget` is seconds of timing per test; `python` the one
    there, else the first that is found.
    """

    def __init__(
        self,
        config: EvaluatorConfig | None = None,
        *,
        device: str = "cuda",
        budget: float = 1.0,
        python: str | None = None,
    ) -> None:
        config = config or EvaluatorConfig()
        self._gpu, self._place = config.gpu, config.place
        self._device, self._budget, self._python = device, budget, python

    @property
    def is_modal(self) -> bool:
        """Return whether it runs at Modal."""
        return self._place.kind == "modal"

    def run_code(self, op_test: Any, code: str) -> Scores:
        """Return what `eval_one_op` returns, for the kernel that the text defines (`relu_kernel_impl`).

        Raises UsageError for tests that cannot travel, MachineError if the place is not reached or lost.
        """
        if self._place.is_local:
            tests = op_test.correctness_tests, op_test.performance_tests
            return eval_one_op(op_test.op, code, *tests, budget=self._budget)
        results = self._run_there(op_test, code)
        performance = [result for result in results if result.test.timed]
        return (
            pass_share(results),
            mean_speedup(performance),
            list(map(correctness_record, results)),
            list(map(performance_record, performance)),
        )

    def _run_there(self, op_test: OpTest, code: str) -> Sequence[TestResult]:
        tests = [*op_test.correctness_tests, *op_test.performance_tests]
        if not tests or not all(isinstance(test, SuiteTest) for test in tests):
            raise UsageError(
                f"tests go to {self._place.title} by the name of their suite",
                'an operation of open_suite("smoke"), open_suite("FILE.py")',
            )
        suite_settings, operation = tests[0].settings, operation_name(op_test.op)
        settings = replace(
            suite_settings,
            source=SourceRequest("source", text=code, operation=operation),
            operations=(operation,),
            only=tuple(dict.fromkeys(test.test.id for test in tests)),
            device=self._device,
            timing=PairOptions(self._budget),
        )
        with TemporaryFolder("evaluator") as folder:
            request = make_request(settings, Path(folder), elsewhere=True)
            request = replace(request, settings=replace(request.settings, seed=suite_settings.seed))
            slots = PlaceSlots((self._place,), Sending(python=self._python))
            return run_evaluation(request, Silent(), elsewhere=slots).results
