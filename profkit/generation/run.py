"""Runs a generation: operations in, each with its attempts, stored as they come."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from profkit.analysis.generation import best_attempt
from profkit.core import codec
from profkit.core.errors import Interrupted, ProfkitError
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import GenerationDocument, MeasuredCeilings
from profkit.generation.clients.client import Cancelled, ModelClient
from profkit.generation.journal import (
    FILE,
    AskedModel,
    GenerationJournal,
    create_journal,
    reopen_journal,
)
from profkit.generation.judging import JudgedDevices, Stopped
from profkit.generation.loop import LoopTools, OperationLoop
from profkit.generation.prompt import KernelTask, device_facts
from profkit.generation.request import GenerationRequest
from profkit.hardware.gpu import read_gpus
from profkit.hardware.gpu_locks import lock_gpus
from profkit.hardware.machine import read_machine
from profkit.kernels.devices import worker_uuids
from profkit.kernels.evaluation.judging.judge_process import check_tests
from profkit.kernels.evaluation.sources.names import OperationDescription, encode_name
from profkit.kernels.evaluation.sources.text import SUFFIX

REPORT_SECONDS = 1.0  # between two lines of progress
WRITE_SECONDS = 5.0  # between two versions of the page while it goes on
LOOK_SECONDS = 0.2
END_SECONDS = 20.0  # for what is being done, after a Ctrl-C
WriteGeneration = Callable[[Path, GenerationDocument], Sequence[str]]


def run_generation(
    request: GenerationRequest,
    model: AskedModel,
    client: ModelClient,
    progress: Progress,
    write: WriteGeneration,
) -> GenerationDocument:
    """Give every operation its attempts; those that the folder knows already are not made again.

    Raises UsageError where no operation is left by the options, MachineError where nothing can be judged or written or
    the model cannot be asked, and Interrupted after a Ctrl-C: what was done is kept, and `--resume` goes on.
    """
    with contextlib.ExitStack() as cleanup, raise_on_signals():
        if request.settings.device.startswith("cuda"):
            cleanup.enter_context(lock_gpus(worker_uuids(request.gpus), progress))
        scratch = cleanup.enter_context(TemporaryDirectory(prefix="profkit-", ignore_cleanup_errors=True))
        devices = JudgedDevices(request, progress, scratch)
        cleanup.callback(devices.close)
        tasks, about = _open(request, devices, progress)
        journal = _open_journal(request, model)
        cleanup.callback(journal.close)
        if not journal.contents.folders:
            journal.describe(about, {task.operation: folder for folder, task in tasks.items()})
        return _Session(request, client, devices, journal, progress, write).run(tasks)


class _Session:
    """The threads of one call: each takes the next operation until none is left."""

    def __init__(
        self,
        request: GenerationRequest,
        client: ModelClient,
        devices: JudgedDevices,
        journal: GenerationJournal,
        progress: Progress,
        write: WriteGeneration,
    ) -> None:
        self._request, self._journal, self._progress, self._write = request, journal, progress, write
        self._client, self._devices = client, devices
        self._cancel = threading.Event()
        self._doing: dict[str, str] = {}  # by operation, what is done just now
        self._notes: deque[str] = deque()  # only the thread that shows progress shows them
        self._fault: BaseException | None = None
        self._written = (-1, 0.0)  # how many changes the files have, and when they were written

    def run(self, tasks: Mapping[str, KernelTask]) -> GenerationDocument:
        """All operations; the document. Raises as `run_generation`."""
        left = deque(tasks.items())
        self._progress.begin("generate", f"{plural(len(tasks), 'operation')} by {self._client.model}")
        threads = [
            threading.Thread(target=self._work, args=(left,), name=f"operation-{number}", daemon=True)
            for number in range(min(self._request.at_once, len(tasks)))
        ]
        start, next_report = monotonic(), 0.0
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                next(thread for thread in threads if thread.is_alive()).join(LOOK_SECONDS)
                while self._notes:
                    self._progress.note(self._notes.popleft())
                gone = monotonic() - start
                if gone >= next_report:
                    next_report = gone + REPORT_SECONDS
                    self._progress.move(self._describe())
                    self._write_now_and_then()
                self._progress.tick(gone)
            if self._fault is not None:
                raise self._fault
        except (KeyboardInterrupt, Interrupted):
            self._end(threads)
            self._progress.end("interrupted; every attempt that was finished is kept")
            raise Interrupted(
                f"interrupted; the attempts are in {self._request.folder}", self._resume
            ) from None
        except ProfkitError as fault:
            self._end(threads)
            self._progress.end("ended early")
            if any(self._journal.contents.attempts.values()):
                fault.message += f"\nthe attempts are in {self._request.folder}"
                fault.fix = f"{fault.fix}   (then: {self._resume})" if fault.fix else self._resume
            raise
        document = self._write_all()
        correct = sum(operation.best is not None for operation in document.operations)
        self._progress.end(
            f"{correct} of {plural(len(document.operations), 'operation')} have a correct kernel"
        )
        return document

    @property
    def _resume(self) -> str:
        return f"profkit generate --resume {self._request.folder}"

    def _work(self, left: deque[tuple[str, KernelTask]]) -> None:
        """One thread. What it raises ends the others, too."""
        tools = LoopTools(
            self._request,
            self._client,
            self._devices,
            self._journal,
            self._cancel,
            self._doing.__setitem__,
            self._notes.append,
        )
        while not self._cancel.is_set():
            try:
                folder, task = left.popleft()
            except IndexError:
                return
            try:
                OperationLoop(task, folder, tools).run()
            except (Stopped, Cancelled, Interrupted):
                return
            except BaseException as error:
                self._fault = self._fault or error
                self._cancel.set()
                self._devices.close()
                self._client.close()
                return
            finally:
                self._doing.pop(task.operation, None)

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """End what is being done; a second Ctrl-C does not cost what the first one left."""
        with defer_interrupts():
            self._cancel.set()
            self._client.close()
            self._devices.close()
            deadline = monotonic() + END_SECONDS
            for thread in threads:
                thread.join(max(0.0, deadline - monotonic()))
            with contextlib.suppress(ProfkitError):
                self._write_all()

    def _write_now_and_then(self) -> None:
        changes, when = self._written
        if self._journal.changes != changes and monotonic() - when >= WRITE_SECONDS:
            self._write_all()

    def _write_all(self) -> GenerationDocument:
        changes = self._journal.changes
        document = self._journal.document()
        for why in self._write(self._request.folder, document):
            self._progress.note(why)
        self._written = (changes, monotonic())
        return document

    def _describe(self) -> str:
        """`2 of 5 operations, 3 correct, 31,204 tokens; relu: attempt 2: testing`."""
        contents = self._journal.contents
        attempts = [attempt for each in [*contents.attempts.values()] for attempt in [*each]]
        tokens = sum((a.call.input_tokens or 0) + (a.call.output_tokens or 0) for a in attempts)
        correct = sum(best_attempt([*each]) is not None for each in [*contents.attempts.values()])
        parts = [
            f"{len(contents.stopped)} of {plural(len(contents.folders), 'operation')}",
            f"{correct} correct",
            plural(len(attempts), "attempt"),
            f"{tokens:,} tokens",
        ]
        doing = "; ".join(f"{operation}: {what}" for operation, what in [*self._doing.items()])
        return ", ".join(parts) + (f"; {doing}" if doing else "")


def _open(
    request: GenerationRequest, devices: JudgedDevices, progress: Progress
) -> tuple[dict[str, KernelTask], dict[str, Any]]:
    """Start the judges; by folder what is to be written, and what the judge says of itself. Raises UsageError."""
    start = monotonic()
    progress.begin("judge", f"the tests of {request.settings.suite} listed and the device measured")
    about = devices.open(lambda: progress.tick(monotonic() - start))
    tests = check_tests(request.settings, about)
    facts = _device_facts(request, about)
    tasks = {}
    described = codec.from_plain_data(tuple[OperationDescription, ...], about["described"], "described")
    for description in described:
        folder = _folder_name(description, described)
        tasks[folder] = KernelTask(
            description.name,
            folder + SUFFIX,
            request.language,
            description.schema,
            tuple(test for test in tests if test.operation == description.name),
            facts,
            description.documentation,
            description.decomposition,
        )
    progress.end(f"{plural(len(tests), 'test')} of {plural(len(tasks), 'operation')} on {about['device']}")
    return tasks, {key: about.get(key) for key in ("device", "versions")}


def _folder_name(operation: OperationDescription, others: Sequence[OperationDescription]) -> str:
    """`relu` for relu.default; `add__Scalar` where a bare name means another overload, or several are there."""
    base = operation.name.partition(".")[0]
    alone = sum(other.name.partition(".")[0] == base for other in others) == 1
    return base if operation.main and alone else encode_name(operation.name)


def _device_facts(request: GenerationRequest, about: Mapping[str, Any]) -> tuple[str, ...]:
    gpus = read_gpus() if request.settings.device.startswith("cuda") else ()
    number = int(request.gpus[0]) if request.gpus else 0
    return device_facts(
        str(about["device"]),
        codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        None if gpus else read_machine(),
        gpus[number] if number < len(gpus) else None,
        codec.from_plain_data(dict[str, MeasuredCeilings], about.get("ceilings") or {}, "ceilings"),
    )


def _open_journal(request: GenerationRequest, model: AskedModel) -> GenerationJournal:
    if (request.folder / FILE).is_file():
        return reopen_journal(request)
    return create_journal(request, model, datetime.now(timezone.utc).isoformat(timespec="seconds"))
