"""Reads files of unknown origin up to a bound, so that a hostile one does not fill memory."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular

HEAD_BYTES = 64 * 1024  # what is looked at to tell which format a file has
LONGEST_LINE = 32 << 20  # characters; eight thousand metrics of a launch are a quarter of a million
# Traces of torch's profiler pack to a tenth or a thirtieth, DEFLATE can do a thousandth: what unpacks to hundreds of
# times its size is one event again and again, or none.
MAX_RATIO = 250
MIN_SUSPECT = 64 << 20  # bytes; below, it costs little whatever it is


@contextmanager
def reading(path: Path, fix: str | None = None, *, named: bool = True) -> Iterator[None]:
    """Turn errors of reading `path` into UnreadableReport that names it.

    All readers go through here. Without `named`, the messages of the reader itself do not name the file yet, and
    get its path as well. `fix` is for errors without one.
    """
    if "\0" in str(path):
        raise UnreadableReport(
            f"{str(path)!r} is not a file name: it contains a null byte", "remove the null byte"
        )
    try:
        yield
    except UnreadableReport as error:
        if named:
            raise
        raise UnreadableReport(f"{path}: {error.message}", error.fix or fix) from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror or error}", f"ls -ld {shlex.quote(str(path))}"
        ) from error


def read_head(path: Path) -> bytes:
    """Return the first 64 KiB of `path`. Raises UnreadableReport with the reason where nothing can be read."""
    with reading(path):
        if path.is_dir():
            raise UnreadableReport(
                f"{path} is a folder, but neither a run nor a report: it has no run.json",
                f"ls {shlex.quote(str(path))}",
            )
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "does not exist"
            raise UnreadableReport(f"{path} {kind}", f"ls -l {shlex.quote(str(path.parent))}")
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
        if not head:
            raise UnreadableReport(f"{path} is empty", "write it again with its tool")
        return head


def lines_of(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a text. Raises UnreadableReport for a line longer than any report has."""
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise UnreadableReport(
                f"{path} has a line of more than {LONGEST_LINE >> 20} MiB, which no text report has"
            )
        yield line


def check_unpacked(unpacked: int, packed: IO[bytes]) -> None:
    """Raise UnreadableReport if what was read of `packed` unpacked to so much that it is an archive bomb."""
    if unpacked > MIN_SUSPECT and unpacked > MAX_RATIO * packed.tell():
        raise UnreadableReport(
            f"the archive unpacks to more than {MAX_RATIO} times its size, which no trace does"
        )
