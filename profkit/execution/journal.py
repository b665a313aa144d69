"""Store outcomes on disk as they come, line by line: a campaign that ends at any moment can be resumed.

The first line is the header, which describes the campaign. Every other line has one outcome of a case, or
notes other findings. The contract:

- After `settle` returned, the outcome survives the end of this process, however it ends. It survives the end of the
  machine a second later at most.
- A line that was cut off, by a kill or a full disk, is the only one that is lost, and is removed on reopening.
- A line that is damaged in another way is skipped; its outcome is missing.
- One process at a time can write a journal, by any of its threads.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from profkit.core import codec
from profkit.core.errors import MachineError, ProfkitError, UnreadableReport, UsageError, writing
from profkit.core.files.regular import check_regular, open_regular
from profkit.core.files.safe_folder import opened

T = TypeVar("T")
_encode = json.JSONEncoder(allow_nan=False).encode  # json.dumps makes another one each time
LONGEST_LINE = 64 << 20  # bytes; an outcome with all its times has some hundred thousand
SYNC_SECONDS = 1.0  # a disk may take 30 ms for each, and a worker waits meanwhile


@dataclass(frozen=True)
class JournalFormat(Generic[T]):
    """What differs between journals. `schema` stands in the header.

    `subject` is what the journal records, `command` what begins or resumes one, `file` its name, `case` what an
    outcome belongs to, and `outcome` the frozen type of one.
    """

    schema: str
    subject: str
    command: str
    file: str
    case: str
    outcome: type[T]


@dataclass
class JournalContents(Generic[T]):
    """What a journal holds: the later value of a name that was noted twice, or of a case with two outcomes."""

    header: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, T] = field(default_factory=dict)  # by the id of the case, in the order they came
    seconds: float = 0.0  # of all calls together, as far as they are known
    size: int = 0  # bytes of whole lines


class Journal(Generic[T]):
    """A journal that is open for appending."""

    def __init__(self, path: Path, format: JournalFormat[T], file: int, contents: JournalContents[T]) -> None:
        self.path, self.contents, self.is_new = path, contents, not contents.size
        self.changes = 0  # since it was opened
        self._format, self._file, self._synced = format, file, monotonic()
        self._start, self._lock = monotonic(), threading.Lock()

    @property
    def seconds(self) -> float:
        """Return the seconds of all calls together, including this one so far."""
        return self.contents.seconds + self.session_seconds

    @property
    def session_seconds(self) -> float:
        """Return the seconds since the journal was opened."""
        return monotonic() - self._start

    def settle(self, case: str, outcome: T) -> None:
        """Store the outcome of a case, whole or not at all. Raises MachineError if the disk takes no more."""
        self._append({"case": case, "outcome": codec.to_plain_data(outcome)})
        self.contents.outcomes[case] = outcome

    def note(self, **facts: Any) -> None:
        """Store other findings. Raises MachineError like `settle`."""
        self._append({"note": facts})
        self.contents.about.update(facts)

    def close(self) -> None:
        """Store how long this call took, write everything to the disk, and close the file."""
        with suppress(MachineError):
            self._append({})
        with suppress(OSError):
            os.fsync(self._file)
        with suppress(OSError):
            os.close(self._file)

    def _append(self, entry: Mapping[str, Any]) -> None:
        with self._lock:
            size = os.lseek(self._file, 0, os.SEEK_END)
            rest = (_encode({**entry, "at": round(self.seconds, 3)}) + "\n").encode()
            try:
                with writing(
                    self.path,
                    f"make room, then: {self._format.command} --resume {shlex.quote(str(self.path.parent))}",
                ):
                    while rest:  # a disk that fills up takes the first part
                        rest = rest[os.write(self._file, rest) :]
                    if monotonic() - self._synced >= SYNC_SECONDS:
                        os.fsync(self._file)
                        self._synced = monotonic()
            except MachineError:
                with suppress(OSError):
                    os.ftruncate(self._file, size)
                raise
            self.changes += 1


def open_journal(folder: Path, format: JournalFormat[T], header: Mapping[str, Any]) -> Journal[T]:
    """Open the journal in the folder to continue it, or make a new one with this header.

    Raises UnreadableReport if it is no such journal, UsageError if another process writes it now, and
    MachineError if it cannot be written.
    """
    path, flags = folder / format.file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    with writing(path, "--output FOLDER"):
        if is_known := path.is_file():
            check_regular(path)
            # no link is followed, since what stands behind the last whole line is cut off
            file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            with opened(folder) as real:
                file = os.open(real / path.name, flags | os.O_CREAT | os.O_EXCL, 0o644)
    _lock(path, format, file)
    if not is_known:
        journal = Journal(path, format, file, JournalContents[T](dict(header)))
        journal._append({"schema": format.schema, **header})
        return journal
    try:
        contents = read_journal(folder, format)  # only now: until then another one may have added to it
    except ProfkitError:
        os.close(file)
        raise
    os.ftruncate(file, contents.size)
    return Journal(path, format, file, contents)


def read_journal(folder: Path, format: JournalFormat[T]) -> JournalContents[T]:
    """Read all that can be read of the journal in the folder, even while it is written. Raises UnreadableReport."""
    path = folder / format.file
    contents = JournalContents[T]({})
    for line, end in _lines(path, format):
        if not contents.header:
            if not isinstance(line, dict) or line.get("schema") != format.schema:
                break
            contents.header = line
        elif isinstance(line, dict):
            with suppress(UnreadableReport):
                if isinstance(case := line.get("case"), str):
                    contents.outcomes[case] = codec.from_plain_data(format.outcome, line.get("outcome"))
                elif isinstance(line.get("note"), dict):
                    contents.about.update(line["note"])
                if codec.is_finite_number(at := line.get("at")):
                    contents.seconds = max(contents.seconds, float(at))
        contents.size = end
    if not contents.header:
        article = "an" if format.subject[0] in "aeiou" else "a"
        raise UnreadableReport(
            f"{path} is not a journal of {article} {format.subject}",
            f"{format.command} --output FOLDER begins one",
        )
    return contents


def plain_request(request: Any) -> dict[str, Any]:
    """Convert a frozen request to plain data for a header, without `folder`, which each call gives anew."""
    plain = {name: getattr(request, name) for name in request.__dataclass_fields__ if name != "folder"}
    stored: dict[str, Any] = json.loads(_encode(codec.to_plain_data(plain)))
    return stored


def read_request(
    folder: Path, format: JournalFormat[Any], kind: type[T], contents: JournalContents[Any], **given: object
) -> T:
    """Build the request from a header, with this folder and the fields that are `given` anew.

    Raises UnreadableReport.
    """
    try:
        stored = codec.from_plain_data(dict[str, Any], contents.header.get("request"), "request")
        return codec.from_plain_data(kind, {**stored, **given, "folder": folder}, "request")
    except UnreadableReport as error:
        raise UnreadableReport(
            f"{folder / format.file}, line 1: {error.message}", f"{format.command} begins a new one"
        ) from error


def _lock(path: Path, format: JournalFormat[Any], file: int) -> None:
    """Lock the journal: two runs that write one file would do everything twice.

    Raises UsageError if another one does.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(
            f"another {format.subject} is writing {path} now", "wait for it, or end it"
        ) from None
    except OSError:  # a file system that knows no locks
        return


def _lines(path: Path, format: JournalFormat[Any]) -> Iterator[tuple[Any, int]]:
    """Yield each whole line that is JSON, with the offset of its end."""
    try:
        with open_regular(path) as file:
            end = 0
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                end += len(line)
                with suppress(ValueError, RecursionError):
                    yield json.loads(line), end
    except FileNotFoundError as error:
        raise UnreadableReport(
            f"there is no {format.subject} in {path.parent}: {path.name} is not there",
            f"{format.command} --output FOLDER",
        ) from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error
