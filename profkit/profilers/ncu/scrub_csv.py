"""Takes what is private out of ncu's CSV: two columns name process and host, lines around the table name paths."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from profkit.core.errors import UnreadableReport
from profkit.profilers.files import lines_of
from profkit.profilers.redact import HOST, PROCESS, Redactor

_PRIVATE = {"Process Name": (PROCESS, "process"), "Host Name": (HOST, "host")}
_NUMBER = re.compile(r"[\d.,;+\-eE% ]*")


def scrub_csv(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the text to `output`; the table keeps its separator and its quotes."""
    try:
        with (
            source.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
            output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
        ):
            _copy(lines_of(lines, source), copy, redactor)
    except csv.Error as error:
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error


def _copy(lines: Iterator[str], copy: TextIO, redactor: Redactor) -> None:
    for line in lines:
        if not line.lstrip('"').startswith("ID") or "Process ID" not in line:
            copy.write(redactor.text(line))
            continue
        separator = next((mark for mark in ",;\t" if f"ID{mark}" in line.replace('"', "")), ",")
        end = line[len(line.rstrip("\r\n")) :] or "\n"
        rows = csv.reader(_table(line, lines), delimiter=separator)
        quoting = csv.QUOTE_ALL if line.startswith('"') else csv.QUOTE_MINIMAL
        table = csv.writer(copy, delimiter=separator, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
        titles: list[str] = []
        for row in rows:
            titles = row if row[:1] == ["ID"] else titles
            table.writerow(row if row is titles else _row(titles, row, redactor))


def _table(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _row(titles: list[str], row: list[str], redactor: Redactor) -> list[str]:
    if len(row) != len(titles):  # a line of ncu's own between or behind the rows
        return [redactor.text(cell) for cell in row]
    return [_cell(title, cell, redactor) for title, cell in zip(titles, row, strict=True)]


def _cell(title: str, cell: str, redactor: Redactor) -> str:
    if title in _PRIVATE and cell:
        kind, instead = _PRIVATE[title]
        redactor.note(kind, 1, instead)
        return instead
    if title == "Kernel Name":
        return redactor.kernel(cell)
    return cell if _NUMBER.fullmatch(cell) else redactor.text(cell)
