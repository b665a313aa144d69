"""Runs a sweep: a grid in, every case settled and stored, one document out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import Interrupted, MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import CaseResult, CaseState, GridPoint, MeasuredCeilings, SweepDocument
from profkit.execution.client import Worker
from profkit.execution.job import JobOutcome, JobStatus
from profkit.execution.pool import TICK_SECONDS, WorkerPool
from profkit.hardware.gpu_locks import lock_gpus
from profkit.kernels.devices import check_device, worker_uuids
from profkit.kernels.named_code import code_options
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.places import PlaceSlots
from profkit.kernels.sweep import journal as journals
from profkit.kernels.sweep import workers
from profkit.kernels.sweep.journal import SweepJournal, sweep_document
from profkit.kernels.sweep.outputs import load_reports, write_results
from profkit.kernels.sweep.plan import TimeLeft, format_duration
from profkit.kernels.sweep.request import SweepRequest, with_options
from profkit.kernels.sweep.schedule import PointQueue, Precompile, Work

REPORT_SECONDS = 2.0  # between two looks at how much is left
STATES: Mapping[JobStatus, CaseState] = {  # of what the worker could not say itself
    JobStatus.error: "failed",
    JobStatus.crash: "crashed",
    JobStatus.timeout: "timed out",
    JobStatus.out_of_memory: "too large",
    JobStatus.device_error: "crashed",
}


@dataclass
class _Session:
    """One call of the sweep: several may share a folder."""

    request: SweepRequest
    journal: SweepJournal
    start: float
    about: dict[str, Any]
    workers: int = 1
    on: str = ""  # the options that name its places

    @property
    def resume_line(self) -> str:
        """What goes on with it."""
        code = code_options(with_options(self.request.files))
        return " ".join(filter(None, (f"profkit sweep --resume {self.request.folder}", code, self.on)))

    @property
    def seconds(self) -> float:
        """Since it began."""
        return monotonic() - self.start


def run_sweep(
    request: SweepRequest, progress: Progress, elsewhere: PlaceSlots | None = None
) -> SweepDocument:
    """Settle every case of the grid and write the results; those that the folder knows already are not measured again.

    Workers run here, or `elsewhere`, where nothing is compiled beforehand.

    Raises MachineError where nothing can be measured or written, UsageError where the folder holds a sweep by other
    rules, and Interrupted after a Ctrl-C: what was measured is kept, and the same call goes on.
    """
    with contextlib.ExitStack() as cleanup, raise_on_signals():
        session = _open_session(request)
        session.on = elsewhere.options if elsewhere is not None else ""
        cleanup.callback(session.journal.close)

        def settle(outcome: JobOutcome) -> None:
            place = elsewhere.workers[outcome.slot].title if elsewhere is not None else None
            if (result := case_result(outcome, place)) is not None:
                session.journal.add(result, session.seconds)
                report.settle(result)

        work = _left(request, session.journal)
        cases = sum(len(names) for _, names in work)
        report = _ProgressReport(progress, session, work, cases)
        clients: Sequence[Worker]
        if elsewhere is None:
            if work and request.device == "cuda":
                cleanup.enter_context(lock_gpus(worker_uuids(request.gpus), progress))
            precompile = Precompile((), ()) if request.serial else workers.compile_workers(request, work)
            clients = workers.measuring_workers(request)
        else:
            precompile = Precompile((), ())
            if work:
                cleanup.callback(elsewhere.close)
                elsewhere.connect(workers.slot_work(request), progress)
            clients = elsewhere.workers
        session.workers = max(1, len(clients))
        pool = WorkerPool(
            clients,
            settle,
            timeout=request.timeout,
            settings={"timing": asdict(request.timing), "share": 1 / max(1, len(request.gpus))},
            standby=() if elsewhere or request.serial else workers.standby_workers(request, work),
            moves=elsewhere is not None,
            check=check_device,
            note=progress.note,
            host_of=_hosts(elsewhere) if request.serial else None,
        )

        def close() -> None:
            precompile.close()
            pool.close()

        cleanup.callback(close)
        try:
            if work:
                _open_device(session, pool, progress)
                if precompile.beside:
                    precompile.begin()  # not before: dozens of processes that load torch would hold the workers up
                else:
                    _compile(session, precompile, progress)
                report.begin()
                queue = PointQueue(work, COMPILED, len(clients), precompile)
                if elsewhere is not None:
                    elsewhere.let_join(pool.add, progress.note)

                def tick() -> None:
                    session.workers = 1 if request.serial else max(1, pool.serving)
                    report.tick()

                pool.run(queue, tick)
                if pool.fault is not None and report.settled < cases:
                    raise pool.fault
            with defer_interrupts():
                document = _write_all(session, progress, complete=True)
        except (KeyboardInterrupt, Interrupted):
            close()
            with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
                document = _write_all(session, progress, complete=False)
            progress.end(f"interrupted after {report.settled} of {cases} cases; they are kept")
            raise Interrupted(
                f"interrupted; {plural(len(document.results), 'case')} of the sweep are in {request.folder}",
                session.resume_line,
            ) from None
        except ProfkitError as fault:
            close()
            with defer_interrupts(), contextlib.suppress(ProfkitError):
                if report.settled:
                    _write_all(session, progress, complete=False)
            fault.run = None if session.journal.is_empty else request.folder
            if report.settled:
                fault.message += (
                    f"\n{report.settled} of {plural(cases, 'case')} of the sweep are in {request.folder}"
                )
                fault.fix = session.resume_line
            raise
        progress.end(f"{plural(cases, 'case')} in {session.seconds:.0f} s")
        return document


def _hosts(elsewhere: PlaceSlots | None) -> Callable[[int], str]:
    """The host of each slot: this one for all, or that of its place."""
    return (lambda _: "") if elsewhere is None else elsewhere.host_of


def update_case(request: SweepRequest, result: CaseResult, progress: Progress) -> SweepDocument:
    """Store a case anew, with a link to its profile for one, and write the results once more."""
    with defer_interrupts():
        session = _open_session(request)
        try:
            session.journal.add(result, session.seconds)
            return _write_all(session, progress, complete=False)
        finally:
            session.journal.close()


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


class _ProgressReport:
    """How far it is, and how long it will take."""

    def __init__(self, progress: Progress, session: _Session, work: Sequence[Work], cases: int) -> None:
        self.settled = 0
        self._progress, self._session, self._cases = progress, session, cases
        left = ((point, name) for point, names in work for name in names)
        self._time = TimeLeft(left, session.request.device, session.request.timing)
        self._next = 0.0

    def begin(self) -> None:
        """Say how much there is to do."""
        known = self._session.journal.known
        before = f", {known} known already" if known else ""
        self._progress.begin("sweep", f"{plural(self._cases, 'case')} to measure, {self._left()}{before}")

    def settle(self, result: CaseResult) -> None:
        """A case is settled."""
        self.settled += 1
        self._time.settle(result)

    def tick(self) -> None:
        """Called a few times a second."""
        gone = self._session.seconds
        if gone >= self._next:
            self._progress.move(f"{self.settled} of {self._cases} cases, {self._left()}")
            self._next = gone + REPORT_SECONDS
        self._progress.tick(gone)

    def _left(self) -> str:
        return f"about {format_duration(self._time.seconds / self._session.workers)} left"


def _open_session(request: SweepRequest) -> _Session:
    """The journal of the folder, begun or gone on with."""
    path = request.folder / journals.FILE
    header = request.header
    if not path.is_file():
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        begun = {"started": started, "planned": request.grid.cases, **header}
        return _Session(request, journals.create_journal(path, begun), monotonic(), {})
    journal = journals.reopen_journal(path)
    if journal.header.get("rules") != header["rules"]:
        journal.close()
        raise UsageError(
            f"{request.folder} holds a sweep by other rules (device, precision, budget, cache or threads)",
            "--output FOLDER",
        )
    return _Session(request, journal, monotonic(), journal.about)


def _open_device(session: _Session, pool: WorkerPool, progress: Progress) -> None:
    """Start the workers and measure what the device can do. Raises UsageError where the sweep began on another one."""
    progress.begin("device", "its name, and its bandwidth and arithmetic measured")
    pool.begin()
    load_reports()  # while they load torch
    about = pool.open(lambda: progress.tick(session.seconds))
    if changed := about.get("changed"):
        progress.note(f"files given by --with change {', '.join(changed)} for everybody: it was put back")
    for word in ("device", "versions"):
        before = session.about.get(word, about[word])
        if before != about[word]:
            raise UsageError(
                f"the sweep in {session.request.folder} began with {word} {_version_text(before)}, and here it is "
                f"{_version_text(about[word])}: its cases could not be compared",
                "--output FOLDER begins a new one",
            )
    if not session.about:
        session.about = {word: about[word] for word in ("device", "versions", "roofs")}
        session.journal.note(about=session.about)
    roofs = codec.from_plain_data(MeasuredCeilings, session.about["roofs"])
    reached = f", {roofs.bandwidth / 1e9:.0f} GB/s" if roofs.bandwidth else ""
    devices = f", {session.workers} of them" if session.workers > 1 else ""
    progress.end(f"{about['device']}{devices}{reached}")


def _compile(session: _Session, precompile: Precompile, progress: Progress) -> None:
    """Where what measures needs the processors itself, all of them compile first."""
    begin, shapes = monotonic(), precompile.left
    if not shapes:
        return
    progress.begin("compile", f"{plural(shapes, 'shape')}, by {plural(precompile.workers, 'compile worker')}")
    precompile.begin()
    while precompile.left:
        precompile.wait(TICK_SECONDS)
        progress.move(f"{shapes - precompile.left} of {plural(shapes, 'shape')} compiled")
        progress.tick(session.seconds)
    precompile.close()
    seconds = monotonic() - begin
    session.about = {**session.about, "compiling": session.about.get("compiling", 0.0) + seconds}
    session.journal.note(about=session.about)
    progress.end(f"{plural(shapes, 'shape')} in {seconds:.0f} s")


def _version_text(value: Any) -> str:
    return (
        ", ".join(f"{name} {version}" for name, version in value.items())
        if isinstance(value, dict)
        else str(value)
    )


def _left(request: SweepRequest, journal: SweepJournal) -> list[Work]:
    """Every point with the implementations that are not settled yet."""
    work: list[Work] = []
    for point in request.grid.points():
        names = tuple(
            name
            for name in request.grid.implementations_of(point.operation)
            if (known := journal.state_of(point, name)) is None or (request.again and known != "measured")
        )
        if names:
            work.append((point, names))
    return work


def _write_all(session: _Session, progress: Progress, *, complete: bool) -> SweepDocument:
    """Write the results beside the journal. Raises MachineError where the disk takes no more."""
    journal, request = session.journal, session.request
    seconds = journal.seconds_before + session.seconds
    document = sweep_document(journal.header, journal.results, session.about, seconds)
    if complete and not document.complete:
        raise MachineError(
            f"{document.planned - len(document.results)} cases of the sweep were not settled",
            session.resume_line,
        )
    journal.note(seconds=session.seconds)
    for why in write_results(request.folder, document, request.grid, request.timing.precision, request.name):
        progress.note(why)
    return document
