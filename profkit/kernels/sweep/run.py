"""Runs a sweep: a grid in, every case settled and stored, one document out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.types import CaseResult, CaseState, GridPoint, MeasuredCeilings, SweepDocument
from profkit.execution.job import JobOutcome, JobQueue, JobStatus
from profkit.execution.journal import Journal
from profkit.execution.pool import WorkerPool
from profkit.kernels.campaign import Campaign, open_campaign, resume_line, update_outcome
from profkit.kernels.devices import check_device
from profkit.kernels.places import PlaceSlots
from profkit.kernels.sweep import workers
from profkit.kernels.sweep.outputs import load_reports, write_results
from profkit.kernels.sweep.plan import format_duration
from profkit.kernels.sweep.request import (
    FORMAT,
    SweepRequest,
    case_id,
    header_of,
    sweep_document,
    with_options,
)
from profkit.kernels.sweep.workers import Work, batch_of, small_last

STATES: Mapping[JobStatus, CaseState] = {  # of what the worker could not say itself
    JobStatus.error: "failed",
    JobStatus.crash: "crashed",
    JobStatus.timeout: "timed out",
    JobStatus.out_of_memory: "too large",
    JobStatus.device_error: "crashed",
}
ENOUGH = 8  # cases after which what they took says how long the rest may take


def run_sweep(
    request: SweepRequest, progress: Progress, elsewhere: PlaceSlots | None = None
) -> SweepDocument:
    """Settle every case of the grid and write the results; those that the folder knows already are not measured again.

    Workers run here, or `elsewhere`.

    Raises MachineError where nothing can be measured or written, and Interrupted after a Ctrl-C: what was measured is
    kept, and the same call goes on.
    """
    documents: list[SweepDocument] = []

    def write(journal: Journal[CaseResult]) -> None:
        documents.append(_write_all(request, journal, progress))

    header = header_of(request, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    line = resume_line("profkit sweep", request.folder, with_options(request.files), elsewhere)
    with open_campaign(FORMAT, request.folder, header, progress, line, write) as campaign:
        if work := _left(request, campaign.journal):
            _measure(request, work, campaign, elsewhere)
            progress.end(f"{plural(campaign.settled, 'case')} in {campaign.journal.session_seconds:.0f} s")
    return documents[-1]


def _measure(
    request: SweepRequest, work: Sequence[Work], campaign: Campaign[CaseResult], elsewhere: PlaceSlots | None
) -> None:
    """Do the work. Raises MachineError where some of it cannot be done."""
    cases = sum(len(names) for _, names in work)

    def settle(outcome: JobOutcome) -> None:
        place = elsewhere.workers[outcome.slot].title if elsewhere is not None else None
        if (result := case_result(outcome, place)) is not None:
            campaign.settle(case_id(result.point, result.implementation), result)

    pool = campaign.open_pool(
        settle,
        workers.slot_work(request),
        lambda: workers.measuring_workers(request),
        elsewhere,
        gpus=request.gpus if request.device == "cuda" else None,
        timeout=request.timeout,
        settings={"timing": asdict(request.timing), "share": 1 / max(1, len(request.gpus))},
        check=check_device,
    )
    _open_device(request, campaign, pool)
    begun = monotonic()

    def describe() -> str:
        done = campaign.settled
        each = (monotonic() - begun) / max(1, done)
        rest = f", about {format_duration((cases - done) * each)} left" if done >= ENOUGH else ""
        return f"{done} of {cases} cases{rest}"

    known = len(campaign.journal.contents.outcomes)  # in earlier sessions
    before = f", {known} known already" if known else ""
    batches = [batch_of(*each) for each in small_last(work, pool.serving)]
    campaign.begin("sweep", f"{plural(cases, 'case')} to measure{before}", cases, describe)
    campaign.do(pool, JobQueue(batches), elsewhere, campaign.tick)


def update_case(request: SweepRequest, result: CaseResult, progress: Progress) -> SweepDocument:
    """Store a case anew, with a link to its profile for one, and write the results once more."""
    documents: list[SweepDocument] = []

    def write(journal: Journal[CaseResult]) -> None:
        documents.append(_write_all(request, journal, progress))

    update_outcome(FORMAT, request.folder, case_id(result.point, result.implementation), result, write)
    return documents[-1]


def case_result(outcome: JobOutcome, place: str | None = None) -> CaseResult | None:
    """The result of a case at a `place`, by the outcome of its job; None where it was not settled."""
    point, name = codec.from_plain_data(GridPoint, outcome.shared), outcome.job.key
    if outcome.status is JobStatus.ok:
        try:
            result = codec.from_plain_data(CaseResult, outcome.value, "result")
        except UnreadableReport as error:
            reason = f"its process gave a wrong answer: {error.message}"
        else:
            if (result.point, result.implementation) == (point, name):
                return replace(result, device=outcome.slot, place=place)
            reason = "its process answered what it was not asked"
        outcome = replace(outcome, status=JobStatus.crash, reason=reason)
    if outcome.status not in STATES:
        return None
    state, spent = STATES[outcome.status], outcome.seconds
    return CaseResult(point, name, state, outcome.reason, spent=spent, device=outcome.slot, place=place)


def _open_device(request: SweepRequest, campaign: Campaign[CaseResult], pool: WorkerPool) -> None:
    """Start the workers and measure what the device can do. Raises UsageError where the sweep began on another one."""
    progress = campaign.progress
    progress.begin("device", "its name, and its bandwidth and arithmetic measured")
    about = campaign.open_workers(pool, meanwhile=load_reports)
    for word in ("device", "versions"):
        before = campaign.about.get(word, about[word])
        if before != about[word]:
            raise UsageError(
                f"the sweep in {request.folder} began with {word} {_version_text(before)}, and here it is "
                f"{_version_text(about[word])}: its cases could not be compared",
                "--output FOLDER begins a new one",
            )
    if "device" not in campaign.about:
        campaign.journal.note(**{word: about[word] for word in ("device", "versions", "roofs")})
    roofs = codec.from_plain_data(MeasuredCeilings, campaign.about["roofs"])
    reached = f", {roofs.bandwidth / 1e9:.0f} GB/s" if roofs.bandwidth else ""
    devices = f", {pool.serving} of them" if pool.serving > 1 else ""
    progress.end(f"{about['device']}{devices}{reached}")


def _version_text(value: Any) -> str:
    return (
        ", ".join(f"{name} {version}" for name, version in value.items())
        if isinstance(value, dict)
        else str(value)
    )


def _left(request: SweepRequest, journal: Journal[CaseResult]) -> list[Work]:
    """Every point with the implementations that are not settled yet."""
    known = journal.contents.outcomes
    work: list[Work] = []
    for point in request.grid.points():
        names = tuple(
            name
            for name in request.grid.implementations_of(point.operation)
            if (result := known.get(case_id(point, name))) is None
            or (request.again and result.state != "measured")
        )
        if names:
            work.append((point, names))
    return work


def _write_all(request: SweepRequest, journal: Journal[CaseResult], progress: Progress) -> SweepDocument:
    """Write the results beside the journal. Raises MachineError where the disk takes no more."""
    document = sweep_document(request, journal.read(), journal.seconds)
    for why in write_results(request.folder, document, request.grid, request.timing.precision, request.name):
        progress.note(why)
    return document
