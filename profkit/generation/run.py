"""Runs a generation: operations in, each with its attempts, stored as they come."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.analysis.generation import best_attempt
from profkit.core import codec
from profkit.core.errors import Interrupted, MachineError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.types import Attempt, GenerationDocument, MeasuredCeilings
from profkit.core.whole_files import write_whole
from profkit.execution.journal import Journal
from profkit.generation.clients.client import Cancelled, ModelClient
from profkit.generation.field_files import field_files
from profkit.generation.journal import FORMAT, AskedModel, attempts_of, header_of, make_document, note_session
from profkit.generation.judging import JudgedDevices, Stopped
from profkit.generation.loop import LoopTools, OperationLoop
from profkit.generation.prompt import KernelTask, device_facts
from profkit.generation.request import GenerationRequest
from profkit.hardware.gpu import read_gpus
from profkit.hardware.machine import read_machine
from profkit.kernels.campaign import Campaign, open_campaign, resume_line
from profkit.kernels.evaluation.run import check_tests
from profkit.kernels.evaluation.sources.names import OperationDescription, encode_name
from profkit.kernels.evaluation.sources.text import SUFFIX
from profkit.kernels.generation_document import FILE, generation_text
from profkit.reporting.views.kernels.generation import resume_line as resume_text

WRITE_SECONDS = 5.0  # between two versions of the page while it goes on
LOOK_SECONDS = 0.2
END_SECONDS = 20.0  # for what is being done, after a Ctrl-C


def run_generation(
    request: GenerationRequest, model: AskedModel, client: ModelClient, progress: Progress
) -> GenerationDocument:
    """Give every operation its attempts; those that the folder knows already are not made again.

    Raises UsageError where no operation is left by the options, MachineError where nothing can be judged or written or
    the model cannot be asked, and Interrupted after a Ctrl-C: what was done is kept, and `--resume` goes on.
    """
    documents: list[GenerationDocument] = []

    def write(journal: Journal[Attempt]) -> None:
        documents.append(make_document(request, journal.contents, journal.seconds))
        for why in write_generation(request.folder, documents[-1]):
            progress.note(why)

    header = header_of(request, model)
    line = resume_line("profkit generate", request.folder, request.settings.code(), None)
    with open_campaign(FORMAT, request.folder, header, progress, line, write) as campaign:
        if request.settings.device.startswith("cuda"):
            campaign.lock_gpus(request.gpus)
        scratch = TemporaryFolder()
        campaign.at_end(scratch.cleanup)
        devices = JudgedDevices(request, progress, scratch.name)
        campaign.at_end(devices.close)
        tasks = _open(request, devices, campaign)
        note_session(campaign.journal, request.limits)
        _Operations(request, client, devices, campaign, lambda: write(campaign.journal)).do(tasks)
        correct = sum(
            best_attempt(attempts_of(campaign.journal.contents, t.operation)) is not None
            for t in tasks.values()
        )
        progress.end(f"{correct} of {plural(len(tasks), 'operation')} have a correct kernel")
    return documents[-1]


class _Operations:
    """The threads of one call: each takes the next operation until none is left."""

    def __init__(
        self,
        request: GenerationRequest,
        client: ModelClient,
        devices: JudgedDevices,
        campaign: Campaign[Attempt],
        write: Callable[[], None],
    ) -> None:
        self._request, self._campaign, self._write = request, campaign, write
        self._client, self._devices = client, devices
        self._left: deque[tuple[str, KernelTask]] = deque()
        self._cancel = threading.Event()
        self._doing: dict[str, str] = {}  # by operation, what is done just now
        self._notes: deque[str] = deque()  # only the thread that shows progress shows them
        self._fault: BaseException | None = None
        self._written = (-1, 0.0)  # how many changes the files have, and when they were written

    def do(self, tasks: Mapping[str, KernelTask]) -> None:
        """All operations. Raises what one of them raises."""
        campaign, self._left = self._campaign, deque(tasks.items())
        threads = [
            threading.Thread(target=self._work, name=f"operation-{number}", daemon=True)
            for number in range(min(self._request.at_once, len(tasks)))
        ]
        detail = f"{plural(len(tasks), 'operation')} by {self._client.model}"
        campaign.begin("generate", detail, None, lambda: self._describe(tasks))
        campaign.at_end(lambda: self._join(threads))
        campaign.at_end(self._stop)
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            next(thread for thread in threads if thread.is_alive()).join(LOOK_SECONDS)
            while self._notes:
                campaign.progress.note(self._notes.popleft())
            campaign.tick()
            changes, when = self._written
            if campaign.journal.changes != changes and monotonic() - when >= WRITE_SECONDS:
                self._written = campaign.journal.changes, monotonic()
                self._write()
        if self._fault is not None:
            raise self._fault

    def _work(self) -> None:
        """One thread. What it raises ends the others, too."""
        tools = LoopTools(
            self._request,
            self._client,
            self._devices,
            self._campaign,
            self._cancel,
            self._doing.__setitem__,
            self._notes.append,
        )
        while not self._cancel.is_set():
            try:
                folder, task = self._left.popleft()
            except IndexError:
                return
            try:
                OperationLoop(task, folder, tools).run()
            except (Stopped, Cancelled, Interrupted):
                return
            except BaseException as error:
                self._fault = self._fault or error
                self._stop()
                return
            finally:
                self._doing.pop(task.operation, None)

    def _stop(self) -> None:
        """What is being done ends."""
        self._cancel.set()
        self._client.close()
        self._devices.close()

    @staticmethod
    def _join(threads: Sequence[threading.Thread]) -> None:
        deadline = monotonic() + END_SECONDS
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - monotonic()))

    def _describe(self, tasks: Mapping[str, KernelTask]) -> str:
        """`2 of 5 operations, 3 correct, 31,204 tokens; relu: attempt 2: testing`."""
        contents = self._campaign.journal.contents
        made = [attempts_of(contents, task.operation) for task in tasks.values()]
        attempts = [attempt for each in made for attempt in each]
        tokens = sum((a.call.input_tokens or 0) + (a.call.output_tokens or 0) for a in attempts)
        parts = [
            f"{len(tasks) - len(self._left) - len(self._doing)} of {plural(len(tasks), 'operation')}",
            f"{sum(best_attempt(each) is not None for each in made)} correct",
            plural(len(attempts), "attempt"),
            f"{tokens:,} tokens",
        ]
        doing = "; ".join(f"{operation}: {what}" for operation, what in [*self._doing.items()])
        return ", ".join(parts) + (f"; {doing}" if doing else "")


def _open(
    request: GenerationRequest, devices: JudgedDevices, campaign: Campaign[Attempt]
) -> dict[str, KernelTask]:
    """Start the judges; by folder what is to be written. Raises UsageError."""
    progress, journal = campaign.progress, campaign.journal
    progress.begin("judge", f"the tests of {request.settings.suite} listed and the device measured")
    about = devices.open(lambda: progress.tick(journal.session_seconds))
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
    if "folders" not in campaign.about:
        folders = {task.operation: folder for folder, task in tasks.items()}
        journal.note(device=about.get("device"), versions=about.get("versions"), folders=folders)
    return tasks


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


def write_generation(folder: Path, document: GenerationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; a line for each report that is not there.

    Raises MachineError where the disk takes no more.
    """
    for name, text in {FILE: generation_text(document, folder), **field_files(document, folder)}.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, (text,), sync=name == FILE)
        except OSError as error:
            again = f"make room, then: {resume_text(folder)}"
            raise MachineError(f"{folder / name} cannot be written: {error.strerror}", again) from error
    from profkit.reporting.report_files import write_generation_reports

    return write_generation_reports(folder, document)
