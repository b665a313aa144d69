"""Results on disk as they come, line by line: a run that ends at any moment is resumed where it was.

The first line is the header, which says what the run is; every other line is one entry, a JSON object. The contract:

- After `append` returned, the entry survives the end of this process, however it ends. It survives the end of the
  machine a second later at most.
- A line that was cut off, by a kill or a full disk, is the only one that is lost. `reopen` removes it.
- A line that is damaged in another way is passed over; its entry is missing.
- One process at a time can write a journal.

To resume a run: `reopen` it, leave out every job that has an entry, and append the rest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from profkit.core.errors import MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.core.files.regular import check_regular, open_regular
from profkit.core.files.safe_folder import opened

_encode = json.JSONEncoder(allow_nan=False).encode  # json.dumps makes another one each time
LONGEST_LINE = 64 << 20  # bytes; an entry with all its times has some hundred thousand
SYNC_SECONDS = 1.0  # a disk may take 30 ms for each, and a worker waits meanwhile


@dataclass(frozen=True)
class JournalFormat:
    """`schema` stands in the header. `subject` is what the journal is of, and `command` what begins or resumes one."""

    schema: str
    subject: str
    command: str


@dataclass
class JournalContents:
    """What a journal holds: its header, its entries with the number of each line, and how many bytes of it are good."""

    header: dict[str, Any]
    entries: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    size: int = 0


TakeEntry: TypeAlias = Callable[[int, dict[str, Any]], None]  # the number of its line, and what it says


class JournalFile:
    """A journal that is open for writing."""

    def __init__(self, path: Path, format: JournalFormat, file: int) -> None:
        self.path = path
        self._format, self._file, self._synced = format, file, monotonic()

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, whole or not at all. Raises MachineError where the disk takes no more."""
        size = os.lseek(self._file, 0, os.SEEK_END)
        rest = (_encode(entry) + "\n").encode()
        try:
            while rest:  # a disk that fills up takes the first part
                rest = rest[os.write(self._file, rest) :]
            if monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = monotonic()
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            raise MachineError(
                f"{self.path} cannot be written: {error.strerror}",
                f"make room, then: {self._format.command} --resume {self.path.parent}",
            ) from error

    def close(self) -> None:
        """Write everything to the disk; no more is appended."""
        with suppress(OSError):
            os.fsync(self._file)
        with suppress(OSError):
            os.close(self._file)


def create(path: Path, format: JournalFormat, header: Mapping[str, Any]) -> JournalFile:
    """A new journal. Raises MachineError where it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with opened(path.parent) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            file = os.open(folder / path.name, flags, 0o644)
    except OSError as error:
        raise MachineError(f"{path} cannot be made: {error.strerror}", "--output FOLDER") from error
    _lock(path, format, file)
    journal = JournalFile(path, format, file)
    journal.append({"schema": format.schema, **header})
    return journal


def reopen(
    path: Path, format: JournalFormat, take: TakeEntry | None = None
) -> tuple[JournalFile, JournalContents]:
    """A journal that was begun before, and what it holds; `take` as in `read`.

    Raises UnreadableReport where it is none, UsageError where another process writes it now, and MachineError where it
    cannot be written to.
    """
    try:
        check_regular(path)
        # no link is followed, since what stands behind the last whole line is cut off
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(path, flags)
    except OSError as error:
        raise MachineError(f"{path} cannot be written to: {error.strerror}", "--output FOLDER") from error
    _lock(path, format, file)
    try:
        contents = read(path, format, take)  # only now: until then another one may have added to it
    except ProfkitError:
        os.close(file)
        raise
    os.ftruncate(file, contents.size)
    return JournalFile(path, format, file), contents


def read(path: Path, format: JournalFormat, take: TakeEntry | None = None) -> JournalContents:
    """All that can be read of a journal, whoever writes it. Raises UnreadableReport where it is none.

    `take` gets the entries one by one, in place of the list of what is returned.
    """
    contents = JournalContents({})
    for number, body, end in _lines(path, format):
        if not contents.header:
            if not isinstance(body, dict) or body.get("schema") != format.schema:
                break
            contents.header = body
        elif isinstance(body, dict):
            if take is None:
                contents.entries.append((number, body))
            else:
                take(number, body)
        contents.size = end
    if not contents.header:
        article = "an" if format.subject[0] in "aeiou" else "a"
        raise UnreadableReport(
            f"{path} is no journal of {article} {format.subject}",
            f"{format.command} --output FOLDER begins one",
        )
    return contents


def _lock(path: Path, format: JournalFormat, file: int) -> None:
    """Two runs that write one file would do everything twice. Raises UsageError where another one does."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(
            f"another {format.subject} is writing {path} now", "wait for it, or end it"
        ) from None
    except (ImportError, OSError):  # a file system that knows no locks
        return


def _lines(path: Path, format: JournalFormat) -> Iterator[tuple[int, Any, int]]:
    """Each whole line that is JSON: its number, what it says, and where it ends."""
    try:
        with open_regular(path) as file:
            number = end = 0
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                number += 1
                end += len(line)
                with suppress(ValueError, RecursionError):
                    yield number, json.loads(line), end
    except FileNotFoundError as error:
        raise UnreadableReport(
            f"there is no {format.subject} in {path.parent}: {path.name} is not there",
            f"{format.command} --output FOLDER",
        ) from error
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}", f"ls -l {path}") from error
