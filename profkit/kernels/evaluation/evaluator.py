"""The evaluator: it has each test of a suite run, and hands what was observed to the judge for its verdict.

It is the handler of a worker of a pool, and runs two processes of its own: the candidate, which has the kernels, and
the baseline, which has PyTorch's. Arguments, expected results, the clock and the decision stay in this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from profkit.core import codec
from profkit.core.errors import MachineError, UsageError
from profkit.core.process import adopt_orphans
from profkit.core.types import EvaluationTest, Fact, Json, MeasuredCeilings, TestResult
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.devices import JudgedDevice, find_device
from profkit.kernels.evaluation.judging.judge import (
    BaselineFailed,
    CallWork,
    DeviceReport,
    Judge,
    MachineLimits,
    TracedLaunches,
    Unverified,
)
from profkit.kernels.evaluation.judging.reference import FunctionOperation
from profkit.kernels.evaluation.request import WAIT_POLICY, JudgeSettings, PairOptions, note_started
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import describe_operation
from profkit.kernels.evaluation.sources.source import KernelSource, SourceRequest
from profkit.kernels.evaluation.suites.find import find_suite
from profkit.kernels.evaluation.suites.suite import Selection, Skip, is_file, names_it
from profkit.kernels.evaluation.timing import PairTimer, start_alike
from profkit.kernels.evaluation.trial import Trial, use_threads
from profkit.kernels.evaluation.worker.arguments import KernelError
from profkit.kernels.evaluation.worker.connection import WorkerConnection
from profkit.kernels.evaluation.worker.isolation import shield
from profkit.kernels.evaluation.worker.worker import Worker
from profkit.kernels.sweep.device import describe_device

TRACED_CALLS = 8
MAX_NAMED = 12  # operations whose kernels no test calls
_SHARED = ("/tmp", "/var/tmp", "/")  # folders of everybody: what lies there is compared with nothing


class Evaluator:
    """Evaluates one test after the other; `logs` is the folder for what kernels print.

    `patient`: it was started with OMP_WAIT_POLICY=passive, so that its threads do not disturb timed calls by
    waiting busily; the processes of kernels do not inherit that.
    """

    def __init__(self, logs: str, number: int = 0, patient: bool = False) -> None:
        if patient:
            os.environ.pop(WAIT_POLICY, None)
        self._logs, self._number = Path(logs), number
        self._kept: tuple[Path, ...] = (_own_folder(self._logs.parent),)
        self._suite: Any = None
        self._settings = JudgeSettings()
        self._source: KernelSource | None = None
        self._candidate: Worker | None = None
        self._baseline: Worker | None = None
        self._tracer: Worker | None = None  # the candidate's kernels once more, on a device
        self._device: JudgedDevice = JudgedDevice()
        self._machine = MachineLimits()
        self._function: FunctionOperation | None = None
        self._threads = 1

    def open(self, settings: dict[str, Any]) -> Json:
        """Start both processes. The first worker also lists the tests, and measures the device's ceilings.

        A setting that makes no sense is returned as `usage`: a message, and what to type instead.
        """
        first = bool(settings.pop("first"))
        try:
            about = self._open(settings)
            return about | self._describe() if first else about
        except UsageError as error:
            return {"usage": [error.message, error.fix]}

    def _open(self, settings: dict[str, Any]) -> dict[str, Json]:
        """Apply the settings and start the processes; return the device and the versions."""
        adopt_orphans()
        shield()
        self._settings = codec.from_plain_data(JudgeSettings, settings)
        chosen = self._settings
        if chosen.threads:
            torch.set_num_threads(chosen.threads)
        torch.set_grad_enabled(False)
        self._threads = torch.get_num_threads()
        self._device = find_device(chosen.device)
        path = Path(chosen.suite_path) if chosen.suite_path else None
        # A kernel that lies beside the user's tests must not write those of the next evaluation.
        if path is not None and is_file(chosen.suite):
            self._kept += (path,)
        self._suite = find_suite(chosen.suite, path, device=self._device.device.type, seed=chosen.seed)
        self._machine = MachineLimits(
            on_gpu=self._device.device.type == "cuda",
            units=self._device.units,
            cached_bytes=0 if chosen.correctness_only else self._device.cached_bytes(),
            has_gpu=torch.cuda.is_available(),
        )
        self._candidate = self._make_worker(chosen.source, "candidate", kept=self._kept)
        self._baseline = self._make_worker(SourceRequest("aten"), "reference")
        self._make_tracer(chosen.source)
        described = describe_device(self._device.device)
        return {"device": described["device"], "versions": described["versions"]}

    def _describe(self) -> dict[str, Json]:
        """Return the tests, and what else an evaluation needs once."""
        chosen, source = self._settings, self._open_source()
        tests, without = self._list_tests(Selection(chosen.operations, chosen.dtype))
        about: dict[str, Json] = {
            "tests": codec.to_plain_data(tests),
            "without_kernel": list(without),
            "notes": codec.to_plain_data((*source.remarks(), *self._without_test(source, tests))),
        }
        if chosen.describe:
            names = dict.fromkeys(test.operation for test in tests)
            about["described"] = [codec.to_plain_data(describe_operation(name)) for name in names]
        if not chosen.correctness_only:
            about["ceilings"] = codec.to_plain_data(self._device.measure_ceilings())
        return about

    def _without_test(self, source: KernelSource, tests: Sequence[EvaluationTest]) -> Iterator[Fact]:
        """Yield a note of the user's own kernels that no test calls, where all operations were wanted."""
        chosen = self._settings
        if chosen.operations or chosen.source.kind not in ("file", "directory"):
            return
        tested = {test.operation.partition(".")[0] for test in tests}
        # By name alone: a kernel of relu is one of relu.out as well, which few suites call.
        left = sorted({name.partition(".")[0] for name in source.operations()} - tested)
        if left:
            more = "" if chosen.suite == "opinfo" else "; --suite opinfo has more operations"
            names = ", ".join(left[:MAX_NAMED])
            rest = f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
            yield Fact.of("kernels-without-test", suite=chosen.suite, names=names + rest, more=more)

    def use(
        self,
        suite: Any,
        source: SourceRequest,
        function: FunctionOperation | None = None,
        timing: PairOptions | None = None,
    ) -> None:
        """Judge the tests of another suite, and other kernels where the source differs; called after `open`.

        `function` is the reference in place of PyTorch's own operations.
        """
        self._suite = suite
        self._settings = replace(self._settings, timing=timing or self._settings.timing)
        before, request = self._function and self._function.request, function and function.request
        self._function = function
        if request != before:
            if self._baseline is not None:
                self._baseline.close()
            self._baseline = self._make_worker(request or SourceRequest("aten"), "reference")
        if source != self._settings.source:
            if self._candidate is not None:
                self._candidate.close()
            self._settings, self._source = replace(self._settings, source=source), None
            self._candidate = self._make_worker(source, "candidate", kept=self._kept)
            self._make_tracer(source)

    def run(self, data: Any) -> Json:
        """Return the result of one test as plain data. `data` may name other kernels than `open` did."""
        if data.get("source"):
            self.use(self._suite, codec.from_plain_data(SourceRequest, data["source"]))
        if data.get("ceilings"):
            ceilings = codec.from_plain_data(dict[str, MeasuredCeilings], data["ceilings"])
            self._machine = replace(self._machine, ceilings=ceilings)
        result = self.evaluate(codec.from_plain_data(EvaluationTest, data["test"]))
        self._device.check()
        return codec.to_plain_data(result)

    def evaluate(self, test: EvaluationTest) -> TestResult:
        """Run a test and return its one result."""
        begin = perf_counter()
        use_threads(1)  # of small arguments more of them would rather wait for each other than compute
        result = TestResult(test, "skipped")
        try:
            trial = self._make_trial(test)
        except Exception as error:
            whose = "PyTorch" if self._function is None else "the reference"
            result = self._judge.undecidable(result, error, whose)
        else:
            result = self._run(trial, replace(result, remarks=trial.reference.remarks))
            self._release(trial.call_bytes)
        return replace(result, spent=perf_counter() - begin)

    @property
    def _judge(self) -> Judge:
        """Return a judge by the present settings."""
        return Judge(self._settings.timing, self._machine, threads=self._settings.threads)

    def close(self) -> None:
        """End all processes."""
        for worker in (self._candidate, self._baseline, self._tracer):
            if worker is not None:
                worker.close()
        self._device.close()

    def _release(self, call_bytes: int) -> None:
        """Release the memory that a large test leaves in the processes' allocators: the next one may need it."""
        if not self._device.is_large(call_bytes):
            return
        for worker in filter(None, (self._candidate, self._baseline, self._tracer)):
            try:
                worker.release()
            except (KernelError, WorkerEnded):
                worker.kill()

    def _list_tests(self, selection: Selection) -> tuple[tuple[EvaluationTest, ...], tuple[str, ...]]:
        """Return the tests, and the operations that have none because there is no kernel for them.

        An operation that was wanted by name stays: its kernel is missing.
        """
        only = set(self._settings.only)
        tests = [test for test in self._suite.tests(selection) if not only or test.id in only]
        missing = {test.operation for test in tests if not self._has_kernel(test.operation)}
        left = tuple(test for test in tests if test.operation not in missing)
        return left, tuple(sorted(missing))

    def _has_kernel(self, operation: str) -> bool:
        """Return whether the source has a kernel, by names alone: no file of kernels is run here.

        An operation that was wanted by name counts as there.
        """
        if any(names_it(wanted, operation) for wanted in self._settings.operations):
            return True
        return self._open_source().has_kernel(operation)

    def _open_source(self) -> KernelSource:
        """Return the source of the kernels, opened once."""
        if self._source is None:
            self._source = open_source(self._settings.source)
        return self._source

    def _make_trial(self, test: EvaluationTest) -> Trial:
        """Make the test concrete. Raises what `Trial` raises, and Skip where its arguments are too large to share."""
        seed = self._settings.seed_of(test.id)
        trial = Trial(self._suite, test, seed, self._device, self._threads, self._function)
        needed = trial.recipe.slot_bytes
        if self._candidate is not None and needed > (room := self._candidate.memory.size):
            raise Skip(Fact.of("no-shared-room", needed=needed, room=room))
        return trial

    def _run(self, trial: Trial, result: TestResult) -> TestResult:
        """Load the kernel, check it, time it, and return the result with its status."""
        candidate, baseline, judge, test = self._candidate, self._baseline, self._judge, trial.test
        assert candidate is not None
        assert baseline is not None
        is_loaded = False
        try:
            # From here on the kernel may end even this process: then the test counts, and is not tried again.
            note_started(self._logs, self._number, test.id)
            if not self._settings.correctness_only:
                start_alike(candidate, baseline)  # while no kernel is loaded that could influence it
            candidate.load(test.operation)
            is_loaded = True
            result = judge.passed(result, trial.check(candidate))
            if test.timed and not self._settings.correctness_only and trial.can_be_timed:
                result = self._time(trial, result, candidate, baseline)
        except Exception as error:
            if isinstance(error, WorkerEnded):
                candidate.kill()
            result = judge.failed(result, error, loading=not is_loaded)
        return result

    def _time(self, trial: Trial, result: TestResult, candidate: Worker, baseline: Worker) -> TestResult:
        """Time a right kernel and return the result with speed-up, bounds and remarks. Raises Cheat."""
        judge = self._judge
        fresh = trial.choose_values()
        if fresh is None:
            return replace(result, remarks=(*result.remarks, Fact("same-for-other-values")))
        timer = PairTimer(trial, fresh, candidate, baseline, self._device, self._settings, judge)
        try:
            times, unconfirmed = timer.measure()
        except (BaselineFailed, Unverified) as why:
            return judge.untimed(result, why)
        device = DeviceReport((*unconfirmed, *self._device.remarks()), self._device.find_early_work())
        work = CallWork(trial.bytes, trial.bytes_written, trial.count_flops(), trial.test.dtype)
        return judge.timed(result, times, work, device, self._trace(trial))

    def _trace(self, trial: Trial) -> TracedLaunches | None:
        """Return what the kernel launches on the device; None where nothing is traced."""
        tracer = self._tracer
        if tracer is None:
            return None
        try:
            tracer.load(trial.test.operation)
            return TracedLaunches(tuple(trial.trace(tracer, TRACED_CALLS)))
        except (KernelError, WorkerEnded, MachineError) as error:
            tracer.kill()
            return TracedLaunches(unknown=str(error))

    def _make_tracer(self, source: SourceRequest) -> None:
        """Start, on a device, the process that shows which kernels are launched; PyTorch's own need none."""
        if self._tracer is not None:
            self._tracer.close()
        traces = self._device.device.type == "cuda" and source.kind != "aten"
        self._tracer = self._make_worker(source, "tracer", kept=self._kept) if traces else None

    def _make_worker(self, source: SourceRequest, name: str, kept: Sequence[Path] = ()) -> Worker:
        """Make a worker with the kernels of that source, with its own log."""
        log = self._logs / f"{name}-{self._number}.log"
        connection = WorkerConnection(
            source,
            self._device.make_memory(),
            threads=self._settings.threads,
            timeout=self._settings.timeout,
            log=log,
            kept=kept,
        )
        return Worker(connection)


def _own_folder(evaluation: Path) -> Path:
    """Return the folder that kernels must not write to.

    That is the evaluation's, or its parent where other evaluations, to which it will be compared, lie beside it.
    """
    shared = evaluation.parent.resolve() in map(Path, _SHARED)
    return evaluation.parent if not shared and any(evaluation.parent.glob("*/run.json")) else evaluation
