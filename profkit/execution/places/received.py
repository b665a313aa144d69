"""Files that come back from a place: those of a result, below one folder, with the checksum told, within limits."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import MachineError, UnreadableReport

MOST_BYTES = 8 << 30  # of one result; a trace has some GB
MOST_OF_ONE = 4 << 30  # bytes of one file
MOST_FILES = 20_000
PIECE = 1 << 20  # bytes of a file in one message
FREE_BYTES, MOST_TIMES = (
    256 << 20,
    100,
)  # beyond the first, this often what came packed: no trace packs that well
LONGEST_NAME = 1024  # bytes
DEEPEST = 16  # folders
# No control character, and nothing that another system takes for a separator or a drive.
_PART = re.compile(r'[^\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]{1,255}')
RUN_PARTS = frozenset({"run.json", "report.md", "report.html", "artifacts", "logs"})


class ReceivedFiles:
    """Takes `file` and `data` messages. Everything goes into `folder`, which nobody else writes to.

    `parts` are the names that may stand at its top. What is refused raises UnreadableReport: then nothing of the
    result is used.
    """

    def __init__(
        self,
        folder: Path,
        parts: Collection[str],
        title: str = "the place",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.names: list[str] = []
        self.total = 0  # bytes
        self._folder, self._parts, self._title, self._most = folder, parts, title, most_bytes
        self._packed = self._unpacked = 0  # bytes
        self._file: IO[bytes] | None = None
        self._path = folder
        self._left, self._sha, self._digest = 0, "", hashlib.sha256()

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of a place."""
        with refused_with(self._title):
            if message["event"] == "file":
                self._begin(message.get("name"), message.get("size"), message.get("sha"))
            else:
                self._write(message.get("data"))

    def finish(self) -> None:
        """No more files: each must be whole."""
        with refused_with(self._title):
            self._check_whole()

    def _check_whole(self) -> None:
        if self._file is not None:
            raise UnreadableReport(f"{self.names[-1]} is not whole")

    def close(self) -> None:
        """Leave no file open, and none that is not whole."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if self._left or self._digest.hexdigest() != self._sha:
                self._path.unlink()

    def _begin(self, name: object, size: object, sha: object) -> None:
        self._check_whole()
        if (
            not isinstance(name, str)
            or not isinstance(size, int)
            or isinstance(size, bool)
            or not isinstance(sha, str)
        ):
            raise UnreadableReport("a file comes without its name, size or checksum")
        parts = checked_parts(name)
        if not is_wanted(parts, self._parts):
            raise UnreadableReport(f"{name!r} is no part of a result")
        path = self._folder.joinpath(*parts)
        self.total += size
        if not 0 <= size <= MOST_OF_ONE or self.total > self._most:
            raise UnreadableReport(f"more than {self._most >> 20} MiB come back")
        if len(self.names) >= MOST_FILES:
            raise UnreadableReport(f"more than {MOST_FILES} files come back")
        self.names.append(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(path, flags, 0o644), "wb")
        except (FileExistsError, NotADirectoryError):
            raise UnreadableReport(f"{name} comes twice") from None
        except OSError as error:
            raise _not_kept(error) from error
        self._path, self._left, self._sha, self._digest = path, size, sha, hashlib.sha256()
        if not size:
            self._end()

    def _write(self, text: object) -> None:
        if self._file is None or not isinstance(text, str):
            raise UnreadableReport("data comes that belongs to no file")
        try:
            packed = base64.b64decode(text, validate=True)
            data = zlib.decompressobj().decompress(packed, min(self._left, PIECE) + 1)
        except (ValueError, zlib.error) as error:
            raise UnreadableReport(f"{self.names[-1]} cannot be unpacked: {error}") from error
        if not data or len(data) > min(self._left, PIECE):
            raise UnreadableReport(f"{self.names[-1]} has another size than was told")
        self._packed, self._unpacked = self._packed + len(packed), self._unpacked + len(data)
        if self._unpacked > FREE_BYTES + MOST_TIMES * self._packed:
            raise UnreadableReport(f"it unpacks to more than {MOST_TIMES} times its size")
        try:
            self._file.write(data)
        except OSError as error:
            raise _not_kept(error) from error
        self._digest.update(data)
        self._left -= len(data)
        if not self._left:
            self._end()

    def _end(self) -> None:
        self.close()
        if self._digest.hexdigest() != self._sha:
            raise UnreadableReport(f"{self.names[-1]} has another checksum than was told")


def is_wanted(parts: Sequence[str], top: Collection[str]) -> bool:
    """Whether a file is one that a result may be made of: nothing that git, pytest or a shell reads by itself."""
    hidden = any(part.startswith(".") or part.lower() == "conftest.py" for part in parts)
    return parts[0] in top and not hidden


def checked_parts(name: str) -> list[str]:
    """The parts of a relative path that leads down only. Raises UnreadableReport for any other."""
    parts = name.split("/")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME or len(parts) > DEEPEST:
        raise UnreadableReport("a file comes back with a name that is too long")
    if any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        raise UnreadableReport(f"a file comes back with the name {name!r}")
    return parts


@contextlib.contextmanager
def refused_with(title: str) -> Iterator[None]:
    """What is refused inside of the block is said with its place."""
    try:
        yield
    except UnreadableReport as error:
        raise UnreadableReport(f"what {title} sent back is refused: {error.message}", error.fix) from error


def _not_kept(error: OSError) -> MachineError:
    return MachineError(f"what a place sent back cannot be kept: {error.strerror or error}", "df -h .")
