"""A series out of a text file: one value a line, or index,value, or a CSV file of a benchmark with more columns.

Repeated measurements of one build become their median, as a night's repetitions do.
"""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from pathlib import Path

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.files.regular import read_start
from profkit.core.statistics import median

LARGEST = 64 << 20  # bytes
MOST_FIELDS = 1_000_000  # each is an object of some 100 bytes, however short it is in the file
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "+inf", "infinity"}
EXPECTED = "give it one value a line, or index,value, or a CSV file with a header"
# There is one way only to divide the digits: with more, a long line of them takes ages.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# What columns are called, the likeliest first. Compared in lower case, without blanks, units and underscores.
VALUES = (
    "value", "median", "measurement", "mean", "seconds", "time", "duration", "realtime", "elapsed",
    "result",
)  # fmt: skip
BUILDS = ("ghc", "build", "sutversion", "commit", "sha", "revision", "rev", "version", "run", "night", "date")
INDICES = (
    "index", "index1based", "i", "n", "no", "number", "id", "row", "x", "time", "timestamp", "datetime",
    "epoch",
)  # fmt: skip
NO_BUILDS = "none"
_LOOKED_AT = 1000  # rows that tell what a column holds


@dataclass(frozen=True)
class SeriesFile:
    """A series as a file has it: one value per build, None where the file says that there is none.

    `labels` say what each build is called (its line number where nothing is); `rows` is the number, from 0 on, of each
    build's first row of values. `column` and `by` name the columns that were taken, `by` None where each row is one.
    """

    values: tuple[float | None, ...]
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    column: str
    by: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Table:
    """The rows of a file, each with the number of its line, and the names of the columns."""

    path: Path
    names: tuple[str, ...]
    rows: list[tuple[int, tuple[str, ...]]]

    def fields(self, column: int) -> list[str]:
        """The first fields of a column."""
        return [fields[column] for _, fields in self.rows[:_LOOKED_AT]]


def read_series_file(path: Path, column: str | None = None, by: str | None = None) -> SeriesFile:
    """The series in a file. `column` and `by` name the values' and the builds' column, or number it from 1 on.

    Left out, they are found by what columns are commonly called; a lone column before the values is the builds' (or the
    index). `by="none"` takes every row for itself. Neighbouring rows of one build become one value, their median.
    UnreadableReport where the file is no table or a value is no number, UsageError where it has no such column.
    """
    table, notes = _read_table(path)
    names = table.names
    value = _column_named(column, table) if column is not None else _value_column(table)
    if by is None:
        build = _build_column(table, value)
    else:
        build = None if by == NO_BUILDS else _column_named(by, table)
    numbers = [_value(table, line, fields, value) for line, fields in table.rows]
    if all(number is None for number in numbers):
        raise UnreadableReport(f"{path.name} has no number in {names[value]}", "choose another column")
    if build is None:
        labels = tuple(str(line) for line, _ in table.rows)
        return SeriesFile(tuple(numbers), labels, tuple(range(len(numbers))), names[value], None, notes)
    values: list[float | None] = []
    builds, firsts = [], []
    for label, group in groupby(range(len(numbers)), key=lambda row: table.rows[row][1][build]):
        rows = list(group)
        measured = [number for row in rows if (number := numbers[row]) is not None]
        values.append(median(measured) if measured else None)
        builds.append(label)
        firsts.append(rows[0])
    if len(values) < len(numbers):
        count = f"{len(numbers)} rows of {len(values)} different {names[build]}"
        notes = (*notes, f"{count} in turn: the median of each counts")
    return SeriesFile(tuple(values), tuple(builds), tuple(firsts), names[value], names[build], notes)


def _read_table(path: Path) -> tuple[_Table, tuple[str, ...]]:
    """The rows of a text file, and notes. Blank lines and lines that begin with # are passed over."""
    text = _read_text(path)
    lines = [
        (number, line.strip())
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise UnreadableReport(f"{path.name} is empty: there is no value in it", EXPECTED)
    separator = _separator(lines[0][1])
    rows = []
    for number, line in lines:
        try:
            fields = line.split() if separator == " " else next(csv.reader([line], delimiter=separator))
        except csv.Error as error:  # a field of more than 128 KiB
            raise UnreadableReport(f"{path.name}, line {number}: {error}", EXPECTED) from error
        rows.append((number, tuple(field.strip() for field in fields)))
    names: tuple[str, ...] = ()
    if _is_header(rows[0][1]):
        names = rows.pop(0)[1]
        if not rows:
            raise UnreadableReport(f"{path.name} has a header and no value below it", EXPECTED)
    width = max(len(names), len(rows[0][1]))
    notes: tuple[str, ...] = ()
    if len(rows) > 1 and len(rows[-1][1]) < width and not text.endswith(("\n", "\r")):
        notes = (f"the last line of {path.name} is cut off, and was left out",)
        rows.pop()
    for number, row in rows:
        if len(row) != width:
            raise UnreadableReport(
                f"{path.name}, line {number}: {len(row)} fields where the others have {width}",
                "every line needs as many fields as the first",
            )
    return _Table(path, names or tuple(f"column {k + 1}" for k in range(width)), rows), notes


def _read_text(path: Path) -> str:
    try:
        raw = read_start(path, LARGEST + 1)
    except IsADirectoryError as error:
        raise UnreadableReport(f"{path} is a folder, not a series", "name a file in it") from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    if len(raw) > LARGEST:
        raise UnreadableReport(
            f"{path.name} is larger than {LARGEST >> 20} MB: too much for one series",
            f"take its end: tail -n 100000 {shlex.quote(path.name)}",
        )
    text = raw.decode("utf-8-sig", errors="replace")
    lines = sum(map(text.count, "\r\n"))
    if lines + max(map(text.count, ";\t, ")) > MOST_FIELDS:
        raise UnreadableReport(
            f"{path.name} has more than {MOST_FIELDS:,} fields: too many for one series",
            f"take its end: tail -n 100000 {shlex.quote(path.name)}",
        )
    if "\0" in text or text.lstrip()[:1] in ("{", "[", "<"):
        raise UnreadableReport(f"{path.name} is no table of values: it is binary, JSON or markup", EXPECTED)
    return text


def _separator(line: str) -> str:
    unquoted = re.sub(r'"[^"]*"', "", line)
    return next((sign for sign in ";\t," if sign in unquoted), " " if " " in unquoted else ",")


def _is_header(fields: tuple[str, ...]) -> bool:
    """Names, and no value among them: what begins with a digit is meant as a value, even where it is none (3.2ms)."""
    return not all(map(_is_missing, fields)) and not any(re.match(r"[+-]?\.?\d", field) for field in fields)


def _parse_number(text: str) -> float | None:
    value = float(text) if _NUMBER.fullmatch(text) else None
    return value if value is not None and isfinite(value) else None


def _is_missing(text: str) -> bool:
    return text.lower() in MISSING


def _value(table: _Table, line: int, fields: tuple[str, ...], column: int) -> float | None:
    text = fields[column]
    number = _parse_number(text)
    if number is None and not _is_missing(text):
        raise UnreadableReport(
            f"{table.path.name}, line {line}: {text[:40]!r} in {table.names[column]} is no number",
            "leave the field empty where there is no value, or choose another column",
        )
    return number


# ---------------------------------------------------------------- which column is which


def _column_named(name: str, table: _Table) -> int:
    """The column of that name, else of that number."""
    names = table.names
    if name in names:
        return names.index(name)
    plain = [_plain_name(known) for known in names]
    if _plain_name(name) in plain:
        return plain.index(_plain_name(name))
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise UsageError(f"{table.path.name} has no column {name!r}", f"its columns are: {', '.join(names)}")


def _value_column(table: _Table) -> int:
    """By its name; else the last column of numbers, since an index comes first."""
    plain = [_plain_name(name) for name in table.names]
    for wanted in VALUES:
        if wanted in plain and (wanted != "time" or plain.index(wanted) > 0 or len(plain) == 1):
            return plain.index(wanted)
    numeric = [k for k in range(len(plain)) if _is_numeric(table.fields(k))]
    if not numeric:
        line, fields = table.rows[0]
        raise UnreadableReport(
            f"{table.path.name} is no series: it has no column of numbers (line {line}: {fields[-1][:40]!r})",
            EXPECTED,
        )
    counted = [_parse_number(field) for field in table.fields(0)]
    counts = any(counted == [first + n for n in range(len(counted))] for first in (0, 1))
    if numeric == [0] and len(plain) > 1 and counts:
        raise UnreadableReport(
            f"{table.path.name} numbers its lines, and has no other column of numbers",
            "give it index,value; --column 1 takes the first all the same",
        )
    return numeric[-1]


def _is_numeric(fields: list[str]) -> bool:
    """Nine of ten are numbers, or say that there is none; and some are numbers."""
    numbers = sum(_parse_number(field) is not None for field in fields)
    return numbers > 0 and numbers + sum(map(_is_missing, fields)) >= 0.9 * len(fields)


def _build_column(table: _Table, value: int) -> int | None:
    """By its name; else a column before the values that repeats itself from row to row; else an index, if any."""
    others = [k for k in range(len(table.names)) if k != value]
    plain = {_plain_name(table.names[k]): k for k in reversed(others)}
    for wanted in BUILDS:
        if wanted in plain:
            return plain[wanted]
    for k in others:
        if k < value and _has_groups(table, k):
            return k
    return next((k for k in others if _plain_name(table.names[k]) in INDICES or len(others) == 1), None)


def _has_groups(table: _Table, column: int) -> bool:
    """Whether rows come in groups that each have one value here, and no value comes back: several rows a build."""
    runs = [label for label, _ in groupby(fields[column] for _, fields in table.rows)]
    return 1 < len(runs) < len(table.rows) and len(set(runs)) == len(runs)


def _plain_name(name: str) -> str:
    return re.sub(r"[\[(].*?[\])]|[^a-z0-9]", "", name.lower())
