"""Lines of a text report from disk: one at a time, so that a file of gigabytes costs no memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.errors import UnreadableReport

# perf's own longest line is an event with its metrics, some hundred bytes. What is longer is none of perf's.
LONGEST_LINE = 64 * 1024


@dataclass(frozen=True)
class Line:
    """One line without its end. `whole` is False for a last line that has no newline."""

    text: str
    whole: bool


def lines(path: Path) -> Iterator[Line]:
    """The lines of `path`. Raises UnreadableReport where it cannot be read, is binary or has no lines."""
    try:
        with path.open("rb") as file:
            while raw := file.readline(LONGEST_LINE + 1):
                if len(raw) > LONGEST_LINE:
                    raise UnreadableReport(f"{path.name}: a line is longer than {LONGEST_LINE // 1024} KiB")
                if b"\0" in raw:
                    raise UnreadableReport(f"{path.name} is binary, not a text report of perf stat")
                text = raw.decode("utf-8", "replace").lstrip("\ufeff")
                yield Line(text.rstrip("\r\n"), raw.endswith(b"\n"))
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableReport(f"{path} cannot be read: {reason}") from error


def head_lines(head: bytes) -> list[str]:
    """The whole lines at the beginning of a file, for telling its format; none of a binary file."""
    if b"\0" in head:
        return []
    return head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()
