"""A series out of a text file of anybody's: which column holds the values, and which rows are of one build.

The change points of any series can be asked for: one value a line, or index,value, or a CSV file of a benchmark with
more columns. Repeated measurements of one build become their median, as a night's repetitions do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.statistics import median
from profkit.regression.history.series_table import Row, Table, is_missing, number, read_table

# What columns are called, the likeliest first. Compared in lower case, without blanks, units and underscores.
VALUES = (
    "value",
    "median",
    "measurement",
    "mean",
    "seconds",
    "time",
    "duration",
    "realtime",
    "elapsed",
    "result",
)
BUILDS = ("ghc", "build", "sutversion", "commit", "sha", "revision", "rev", "version", "run", "night", "date")
INDICES = (
    "index",
    "index1based",
    "i",
    "n",
    "no",
    "number",
    "id",
    "row",
    "x",
    "time",
    "timestamp",
    "datetime",
    "epoch",
)
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


def read_series(path: Path, column: str | None = None, by: str | None = None) -> SeriesFile:
    """The series in a file. `column` and `by` name the values' and the builds' column, or number it from 1 on.

    Left out, they are found by what columns are commonly called; a lone column before the values is the builds' (or the
    index). `by="none"` takes every row for itself. Neighbouring rows of one build become one value, their median.
    UnreadableReport where the file is no table or a value is no number, UsageError where it has no such column.
    """
    table = read_table(path)
    width = len(table.rows[0].fields)
    names = table.names or tuple(f"column {k + 1}" for k in range(width))
    value = _named(column, names, path) if column is not None else _value_column(table, names, path)
    build = _build_column(table, names, value) if by is None else None
    if by is not None and by != NO_BUILDS:
        build = _named(by, names, path)
    numbers = [_value(path, row, value, names) for row in table.rows]
    if all(each is None for each in numbers):
        raise UnreadableReport(f"{path.name} has no number in {names[value]}", "choose another column")
    if build is None:
        labels = tuple(str(row.line) for row in table.rows)
        return SeriesFile(
            tuple(numbers), labels, tuple(range(len(numbers))), names[value], notes=tuple(table.notes)
        )
    return _by_build(table, numbers, build, names[value], names[build])


def _by_build(table: Table, numbers: list[float | None], build: int, column: str, by: str) -> SeriesFile:
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


def _value(path: Path, row: Row, value: int, names: tuple[str, ...]) -> float | None:
    text = row.fields[value]
    found = number(text)
    if found is None and not is_missing(text):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise UnreadableReport(
            f"{path.name}, line {row.line}: {shown!r} in {names[value]} is no number",
            "leave the field empty where there is no value" if len(names) == 1 else "choose another column",
        )
    return found


def _named(asked: str, names: tuple[str, ...], path: Path) -> int:
    """The column of that name, else of that number."""
    for k, name in enumerate(names):
        if name == asked:
            return k
    for k, name in enumerate(names):
        if _plain(name) == _plain(asked):
            return k
    if asked.isdecimal() and 1 <= int(asked) <= len(names):
        return int(asked) - 1
    raise UsageError(f"{path.name} has no column {asked!r}", f"its columns are: {', '.join(names)}")


def _value_column(table: Table, names: tuple[str, ...], path: Path) -> int:
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
            if _plain(names[k]) == wanted and (wanted != "time" or k > 0 or len(names) == 1):
                return k
    if numeric[-1] == 0 and len(names) > 1 and _counts(table):
        row = next(row for row in table.rows if number(row.fields[1]) is None)
        raise UnreadableReport(
            f"{path.name} counts its lines, and has no column of numbers beside: {row.fields[1][:40]!r} in line"
            f" {row.line} is none",
            "give it index,value; --column 1 takes the first all the same",
        )
    return numeric[-1]


def _counts(table: Table) -> bool:
    """Whether the first column only numbers the lines: 0, 1, 2, ... or 1, 2, 3, ..."""
    first = number(table.rows[0].fields[0])
    return first in (0, 1) and all(number(r.fields[0]) == first + n for n, r in enumerate(table.rows[:1000]))


def _is_numeric(table: Table, column: int) -> bool:
    """Nine of ten fields, among the first thousand, are numbers, or say that there is none; and some are."""
    fields = [row.fields[column] for row in table.rows[:1000]]
    numbers = sum(number(each) is not None for each in fields)
    return numbers > 0 and numbers + sum(is_missing(each) for each in fields) >= 0.9 * len(fields)


def _build_column(table: Table, names: tuple[str, ...], value: int) -> int | None:
    """By its name; else a column before the values that repeats itself from row to row; else an index, if any."""
    others = [k for k in range(len(names)) if k != value]
    for wanted in BUILDS:
        for k in others:
            if _plain(names[k]) == wanted:
                return k
    for k in others:
        if k < value and _repeats(table, k):
            return k
    for k in others:
        if _plain(names[k]) in INDICES or len(others) == 1:
            return k
    return None


def _repeats(table: Table, column: int) -> bool:
    """Whether rows come in groups that each have one value here, and no value comes back: several rows a build."""
    runs = [label for label, _ in groupby(row.fields[column] for row in table.rows)]
    return 1 < len(runs) < len(table.rows) and len(set(runs)) == len(runs)


def _plain(name: str) -> str:
    return re.sub(r"[\[(].*?[\])]|[^a-z0-9]", "", name.lower())
