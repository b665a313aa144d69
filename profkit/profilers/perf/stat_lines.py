"""Lines of a text report from disk: one at a time, so that a file of gigabytes costs no memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from profkit.core.errors import UnreadableReport

# perf's own longest line is an event with its metrics, some hundred bytes. What is longer is none of perf's.
LONGEST_LINE = 64 * 1024
_BLOCK = 64 * 1024  # decoded and split at once, which is five times faster than line by line


class Line(NamedTuple):
    """One line without its end. `whole` is False for a last line that has no newline."""

    text: str
    whole: bool


def lines(path: Path) -> Iterator[Line]:
    """The lines of `path`. Raises UnreadableReport: it cannot be read, is binary, or a line has no end."""
    rest = b""
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                if b"\0" in block:
                    raise UnreadableReport(f"{path.name} is binary, not a text report of perf stat")
                whole, newline, rest = (rest + block).rpartition(b"\n")
                if newline:
                    for text in _decode(whole):
                        if len(text) > LONGEST_LINE:
                            raise _endless(path)
                        yield Line(text, True)
                if len(rest) > LONGEST_LINE:
                    raise _endless(path)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableReport(f"{path} cannot be read: {reason}") from error
    if rest:
        yield Line(_decode(rest)[0], False)


def _decode(block: bytes) -> list[str]:
    return block.decode("utf-8", "replace").replace("\r\n", "\n").lstrip("\ufeff").rstrip("\r").split("\n")


def _endless(path: Path) -> UnreadableReport:
    return UnreadableReport(f"{path.name}: a line is longer than {LONGEST_LINE // 1024} KiB")


def head_lines(head: bytes) -> list[str]:
    """The whole lines at the beginning of a file, for telling its format; none of a binary file."""
    if b"\0" in head:
        return []
    return head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()
