"""The judge: a worker that owns arguments, truth, clock and decision, and gives each test exactly one status.

It runs two processes of its own: the candidate, which has the kernels, and the reference, which has
PyTorch's.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from profkit.analysis.evaluation.witnesses import (
    assess_own_kernels,
    describe_host_time,
    describe_witnesses,
    kept_bound,
)
from profkit.core import codec
from profkit.core.errors import MachineError, UsageError
from profkit.core.process import adopt_orphans
from profkit.core.types import (
    EvaluationTest,
    Fact,
    Json,
    MeasuredCeilings,
    TestResult,
    TestStatus,
)
from profkit.execution.child import JobStatus, WorkerEnded
from profkit.kernels.evaluation.candidate.arguments import KernelError
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.confinement import shield
from profkit.kernels.evaluation.candidate.devices import JudgedDevice, find_device
from profkit.kernels.evaluation.judging.pairs import ReferenceFailed, Unverified
from profkit.kernels.evaluation.judging.reference import FunctionOperation
from profkit.kernels.evaluation.judging.trial import (
    Cheat,
    Trial,
    TrialTimer,
    start_alike,
    use_threads,
)
from profkit.kernels.evaluation.request import WAIT_POLICY, JudgeSettings, PairOptions, note_started
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import describe_operation
from profkit.kernels.evaluation.sources.source import KernelSource, SourceRequest
from profkit.kernels.evaluation.suites.find import find_suite
from profkit.kernels.evaluation.suites.suite import Selection, Skip, is_file, names_it
from profkit.kernels.operations.check import Errors, Incorrect
from profkit.kernels.operations.definitions import FactError
from profkit.kernels.sweep.device import describe_device

STATUSES: dict[JobStatus, TestStatus] = {
    JobStatus.crash: "crashed",
    JobStatus.timeout: "timeout",
    JobStatus.out_of_memory: "out-of-memory",
}
TRACEBACK = 4000  # characters
TRACED_CALLS = 8
MAX_NAMED = 12  # operations whose kernels no test calls
_SHARED = ("/tmp", "/var/tmp", "/")  # folders of everybody: what lies there is compared with nothing


class Judge:
    """The handler of a judge worker; `logs` is the folder for what kernels print.

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
        self._candidate: KernelProcess | None = None
        self._reference: KernelProcess | None = None
        self._tracer: KernelProcess | None = None  # the candidate's kernels once more, on a device
        self._device: JudgedDevice = JudgedDevice()
        self._roofs: dict[str, MeasuredCeilings] = {}  # by dtype, "" for all others
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
        if path is not None and is_file(
            chosen.suite
        ):  # a kernel beside it must not write the next judge's tests
            self._kept += (path,)
        self._suite = find_suite(chosen.suite, path, device=self._device.device.type, seed=chosen.seed)
        self._candidate = self._process(chosen.source, "candidate", kept=self._kept)
        self._reference = self._process(SourceRequest("aten"), "reference")
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
            if self._reference is not None:
                self._reference.close()
            self._reference = self._process(request or SourceRequest("aten"), "reference")
        if source != self._settings.source:
            if self._candidate is not None:
                self._candidate.close()
            self._settings, self._source = replace(self._settings, source=source), None
            self._candidate = self._process(source, "candidate", kept=self._kept)
            self._make_tracer(source)

    def run(self, data: Any) -> Json:
        """Return the result of one test as plain data. `data` may name other kernels than `open` did."""
        if data.get("source"):
            self.use(self._suite, codec.from_plain_data(SourceRequest, data["source"]))
        if data.get("ceilings"):
            self._roofs = codec.from_plain_data(dict[str, MeasuredCeilings], data["ceilings"])
        result = self.judge(codec.from_plain_data(EvaluationTest, data["test"]))
        self._device.check()
        return codec.to_plain_data(result)

    def judge(self, test: EvaluationTest) -> TestResult:
        """Judge a test and return its one result."""
        begin = perf_counter()
        use_threads(1)
        result = TestResult(test, "skipped")
        try:
            trial = self._make_trial(test)
        except FactError as why:
            result = replace(result, reason=why.reason)
        except LookupError as why:
            result = replace(result, reason=Fact.message(str(why)))
        except Exception as error:
            whose = "PyTorch" if self._function is None else "the reference"
            result = replace(result, reason=Fact.of("fails-itself", _message(error), name=whose))
        else:
            result = replace(result, remarks=trial.reference.remarks)
            result = self._judge_safely(trial, result)
            self._release(trial.call_bytes)
        return replace(result, spent=perf_counter() - begin)

    def close(self) -> None:
        """End all processes."""
        for process in (self._candidate, self._reference, self._tracer):
            if process is not None:
                process.close()
        self._device.close()

    def _release(self, call_bytes: int) -> None:
        """Release the memory that a large test leaves in the processes' allocators: the next one may need it."""
        if not self._device.is_large(call_bytes):
            return
        for process in filter(None, (self._candidate, self._reference, self._tracer)):
            try:
                process.release()
            except (KernelError, WorkerEnded):
                process.kill()

    def _judge_safely(self, trial: Trial, result: TestResult) -> TestResult:
        """Judge a trial so that a fault of profkit's own costs one test, and is not held against the kernel."""
        try:
            return self._judge(trial, result)
        except MachineError as fault:
            said = f"{fault.message}; {fault.fix or ''}".rstrip("; ")
            return replace(result, status="lost", reason=Fact.message(said))
        except Exception as error:
            text = "".join(traceback.format_exception(error))[-TRACEBACK:]
            reason = Fact.of("not-judged", _message(error))
            return replace(result, status="lost", reason=reason, traceback=text)

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

    def _judge(self, trial: Trial, result: TestResult) -> TestResult:
        """Load the kernel, check it, time it, and return the result with its status."""
        test = trial.test
        assert self._candidate is not None
        assert self._reference is not None
        note_started(self._logs, self._number, test.id)
        if not self._settings.correctness_only:
            start_alike(self._candidate, self._reference)
        try:
            self._candidate.load(test.operation)
        except KernelError as error:
            return _raised(result, error, "load-error")
        except WorkerEnded as ended:
            return _ended(self._candidate, result, ended)
        try:
            result = _with_errors(replace(result, status="passed"), trial.check(self._candidate))
            if test.timed and not self._settings.correctness_only and trial.can_be_timed:
                result = self._time(trial, result)
            return result
        except Incorrect as wrong:
            result = replace(result, status="incorrect", fault=wrong.fault, reason=wrong.reason)
            return _with_errors(result, wrong.errors)
        except Cheat as cheat:
            return replace(_without_times(result), status="cheat", reason=cheat.reason)
        except KernelError as error:
            return _raised(_without_times(result), error, "out-of-memory" if error.memory else "incorrect")
        except WorkerEnded as ended:
            return _ended(self._candidate, _without_times(result), ended)

    def _time(self, trial: Trial, result: TestResult) -> TestResult:
        """Time a correct kernel and return the result with speed-up, bounds and remarks. Raises Cheat."""
        candidate, reference = self._candidate, self._reference
        assert candidate is not None
        assert reference is not None
        fresh = trial.choose_values()
        if fresh is None:
            return replace(result, remarks=(*result.remarks, Fact("same-for-other-values")))

        timer = TrialTimer(trial, fresh, candidate, self._device, self._settings)
        try:
            timer.begin(reference)
            times, unconfirmed = timer.confirm(timer.time(reference), reference)
            said = (*unconfirmed, *self._device.remarks())
            if early := self._device.find_early_work():
                raise Cheat(early)
        except ReferenceFailed as failed:
            why = Fact.of("fails-itself", Fact.message(str(failed)), name="PyTorch")
            return replace(result, remarks=(*result.remarks, Fact.of("not-timed", why)))
        except Unverified as unknown:
            return replace(result, remarks=(*result.remarks, Fact.of("not-timed", unknown.reason)))
        if rate := self._device.impossible_rate(trial.bytes_written, times.whole_seconds):
            raise Cheat(rate)
        bytes_, flops = trial.bytes, trial.count_flops()
        bound = self._least_seconds(bytes_, flops, trial.test.dtype)
        threads = (
            (times.threads, times.reference_threads) if self._device.device.type == "cpu" else (0.0, 0.0)
        )
        witnesses = describe_witnesses(times.seconds, bound, *threads, self._settings.threads)
        remarks = (*result.remarks, *((Fact("busy-machine"),) if times.disturbed else ()), *witnesses)
        own_share, own = self._trace(trial)
        host = describe_host_time(times.seconds, times.launch_seconds)
        return replace(
            result,
            own_share=own_share,
            speedup=times.speedup,
            seconds=times.seconds,
            reference_seconds=times.reference_seconds,
            verified=times.verified,
            remarks=(*remarks, *said, *filter(None, (own, host))),
            bytes=float(bytes_),
            flops=flops,
            bound_seconds=kept_bound(bound, times.seconds, times.reference_seconds),
        )

    def _trace(self, trial: Trial) -> tuple[float | None, Fact | None]:
        """Return the share of the device's time in kernels of the candidate's own, and a remark about it."""
        tracer = self._tracer
        if tracer is None:
            return None, None
        try:
            tracer.load(trial.test.operation)
            own = assess_own_kernels(trial.trace(tracer, TRACED_CALLS))
        except (KernelError, WorkerEnded, MachineError) as error:
            tracer.kill()
            return None, Fact.of("unknown-launches", Fact.message(str(error)))
        return (own.share, own.remark) if own is not None else (None, Fact("nothing-ran"))

    def _make_tracer(self, source: SourceRequest) -> None:
        """Start, on a device, the process that shows which kernels are launched; PyTorch's own need none."""
        if self._tracer is not None:
            self._tracer.close()
        traces = self._device.device.type == "cuda" and source.kind != "aten"
        self._tracer = self._process(source, "tracer", kept=self._kept) if traces else None

    def _least_seconds(self, bytes_: int, flops: float | None, dtype: str) -> float | None:
        """Return the seconds that the hardware needs at least, by arithmetic and by memory; None if unknown.

        Memory counts only where no cache holds that many bytes.
        """
        roofs = self._roofs.get(dtype, self._roofs.get("", MeasuredCeilings()))
        by_flops = flops / roofs.flops if flops and roofs.flops else 0.0
        is_cached = bytes_ <= self._device.cached_bytes()
        by_bytes = bytes_ / roofs.bandwidth if roofs.bandwidth and not is_cached else 0.0
        return max(by_flops, by_bytes) or None

    def _process(self, source: SourceRequest, name: str, kept: Sequence[Path] = ()) -> KernelProcess:
        """Create a kernel process of that source, with its own log."""
        log = self._logs / f"{name}-{self._number}.log"
        return KernelProcess(
            source,
            self._device.make_memory(),
            threads=self._settings.threads,
            timeout=self._settings.timeout,
            log=log,
            kept=kept,
        )


def _ended(process: KernelProcess, result: TestResult, ended: WorkerEnded) -> TestResult:
    """Return the result of a test whose process ended."""
    process.kill()
    status = STATUSES.get(ended.status, "lost")
    return replace(result, status=status, reason=Fact.message(ended.reason), last_line=ended.last_line)


def _raised(result: TestResult, error: KernelError, status: TestStatus) -> TestResult:
    """Return the result of a kernel, or a file, that raised an exception.

    It is not run for lack of a GPU only if there is none.
    """
    if error.needs_gpu and not torch.cuda.is_available():
        return replace(result, status="not-run", reason=Fact("needs-gpu"))
    return replace(
        result,
        status=status,
        fault="raised" if status == "incorrect" else None,
        reason=Fact.message(str(error)),
        error_type=error.kind,
        traceback=error.traceback,
    )


def _with_errors(result: TestResult, errors: Errors | None) -> TestResult:
    """Return the result with the size of its errors; no share where no error at all is allowed."""
    if errors is None:
        return result
    return replace(
        result,
        max_abs_error=errors.absolute,
        max_rel_error=errors.relative,
        allowed_share=errors.share if isfinite(errors.share) else None,
    )


def _without_times(result: TestResult) -> TestResult:
    """Return the result without its times."""
    return replace(result, speedup=None, seconds=None, reference_seconds=None)


def _own_folder(evaluation: Path) -> Path:
    """Return the folder that kernels must not write to.

    That is the evaluation's, or its parent where other evaluations, to which it will be compared, lie beside it.
    """
    shared = evaluation.parent.resolve() in map(Path, _SHARED)
    return evaluation.parent if not shared and any(evaluation.parent.glob("*/run.json")) else evaluation


def _message(error: BaseException) -> Fact:
    """Return the exception's type and the first line of its message."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return Fact.message(f"{type(error).__name__}: {line[:200]}")
