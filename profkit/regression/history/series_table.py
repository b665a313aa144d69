"""A text file of numbers, whoever wrote it, as rows of fields: encoding, separator, header, what is wrong with it."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from profkit.core.errors import UnreadableReport

LARGEST = 256 << 20  # bytes: five million rows of three columns
LONGEST_LINE = 1 << 20  # characters; beyond that it is no table of numbers
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "+inf", "infinity"}
SEPARATORS = (";", "\t", ",", "|")  # in this order: a decimal comma stands beside a semicolon
EXPECTED = "one value a line, or index,value, or a CSV file with a header"
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Row:
    """One line: its number in the file, from 1 on, and its fields without blanks around them."""

    line: int
    fields: tuple[str, ...]


@dataclass
class Table:
    """What the file holds: the names of its columns, () where it has no header, and its rows in order."""

    names: tuple[str, ...]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def read_table(path: Path) -> Table:
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
    table = Table(names, rows)
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


def number(text: str) -> float | None:
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
    with _in_words(path):
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
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:
        raise UnreadableReport(f"{path} is a folder, not a series", "name a file in it") from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error


def _rows(path: Path, text: str) -> tuple[list[Row], str]:
    """All lines with something on them, split; and by what."""
    lines = (
        (n, line)
        for n, line in enumerate(re.split(r"\r\n|\n|\r", text), 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    separator = ""
    rows: list[Row] = []
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
        rows.append(Row(n, tuple(each.strip() for each in fields)))
    return rows, separator or ","


def _separator(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line)  # what stands in quotes parts nothing
    for separator in SEPARATORS:
        if separator in bare:
            return separator
    return " " if len(line.split()) > 1 and number(line.split()[-1]) is not None else ","
