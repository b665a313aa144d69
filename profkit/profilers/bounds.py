"""What keeps a hostile text from filling memory: lines of a bounded length, archives that do not unpack without end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TextIO

from profkit.core.errors import UnreadableReport

LONGEST_LINE = 32 << 20  # characters; eight thousand metrics of a launch are a quarter of a million
# Traces of torch's profiler pack to a tenth or a thirtieth, DEFLATE can do a thousandth: what unpacks to hundreds of
# times its size is one event again and again, or none.
MOST_RATIO = 250
LEAST_SUSPECT = 64 << 20  # bytes; below, it costs little whatever it is


def lines_of(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a text. Raises UnreadableReport at one that is too long to be any."""
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise UnreadableReport(
                f"{path} has a line of more than {LONGEST_LINE >> 20} MiB: no report in text"
            )
        yield line


def check_unpacked(unpacked: int, packed: IO[bytes]) -> None:
    """Raise UnreadableReport where so many bytes came of what was read of `packed` that it is a bomb."""
    if unpacked > LEAST_SUSPECT and unpacked > MOST_RATIO * packed.tell():
        raise UnreadableReport(f"the archive unpacks to more than {MOST_RATIO} times its size: no trace does")
