"""What was measured, line by line as it comes: a sweep that dies at any moment goes on where it was.

The first line says what the sweep is. A line that is cut off, as of a process that was killed or a disk that filled up
while it was written, is the only one that is lost. One sweep at a time has the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from profkit.core import codec
from profkit.core.codec import short
from profkit.core.errors import MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.core.types import CaseResult, GridPoint

SCHEMA = "profkit.sweep-journal/1"
FILE = "cases.jsonl"
SYNC_SECONDS = 1.0  # a disk may take 30 ms for each, and a worker waits meanwhile for its next point

HEADER: dict[str, type] = {"rules": dict, "grid": dict, "gpus": list, "files": list}
Key = tuple[GridPoint, str]


class Journal:
    """The file of one sweep, open to be added to."""

    def __init__(
        self,
        path: Path,
        header: Mapping[str, Any],
        results: tuple[CaseResult, ...],
        file: int,
        seconds_before: float = 0.0,
    ) -> None:
        self.path, self.header, self.seconds_before = path, dict(header), seconds_before
        self._known: dict[Key, CaseResult] = {(r.point, r.implementation): r for r in results}
        self._file, self._synced = file, monotonic()

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """All that is known, in the order it came."""
        return tuple(self._known.values())

    def has(self, point: GridPoint, implementation: str) -> bool:
        """Whether the case was settled: it is not measured again."""
        return (point, implementation) in self._known

    def add(self, result: CaseResult, at: float) -> None:
        """Keep a result, `at` seconds into this sitting: from now on whatever becomes of this process.

        It is on the disk a second later at most, which only a machine that goes down could tell apart.
        Raises MachineError where the disk takes no more.
        """
        self._write({"case": codec.plain(result), "at": round(at, 3)})
        self._known[(result.point, result.implementation)] = result

    def note(self, **fields: Any) -> None:
        """Keep what else is found out of the sweep, a sitting's seconds for one. Raises MachineError like `add`."""
        self._write({"note": fields})

    def close(self) -> None:
        """No more is added."""
        with suppress(OSError):
            os.fsync(self._file)
        with suppress(OSError):
            os.close(self._file)

    def _write(self, body: Mapping[str, Any]) -> None:
        whole = os.lseek(self._file, 0, os.SEEK_END)
        rest = (json.dumps(body, allow_nan=False) + "\n").encode()
        try:
            while rest:  # a disk that fills up takes the first part
                rest = rest[os.write(self._file, rest) :]
            if monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = monotonic()
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, whole)
            raise MachineError(
                f"{self.path} cannot be written: {error.strerror}",
                f"make room, then: profkit sweep --resume {self.path.parent}",
            ) from error


def begin(path: Path, header: Mapping[str, Any]) -> Journal:
    """A new journal. Raises MachineError where it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise MachineError(f"{path} cannot be made: {error.strerror}", "--output FOLDER") from error
    _alone(path, file)
    journal = Journal(path, header, (), file)
    journal._write({"schema": SCHEMA, **header})
    return journal


def reopen(path: Path) -> tuple[Journal, tuple[dict[str, Any], ...]]:
    """A journal that was begun before, and its notes.

    Raises UnreadableReport where it is none, UsageError where another sweep writes it now, and MachineError where it
    cannot be written to.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"{path} cannot be added to: {error.strerror}", "--output FOLDER") from error
    _alone(path, file)
    try:
        found = _read(path)  # only now: until then another one may have added to it
    except ProfkitError:
        os.close(file)
        raise
    os.ftruncate(file, found.whole)
    journal = Journal(path, found.header, tuple(found.results), file, sum(found.sittings))
    journal.note(sitting=len(found.sittings) + 1)
    return journal, tuple(found.notes)


@dataclass
class Found:
    """What a journal holds: `sittings` are the seconds of each, as far as they are known; `whole` bytes are good."""

    header: dict[str, Any]
    results: list[CaseResult] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    sittings: list[float] = field(default_factory=lambda: [0.0])
    whole: int = 0


def read(path: Path) -> Found:
    """All of it, for who only looks; of a case that is there twice the later one. Raises UnreadableReport."""
    found = _read(path)
    latest = {(result.point, result.implementation): result for result in found.results}
    found.results = list(latest.values())
    return found


def _read(path: Path) -> Found:
    found = Found({})
    for number, body, end in _lines(path):
        if not found.header:
            if not isinstance(body, dict) or body.get("schema") != SCHEMA:
                break
            found.header = _header(path, body)
        elif isinstance(body, dict) and "case" in body:
            found.results.append(_case(path, number, body["case"]))
            found.sittings[-1] = max(found.sittings[-1], _number(body.get("at")))
        elif isinstance(body, dict) and _is_note(body.get("note")):
            found.notes.append(dict(body["note"]))
            if "sitting" in body["note"]:
                found.sittings.append(0.0)
            found.sittings[-1] = max(found.sittings[-1], _number(body["note"].get("seconds")))
        found.whole = end
    if not found.header:
        raise UnreadableReport(f"{path} is no journal of a sweep", "profkit sweep --output FOLDER begins one")
    return found


def _header(path: Path, body: dict[str, Any]) -> dict[str, Any]:
    """What others take for granted. Raises UnreadableReport for a header that no sweep has written."""
    for word, kind in HEADER.items():
        if not isinstance(body.get(word, kind()), kind):
            raise UnreadableReport(
                f"{path}, line 1: {word} is {short(body[word])}", "profkit sweep --output FOLDER"
            )
    return body


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


def _case(path: Path, number: int, body: Any) -> CaseResult:
    try:
        return codec.build(CaseResult, body)
    except ProfkitError as error:
        raise UnreadableReport(
            f"{path}, line {number + 1}: {error.message}", f"take line {number + 1} out: it is measured again"
        ) from error


def _alone(path: Path, file: int) -> None:
    """Two sweeps that write one file would measure everything twice. Raises UsageError where another one does."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(f"another sweep is writing {path} now", "wait for it, or end it") from None
    except (ImportError, OSError):  # a file system that knows no locks
        return


def _lines(path: Path) -> Iterator[tuple[int, Any, int]]:
    """Each whole line that is JSON: which it is, what it says, and where it ends."""
    try:
        with path.open("rb") as file:
            end = 0
            for number, line in enumerate(file):
                end += len(line)
                if not line.endswith(b"\n"):
                    return
                with suppress(ValueError, RecursionError):  # damaged: its case is measured again
                    yield number, json.loads(line), end
    except FileNotFoundError as error:
        raise UnreadableReport(
            f"there is no sweep in {path.parent}: {path.name} is not there", "profkit sweep --output FOLDER"
        ) from error
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}", f"ls -l {path}") from error
