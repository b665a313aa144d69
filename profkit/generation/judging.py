"""Judges that stay: each device has one for the whole generation, and a kernel has the device for itself meanwhile."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import MachineError
from profkit.core.progress import Progress
from profkit.core.types import EvaluationDocument, EvaluationTest
from profkit.execution.client import WorkerClient
from profkit.execution.job import Batch, Job, JobOutcome
from profkit.execution.pool import WorkerPool
from profkit.generation.request import GenerationRequest
from profkit.kernels.devices import device_names
from profkit.kernels.evaluation.journal import EvaluationJournal, create_journal, make_document
from profkit.kernels.evaluation.judging.judge_process import (
    check_judge,
    judge_command,
    plain_settings,
    seconds_of_a_test,
    test_result,
)
from profkit.kernels.evaluation.request import EvaluationRequest, was_asked
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
        self._queue, self._outcomes = _Inbox(), queue.SimpleQueue[JobOutcome]()
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
        begin = monotonic()
        source = SourceRequest("source", (str(kernel.file.resolve()),), kernel.code, kernel.operation)
        settings = replace(
            self._request.settings, source=source, operations=(kernel.operation,), describe=False
        )
        request = EvaluationRequest(
            settings, kernel.folder, BACKEND, kernel.file.stem, self._request.command, gpus=self.gpu
        )
        journal = create_journal(request, datetime.now(timezone.utc).isoformat(timespec="seconds"))
        try:
            tests = self._describe(journal, kernel.operation)
            shared = {"ceilings": self.about.get("ceilings"), "source": codec.to_plain_data(source)}
            self._queue.put(Batch(tuple(Job(test.id, codec.to_plain_data(test)) for test in tests), shared))
            for _ in tests:
                outcome = self._next_outcome()
                asked = was_asked(self._logs, outcome.slot, outcome.job.key)
                result = test_result(outcome, asked=asked)
                if result is None:
                    raise Stopped
                journal.add(result, monotonic() - begin)
            journal.end_session(monotonic() - begin)
            return make_document(journal.contents, monotonic() - begin)
        finally:
            journal.close()

    def close(self) -> None:
        """No judge any more."""
        self._queue.close()
        self._pool.close()

    def _describe(self, journal: EvaluationJournal, operation: str) -> tuple[EvaluationTest, ...]:
        listed = [test for test in self.about["tests"] if test["operation"] == operation]
        journal.describe(
            {**{key: self.about.get(key) for key in ("device", "versions", "ceilings")}, "tests": listed}
        )
        return journal.contents.tests

    def _next_outcome(self) -> JobOutcome:
        while True:
            if self._stop.is_set():
                raise Stopped
            with contextlib.suppress(queue.Empty):
                return self._outcomes.get(timeout=LOOK_SECONDS)
            if not self._thread.is_alive():
                raise self._pool.fault or MachineError("the judge has ended")

    def _run(self) -> None:
        with contextlib.suppress(MachineError):  # `fault` says it
            self._pool.run(self._queue)


class _Inbox:
    """A queue to which batches are added until it is closed."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._arrived, self._open = threading.Event(), True

    def put(self, batch: Batch) -> None:
        """One more batch, behind the others."""
        self._batches.append(batch)
        self._arrived.set()

    def close(self) -> None:
        """No more batches come."""
        self._open = False
        self._arrived.set()

    def take(self, *, loaded: bool) -> Batch | None:
        """The first one; None where there is none now."""
        del loaded
        self._arrived.clear()
        return self._batches.popleft() if self._batches else None

    def put_back(self, batch: Batch) -> None:
        """It comes first."""
        self._batches.appendleft(batch)

    def wait(self, seconds: float) -> None:
        """Wait until a batch comes, at most so long."""
        self._arrived.wait(seconds)

    def drain(self) -> Sequence[Batch]:
        """All that are left."""
        batches = tuple(self._batches)
        self._batches.clear()
        return batches

    def __len__(self) -> int:
        return len(self._batches) + self._open
