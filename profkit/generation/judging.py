"""The judge of a generation, kept for all of it; a kernel has the device to itself while tested or profiled.

The profile of an attempt is made by a separate process, `python -m profkit.generation.judging`, which a
Ctrl-C ends.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import Interrupted, MachineError, ProfkitError, Progress, Silent
from profkit.core.process import run
from profkit.core.run_folder import read_run
from profkit.core.types import EvaluationDocument, RunDocument, TestResult
from profkit.execution.journal import open_journal
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.generation.request import GenerationRequest
from profkit.kernels.evaluation.outputs import write_results
from profkit.kernels.evaluation.request import (
    FORMAT,
    EvaluationRequest,
    header_of,
    make_document,
    read_document,
    read_request,
    was_started,
)
from profkit.kernels.evaluation.run import (
    judge_client,
    plain_settings,
    seconds_of_a_test,
    test_result,
)
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.profiling.drill_down import profile_tests

LOOK_SECONDS = 0.2
BACKEND = "llm"  # of the evaluation of an attempt
# What speaks of a kernel on a GPU: 26 s on an H100, and 60 s with what speaks of the host, of which nothing is used.
KERNEL_PASSES = ("trace", "counters", "explain")
MAX_SECONDS = 1800.0


class Stopped(Exception):
    """The generation ended while a kernel was judged."""


@dataclass(frozen=True)
class KernelFile:
    """A kernel to be judged: its operation, its file, and the folder for its evaluation."""

    operation: str
    file: Path
    code: str
    folder: Path


class AttemptJudge:
    """The judge of a generation. Call `open`, then `alone` from any thread; `close` at any time."""

    def __init__(self, request: GenerationRequest, progress: Progress, scratch: str) -> None:
        self.about: dict[str, Any] = {}
        self._request, self._stop, self._alone = request, threading.Event(), threading.Lock()
        self._logs = request.folder / "logs"
        self._outcomes = queue.SimpleQueue[JobOutcome]()
        self._pool = WorkerPool(
            [judge_client(self._logs, {"TMPDIR": scratch})],
            self._outcomes.put,
            timeout=seconds_of_a_test(request.settings),
            settings=plain_settings(request.settings),
            note=progress.note,
        )
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)

    def open(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Start the judge; return what it says about tests and device. Raises MachineError, UsageError."""
        self.about = self._pool.open(tick)
        self._thread.start()
        return self.about

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device alone during the block. Raises Stopped."""
        while not self._alone.acquire(timeout=LOOK_SECONDS):
            if self._stop.is_set():
                raise Stopped
        try:
            yield
        finally:
            self._alone.release()

    def judge(self, kernel: KernelFile) -> EvaluationDocument:
        """Run every test of the kernel's operation.

        Return the evaluation, whose journal is in the kernel's folder. Raises Stopped, and MachineError if the judge
        cannot be started again or the disk takes no more.
        """
        source = SourceRequest("source", (str(kernel.file.resolve()),), kernel.code, kernel.operation)
        settings = replace(
            self._request.settings, source=source, operations=(kernel.operation,), describe=False
        )
        request = EvaluationRequest(settings, kernel.folder, BACKEND, kernel.file.stem, self._request.command)
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
            more = {"ceilings": ceilings, "source": codec.to_plain_data(source)}
            jobs = [Job(test["id"], {"test": test, **more}) for test in listed]
            self._pool.put(jobs)
            for _ in jobs:
                outcome = self._next_outcome()
                started = was_started(self._logs, outcome.slot, outcome.job.key)
                result = test_result(outcome, started=started)
                if result is None:
                    raise Stopped
                journal.settle(result.test.id, result)
            return make_document(request, journal.contents, journal.seconds)
        finally:
            journal.close()

    def close(self) -> None:
        """End the judge; what is being judged ends with Stopped."""
        self._stop.set()
        self._pool.close()

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
            self._pool.run(None)


# ---------------------------------------------------------------- profiles


class NoProfile(Exception):
    """There is no profile; the text says why."""


def profile_attempt(folder: Path, depth: str, cancel: threading.Event) -> tuple[TestResult, RunDocument]:
    """Profile the slowest test of the evaluation in `folder`; return it with its run.

    Raises NoProfile if there is no complete one, and Interrupted if `cancel` was set.
    """
    command = (sys.executable, "-m", "profkit.generation.judging", str(folder), depth)
    log = folder / "profile.log"
    outcome = run(command, log=log, timeout=MAX_SECONDS, cancel=cancel)
    for result in read_document(folder).results:
        if result.profile is not None:
            try:
                return result, read_run(folder / result.profile)
            except ProfkitError as error:
                raise NoProfile(error.message) from error
    lines = [line for line in outcome.output_tail.splitlines() if line.strip()]
    raise NoProfile(f"{lines[-1].strip()[:200] if lines else outcome.ending()} ({log})")


class _Log(Silent):
    """Progress that only prints notes: why there is no profile."""

    def note(self, text: str) -> None:
        """Write a note to the log."""
        print(text, flush=True)


def main(argv: Sequence[str]) -> int:
    """Profile the slowest test of the evaluation in folder `argv[0]` at depth `argv[1]`; return the exit code."""
    folder = Path(argv[0])
    try:
        request, document = read_request(folder), read_document(folder)
        on_gpu = request.settings.device.startswith("cuda")
        passes = KERNEL_PASSES if on_gpu and argv[1] == "standard" else None
        profile_tests(request, document, 1, argv[1], _Log(), write_results, passes=passes)
    except Interrupted:
        return 130
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
