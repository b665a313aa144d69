"""A series out of a text file: one value a line; a name may stand above them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_start

LARGEST = 64 << 20  # bytes
MOST_VALUES = 100_000
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "+inf", "infinity"}
EXPECTED = "give it one value a line: cut -d, -f2 TABLE.csv > FILE takes the second column of a table"
# There is one way only to divide the digits: with more, a long line of them takes ages.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class SeriesFile:
    """A series as a file has it: None where a line says that there is no value. `labels` are the lines' numbers."""

    values: tuple[float | None, ...]
    labels: tuple[str, ...]
    name: str = "value"


def read_series_file(path: Path) -> SeriesFile:
    """The series in a file; blank lines and those that begin with # are passed over.

    Raises UnreadableReport where the file cannot be read, or a line is no number.
    """
    lines = [
        (number, line.strip())
        for number, line in enumerate(_read_lines(path), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    name = "value"
    if lines and re.match(r"[^\W\d_][\w .()/%-]*$", lines[0][1]) and lines[0][1].lower() not in MISSING:
        name = lines.pop(0)[1]
    values = tuple(_value(path, number, line) for number, line in lines)
    if all(value is None for value in values):
        raise UnreadableReport(f"{path.name} holds no value", EXPECTED)
    return SeriesFile(values, tuple(str(number) for number, _ in lines), name)


def _read_lines(path: Path) -> list[str]:
    try:
        raw = read_start(path, LARGEST + 1)
    except IsADirectoryError as error:
        raise UnreadableReport(f"{path} is a folder, not a series", "name a file in it") from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    lines = re.split(r"\r\n|\n|\r", raw.decode("utf-8-sig", errors="replace"))
    if len(raw) > LARGEST or len(lines) > MOST_VALUES:
        raise UnreadableReport(
            f"{path.name} is too much for one series: more than {LARGEST >> 20} MB or {MOST_VALUES:,} lines",
            f"take its end: tail -n 100000 {shlex.quote(path.name)}",
        )
    return lines


def _value(path: Path, number: int, line: str) -> float | None:
    value = float(line) if _NUMBER.fullmatch(line) else None
    if value is None and line.lower() not in MISSING:
        raise UnreadableReport(f"{path.name}, line {number}: {line[:40]!r} is no number", EXPECTED)
    return value if value is not None and isfinite(value) else None
