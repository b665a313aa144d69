"""Cuts `perf script` text at its blank lines, piece by piece, and says how the text ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from profkit.core.errors import UnreadableReport

CHUNK = 1 << 20
MOST_UNBROKEN = 1 << 24  # a sample is some kilobytes; 16 MiB without an end is another kind of file


class ScriptBlocks:
    """One pass over one text. `ending` says afterwards what is wrong with its end; None where nothing is."""

    def __init__(self) -> None:
        self.ending: str | None = None

    def blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        """The text between blank lines; without any, pieces that end before a line that begins a sample."""
        rest = b""
        blank = False
        while chunk := file.read(CHUNK):
            if b"\0" in chunk:
                raise UnreadableReport("this is a binary file, not the text of perf script")
            data = rest + chunk
            if b"\r\n" in data:
                data = data.replace(b"\r\n", b"\n")
            cut = data.rfind(b"\n\n")
            if cut < 0 and len(data) >= CHUNK:
                cut = _last_start(data) - 1
                blocks = [data[:cut]] if cut > 0 else []
                rest = data[cut + 1 :] if cut > 0 else data
            elif cut < 0:
                blocks, rest = [], data
            else:
                blank = True
                blocks, rest = data[:cut].split(b"\n\n"), data[cut + 2 :]
            if len(rest) > MOST_UNBROKEN:
                raise UnreadableReport("16 MiB without the end of a sample: not the text of perf script")
            yield from blocks
        if rest.strip():
            yield self._tail(rest, blank)

    def _tail(self, rest: bytes, blank: bool) -> bytes:
        """The last block. A sample that is cut short would have the wrong callers, so it is left out."""
        if rest.endswith(b"\n"):
            if blank and b"\n\t" in rest:
                self.ending = "the text does not end where a sample ends: the last one may be cut short"
            return rest
        if rest.endswith(b")"):
            self.ending = "the text ends in the middle: it may be cut short"
            return rest
        self.ending = (
            "the text ends in the middle of a line: it was cut short, and its last sample is left out"
        )
        return rest[: _last_start(rest)]


def _last_start(data: bytes) -> int:
    """Where the last line begins that is no line of a stack; 0 where there is none but the first."""
    position = data.rfind(b"\n")
    while position >= 0 and data[position + 1 : position + 2] in (b"\t", b""):
        position = data.rfind(b"\n", 0, position)
    return position + 1
