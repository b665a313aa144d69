"""Running a sweep: a grid in, every case settled and stored, one document out.

There is a worker for each device. All implementations of a point are measured in succession, so that a drift
of the device's clock or temperature affects all of them alike.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from profkit.core import codec
from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import Progress, UnreadableReport, UsageError
from profkit.core.formatting import plural
from profkit.core.types import CaseResult, CaseState, Fact, GridPoint, Json, MeasuredCeilings, SweepDocument
from profkit.execution.child import JobStatus, WorkerClient
from profkit.execution.journal import Journal
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.kernels.campaign import Campaign, open_campaign, resume_line
from profkit.kernels.devices import check_device, device_names
from profkit.kernels.places import PlaceSlots, SlotWork, from_here
from profkit.kernels.sweep.outputs import write_results
from profkit.kernels.sweep.request import (
    FORMAT,
    LOG,
    SweepRequest,
    case_id,
    header_of,
    sweep_document,
    with_options,
)

Work: TypeAlias = tuple[GridPoint, tuple[str, ...]]  # a point, and the implementations that are left of it
MEASURES = "profkit.kernels.sweep.bench:MeasuringWorker"
STATES: Mapping[JobStatus, CaseState] = {  # of what the worker could not say itself
    JobStatus.error: "failed",
    JobStatus.crash: "crashed",
    JobStatus.timeout: "timed out",
    JobStatus.out_of_memory: "too large",
}


def run_sweep(
    request: SweepRequest, progress: Progress, elsewhere: PlaceSlots | None = None
) -> SweepDocument:
    """Settle every case of the grid and write the results.

    Cases with a result in the folder are not measured again. Workers run here, or `elsewhere`.

    Raises MachineError where nothing can be measured or written, and Interrupted after a Ctrl-C: what was
    measured is kept, and the same call goes on.
    """
    header = header_of(request, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    line = resume_line("profkit sweep", request.folder, with_options(request.files), elsewhere)
    write = partial(_write_all, request, progress)
    with open_campaign(FORMAT, request.folder, header, progress, line, write) as campaign:
        if work := _left(request, campaign.journal):
            _measure(request, work, campaign, elsewhere)
            progress.end(f"{plural(campaign.settled, 'case')} in {campaign.journal.session_seconds:.0f} s")
    document: SweepDocument = campaign.result
    return document


def _measure(
    request: SweepRequest, work: Sequence[Work], campaign: Campaign[CaseResult], elsewhere: PlaceSlots | None
) -> None:
    """Measure the cases that are left. Raises MachineError where some of them cannot be done."""
    cases = sum(len(names) for _, names in work)

    def settle(outcome: JobOutcome) -> None:
        if (result := case_result(outcome)) is not None:
            campaign.settle(case_id(result.point, result.implementation), result)

    pool = campaign.open_pool(
        settle,
        slot_work(request),
        lambda: measuring_workers(request),
        elsewhere,
        gpus=request.gpus if request.device == "cuda" else None,
        timeout=request.timeout,
        settings={"timing": asdict(request.timing)},
        check=check_device,
    )
    _open_device(request, campaign, pool)

    known = len(campaign.journal.contents.outcomes)  # in earlier sessions
    before = f", {known} known already" if known else ""
    groups = [jobs_of(*each) for each in work]
    campaign.begin("sweep", f"{plural(cases, 'case')} to measure{before}", cases)
    campaign.do(pool, groups, campaign.tick)


def case_result(outcome: JobOutcome) -> CaseResult | None:
    """Return the result of a case by the outcome of its job; None where it was not settled."""
    data: Any = outcome.job.data
    point, name = codec.from_plain_data(GridPoint, data["point"]), data["implementation"]
    if outcome.status is JobStatus.ok:
        try:
            result = codec.from_plain_data(CaseResult, outcome.value, "result")
        except UnreadableReport as error:
            reason = Fact.of("wrong-answer", Fact.message(error.message))
        else:
            if (result.point, result.implementation) == (point, name):
                return replace(result, device=outcome.slot)
            reason = Fact("not-asked-for")
        outcome = replace(outcome, status=JobStatus.crash)
    else:
        reason = Fact.message(outcome.reason)
    if outcome.status not in STATES:
        return None
    state, spent = STATES[outcome.status], outcome.seconds
    return CaseResult(point, name, state, reason, spent=spent, device=outcome.slot)


def _open_device(request: SweepRequest, campaign: Campaign[CaseResult], pool: WorkerPool) -> None:
    """Start the workers and measure the device's ceilings.

    Raises UsageError where the sweep began on another device, or with other versions.
    """
    progress = campaign.progress
    progress.begin("device", "its name, and its bandwidth and arithmetic measured")
    about = campaign.open_workers(pool)
    for word in ("device", "versions"):
        if (before := campaign.about.get(word, about[word])) != about[word]:
            message = (
                f"the sweep in {request.folder} began with {word} {before}, and here it is {about[word]}"
            )
            raise UsageError(
                f"{message}: its cases could not be compared", "--output FOLDER begins a new one"
            )
    if "device" not in campaign.about:
        campaign.journal.note(**{word: about[word] for word in ("device", "versions", "roofs")})
    roofs = codec.from_plain_data(MeasuredCeilings, campaign.about["roofs"])
    reached = f", {roofs.bandwidth / 1e9:.0f} GB/s" if roofs.bandwidth else ""
    devices = f", {pool.serving} of them" if pool.serving > 1 else ""
    progress.end(f"{about['device']}{devices}{reached}")


def _left(request: SweepRequest, journal: Journal[CaseResult]) -> list[Work]:
    """Return every point with the implementations that are not settled yet."""
    known = journal.contents.outcomes
    work: list[Work] = []
    for point in request.grid.points():
        names = tuple(
            name
            for name in request.grid.implementations_of(point.operation)
            if case_id(point, name) not in known
        )
        if names:
            work.append((point, names))
    return work


def _write_all(request: SweepRequest, progress: Progress, journal: Journal[CaseResult]) -> SweepDocument:
    """Write the results beside the journal. Raises MachineError where the disk is full."""
    document = sweep_document(request, journal.contents, journal.seconds)
    for why in write_results(request.folder, document, request.grid, request.timing.precision, request.name):
        progress.note(why)
    return document


# ---------------------------------------------------------------- the processes, and what they do in which order


def measuring_workers(request: SweepRequest) -> list[WorkerClient]:
    """Return a worker for each device; each sees only that device."""
    arguments, log = (_device(request), *request.files), request.folder / LOG
    return [WorkerClient(MEASURES, arguments, env=env, log=log) for env in _environments(request)]


def slot_work(request: SweepRequest) -> SlotWork:
    """Return the work of each slot of another place: a measuring worker for each named GPU, else one."""
    arguments = (_device(request), *map(from_here, request.files))
    if request.device != "cuda":
        environments: tuple[Mapping[str, str], ...] = ({"CUDA_VISIBLE_DEVICES": ""},)
    else:
        environments = tuple({"CUDA_VISIBLE_DEVICES": gpu} for gpu in request.gpus) or ({},)
    locks = request.device == "cuda"
    return SlotWork(MEASURES, arguments, environments, request.files, locks, _check_about)


@dataclass(frozen=True, kw_only=True)
class _About:
    """A worker's description of itself."""

    device: str
    versions: Mapping[str, str]
    roofs: MeasuredCeilings | None = None  # of the first one


def _check_about(about: Json, title: str) -> Json:  # noqa: ARG001
    """Check a worker's description of itself. Raises UnreadableReport."""
    from_plain_data(_About, about)
    return about


def _device(request: SweepRequest) -> str:
    """Return the device as torch names it."""
    return "cuda:0" if request.device == "cuda" else request.device


def _environments(request: SweepRequest) -> list[Mapping[str, str]]:
    """Return each worker's environment: its device, and where Triton keeps its kernels.

    A process in which Inductor has run would keep them in Inductor's folder, and not find what others compiled.
    """
    if request.device != "cuda":
        return [{"CUDA_VISIBLE_DEVICES": ""}]
    home = Path(os.environ.get("TRITON_HOME") or "~").expanduser()
    cache = os.environ.get("TRITON_CACHE_DIR") or str(home / ".triton" / "cache")
    names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen: list[dict[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
    return [{"TRITON_CACHE_DIR": cache, **each} for each in seen]


def jobs_of(point: GridPoint, names: Sequence[str]) -> list[Job]:
    """Return the jobs at one point, for one worker, which makes inputs and reference once for all of them."""
    plain = to_plain_data(point)
    return [Job(case_id(point, name), {"point": plain, "implementation": name}) for name in names]
