"""Runs an evaluation: tests in, every one with exactly one status, stored as it comes."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import Interrupted, MachineError, ProfkitError, UsageError
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import UNDECIDED, EvaluationDocument, EvaluationTest, TestResult
from profkit.execution.client import WorkerClient
from profkit.execution.job import Batch, FifoQueue, Job, JobOutcome
from profkit.execution.places.relay import OUT
from profkit.execution.pool import WorkerPool
from profkit.hardware.gpu_locks import lock_gpus
from profkit.kernels.devices import device_names, worker_uuids
from profkit.kernels.evaluation import journal as journals
from profkit.kernels.evaluation.journal import EvaluationJournal, make_document
from profkit.kernels.evaluation.judging.judge_process import (
    JUDGE,
    check_about,
    check_judge,
    check_tests,
    judge_command,
    plain_settings,
    seconds_of_a_test,
    test_result,
)
from profkit.kernels.evaluation.request import WAIT_POLICY, EvaluationRequest, was_asked
from profkit.kernels.named_code import code_options
from profkit.kernels.places import PlaceSlots, SlotWork, from_here
from profkit.kernels.sweep.plan import format_duration

REPORT_SECONDS = 1.0  # between two lines of progress
WriteResults = Callable[[Path, EvaluationDocument], Sequence[str]]


def run_evaluation(
    request: EvaluationRequest,
    progress: Progress,
    write: WriteResults = lambda *_: (),
    elsewhere: PlaceSlots | None = None,
) -> EvaluationDocument:
    """Give every test its status; those that the folder knows already are not done again. `write` writes the files.

    The judge is here, or there is one at each place `elsewhere`.

    Raises MachineError where nothing can be measured or written, UsageError where no test is left by the options, and
    Interrupted after a Ctrl-C: what was done is kept, and `--resume` goes on.
    """
    start = monotonic()
    on = elsewhere.options if elsewhere is not None else ""
    code = code_options(request.settings.code())
    resume_line = " ".join(filter(None, (f"profkit evaluate --resume {request.folder}", code, on)))
    with contextlib.ExitStack() as cleanup, raise_on_signals():
        journal = _open_journal(request)
        cleanup.callback(journal.close)
        counts = _Counts(())

        def settle(outcome: JobOutcome) -> None:
            asked = was_asked(log, outcome.slot, outcome.job.key)
            result = test_result(outcome, asked=asked)
            if result is not None:
                journal.add(result, monotonic() - start)
                counts.add(result)

        log = request.folder / "logs"
        scratch = cleanup.enter_context(TemporaryDirectory(prefix="profkit-", ignore_cleanup_errors=True))
        # What kernels leave in that folder goes, too, where the judge is killed.
        if elsewhere is None:
            if request.settings.device.startswith("cuda"):
                cleanup.enter_context(lock_gpus(worker_uuids(request.gpus), progress))
            pool = _make_pool(request, log, settle, progress, {"TMPDIR": scratch})
        else:
            cleanup.callback(elsewhere.close)
            pool = _make_pool_elsewhere(request, elsewhere, settle, progress)
        cleanup.callback(pool.close)

        def finish(*, complete: bool) -> EvaluationDocument:
            with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
                seconds = journal.seconds_before + monotonic() - start
                journal.end_session(monotonic() - start)
                document = make_document(journal.contents, seconds)
                if complete and not document.complete:
                    raise MachineError(
                        f"{document.planned - len(document.results)} tests were not done",
                        resume_line,
                    )
                for why in write(request.folder, document):
                    progress.note(why)
                return document

        try:
            tests = _open(request, journal, pool, progress, start)
            left = _left(request, journal, tests)
            counts = _Counts(left)
            progress.begin("evaluate", _describe(request, left, tests))
            next_report = 0.0

            def tick() -> None:
                nonlocal next_report
                gone = monotonic() - start
                if gone >= next_report:
                    next_report = gone + REPORT_SECONDS
                    progress.move(counts.describe())
                progress.tick(gone)

            if left:
                if elsewhere is not None:
                    elsewhere.let_join(pool.add, progress.note)
                pool.run(FifoQueue(_batches(left, journal)), tick)
                if pool.fault is not None and counts.done < len(left):
                    raise pool.fault
            document = finish(complete=True)
        except (KeyboardInterrupt, Interrupted):
            pool.close()
            finish(complete=False)
            progress.end(f"interrupted after {plural(counts.done, 'test')}; they are kept")
            raise Interrupted(
                f"interrupted; {plural(len(journal.contents.results), 'result')} of the evaluation are in "
                f"{request.folder}",
                resume_line,
            ) from None
        except ProfkitError as fault:
            pool.close()
            with contextlib.suppress(ProfkitError):
                if counts.done:
                    finish(complete=False)
            fault.run = request.folder if journal.contents.results else None
            if counts.done:
                fault.message += f"\n{counts.done} of {plural(len(left), 'test')} are in {request.folder}"
                fault.fix = resume_line
            if not journal.contents.about:  # nothing was begun: no folder is left behind
                shutil.rmtree(request.folder, ignore_errors=True)
            raise
        progress.end(f"{plural(len(left), 'test')} in {format_duration(monotonic() - start)}")
        return document


def update_result(
    folder: Path, result: TestResult, progress: Progress, write: WriteResults
) -> EvaluationDocument:
    """Store a result anew, with a link to its profile for one, and write the results once more.

    Raises UnreadableReport, UsageError and MachineError where the evaluation in `folder` cannot be read and written.
    """
    with defer_interrupts():
        journal = journals.reopen_journal(folder)
        try:
            journal.add(result, 0.0)
            document = make_document(journal.contents, sum(journal.contents.sessions))
        finally:
            journal.close()
        for why in write(folder, document):
            progress.note(why)
        return document


def list_tests(
    request: EvaluationRequest, logs: Path, progress: Progress
) -> tuple[tuple[EvaluationTest, ...], dict[str, Any]]:
    """The tests of an evaluation, and what the judge says of itself; none is done.

    Raises MachineError where no judge can be started, UsageError where no test is left by the options.
    """
    start = monotonic()
    settings = replace(request.settings, correctness_only=True)  # so the device is not measured
    with contextlib.ExitStack() as cleanup, raise_on_signals():
        one = replace(request, settings=settings, gpus=request.gpus[:1])
        pool = _make_pool(one, logs, lambda _: None, progress, {})
        cleanup.callback(pool.close)
        progress.begin("judge", f"the tests of {settings.suite} listed")
        pool.begin()
        about = pool.open(lambda: progress.tick(monotonic() - start))
        tests = check_tests(request.settings, about)
        progress.end(plural(len(tests), "test"))
        return tests, about


def _make_pool(
    request: EvaluationRequest,
    logs: Path,
    settle: Callable[[JobOutcome], None],
    progress: Progress,
    env: Mapping[str, str],
) -> WorkerPool:
    """A judge for each device: it sees that one alone, and so do the processes of its kernels."""
    logs.mkdir(parents=True, exist_ok=True)
    names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen: Sequence[Mapping[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
    commands = [judge_command(logs, {**env, **visible}, slot) for slot, visible in enumerate(seen)]
    return WorkerPool(
        [WorkerClient(command) for command in commands],
        settle,
        timeout=seconds_of_a_test(request.settings),
        settings=plain_settings(request.settings),
        check=check_judge,
        note=progress.note,
        host_of=(lambda _: "") if request.serial else None,
    )


def _make_pool_elsewhere(
    request: EvaluationRequest,
    elsewhere: PlaceSlots,
    settle: Callable[[JobOutcome], None],
    progress: Progress,
) -> WorkerPool:
    chosen = request.settings
    files = (*chosen.source.paths, *filter(None, [chosen.suite_path]))
    patient = {WAIT_POLICY: "passive"}
    judges = tuple({**patient, "CUDA_VISIBLE_DEVICES": gpu} for gpu in request.gpus) or (patient,)
    locks = chosen.device.startswith("cuda")
    judge = SlotWork(JUDGE, (f"{OUT}/logs", 0, True), judges, files, locks, check_about)
    elsewhere.connect(judge, progress)
    source = replace(chosen.source, paths=tuple(map(from_here, chosen.source.paths)))
    path = from_here(chosen.suite_path) if chosen.suite_path else ""
    there = replace(request, settings=replace(chosen, source=source, suite_path=path))
    return WorkerPool(
        elsewhere.workers,
        settle,
        timeout=seconds_of_a_test(request.settings),
        settings=plain_settings(there.settings),
        moves=True,
        check=check_judge,
        note=progress.note,
        host_of=elsewhere.host_of if request.serial else None,
    )


def _open_journal(request: EvaluationRequest) -> EvaluationJournal:
    if (request.folder / journals.FILE).is_file():
        return journals.reopen_journal(request.folder)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return journals.create_journal(request, started)


def _open(
    request: EvaluationRequest, journal: EvaluationJournal, pool: WorkerPool, progress: Progress, start: float
) -> tuple[EvaluationTest, ...]:
    """Start the judge; the tests, which it lists in the first session."""
    listed = "and the device measured" if not request.settings.correctness_only else ""
    progress.begin("judge", f"the tests of {request.settings.suite} listed {listed}".strip())
    pool.begin()
    about = pool.open(lambda: progress.tick(monotonic() - start))
    known = journal.contents.about
    if known and "usage" not in about and known.get("device") != about["device"]:
        raise UsageError(
            f"the evaluation in {request.folder} began on {known.get('device')}, and this is {about['device']}: "
            "its tests could not be compared",
            "--output FOLDER begins a new one",
        )
    if not known or "usage" in about:
        check_tests(request.settings, about)
        journal.describe(about)
    tests = journal.contents.tests
    operations = {test.operation for test in tests}
    progress.end(
        f"{plural(len(tests), 'test')} of {plural(len(operations), 'operation')} on {about['device']}"
    )
    return tests


def _left(
    request: EvaluationRequest, journal: EvaluationJournal, tests: Sequence[EvaluationTest]
) -> list[EvaluationTest]:
    """The tests without a result, and with `again` those that did not pass."""
    known = journal.contents.results
    return [
        test
        for test in tests
        if (result := known.get(test.id)) is None
        or result.status == "lost"
        or (request.again and result.status != "passed")
    ]


def _batches(tests: Sequence[EvaluationTest], journal: EvaluationJournal) -> list[Batch]:
    shared = {"ceilings": journal.contents.about.get("ceilings")}
    return [
        Batch(tuple(Job(test.id, codec.to_plain_data(test)) for test in group), shared)
        for _, group in groupby(tests, key=lambda test: test.operation)
    ]


def _describe(
    request: EvaluationRequest, left: Sequence[EvaluationTest], tests: Sequence[EvaluationTest]
) -> str:
    """`48 tests, 11 of them timed; 20 known already`."""
    known, timed = len(tests) - len(left), sum(test.timed for test in left)
    text = plural(len(left), "test")
    if not request.settings.correctness_only:
        text += f", {timed} of them timed"
    return text + (f"; {known} known already" if known else "")


class _Counts:
    """How far the tests are that were `left`, and how long the rest may take."""

    def __init__(self, left: Sequence[EvaluationTest]) -> None:
        self._left = Counter(test.timed for test in left)
        self._done: Counter[bool] = Counter()
        self._spent = {True: 0.0, False: 0.0}  # of tests that are timed or not
        self._failed = 0

    @property
    def done(self) -> int:
        """Tests that have a result."""
        return self._done.total()

    def add(self, result: TestResult) -> None:
        """Another test has its result."""
        self._done[result.test.timed] += 1
        self._spent[result.test.timed] += result.spent
        self._failed += result.status not in ("passed", *UNDECIDED)

    def describe(self) -> str:
        """`120 of 5,096 tests, 3 not correct, about 40 s left`."""
        failed = f", {self._failed} not correct" if self._failed else ""
        text = f"{self.done:,} of {plural(self._left.total(), 'test')}{failed}"
        if not self.done:
            return text
        overall = sum(self._spent.values()) / self.done
        rest = sum(
            (count - self._done[timed])
            * (self._spent[timed] / self._done[timed] if self._done[timed] else overall)
            for timed, count in self._left.items()
        )
        return f"{text}, about {format_duration(rest)} left"
