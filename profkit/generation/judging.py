"""Judges that stay: each device has one for the whole generation, and a kernel has the device for itself meanwhile."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import MachineError
from profkit.core.progress import Progress
from profkit.core.types import EvaluationDocument
from profkit.execution.client import WorkerClient
from profkit.execution.job import Batch, FifoQueue, Job, JobOutcome
from profkit.execution.journal import open_journal
from profkit.execution.pool import WorkerPool
from profkit.generation.request import GenerationRequest
from profkit.kernels.devices import device_names
from profkit.kernels.evaluation.request import FORMAT, EvaluationRequest, header_of, make_document, was_asked
from profkit.kernels.evaluation.run import (
    check_judge,
    judge_command,
    plain_settings,
    seconds_of_a_test,
    test_result,
)
from profkit.kernels.evaluation.sources.source import SourceRequest

LOOK_SECONDS = 0.2
BACKEND = "llm"  # of the evaluation of an attempt


class Stopped(Exception):
    """The generation ends while a kernel is judged."""


@dataclass(frozen=True)
class KernelFile:
    """A kernel to be judged: its operation, its file, and the folder that its evaluation gets."""

    operation: str
    file: Path
    code: str
    folder: Path


class JudgedDevices:
    """The devices of a generation, each with a judge. `open`, then `device` by any thread; `close` at any time."""

    def __init__(self, request: GenerationRequest, progress: Progress, scratch: str) -> None:
        self._request = request
        names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
        seen: Sequence[Mapping[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
        self._stop = threading.Event()
        self._devices = [
            _JudgedDevice(request, slot, {"TMPDIR": scratch, **visible}, progress, self._stop)
            for slot, visible in enumerate(seen)
        ]
        self._free: queue.Queue[_JudgedDevice] = queue.Queue()

    def open(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Start the judges; what the first says of tests and device. Raises MachineError, UsageError."""
        for device in self._devices:
            device.begin()
        first: dict[str, Any] = {}
        for device in self._devices:
            about = device.open(tick)
            check_judge(device.slot, about, first or about)
            first = first or about
            self._free.put(device)
        for device in self._devices:
            device.about = first
        return first

    @contextlib.contextmanager
    def device(self) -> Iterator[_JudgedDevice]:
        """A device that nobody else uses inside the block. Raises Stopped."""
        device = None
        while device is None:
            if self._stop.is_set():
                raise Stopped
            with contextlib.suppress(queue.Empty):
                device = self._free.get(timeout=LOOK_SECONDS)
        try:
            yield device
        finally:
            self._free.put(device)

    def close(self) -> None:
        """No judge any more; what is being judged ends with Stopped."""
        self._stop.set()
        for device in self._devices:
            device.close()


class _JudgedDevice:
    """One device: its judge, and the kernel that is judged."""

    def __init__(
        self,
        request: GenerationRequest,
        slot: int,
        env: Mapping[str, str],
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self.slot = slot
        self.gpu = request.gpus[slot : slot + 1]
        self.visible = {name: value for name, value in env.items() if name == "CUDA_VISIBLE_DEVICES"}
        self.about: dict[str, Any] = {}
        self._request, self._stop = request, stop
        self._logs = request.folder / "logs"
        self._queue, self._outcomes = FifoQueue(open=True), queue.SimpleQueue[JobOutcome]()
        self._pool = WorkerPool(
            [WorkerClient(judge_command(self._logs, env, slot))],
            self._outcomes.put,
            timeout=seconds_of_a_test(request.settings),
            settings=plain_settings(request.settings),
            note=progress.note,
        )
        self._thread = threading.Thread(target=self._run, name=f"device-{slot}", daemon=True)

    def begin(self) -> None:
        """Start its judge."""
        self._pool.begin()

    def open(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Wait until its judge has opened. Raises MachineError."""
        about = self._pool.open(tick)
        self._thread.start()
        assert isinstance(about, dict)
        return about

    def judge(self, kernel: KernelFile) -> EvaluationDocument:
        """Every test of the kernel's operation; the evaluation, whose journal is in the kernel's folder.

        Raises Stopped, and MachineError where the judge cannot be started again or the disk takes no more.
        """
        source = SourceRequest("source", (str(kernel.file.resolve()),), kernel.code, kernel.operation)
        settings = replace(
            self._request.settings, source=source, operations=(kernel.operation,), describe=False
        )
        request = EvaluationRequest(
            settings, kernel.folder, BACKEND, kernel.file.stem, self._request.command, gpus=self.gpu
        )
        listed = [test for test in self.about["tests"] if test["operation"] == kernel.operation]
        ceilings = self.about.get("ceilings")
        journal = open_journal(kernel.folder, FORMAT, header_of(request))
        try:
            journal.note(
                device=self.about["device"],
                versions=self.about.get("versions"),
                ceilings=ceilings,
                tests=listed,
            )
            jobs = tuple(Job(test["id"], test) for test in listed)
            self._queue.put(Batch(jobs, {"ceilings": ceilings, "source": codec.to_plain_data(source)}))
            for _ in jobs:
                outcome = self._next_outcome()
                asked = was_asked(self._logs, outcome.slot, outcome.job.key)
                result = test_result(outcome, asked=asked)
                if result is None:
                    raise Stopped
                journal.settle(result.test.id, result)
            return make_document(request, journal.contents, journal.seconds)
        finally:
            journal.close()

    def close(self) -> None:
        """No judge any more."""
        self._queue.close()
        self._pool.close()

    def _next_outcome(self) -> JobOutcome:
        while True:
            if self._stop.is_set():
                raise Stopped
            with contextlib.suppress(queue.Empty):
                outcome = self._outcomes.get(timeout=LOOK_SECONDS)
                return replace(outcome, slot=self.slot)  # in a pool of its own each judge is number 0
            if not self._thread.is_alive():
                raise self._pool.fault or MachineError("the judge has ended")

    def _run(self) -> None:
        with contextlib.suppress(MachineError):  # `fault` says it
            self._pool.run(self._queue)
