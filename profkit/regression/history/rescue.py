"""What is left in a damaged history, into a new file: every row that can be read and is what was stored."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.files.regular import copy_regular
from profkit.core.files.sqlite import code_in, connect
from profkit.core.types import Entry, Value
from profkit.regression.history.file import is_history
from profkit.regression.history.rows import (
    ENTRY_COLUMNS,
    POINT_COLUMNS,
    SERIES_COLUMNS,
    accepted_of,
    entry_of_row,
    features_of,
    seal,
    series_of,
    value_of,
)
from profkit.regression.history.schema import VERSION
from profkit.regression.history.store import open_history

PAGE = 4096  # bytes: SQLite's own, which a history never changes
MOST_ROWS = 1_000_000  # numbers that are tried one by one, where a table cannot be read through, until
MOST_GAP = 1_000  # of them in a row are not there: pruned, or lost
_FAULTS = (
    ProfkitError,
    sqlite3.Error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    struct.error,
)
_MACHINE = ENTRY_COLUMNS.split(", ").index("machine")
_POINTS = ENTRY_COLUMNS.split(", ").index("points")


@dataclass(frozen=True)
class RescueResult:
    """How much was brought over, and how much there must have been more. None: that is not known either."""

    runs: int
    values: int
    accepted: int
    lost_runs: int | None
    lost_values: int


def rescue(path: Path, target: Path) -> RescueResult:
    """Write what is left of the history at `path` to a new one at `target`; `path` stays as it is.

    Raises UsageError where `target` is there already, UnreadableReport where `path` is no history, or where
    nothing of it can be read.
    """
    if os.path.lexists(target):
        raise UsageError(f"{target} exists already", "--to another name")
    if not path.is_file() or not is_history(path):
        raise UnreadableReport(f"{path} is no history", "--history FILE")
    with tempfile.TemporaryDirectory(prefix="profkit-history-") as folder:
        copy = _repaired_copy(path, Path(folder))
        sql = connect(copy, "mode=rw")
        sql.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            with contextlib.suppress(sqlite3.Error):
                if (code := code_in(sql)) is not None:
                    raise UsageError(
                        f"{path} holds {code}: no history has one, and it would run", "--history FILE"
                    )
            return _copy_rows(sql, path, target)
        finally:
            sql.close()


def _copy_rows(sql: sqlite3.Connection, path: Path, target: Path) -> RescueResult:
    entries = dict(_readable_entries(sql))
    if not entries:
        raise UnreadableReport(f"nothing of the history {path} can be read any more", "the last backup of it")
    values = _readable_values(sql, entries)
    expected = sum(count for _, count in entries.values())
    rescued = 0
    with open_history(target) as history:
        for number, (entry, _) in entries.items():
            readable = tuple(values.get(number, ()))
            history.add(replace(entry, values=readable))
            rescued += len(readable)
        changes = 0
        for row in _readable_rows(sql, "accepted", "workload, metric, since, word, by, seal"):
            with contextlib.suppress(*_FAULTS):
                changes += history.accept(accepted_of(row[1:]))
    total = _stored_total(sql)
    lost = max(0, total - len(entries)) if total is not None else None
    return RescueResult(len(entries), rescued, changes, lost, expected - rescued)


def _readable_entries(sql: sqlite3.Connection) -> Iterator[tuple[int, tuple[Entry, int]]]:
    """Number, run, and how many values it must have had."""
    machines = {}
    for number, name, text, sealed in _readable_rows(sql, "machine", "id, features, seal"):
        with contextlib.suppress(*_FAULTS):
            if seal(name, text) == sealed:
                machines[number] = (name, features_of(text))
    for number, *row in _readable_rows(sql, "entry", ENTRY_COLUMNS):
        with contextlib.suppress(*_FAULTS):
            yield number, (entry_of_row(tuple(row), *machines[row[_MACHINE]]), row[_POINTS])


def _readable_values(
    sql: sqlite3.Connection, entries: dict[int, tuple[Entry, int]]
) -> dict[int, list[Value]]:
    """Whatever can be read of the values of every run."""
    values: dict[int, list[Value]] = {}
    for number, *columns in _readable_rows(sql, "series", SERIES_COLUMNS):
        try:
            named = series_of(tuple(columns))
        except _FAULTS:
            continue
        for row in _readable_points(sql, number, entries):
            with contextlib.suppress(*_FAULTS):
                if row[0] == number and row[1] in entries:
                    values.setdefault(row[1], []).append(value_of(*named, row))
    return values


def _readable_points(sql: sqlite3.Connection, series: int, entries: dict[int, Any]) -> list[tuple[Any, ...]]:
    """The rows of a series: in one query, or else one by one, since each may be on another page."""
    query = f"SELECT {POINT_COLUMNS} FROM point WHERE series = ?"
    with contextlib.suppress(*_FAULTS):
        rows = sql.execute(query, (series,)).fetchall()
        if all(row[0] == series for row in rows) and rows:
            return rows
    rows = []
    for entry in entries:
        with contextlib.suppress(*_FAULTS):
            rows += sql.execute(f"{query} AND entry = ?", (series, entry)).fetchall()
    return rows


def _readable_rows(sql: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Number and columns of every row that can be read."""
    query = f"SELECT number, {columns} FROM {table}"
    try:
        yield from sql.execute(f"{query} NOT INDEXED").fetchall()
        return
    except _FAULTS:
        pass
    misses = 0
    for number in range(1, MOST_ROWS):
        try:
            row = sql.execute(f"{query} WHERE number = ?", (number,)).fetchone()
        except _FAULTS:
            row = None
        if row is not None:
            misses = 0
            yield row
        elif (misses := misses + 1) > MOST_GAP:
            return


def _stored_total(sql: sqlite3.Connection) -> int | None:
    with contextlib.suppress(*_FAULTS):
        return int(sql.execute("SELECT number FROM total WHERE name = 'entry'").fetchone()[0])
    return None


def _repaired_copy(path: Path, folder: Path) -> Path:
    """A copy that SQLite opens: of the present version, and as long as it was."""
    copy = folder / "copy.sqlite"
    copy_regular(path, copy)
    with contextlib.suppress(OSError):
        copy_regular(path.with_name(path.name + "-wal"), folder / "copy.sqlite-wal")
    with copy.open("r+b") as file:
        file.seek(28)
        pages = int.from_bytes(file.read(4), "big")
        file.seek(60)
        file.write(VERSION.to_bytes(4, "big"))
        size = file.seek(0, os.SEEK_END)
        if PAGE * pages > size and pages < 1 << 24:
            file.truncate(PAGE * pages)
    return copy
