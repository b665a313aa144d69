"""What a sweep has stored: the request it began with, and the document that its outcomes make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import ProfkitError, UnreadableReport
from profkit.core.run_folder import clean_name
from profkit.core.types import CaseResult, GridPoint, MeasuredCeilings, SweepDocument
from profkit.execution import journal as journals
from profkit.execution.journal import JournalContents, JournalFormat, plain_request
from profkit.kernels.campaign import require_named
from profkit.kernels.operations.registry import has_implementation, register_names
from profkit.kernels.sweep.files import inspect_files
from profkit.kernels.sweep.request import SweepGrid, SweepRequest, with_options

FILE = "cases.jsonl"
FORMAT = JournalFormat(
    "profkit.sweep-journal/2", "sweep", "profkit sweep", FILE, "case", CaseResult, in_memory=False
)


def case_id(point: GridPoint, implementation: str) -> str:
    """The name of a case in the journal."""
    return f"{point.name}: {implementation}"


def header_of(request: SweepRequest, started: str) -> dict[str, Any]:
    """What the journal says of a sweep; how many cases a user's file makes of a grid, no reader knows."""
    return {"started": started, "planned": request.grid.cases, "request": plain_request(request)}


def read_sweep(folder: Path) -> SweepDocument:
    """What the sweep in `folder` knows so far, whoever is measuring it. Raises UnreadableReport where there is none."""
    contents = journals.read_journal(folder, FORMAT)
    try:
        return sweep_document(_stored_request(folder, contents), contents, contents.seconds)
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {folder / FILE}: {error.message}", error.fix) from error


def read_request(
    folder: Path,
    *,
    again: bool = False,
    named: Sequence[Path] = (),
    plan: bool = False,
    profile: bool = False,
) -> SweepRequest:
    """The sweep that `folder` holds, as it was asked for; `again`: what has no time is tried once more.

    Files of users run where the caller has `named` them, for what is left and what it wants to `profile`; for a `plan`
    none does. Raises UnreadableReport where it holds none, UsageError where a file is not named, or cannot be run.
    """
    contents = journals.read_journal(folder, FORMAT)
    request = _stored_request(folder, contents, again=again)
    settled = sum(result.state == "measured" or not again for result in contents.outcomes.values())
    is_whole = settled >= _planned(request, contents)  # then it is shown wherever it was copied to
    line = f"profkit sweep --resume {shlex.quote(str(folder))}{' --again' if again else ''}"
    needed = (profile or not is_whole) and not plan
    require_named(with_options(request.files), with_options(map(str, named)), line, needed=needed)
    if plan:
        _assume_implementations(request.grid)
    elif needed:
        inspect_files([Path(file) for file in request.files], request.timeout)
    return request


def _stored_request(
    folder: Path, contents: JournalContents[CaseResult], *, again: bool = False
) -> SweepRequest:
    return journals.read_request(folder, FORMAT, SweepRequest, contents, again=again)


def _planned(request: SweepRequest, contents: JournalContents[CaseResult]) -> int:
    planned = contents.header.get("planned")
    return planned if isinstance(planned, int) else request.grid.cases


def _assume_implementations(grid: SweepGrid) -> None:
    """What is not ours does every operation, as far as can be said without running the file that registers it."""
    unknown = [
        (operation, name)
        for name in grid.implementations
        if not any(has_implementation(name, operation) for operation in grid.operations)
        for operation in grid.operations
    ]
    register_names(unknown)


def find_unfinished(request: SweepRequest) -> Path | None:
    """The folder of the last sweep of this request beside its own, where that one was not finished."""
    name, wanted = escape(clean_name(request.name)), plain_request(request)
    for path in sorted(request.folder.parent.glob(f"*-{name}-{request.device}*/{FILE}"), reverse=True):
        with suppress(ProfkitError):
            contents = journals.read_journal(path.parent, FORMAT)
            if contents.header.get("request") == wanted:
                return path.parent if len(contents.outcomes) < request.grid.cases else None
    return None


def sweep_document(
    request: SweepRequest, contents: JournalContents[CaseResult], seconds: float
) -> SweepDocument:
    """All that a journal knows, in the order of its grid. Raises UnreadableReport for what no sweep notes."""
    about = contents.about
    order = {point: number for number, point in enumerate(request.grid.points())}
    names = {name: number for number, name in enumerate(request.grid.implementations)}
    known = sorted(
        contents.outcomes.values(),
        key=lambda r: (order.get(r.point, len(order)), names.get(r.implementation, len(names))),
    )
    workers = max(1, len(request.gpus))
    # elsewhere the number of workers may be another in each session
    here = not any(result.place for result in known)
    inside = sum(result.spent for result in known) + workers * compiling_seconds(about)
    planned = _planned(request, contents)
    roofs = about.get("roofs")
    return SweepDocument(
        started=str(contents.header.get("started", "")),
        device=str(about.get("device", "unknown")),
        results=tuple(known),
        roofs=codec.from_plain_data(MeasuredCeilings, roofs, "roofs") if roofs else MeasuredCeilings(),
        versions=codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        planned=planned,
        complete=len(known) >= planned,
        seconds=seconds,
        overhead=max(0.0, 1 - inside / (seconds * workers)) if here and seconds > 0 else None,
        serial=request.serial,
    )


def compiling_seconds(about: Mapping[str, Any]) -> float:
    """How long was compiled before anything was measured, in all sessions."""
    seconds = about.get("compiling")
    return float(seconds) if codec.is_finite_number(seconds) else 0.0
