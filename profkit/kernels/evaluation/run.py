"""Runs an evaluation: tests in, every one with exactly one status, stored as it comes."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import UsageError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.types import UNDECIDED, EvaluationDocument, EvaluationTest, TestResult
from profkit.execution.client import WorkerClient
from profkit.execution.job import Batch, FifoQueue, Job, JobOutcome
from profkit.execution.journal import Journal
from profkit.execution.places.there import OUT
from profkit.execution.pool import WorkerPool
from profkit.kernels.campaign import Campaign, Code, open_campaign, resume_line, update_outcome
from profkit.kernels.devices import device_names
from profkit.kernels.evaluation.journal import (
    FORMAT,
    header_of,
    make_document,
    read_document,
    read_request,
    require_code,
    tests_of,
)
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
from profkit.kernels.evaluation.request import WAIT_POLICY, EvaluationRequest, JudgeSettings, was_asked
from profkit.kernels.places import PlaceSlots, SlotWork, from_here
from profkit.kernels.sweep.plan import format_duration

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
    documents: list[EvaluationDocument] = []

    def write_all(journal: Journal[TestResult]) -> None:
        documents.append(_write(request, journal, write, progress))

    line = resume_line("profkit evaluate", request.folder, request.settings.code(), elsewhere)
    with open_campaign(FORMAT, request.folder, header_of(request), progress, line, write_all) as campaign:
        tests = tests_of(campaign.about)
        if not tests or _left(request, campaign.journal, tests):
            _test(request, campaign, elsewhere)
            gone = format_duration(campaign.journal.session_seconds)
            progress.end(f"{plural(campaign.settled, 'test')} in {gone}")
    return documents[-1]


def _test(request: EvaluationRequest, campaign: Campaign[TestResult], elsewhere: PlaceSlots | None) -> None:
    """Do what is left. Raises MachineError where that cannot be done."""
    logs, settings = request.folder / "logs", request.settings
    counts = _Counts(())

    def settle(outcome: JobOutcome) -> None:
        asked = was_asked(logs, outcome.slot, outcome.job.key)
        if (result := test_result(outcome, asked=asked)) is not None:
            campaign.settle(result.test.id, result)
            counts.add(result)

    # What kernels leave in this folder goes, too, where the judge is killed.
    scratch = TemporaryFolder()
    campaign.at_end(scratch.cleanup)
    pool = campaign.open_pool(
        settle,
        _slot_work(request),
        lambda: _judges(request, logs, {"TMPDIR": scratch.name}),
        elsewhere,
        gpus=request.gpus if settings.device.startswith("cuda") else None,
        serial=request.serial,
        timeout=seconds_of_a_test(settings),
        settings=plain_settings(settings if elsewhere is None else _settings_there(settings)),
        check=check_judge,
    )
    tests = _open(request, campaign, pool)
    left = _left(request, campaign.journal, tests)
    counts = _Counts(left)
    campaign.begin("evaluate", _describe(request, left, tests), len(left), lambda: counts.describe())
    shared = {"ceilings": campaign.about.get("ceilings")}
    batches = [
        Batch(tuple(Job(test.id, codec.to_plain_data(test)) for test in group), shared)
        for _, group in groupby(left, key=lambda test: test.operation)
    ]
    campaign.do(pool, FifoQueue(batches), campaign.tick)


def update_result(
    folder: Path, result: TestResult, progress: Progress, write: WriteResults
) -> EvaluationDocument:
    """Store a result anew, with a link to its profile for one, and write the results once more.

    Raises UnreadableReport, UsageError and MachineError where the evaluation in `folder` cannot be read and written.
    """
    documents: list[EvaluationDocument] = []

    def write_all(journal: Journal[TestResult]) -> None:
        documents.append(_write(read_request(folder), journal, write, progress))

    update_outcome(FORMAT, folder, result.test.id, result, write_all)
    return documents[-1]


def replay_test(
    folder: Path, test: str, progress: Progress, named: Sequence[Code] = ()
) -> EvaluationDocument:
    """Do the test whose id begins with `test` again, with the same arguments; nothing in `folder` changes.

    Raises UnreadableReport where no evaluation is in the folder, and UsageError where it has no such test, or runs code
    that is not `named`.
    """
    request, document = read_request(folder), read_document(folder)
    line = f"profkit evaluate --replay {shlex.quote(test)} {shlex.quote(str(folder))}"
    require_code(request, named, line, file_option="--kernels")
    known = [result.test for result in document.results if result.test.id.startswith(test)]
    if len(known) != 1:
        some = ", ".join(result.test.id for result in document.results[:3])
        raise UsageError(
            f"the evaluation in {folder} has {len(known) or 'no'} tests that begin with {test}",
            f"--replay with one of {some} ...",
        )
    settings = replace(request.settings, operations=(known[0].operation,), only=(known[0].id,))
    with TemporaryFolder("replay") as own:
        return run_evaluation(replace(request, settings=settings, folder=Path(own)), progress)


def list_tests(
    request: EvaluationRequest, logs: Path, progress: Progress
) -> tuple[tuple[EvaluationTest, ...], dict[str, Any]]:
    """The tests of an evaluation, and what the judge says of itself; none is done.

    Raises MachineError where no judge can be started, UsageError where no test is left by the options.
    """
    start = monotonic()
    settings = replace(request.settings, correctness_only=True)  # so the device is not measured
    with ExitStack() as cleanup:
        judges = _judges(replace(request, gpus=request.gpus[:1]), logs, {})
        pool = WorkerPool(
            judges, lambda _: None, timeout=seconds_of_a_test(settings), settings=plain_settings(settings)
        )
        cleanup.callback(pool.close)
        progress.begin("judge", f"the tests of {settings.suite} listed")
        pool.begin()
        about = pool.open(lambda: progress.tick(monotonic() - start))
        tests = check_tests(request.settings, about)
        progress.end(plural(len(tests), "test"))
        return tests, about


def _judges(request: EvaluationRequest, logs: Path, env: Mapping[str, str]) -> list[WorkerClient]:
    """A judge for each device: it sees that one alone, and so do the processes of its kernels."""
    logs.mkdir(parents=True, exist_ok=True)
    names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen: Sequence[Mapping[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
    return [WorkerClient(judge_command(logs, {**env, **visible}, slot)) for slot, visible in enumerate(seen)]


def _slot_work(request: EvaluationRequest) -> SlotWork:
    """A judge for each device of another place."""
    chosen = request.settings
    files = (*chosen.source.paths, *filter(None, [chosen.suite_path]))
    patient = {WAIT_POLICY: "passive"}
    judges = tuple({**patient, "CUDA_VISIBLE_DEVICES": gpu} for gpu in request.gpus) or (patient,)
    locks = chosen.device.startswith("cuda")
    return SlotWork(JUDGE, (f"{OUT}/logs", 0, True), judges, files, locks, check_about)


def _settings_there(settings: JudgeSettings) -> JudgeSettings:
    """With paths as another place knows them."""
    source = replace(settings.source, paths=tuple(map(from_here, settings.source.paths)))
    path = from_here(settings.suite_path) if settings.suite_path else ""
    return replace(settings, source=source, suite_path=path)


def _open(
    request: EvaluationRequest, campaign: Campaign[TestResult], pool: WorkerPool
) -> tuple[EvaluationTest, ...]:
    """Start the judge; the tests, which it lists in the first session."""
    progress, known = campaign.progress, campaign.about
    listed = "and the device measured" if not request.settings.correctness_only else ""
    progress.begin("judge", f"the tests of {request.settings.suite} listed {listed}".strip())
    about = campaign.open_workers(pool)
    if known and "usage" not in about and known.get("device") != about["device"]:
        raise UsageError(
            f"the evaluation in {request.folder} began on {known.get('device')}, and this is {about['device']}: "
            "its tests could not be compared",
            "--output FOLDER begins a new one",
        )
    if not known or "usage" in about:
        check_tests(request.settings, about)
        campaign.journal.note(**about)
    tests = tests_of(campaign.about)
    operations = {test.operation for test in tests}
    progress.end(
        f"{plural(len(tests), 'test')} of {plural(len(operations), 'operation')} on {about['device']}"
    )
    return tests


def _left(
    request: EvaluationRequest, journal: Journal[TestResult], tests: Sequence[EvaluationTest]
) -> list[EvaluationTest]:
    """The tests without a result, and with `again` those that did not pass."""
    known = journal.contents.outcomes
    return [
        test
        for test in tests
        if (result := known.get(test.id)) is None
        or result.status == "lost"
        or (request.again and result.status != "passed")
    ]


def _write(
    request: EvaluationRequest, journal: Journal[TestResult], write: WriteResults, progress: Progress
) -> EvaluationDocument:
    document = make_document(request, journal.contents, journal.seconds)
    for why in write(request.folder, document):
        progress.note(why)
    return document


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
