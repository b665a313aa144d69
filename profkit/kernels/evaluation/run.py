"""Running an evaluation: every test gets exactly one status, which is stored at once.

This also holds the judge's process: how it is started, and what its answers mean.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import MachineError, Progress, UnreadableReport, UsageError
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.formatting import format_duration, plural
from profkit.core.signals import defer_interrupts
from profkit.core.types import (
    EvaluationDocument,
    EvaluationTest,
    Fact,
    Json,
    MeasuredCeilings,
    TestResult,
)
from profkit.execution.child import JobStatus, WorkerClient
from profkit.execution.journal import Journal, open_journal
from profkit.execution.places.kinds import words_of
from profkit.execution.places.there import OUT
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.kernels.campaign import (
    Campaign,
    Code,
    open_campaign,
    resume_line,
)
from profkit.kernels.devices import check_device, device_names
from profkit.kernels.evaluation.request import (
    FORMAT,
    WAIT_POLICY,
    EvaluationRequest,
    JudgeSettings,
    find_result,
    header_of,
    make_document,
    read_request,
    require_code,
    tests_of,
    was_started,
)
from profkit.kernels.places import PlaceSlots, SlotWork, from_here

WriteResults = Callable[[Path, EvaluationDocument], Sequence[str]]
# By name: it is made in another process, perhaps on another machine, and imports torch, which this one does not need.
EVALUATOR = "profkit.kernels.evaluation.evaluator:Evaluator"
PATIENCE = 120.0  # seconds that the judge gets above what a kernel may take: truth in float64, a process started anew


def run_evaluation(
    request: EvaluationRequest,
    progress: Progress,
    write: WriteResults = lambda *_: (),
    elsewhere: PlaceSlots | None = None,
) -> EvaluationDocument:
    """Give every test its status; those with a result in the folder are not run again. `write` writes the files.

    The judge runs here, or one at each place `elsewhere`.

    Raises MachineError where nothing can be measured or written, UsageError where the options leave no test, and
    Interrupted after a Ctrl-C: results so far are kept, and `--resume` goes on.
    """
    line = resume_line("profkit evaluate", request.folder, request.settings.code(), elsewhere)
    write_all = partial(_write, request, write, progress)
    with open_campaign(FORMAT, request.folder, header_of(request), progress, line, write_all) as campaign:
        tests = tests_of(campaign.about)
        if not tests or _left(campaign.journal, tests):
            _test(request, campaign, elsewhere)
            gone = format_duration(campaign.journal.session_seconds)
            progress.end(f"{plural(campaign.settled, 'test')} in {gone}")
    document: EvaluationDocument = campaign.result
    return document


def _test(request: EvaluationRequest, campaign: Campaign[TestResult], elsewhere: PlaceSlots | None) -> None:
    """Run the tests without a result. Raises MachineError where that cannot be done."""
    logs, settings = request.folder / "logs", request.settings

    def settle(outcome: JobOutcome) -> None:
        started = was_started(logs, outcome.slot, outcome.job.key)
        if (result := test_result(outcome, started=started)) is not None:
            campaign.settle(result.test.id, result)

    # What kernels leave in this folder goes, too, where the judge is killed.
    scratch = TemporaryFolder()
    campaign.at_end(scratch.cleanup)
    pool = campaign.open_pool(
        settle,
        _slot_work(request),
        lambda: _judges(request, logs, {"TMPDIR": scratch.name}),
        elsewhere,
        gpus=request.gpus if settings.device.startswith("cuda") else None,
        timeout=seconds_of_a_test(settings),
        settings=plain_settings(settings if elsewhere is None else _settings_there(settings)),
        check=check_judge,
    )
    tests = _open(request, campaign, pool)
    left = _left(campaign.journal, tests)
    known = f"; {len(tests) - len(left)} known already" if len(left) < len(tests) else ""
    campaign.begin("evaluate", plural(len(left), "test") + known, len(left))
    ceilings = campaign.about.get("ceilings")
    groups = [
        [Job(test.id, {"test": codec.to_plain_data(test), "ceilings": ceilings}) for test in group]
        for _, group in groupby(left, key=lambda test: test.operation)
    ]
    campaign.do(pool, groups, campaign.tick)


def update_result(
    folder: Path, result: TestResult, progress: Progress, write: WriteResults
) -> EvaluationDocument:
    """Replace a stored result, for example with a link to its profile, and write the results again.

    Raises UnreadableReport, UsageError and MachineError where the evaluation in `folder` cannot be read and
    written.
    """
    request = read_request(folder)
    with defer_interrupts():
        journal = open_journal(folder, FORMAT, {})
        try:
            journal.settle(result.test.id, result)
            return _write(request, write, progress, journal)
        finally:
            journal.close()


def replay_test(
    folder: Path, test: str, progress: Progress, named: Sequence[Code] = ()
) -> EvaluationDocument:
    """Run the test whose id begins with `test` again, with the same arguments; nothing in `folder` changes.

    Raises UnreadableReport where no evaluation is in the folder, and UsageError where it has no such test, or
    runs code that is not `named`.
    """
    request = read_request(folder)
    line = f"profkit evaluate --replay {shlex.quote(test)} {shlex.quote(str(folder))}"
    require_code(request, named, line, file_option="--kernels")
    known = find_result(folder, test).test
    settings = replace(request.settings, operations=(known.operation,), only=(known.id,))
    with TemporaryFolder("replay") as own:
        return run_evaluation(replace(request, settings=settings, folder=Path(own)), progress)


def _judges(request: EvaluationRequest, logs: Path, env: Mapping[str, str]) -> list[WorkerClient]:
    """Return a judge for each device: it sees only that device, and so do the processes of its kernels."""
    logs.mkdir(parents=True, exist_ok=True)
    names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen: Sequence[Mapping[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
    return [judge_client(logs, {**env, **visible}, slot) for slot, visible in enumerate(seen)]


def _slot_work(request: EvaluationRequest) -> SlotWork:
    """Return the work of a judge for each device of another place."""
    chosen = request.settings
    files = (*chosen.source.paths, *filter(None, [chosen.suite_path]))
    patient = {WAIT_POLICY: "passive"}
    judges = tuple({**patient, "CUDA_VISIBLE_DEVICES": gpu} for gpu in request.gpus) or (patient,)
    locks = chosen.device.startswith("cuda")
    return SlotWork(EVALUATOR, (f"{OUT}/logs", 0, True), judges, files, locks, check_about)


def _settings_there(settings: JudgeSettings) -> JudgeSettings:
    """Return the settings with paths as another place knows them."""
    source = replace(settings.source, paths=tuple(map(from_here, settings.source.paths)))
    path = from_here(settings.suite_path) if settings.suite_path else ""
    return replace(settings, source=source, suite_path=path)


def _open(
    request: EvaluationRequest, campaign: Campaign[TestResult], pool: WorkerPool
) -> tuple[EvaluationTest, ...]:
    """Start the judge and return the tests, which it lists in the first session."""
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


def _left(journal: Journal[TestResult], tests: Sequence[EvaluationTest]) -> list[EvaluationTest]:
    """Return the tests without a result, or whose result was lost."""
    known = journal.contents.outcomes
    return [test for test in tests if test.id not in known or known[test.id].status == "lost"]


def _write(
    request: EvaluationRequest, write: WriteResults, progress: Progress, journal: Journal[TestResult]
) -> EvaluationDocument:
    """Write the results, note what could not be written, and return the document."""
    document = make_document(request, journal.contents, journal.seconds)
    for why in write(request.folder, document):
        progress.note(why)
    return document


# ---------------------------------------------------------------- the judge's process


def judge_client(logs: Path, env: Mapping[str, str], slot: int = 0) -> WorkerClient:
    """Return a client for a judge, whose threads wait asleep unless the user has chosen how threads wait."""
    patient = WAIT_POLICY not in os.environ
    waiting = {WAIT_POLICY: "passive"} if patient else {}
    return WorkerClient(
        EVALUATOR, (str(logs), slot, patient), env={**env, **waiting}, log=logs / f"judge-{slot}.log"
    )


def seconds_of_a_test(settings: JudgeSettings) -> float:
    """Return the seconds that the judge gets for one test before it counts as hanging."""
    return 2 * settings.timeout + PATIENCE


def plain_settings(settings: JudgeSettings) -> Mapping[str, object]:
    """Return the settings as plain data, as they travel to a judge."""
    plain = codec.to_plain_data(settings)
    assert isinstance(plain, dict)
    return plain


def check_judge(slot: int, about: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Raise MachineError where a judge cannot have its device, or has another kind of device than the first."""
    if "usage" in about:
        raise MachineError(*about["usage"])
    if "usage" not in first:
        check_device(slot, about, first)


@dataclass(frozen=True)
class _About:
    """The part of a judge's description of itself that is read here."""

    device: str
    versions: Mapping[str, str]
    tests: tuple[EvaluationTest, ...] = ()
    without_kernel: tuple[str, ...] = ()
    notes: tuple[Fact, ...] = ()
    ceilings: Mapping[str, MeasuredCeilings] = field(default_factory=dict)


def check_about(about: Json, title: str) -> Json:
    """Check how a judge at another place describes itself. Raises UnreadableReport where the form is wrong."""
    if not isinstance(about, dict) or "usage" not in about:
        codec.from_plain_data(_About, about)
        return about
    usage = codec.from_plain_data(tuple[str | None, ...], about["usage"], "usage")
    if len(usage) != 2:
        raise UnreadableReport("usage is not a message with its fix")
    return {"usage": list(words_of(title, *usage))}


def check_tests(settings: JudgeSettings, about: Mapping[str, Any]) -> tuple[EvaluationTest, ...]:
    """Return the tests that the judge lists. Raises UsageError where there are none, or it cannot make any."""
    if "usage" in about:
        raise UsageError(*about["usage"])
    if tests := tests_of(about):
        return tests
    if about.get("without_kernel"):
        raise UsageError(
            f"no operation of the suite {settings.suite} has a kernel there",
            "--ops NAME says what is missing"
            + ("" if settings.suite == "opinfo" else "; --suite opinfo has more operations"),
        )
    raise UsageError(
        f"no test of the suite {settings.suite} is left by these options",
        "leave out --ops, or name others",
    )


def test_result(outcome: JobOutcome, *, started: bool) -> TestResult | None:
    """Return the result of a test by the outcome of its job; None where it was not run.

    What ends the judge itself is PyTorch's own kernel, or the making of arguments: nobody's kernel runs there.
    But a kernel that was `started` for runs beside it, and may have ended it: then the test counts, so that no
    kernel escapes its test by what it does.
    """
    data: Any = outcome.job.data
    test = codec.from_plain_data(EvaluationTest, data["test"])
    reason = Fact.message(outcome.reason)
    result = TestResult(test, "lost", reason, spent=outcome.seconds)
    if outcome.status is JobStatus.cancelled:
        return None
    if outcome.status is JobStatus.ok:
        try:
            answer = codec.from_plain_data(TestResult, outcome.value, "answer")
        except UnreadableReport as error:
            return replace(result, reason=Fact.of("wrong-answer", Fact.message(error.message)))
        if answer.test.id != test.id:
            return replace(result, reason=Fact("not-asked-for"))
        return answer
    if started and outcome.status is not JobStatus.lost:
        result = replace(result, reason=Fact.of("judge-ended", reason))
    elif outcome.status is not JobStatus.lost:
        result = replace(result, status="skipped", reason=Fact.of("reference-ended", reason))
    return result


test_result.__test__ = False  # type: ignore[attr-defined]  # for pytest
