"""The journal of a sweep: its cases as they were settled, and the document that is made of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.codec import short_repr
from profkit.core.errors import ProfkitError, UnreadableReport
from profkit.core.run_folder import clean_name
from profkit.core.types import CaseResult, CaseState, GridPoint, MeasuredCeilings, SweepDocument
from profkit.execution import journal as files
from profkit.kernels.named_code import require_named
from profkit.kernels.operations.registry import has_implementation, register_names
from profkit.kernels.sweep.files import inspect_files
from profkit.kernels.sweep.request import SweepGrid, SweepRequest, TimingOptions, with_options

FORMAT = files.JournalFormat("profkit.sweep-journal/1", "sweep", "profkit sweep")
FILE = "cases.jsonl"
HEADER: dict[str, type] = {"rules": dict, "grid": dict, "gpus": list, "files": list}


@dataclass
class SweepContents:
    """What a journal holds. `sessions` are the seconds of each call of the sweep, as far as they are known."""

    header: dict[str, Any]
    results: list[CaseResult] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[float] = field(default_factory=lambda: [0.0])

    @property
    def about(self) -> dict[str, Any]:
        """What the sweep runs on: device, versions, measured ceilings."""
        return next((dict(note["about"]) for note in reversed(self.notes) if "about" in note), {})


class SweepJournal:
    """The journal of one sweep, open to be added to. A case that is added twice has its later result.

    What is added lies in the file alone, and is read from there when it is needed: a sweep may have a million cases,
    of 5 kB each in memory.
    """

    def __init__(self, file: files.JournalFile, contents: SweepContents) -> None:
        self.header, self.about = contents.header, contents.about
        self.seconds_before = sum(contents.sessions)
        self._file = file
        self._known = {(r.point, r.implementation): r.state for r in contents.results}
        self._added = 0

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """All that is known, in the order it came, as the file has it. Raises UnreadableReport."""
        return tuple(read_journal(self._file.path).results)

    @property
    def is_empty(self) -> bool:
        """Whether no case is known."""
        return not self._known and not self._added

    @property
    def known(self) -> int:
        """How many cases were known when it was opened."""
        return len(self._known)

    def state_of(self, point: GridPoint, implementation: str) -> CaseState | None:
        """How a case was settled before this session; None where it was not."""
        return self._known.get((point, implementation))

    def add(self, result: CaseResult, at: float) -> None:
        """Store a result, `at` seconds into this session. Raises MachineError where the disk takes no more."""
        self._file.append({"case": codec.to_plain_data(result), "at": round(at, 3)})
        self._added += 1

    def note(self, **fields: Any) -> None:
        """Store what else is found out of the sweep. Raises MachineError like `add`."""
        self._file.append({"note": fields})

    def close(self) -> None:
        """No more is added."""
        self._file.close()


def create_journal(path: Path, header: Mapping[str, Any]) -> SweepJournal:
    """A new journal. Raises MachineError where it cannot be made."""
    return SweepJournal(files.create(path, FORMAT, header), SweepContents(dict(header)))


def reopen_journal(path: Path) -> SweepJournal:
    """A journal that was begun before, with a new session.

    Raises UnreadableReport where it is none, UsageError where another sweep writes it now, and MachineError where it
    cannot be written to.
    """
    contents = SweepContents({})
    file, raw = files.reopen(path, FORMAT, _reader(path, contents))
    try:
        contents.header = _checked_header(path, raw)
    except ProfkitError:
        file.close()
        raise
    journal = SweepJournal(file, contents)
    journal.note(sitting=len(contents.sessions) + 1)
    return journal


def read_journal(path: Path) -> SweepContents:
    """All of it, for a reader; of a case that is there twice the later one. Raises UnreadableReport."""
    contents = SweepContents({})
    contents.header = _checked_header(path, files.read(path, FORMAT, _reader(path, contents)))
    contents.results = list({(r.point, r.implementation): r for r in contents.results}.values())
    return contents


def read_sweep(folder: Path) -> SweepDocument:
    """What the sweep in `folder` knows so far, whoever is measuring it. Raises UnreadableReport where there is none."""
    path = folder / FILE
    contents = read_journal(path)
    try:
        return sweep_document(contents.header, contents.results, contents.about, sum(contents.sessions))
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {path}: {error.message}", error.fix) from error


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
    contents = read_journal(folder / FILE)
    header = contents.header
    grid = codec.from_plain_data(SweepGrid, header.get("grid"), "grid")
    paths = tuple(str(file) for file in header.get("files", ()))
    settled = sum(result.state == "measured" or not again for result in contents.results)
    planned, timeout = (
        header.get("planned"),
        codec.from_plain_data(float, header.get("timeout", 300.0), "timeout"),
    )
    is_whole = isinstance(planned, int) and settled >= planned  # then it is shown wherever it was copied to
    line = f"profkit sweep --resume {shlex.quote(str(folder))}{' --again' if again else ''}"
    needed = (profile or not is_whole) and not plan
    require_named(with_options(paths), with_options(map(str, named)), line, needed=needed)
    if plan:
        _assume_implementations(grid)
    elif needed:
        inspect_files([Path(file) for file in paths], timeout)
    rules = header.get("rules", {})
    return SweepRequest(
        grid,
        folder,
        str(rules.get("device", "cpu")),
        tuple(str(gpu) for gpu in header.get("gpus", ())),
        paths,
        codec.from_plain_data(TimingOptions, rules.get("wish"), "rules.wish"),
        timeout,
        sys.executable,
        str(header.get("name", "sweep")),
        again,
        _is_serial(header),
    )


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
    name = escape(clean_name(request.name))
    journals = request.folder.parent.glob(f"*-{name}-{request.device}*/{FILE}")
    for path in sorted(journals, reverse=True):
        with suppress(ProfkitError):
            contents = read_journal(path)
            if all(contents.header.get(word) == value for word, value in request.header.items()):
                return path.parent if len(contents.results) < request.grid.cases else None
    return None


def sweep_document(
    header: Mapping[str, Any], results: Sequence[CaseResult], about: Mapping[str, Any], seconds: float
) -> SweepDocument:
    """All that a journal knows, in the order of its grid."""
    grid = codec.from_plain_data(SweepGrid, header.get("grid"), "grid")
    order = {point: number for number, point in enumerate(grid.points())}
    names = {name: number for number, name in enumerate(grid.implementations)}
    known = sorted(
        results, key=lambda r: (order.get(r.point, len(order)), names.get(r.implementation, len(names)))
    )
    workers = max(1, len(header.get("gpus", ())))
    here = not any(
        result.place for result in known
    )  # else the number of workers may be another in each session
    inside = sum(result.spent for result in known) + workers * _number(about.get("compiling"))
    # What a user's file registered is not known to a reader, so the journal says how many cases there are.
    planned = header.get("planned")
    planned = planned if isinstance(planned, int) else grid.cases
    return SweepDocument(
        started=str(header.get("started", "")),
        device=str(about.get("device", "unknown")),
        results=tuple(known),
        roofs=codec.from_plain_data(MeasuredCeilings, about["roofs"])
        if about.get("roofs")
        else MeasuredCeilings(),
        versions=dict(about.get("versions", {})),
        planned=planned,
        complete=len(known) >= planned,
        seconds=seconds,
        overhead=max(0.0, 1 - inside / (seconds * workers)) if here and seconds > 0 else None,
        serial=_is_serial(header),
    )


def _is_serial(header: Mapping[str, Any]) -> bool:
    rules = header.get("rules", {})
    return isinstance(rules, Mapping) and rules.get("serial") is True


def _checked_header(path: Path, raw: files.JournalContents) -> dict[str, Any]:
    for word, kind in HEADER.items():
        if not isinstance(raw.header.get(word, kind()), kind):
            raise UnreadableReport(
                f"{path}, line 1: {word} is {short_repr(raw.header[word])}", "profkit sweep --output FOLDER"
            )
    return raw.header


def _reader(path: Path, contents: SweepContents) -> files.TakeEntry:
    """What puts each entry of the file into `contents`."""

    def take(number: int, body: dict[str, Any]) -> None:
        if "case" in body:
            contents.results.append(_parse_case(path, number, body["case"]))
            contents.sessions[-1] = max(contents.sessions[-1], _number(body.get("at")))
        elif _is_note(body.get("note")):
            contents.notes.append(dict(body["note"]))
            if "sitting" in body["note"]:  # how the first version of this format calls a session
                contents.sessions.append(0.0)
            contents.sessions[-1] = max(contents.sessions[-1], _number(body["note"].get("seconds")))

    return take


def _is_note(note: object) -> bool:
    if not isinstance(note, dict):
        return False
    about = note.get("about", {})
    return isinstance(about, dict) and isinstance(about.get("versions", {}), dict)


def _number(value: object) -> float:
    with suppress(OverflowError):
        if isinstance(value, (int, float)) and 0 <= value < float("inf"):
            return float(value)
    return 0.0


def _parse_case(path: Path, number: int, body: Any) -> CaseResult:
    try:
        return codec.from_plain_data(CaseResult, body)
    except ProfkitError as error:
        raise UnreadableReport(
            f"{path}, line {number}: {error.message}",
            f"delete line {number}: its case is measured again",
        ) from error
