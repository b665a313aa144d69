"""A series out of any text file: one value a line, or index,value, or a CSV file of a benchmark with more columns.

First the rows and fields (encoding, separator, header), then which column holds the values and which rows are of one
build. Repeated measurements of one build become their median, as a night's repetitions do.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.statistics import median

LARGEST = 256 << 20  # bytes: five million rows of three columns
LONGEST_LINE = 1 << 20  # characters; beyond that it is no table of numbers
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "+inf", "infinity"}
SEPARATORS = (";", "\t", ",", "|")  # in this order: a decimal comma stands beside a semicolon
EXPECTED = "one value a line, or index,value, or a CSV file with a header"
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class FileRow:
    """One line: its number in the file, from 1 on, and its fields without blanks around them."""

    line: int
    fields: tuple[str, ...]


@dataclass
class FileTable:
    """What the file holds: the names of its columns, () where it has no header, and its rows in order."""

    names: tuple[str, ...]
    rows: list[FileRow]
    notes: list[str] = field(default_factory=list)


def read_table(path: Path) -> FileTable:
    """The rows of a text file. Blank lines and lines that begin with # are passed over.

    UnreadableReport, in words, for what is no such file: absent, empty, binary, JSON, too large, without a number.
    """
    text = _text(path)
    rows, separator = _rows(path, text)
    if not rows:
        raise UnreadableReport(f"{path.name} is empty: there is no value in it", f"give it {EXPECTED}")
    names: tuple[str, ...] = ()
    if _is_header(rows[0].fields):
        names = rows.pop(0).fields
    table = FileTable(names, rows)
    if not rows:
        raise UnreadableReport(f"{path.name} has a header and no value below it", f"give it {EXPECTED}")
    width = max(len(names), len(rows[0].fields))
    if len(rows) > 1 and len(rows[-1].fields) < width and not text.endswith(("\n", "\r")):
        table.notes.append(f"the last line of {path.name} is cut off, and was left out")
        rows.pop()
    for row in rows:
        if len(row.fields) != width:
            fields = "1 field" if len(row.fields) == 1 else f"{len(row.fields)} fields"
            split = {"\t": "a tab", " ": "a blank"}.get(separator, repr(separator))
            raise UnreadableReport(
                f"{path.name}, line {row.line}: {fields} where the others have {width}",
                f"every line needs as many fields as the first, parted by {split}",
            )
    return table


def parse_number(text: str) -> float | None:
    """The number that a field is, with a point or a comma; None where it is none. NaN and infinity are none."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.replace(",", "."))
    return value if abs(value) != float("inf") else None


def is_missing(text: str) -> bool:
    """Whether a field says that there is no value."""
    return text.lower() in MISSING


def _is_header(fields: tuple[str, ...]) -> bool:
    """Names, and no value among them: what begins with a digit is meant as a value, even where it is none (3.2ms)."""
    return not all(map(is_missing, fields)) and not any(re.match(r"[+-]?[.,]?\d", each) for each in fields)


def _text(path: Path) -> str:
    with _explain_os_errors(path):
        if path.stat().st_size > LARGEST:
            raise UnreadableReport(
                f"{path.name} is larger than {LARGEST >> 20} MB: too much for one series",
                f"take its end: tail -n 100000 {path.name}",
            )
        with path.open("rb") as file:  # what has no size (a pipe, /dev/zero) is bounded, too
            raw = file.read(LARGEST + 1)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = raw.decode("utf-16", errors="replace")
    else:
        text = raw.decode("utf-8-sig", errors="replace")
    if "\0" in text[:4096] or "\0" in text[-4096:]:
        raise UnreadableReport(f"{path.name} is no text: it holds binary data", f"give it {EXPECTED}")
    if text.lstrip()[:1] in ("{", "[", "<"):
        raise UnreadableReport(f"{path.name} is JSON or markup, not a table of values", f"give it {EXPECTED}")
    return text


@contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:
        raise UnreadableReport(f"{path} is a folder, not a series", "name a file in it") from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error


def _rows(path: Path, text: str) -> tuple[list[FileRow], str]:
    """All lines with something on them, split; and by what."""
    lines = (
        (n, line)
        for n, line in enumerate(re.split(r"\r\n|\n|\r", text), 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    separator = ""
    rows: list[FileRow] = []
    for n, line in lines:
        if len(line) > LONGEST_LINE:
            raise UnreadableReport(
                f"{path.name}, line {n} is longer than a million characters", f"give it {EXPECTED}"
            )
        separator = separator or _separator(line)
        if separator == " ":
            fields = line.split()
        elif '"' in line:
            try:
                fields = next(csv.reader([line.strip()], delimiter=separator, skipinitialspace=True), [])
            except csv.Error as error:  # a field of more than 128 KiB
                raise UnreadableReport(f"{path.name}, line {n}: {error}", f"give it {EXPECTED}") from error
        else:
            fields = line.split(separator)
        rows.append(FileRow(n, tuple(each.strip() for each in fields)))
    return rows, separator or ","


def _separator(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line)  # what stands in quotes parts nothing
    for separator in SEPARATORS:
        if separator in bare:
            return separator
    return " " if len(line.split()) > 1 and parse_number(line.split()[-1]) is not None else ","


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


def read_series_file(path: Path, column: str | None = None, by: str | None = None) -> SeriesFile:
    """The series in a file. `column` and `by` name the values' and the builds' column, or number it from 1 on.

    Left out, they are found by what columns are commonly called; a lone column before the values is the builds' (or the
    index). `by="none"` takes every row for itself. Neighbouring rows of one build become one value, their median.
    UnreadableReport where the file is no table or a value is no number, UsageError where it has no such column.
    """
    table = read_table(path)
    width = len(table.rows[0].fields)
    names = table.names or tuple(f"column {k + 1}" for k in range(width))
    value = _column_named(column, names, path) if column is not None else _value_column(table, names, path)
    build = _build_column(table, names, value) if by is None else None
    if by is not None and by != NO_BUILDS:
        build = _column_named(by, names, path)
    numbers = [_value(path, row, value, names) for row in table.rows]
    if all(each is None for each in numbers):
        raise UnreadableReport(f"{path.name} has no number in {names[value]}", "choose another column")
    if build is None:
        labels = tuple(str(row.line) for row in table.rows)
        return SeriesFile(
            tuple(numbers), labels, tuple(range(len(numbers))), names[value], notes=tuple(table.notes)
        )
    return _by_build(table, numbers, build, names[value], names[build])


def _by_build(table: FileTable, numbers: list[float | None], build: int, column: str, by: str) -> SeriesFile:
    values: list[float | None] = []
    labels, rows = [], []
    for label, group in groupby(range(len(numbers)), key=lambda k: table.rows[k].fields[build]):
        members = list(group)
        known = [each for k in members if (each := numbers[k]) is not None]
        values.append(median(known) if known else None)
        labels.append(label)
        rows.append(members[0])
    notes = list(table.notes)
    if len(values) < len(numbers):
        notes.append(
            f"{len(numbers)} rows of {len(values)} different {by} in turn: the median of each counts"
        )
    return SeriesFile(tuple(values), tuple(labels), tuple(rows), column, by, tuple(notes))


def _value(path: Path, row: FileRow, value: int, names: tuple[str, ...]) -> float | None:
    text = row.fields[value]
    found = parse_number(text)
    if found is None and not is_missing(text):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise UnreadableReport(
            f"{path.name}, line {row.line}: {shown!r} in {names[value]} is no number",
            "leave the field empty where there is no value" if len(names) == 1 else "choose another column",
        )
    return found


def _column_named(asked: str, names: tuple[str, ...], path: Path) -> int:
    """The column of that name, else of that number."""
    for k, name in enumerate(names):
        if name == asked:
            return k
    for k, name in enumerate(names):
        if _plain_name(name) == _plain_name(asked):
            return k
    if asked.isdecimal() and 1 <= int(asked) <= len(names):
        return int(asked) - 1
    raise UsageError(f"{path.name} has no column {asked!r}", f"its columns are: {', '.join(names)}")


def _value_column(table: FileTable, names: tuple[str, ...], path: Path) -> int:
    """By its name; else the last column of numbers, since an index comes first."""
    numeric = [k for k in range(len(names)) if _is_numeric(table, k)]
    if not numeric:
        row = table.rows[0]
        raise UnreadableReport(
            f"{path.name} is no series: there is no column of numbers in it (line {row.line}: {row.fields[-1][:40]!r})",
            "give it one value a line, or index,value, or a CSV file with a header",
        )
    for wanted in VALUES:
        for k in range(len(names)):
            if _plain_name(names[k]) == wanted and (wanted != "time" or k > 0 or len(names) == 1):
                return k
    if numeric[-1] == 0 and len(names) > 1 and _numbers_lines(table):
        row = next(row for row in table.rows if parse_number(row.fields[1]) is None)
        raise UnreadableReport(
            f"{path.name} counts its lines, and has no column of numbers beside: {row.fields[1][:40]!r} in line"
            f" {row.line} is none",
            "give it index,value; --column 1 takes the first all the same",
        )
    return numeric[-1]


def _numbers_lines(table: FileTable) -> bool:
    """Whether the first column only numbers the lines: 0, 1, 2, ... or 1, 2, 3, ..."""
    first = parse_number(table.rows[0].fields[0])
    return first in (0, 1) and all(
        parse_number(r.fields[0]) == first + n for n, r in enumerate(table.rows[:1000])
    )


def _is_numeric(table: FileTable, column: int) -> bool:
    """Nine of ten fields, among the first thousand, are numbers, or say that there is none; and some are."""
    fields = [row.fields[column] for row in table.rows[:1000]]
    numbers = sum(parse_number(each) is not None for each in fields)
    return numbers > 0 and numbers + sum(is_missing(each) for each in fields) >= 0.9 * len(fields)


def _build_column(table: FileTable, names: tuple[str, ...], value: int) -> int | None:
    """By its name; else a column before the values that repeats itself from row to row; else an index, if any."""
    others = [k for k in range(len(names)) if k != value]
    for wanted in BUILDS:
        for k in others:
            if _plain_name(names[k]) == wanted:
                return k
    for k in others:
        if k < value and _has_groups(table, k):
            return k
    for k in others:
        if _plain_name(names[k]) in INDICES or len(others) == 1:
            return k
    return None


def _has_groups(table: FileTable, column: int) -> bool:
    """Whether rows come in groups that each have one value here, and no value comes back: several rows a build."""
    runs = [label for label, _ in groupby(row.fields[column] for row in table.rows)]
    return 1 < len(runs) < len(table.rows) and len(set(runs)) == len(runs)


def _plain_name(name: str) -> str:
    return re.sub(r"[\[(].*?[\])]|[^a-z0-9]", "", name.lower())
