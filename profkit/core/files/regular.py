"""The one door through which a file comes in that others may have written: opened once, a regular file, bounded.

A pipe would be waited for, and a device has no end. What is opened is asked what it is, not its name: a name may be
another file's by then. Everything here raises OSError, whose `strerror` says why, as where there is no such file.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, TextIO, cast

DOCUMENT_BYTES = 64 << 20  # of a file that one of our own programs wrote, where nothing else is said
_PIECE = 1 << 20  # bytes
NOT_REGULAR = "it is no regular file"


def open_regular(path: Path | str) -> BinaryIO:
    """The file, open for reading; closed by the caller. No pipe is waited for, and no device is opened at all."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # some devices do something when they are opened
        raise _not_regular(path)
    file = cast("BinaryIO", open(path, "rb", opener=_open))  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(path)
    return file


def open_regular_text(
    path: Path | str, *, encoding: str = "utf-8", errors: str = "strict", newline: str | None = None
) -> TextIO:
    """The same as text; `errors` and `newline` as those of `open`."""
    return io.TextIOWrapper(open_regular(path), encoding=encoding, errors=errors, newline=newline)


def read_bounded(path: Path | str, most: int = DOCUMENT_BYTES) -> bytes:
    """The content, where it is `most` bytes at most; one that grows meanwhile is not read any further either."""
    content = read_start(path, most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def read_bounded_text(
    path: Path | str, most: int = DOCUMENT_BYTES, *, encoding: str = "utf-8", errors: str = "strict"
) -> str:
    """The same as text. Raises UnicodeDecodeError too, where `errors` says so."""
    return read_bounded(path, most).decode(encoding, errors)


def read_start(path: Path | str, most: int) -> bytes:
    """The first `most` bytes, or all there are."""
    pieces: list[bytes] = []
    with open_regular(
        path
    ) as file:  # in pieces: a single read asks for the memory of `most`, however small the file
        while most > 0 and (piece := file.read(min(most, _PIECE))):
            pieces.append(piece)
            most -= len(piece)
    return b"".join(pieces)


def check_regular(path: Path | str, most: int | None = None) -> None:
    """Before another library opens it by its name: raises what `read_bounded` would raise, and reads nothing."""
    with open_regular(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise _too_large(path, most)


def copy_regular(source: Path | str, target: Path) -> None:
    """Copy the bytes to `target`, made anew or written over; no more than `source` had when it was opened."""
    with open_regular(source) as file, target.open("wb") as copy:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            copy.write(piece)
            left -= len(piece)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _not_regular(path: Path | str) -> OSError:
    if os.path.isdir(path):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return OSError(errno.EINVAL, NOT_REGULAR, str(path))


def _too_large(path: Path | str, most: int) -> OSError:
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))
