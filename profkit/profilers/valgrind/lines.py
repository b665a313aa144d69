"""Reads a text file as lines in flat memory, and adds up columns of numbers quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import UnreadableReport

CHUNK_BYTES = 4 * 1024 * 1024  # some hundred thousand lines: enough to sum in bulk, little to hold


def chunks_of_lines(path: Path) -> Iterator[list[bytes]]:
    """The lines of `path` without their ends, a chunk at a time. A line never straddles two chunks.

    Raises UnreadableReport where the file cannot be read or holds a line longer than a chunk.
    """
    try:
        with path.open("rb") as file:
            rest = b""
            while chunk := file.read(CHUNK_BYTES):
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                if len(rest) > CHUNK_BYTES:
                    raise UnreadableReport(
                        f"{path} holds a line of more than {CHUNK_BYTES} bytes: no text report"
                    )
                yield lines
            if rest:
                yield [rest]
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error


def add_columns(sums: list[int], lines: list[bytes], skip: int) -> None:
    """Add the columns of `lines` behind the first `skip` ones to `sums`. Columns left out at the end are
    zeros, and so is a column of `.` (cachegrind).

    Lines of the same width are split and summed together: several times faster than line by line.
    Raises ValueError for a column that is no number or is one too many.
    """
    by_width: dict[int, list[bytes]] = {}
    for line in lines:
        width = line.count(b" ")
        group = by_width.get(width)
        if group is None:
            by_width[width] = [line]
        else:
            group.append(line)
    for width, group in by_width.items():
        tokens = b" ".join(group).split()
        step = width + 1
        if len(tokens) != step * len(group) or b"." in tokens:  # double or trailing blanks
            for line in group:
                _add_one(sums, line.split(), skip)
        elif len(group) == 1:
            _add_one(sums, tokens, skip)
        elif step - skip > len(sums):
            raise ValueError(group[0].decode("utf-8", "replace"))
        else:
            for column in range(skip, step):
                sums[column - skip] += sum(map(int, tokens[column::step]))


def _add_one(sums: list[int], tokens: list[bytes], skip: int) -> None:
    if len(tokens) - skip > len(sums):
        raise ValueError(b" ".join(tokens).decode("utf-8", "replace"))
    for column in range(skip, len(tokens)):
        if tokens[column] != b".":
            sums[column - skip] += int(tokens[column])
