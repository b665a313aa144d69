"""The story of a sweep: a grid in, every case settled and kept, one document out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.errors import Interrupted, MachineError, ProfkitError, UsageError
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.core.signals import hurried, interruptible
from profkit.core.types import CaseResult, GridPoint, MeasuredRoofs, SweepDocument
from profkit.kernels.sweep import crew
from profkit.kernels.sweep import journal as journals
from profkit.kernels.sweep.ahead import Ahead
from profkit.kernels.sweep.forecast import seconds_left
from profkit.kernels.sweep.grid import Grid
from profkit.kernels.sweep.journal import Journal
from profkit.kernels.sweep.order import Work
from profkit.kernels.sweep.outputs import write_all
from profkit.kernels.sweep.pool import TICK_SECONDS, Pool
from profkit.kernels.sweep.sweep_request import SweepRequest as SweepRequest
from profkit.reporting import sweep_files

SPEAK_SECONDS = 2.0  # between two looks at how much is left
SPEAK_SHARE = 0.02  # of the time, for that: of a million cases one takes seconds


@dataclass
class _Sitting:
    """One call of the sweep: several may share a folder."""

    request: SweepRequest
    journal: Journal
    start: float
    about: Mapping[str, Any]


def run_sweep(request: SweepRequest, progress: Progress) -> SweepDocument:
    """Settle every case of the grid and write the results; those that the folder knows already are not measured again.

    Raises MachineError where nothing can be measured or written, UsageError where the folder holds a sweep by other
    rules, and Interrupted after a Ctrl-C: what was measured is kept, and the same call goes on.
    """
    with contextlib.ExitStack() as last, interruptible():
        sitting = _sit_down(request)
        last.callback(sitting.journal.close)
        settled: list[CaseResult] = []

        def settle(result: CaseResult) -> None:
            sitting.journal.add(result, monotonic() - sitting.start)
            settled.append(result)

        work = _left(request, sitting.journal)
        ahead = crew.ahead(request, work)
        last.callback(ahead.end)
        pool = Pool(
            crew.workers(request),
            request.wish,
            request.timeout,
            settle,
            progress.note,
            ahead=ahead if ahead.beside else None,
            reliefs=crew.reliefs(request, work),
        )
        last.callback(pool.end)
        cases = sum(len(names) for _, names in work)
        try:
            if work:
                _look_at_device(sitting, pool, progress)
                if not ahead.beside:
                    _compile(sitting, ahead, progress)
                told = _Told(progress, sitting, work, settled)
                pool.run(work, told.tick)
            with hurried():
                document = _finish(sitting, progress, complete=True)
        except (KeyboardInterrupt, Interrupted):
            pool.end()
            with hurried():  # a second Ctrl-C must not cost what the first one left
                _finish(sitting, progress, complete=False)
            progress.end(f"interrupted after {len(settled)} of {cases} cases; they are kept")
            raise Interrupted(
                f"interrupted; {plural(len(sitting.journal.results), 'case')} of the sweep are in {request.folder}",
                f"profkit sweep --resume {request.folder}",
            ) from None
        except ProfkitError as fault:
            pool.end()
            with hurried(), contextlib.suppress(ProfkitError):
                if settled:
                    _finish(sitting, progress, complete=False)
            fault.run = request.folder if sitting.journal.results else None
            raise
        progress.end(f"{plural(cases, 'case')} in {monotonic() - sitting.start:.0f} s")
        return document


def read_sweep(folder: Path) -> SweepDocument:
    """What the sweep in `folder` knows so far, whoever is measuring it. Raises UnreadableReport where there is none."""
    found = journals.read(folder / journals.FILE)
    return document_of(found.header, found.results, _about(found.notes), sum(found.sittings))


def amend(request: SweepRequest, result: CaseResult, progress: Progress) -> SweepDocument:
    """Keep a case that is told anew, with a link to its profile for one, and write the results once more."""
    with hurried():
        sitting = _sit_down(request)
        try:
            sitting.journal.add(result, monotonic() - sitting.start)
            return _finish(sitting, progress, complete=False)
        finally:
            sitting.journal.close()


class _Told:
    """How far it is, and how long it will take."""

    def __init__(
        self, progress: Progress, sitting: _Sitting, work: Sequence[Work], settled: Sequence[CaseResult]
    ) -> None:
        self._progress, self._sitting, self._settled = progress, sitting, settled
        self._cases = [(point, name) for point, names in work for name in names]
        self._next = 0.0
        known = len(sitting.journal.results)
        before = f", {known} known already" if known else ""
        progress.begin("sweep", f"{plural(len(self._cases), 'case')} to measure, {self._left()}{before}")

    def tick(self) -> None:
        """Called a few times a second."""
        gone = monotonic() - self._sitting.start
        if gone >= self._next:
            self._progress.move(f"{len(self._settled)} of {len(self._cases)} cases, {self._left()}")
            took = monotonic() - self._sitting.start - gone
            self._next = gone + max(SPEAK_SECONDS, took / SPEAK_SHARE)
        self._progress.tick(gone)

    def _left(self) -> str:
        request, settled = self._sitting.request, list(self._settled)
        done = {(result.point, result.implementation) for result in settled}
        left = [case for case in self._cases if case not in done]
        seconds = seconds_left(settled, left, request.device, request.wish) / max(1, len(request.gpus))
        return f"about {minutes(seconds)} left"


def minutes(seconds: float) -> str:
    """`40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _sit_down(request: SweepRequest) -> _Sitting:
    """The journal of the folder, begun or gone on with."""
    path = request.folder / journals.FILE
    header = request.header
    if not path.is_file():
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        begun = {"started": started, "planned": request.grid.cases, **header}
        return _Sitting(request, journals.begin(path, begun), monotonic(), {})
    journal, notes = journals.reopen(path)
    if journal.header.get("rules") != header["rules"]:
        journal.close()
        raise UsageError(
            f"{request.folder} holds a sweep by other rules (device, precision, budget, cache or threads)",
            "--output FOLDER",
        )
    return _Sitting(request, journal, monotonic(), _about(notes))


def _about(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return next((dict(note["about"]) for note in reversed(notes) if "about" in note), {})


def _look_at_device(sitting: _Sitting, pool: Pool, progress: Progress) -> None:
    """Start the workers and measure the roofs. Raises UsageError where this is not what the sweep began on."""
    progress.begin("device", "what it is, and what it can do at most")
    pool.begin()
    sweep_files.load()  # while they load torch
    about = pool.about(lambda: progress.tick(monotonic() - sitting.start))
    if changed := about.get("changed"):
        progress.note(f"files given by --with change {', '.join(changed)} for everybody: it was put back")
    for word in ("device", "versions"):
        before = sitting.about.get(word, about[word])
        if before != about[word]:
            raise UsageError(
                f"the sweep in {sitting.request.folder} began with {word} {_plain(before)}, and here it is "
                f"{_plain(about[word])}: its cases could not be compared",
                "--output FOLDER begins a new one",
            )
    if not sitting.about:
        sitting.about = {word: about[word] for word in ("device", "versions", "roofs")}
        sitting.journal.note(about=sitting.about)
    roofs = codec.build(MeasuredRoofs, sitting.about["roofs"])
    reached = f", {roofs.bandwidth / 1e9:.0f} GB/s" if roofs.bandwidth else ""
    workers = f", {len(sitting.request.gpus)} of them" if len(sitting.request.gpus) > 1 else ""
    progress.end(f"{about['device']}{workers}{reached}")


def _compile(sitting: _Sitting, ahead: Ahead, progress: Progress) -> None:
    """Where what measures needs the processors itself, all of them compile first."""
    begin, shapes = monotonic(), ahead.left
    if not shapes:
        return
    progress.begin("compile", f"{plural(shapes, 'shape')}, by {plural(ahead.helpers, 'helper')}")
    ahead.begin()
    while ahead.left:
        ahead.wait(TICK_SECONDS)
        progress.move(f"{shapes - ahead.left} of {plural(shapes, 'shape')} compiled")
        progress.tick(monotonic() - sitting.start)
    ahead.end()
    seconds = monotonic() - begin
    sitting.about = {**sitting.about, "compiling": sitting.about.get("compiling", 0.0) + seconds}
    sitting.journal.note(about=sitting.about)
    progress.end(f"{plural(shapes, 'shape')} in {seconds:.0f} s")


def _plain(value: Any) -> str:
    return (
        ", ".join(f"{name} {version}" for name, version in value.items())
        if isinstance(value, dict)
        else str(value)
    )


def _left(request: SweepRequest, journal: Journal) -> list[Work]:
    """Every point with the implementations that are not settled yet."""
    untimed = {
        (result.point, result.implementation) for result in journal.results if result.state != "measured"
    }
    work: list[tuple[GridPoint, tuple[str, ...]]] = []
    for point in request.grid.points():
        names = tuple(
            name
            for name in request.grid.who(point.operation)
            if not journal.has(point, name) or (request.again and (point, name) in untimed)
        )
        if names:
            work.append((point, names))
    return work


def _finish(sitting: _Sitting, progress: Progress, *, complete: bool) -> SweepDocument:
    """Write the results beside the journal. Raises MachineError where the disk takes no more."""
    journal, request = sitting.journal, sitting.request
    seconds = journal.seconds_before + monotonic() - sitting.start
    document = document_of(journal.header, journal.results, sitting.about, seconds)
    if complete and not document.complete:
        raise MachineError(
            f"{document.planned - len(document.results)} cases of the sweep were not settled",
            f"profkit sweep --resume {request.folder}",
        )
    journal.note(seconds=monotonic() - sitting.start)
    for why in write_all(request.folder, document, request.grid, request.wish.precision, request.name):
        progress.note(why)
    return document


def document_of(
    header: Mapping[str, Any], results: Sequence[CaseResult], about: Mapping[str, Any], seconds: float
) -> SweepDocument:
    """All that a journal knows, in the order of its grid."""
    grid = codec.build(Grid, header["grid"])
    order = {point: number for number, point in enumerate(grid.points())}
    names = {name: number for number, name in enumerate(grid.implementations)}
    known = sorted(
        results, key=lambda r: (order.get(r.point, len(order)), names.get(r.implementation, len(names)))
    )
    workers = max(1, len(header.get("gpus", ())))
    inside = sum(result.spent for result in known) + workers * float(about.get("compiling", 0.0))
    # What a file of the user's registered is not known to who only looks, so the journal says how many cases there are.
    told = header.get("planned")
    planned = told if isinstance(told, int) else grid.cases
    return SweepDocument(
        started=str(header.get("started", "")),
        device=str(about.get("device", "unknown")),
        results=tuple(known),
        roofs=codec.build(MeasuredRoofs, about["roofs"]) if about.get("roofs") else MeasuredRoofs(),
        versions=dict(about.get("versions", {})),
        planned=planned,
        complete=len(known) >= planned,
        seconds=seconds,
        overhead=max(0.0, 1 - inside / (seconds * workers)) if seconds > 0 else None,
    )
