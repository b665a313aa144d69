"""Files that come back from a place: regular ones, below one folder, with the checksum that was told, within limits."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import UnreadableReport

MOST_BYTES = 8 << 30  # of one result; a trace has some GB
MOST_FILES = 20_000
LONGEST_NAME = 1024  # bytes
DEEPEST = 16  # folders
# No control character, and nothing that another system takes for a separator or a drive.
_PART = re.compile(r'[^\x00-\x1f\x7f/\\:*?"<>|]+')


class ReceivedFiles:
    """Takes `file` and `data` messages. Everything goes into `folder`, which nobody else writes to.

    What is refused raises UnreadableReport: then nothing of the result is used.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.names: list[str] = []
        self.total = 0  # bytes
        self._folder, self._most = folder, most_bytes
        self._file: IO[bytes] | None = None
        self._path = folder
        self._left, self._sha, self._digest = 0, "", hashlib.sha256()

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of a place."""
        if message["event"] == "file":
            self._begin(message.get("name"), message.get("size"), message.get("sha"))
        else:
            self._write(message.get("data"))

    def finish(self) -> None:
        """No more files: each must be whole."""
        if self._file is not None:
            raise _refused(f"{self.names[-1]} is not whole")

    def close(self) -> None:
        """Leave no file open, and none that is not whole."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if self._left or self._digest.hexdigest() != self._sha:
                self._path.unlink()

    def _begin(self, name: object, size: object, sha: object) -> None:
        self.finish()
        if (
            not isinstance(name, str)
            or not isinstance(size, int)
            or isinstance(size, bool)
            or not isinstance(sha, str)
        ):
            raise _refused("a file comes without its name, size or checksum")
        path = self._folder.joinpath(*checked_parts(name))
        self.total += size
        if size < 0 or self.total > self._most:
            raise _refused(f"more than {self._most >> 20} MiB come back")
        if len(self.names) >= MOST_FILES:
            raise _refused(f"more than {MOST_FILES} files come back")
        self.names.append(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._file = os.fdopen(os.open(path, flags, 0o644), "wb")
        except FileExistsError:
            raise _refused(f"{name} comes twice") from None
        self._path, self._left, self._sha, self._digest = path, size, sha, hashlib.sha256()
        if not size:
            self._end()

    def _write(self, text: object) -> None:
        if self._file is None or not isinstance(text, str):
            raise _refused("data comes that belongs to no file")
        try:
            data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), self._left + 1)
        except (ValueError, zlib.error) as error:
            raise _refused(f"{self.names[-1]} cannot be unpacked: {error}") from error
        if not data or len(data) > self._left:
            raise _refused(f"{self.names[-1]} has another size than was told")
        self._file.write(data)
        self._digest.update(data)
        self._left -= len(data)
        if not self._left:
            self._end()

    def _end(self) -> None:
        self.close()
        if self._digest.hexdigest() != self._sha:
            raise _refused(f"{self.names[-1]} has another checksum than was told")


def checked_parts(name: str) -> list[str]:
    """The parts of a relative path that leads down only. Raises UnreadableReport for any other."""
    parts = name.split("/")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME or len(parts) > DEEPEST:
        raise _refused("a file comes back with a name that is too long")
    if any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        raise _refused(f"a file comes back with the name {name!r}")
    return parts


def _refused(reason: str) -> UnreadableReport:
    return UnreadableReport(f"what the place sent back is refused: {reason}")
