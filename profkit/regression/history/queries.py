"""The queries of a history: rows back as runs and series, and the numbers that written rows refer to."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from profkit.core.codec import without_collector
from profkit.core.types import Entry, Feature, Series, SeriesKey, Value
from profkit.regression.history.rows import (
    ENTRY_COLUMNS,
    POINT_COLUMNS,
    SERIES_COLUMNS,
    entry_of_row,
    features_of,
    features_text,
    point_of,
    points_of,
    series_of,
    value_of,
)
from profkit.regression.times import microseconds

_MACHINE = ENTRY_COLUMNS.split(", ").index("machine")
_WIDTH = SERIES_COLUMNS.count(",") + 1
_NAMED = (
    "series.workload = ? AND series.metric = ? AND series.name IS ? AND series.backend = ? AND series.scope = ?"
    " AND series.scope_id IS ?"
)


@dataclass(frozen=True)
class HistoryFilter:
    """Which runs and series are asked for; None: any.

    `since` <= started < `until` (ISO 8601). `machine` is the beginning of a machine's id. `limit`: only the last
    so many runs, or points of each series.
    """

    workload: str | None = None
    backend: str | None = None
    metric: str | None = None
    machine: str | None = None
    since: str | None = None
    until: str | None = None
    night: str | None = None
    outcome: str | None = None
    limit: int | None = None


ALL = HistoryFilter()


def read_entries(
    sql: sqlite3.Connection, chosen: HistoryFilter = ALL, id_prefix: str | None = None
) -> dict[int, Entry]:
    """The runs by their numbers, oldest first; those of one second in the order in which they were added."""
    where, given = where_clause(
        workload=chosen.workload, backend=chosen.backend, night=chosen.night, outcome=chosen.outcome
    )
    conditions = [where or "WHERE 1"]
    for sign, text in ((">=", chosen.since), ("<", chosen.until)):
        if text is not None:
            conditions.append(f"started {sign} ?")
            given.append(microseconds(text))
    if id_prefix is not None:
        conditions.append("substr(id, 1, ?) = ?")
        given += [len(id_prefix), id_prefix]
    rows = sql.execute(
        f"SELECT number, {ENTRY_COLUMNS} FROM entry {' AND '.join(conditions)} ORDER BY started, number",
        given,
    ).fetchall()
    machines = _read_machines(sql)
    return {
        number: entry_of_row(tuple(row), *machines[row[_MACHINE]])
        for number, *row in rows
        if machines[row[_MACHINE]][0].startswith(chosen.machine or "")
    }


def _read_machines(sql: sqlite3.Connection) -> dict[int, tuple[str, tuple[Feature, ...]]]:
    """Every fingerprint by its number."""
    rows = sql.execute("SELECT number, id, features FROM machine")
    return {number: (name, features_of(text)) for number, name, text in rows}


def read_series(
    sql: sqlite3.Connection, entries: dict[int, Entry], chosen: HistoryFilter, *, samples: bool
) -> tuple[Series, ...]:
    """All series that match, with their points of these runs in the order of these runs."""
    order = {number: place for place, number in enumerate(entries)}
    patterns = {number: point_of(entry) for number, entry in entries.items()}
    where, given = where_clause(workload=chosen.workload, backend=chosen.backend, metric=chosen.metric)
    rows = sql.execute(
        f"SELECT number, {SERIES_COLUMNS} FROM series {where}"
        " ORDER BY workload, backend, metric, scope, name, scope_id, unit",
        given,
    ).fetchall()
    series = []
    with without_collector():  # it takes a third of the time among a hundred thousand points
        for number, *columns in rows:
            points = sql.execute(f"SELECT {POINT_COLUMNS} FROM point WHERE series = ?", (number,)).fetchall()
            points = sorted((row for row in points if row[1] in order), key=lambda row: order[row[1]])
            last = points[-chosen.limit if chosen.limit else 0 :]
            if last:
                values = tuple(points_of(patterns, last, samples=samples))
                series.append(Series(*series_of(tuple(columns)), values))
    return tuple(series)


def read_values(sql: sqlite3.Connection, number: int) -> tuple[Value, ...]:
    """All values of one run."""
    rows = sql.execute(
        f"SELECT {_qualified('series', SERIES_COLUMNS)}, {_qualified('point', POINT_COLUMNS)} FROM point"
        " JOIN series ON series.number = point.series WHERE point.entry = ? ORDER BY series.number",
        (number,),
    ).fetchall()
    return tuple(value_of(*series_of(row[:_WIDTH]), row[_WIDTH:]) for row in rows)


def read_decisions(sql: sqlite3.Connection, workload: str | None) -> dict[SeriesKey, dict[str, str]]:
    """The results of re-runs: of each series, the word by the id of the run."""
    where, given = where_clause(**{"series.workload": workload})
    rows = sql.execute(
        f"SELECT {_qualified('series', SERIES_COLUMNS)}, entry.id, decision.word FROM decision"
        " JOIN series ON series.number = decision.series JOIN entry ON entry.number = decision.entry"
        f" {where} ORDER BY entry.started, entry.number",
        given,
    ).fetchall()
    words: dict[SeriesKey, dict[str, str]] = {}
    for *series, entry, word in rows:
        words.setdefault(series_of(tuple(series))[0], {})[entry] = word
    return words


def point_numbers(sql: sqlite3.Connection, entry: str, key: SeriesKey) -> tuple[int, int] | None:
    """The numbers of the series and the entry that one value of a run is stored under; None where it has no such."""
    scope = key.scope
    found: tuple[int, int] | None = sql.execute(
        "SELECT point.series, point.entry FROM entry JOIN point ON point.entry = entry.number"
        f" JOIN series ON series.number = point.series WHERE entry.id = ? AND {_NAMED}",
        (entry, key.workload, key.metric, scope.name, key.backend, scope.kind, scope.id),
    ).fetchone()
    return found


def where_clause(**columns: str | None) -> tuple[str, list[Any]]:
    """A WHERE for the columns that are not None, and their values."""
    asked = {column: text for column, text in columns.items() if text is not None}
    if not asked:
        return "", []
    return "WHERE " + " AND ".join(f"{column} = ?" for column in asked), list(asked.values())


def _qualified(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


# ---------------------------------------------------------------- within a transaction of the store


def machine_number(sql: sqlite3.Connection, entry: Entry) -> int:
    """The number of the fingerprint that this run shares with others."""
    row = (entry.machine, features_text(entry.features))
    sql.execute("INSERT OR IGNORE INTO machine (id, features) VALUES (?,?)", row)
    return int(sql.execute("SELECT number FROM machine WHERE id = ? AND features = ?", row).fetchone()[0])


def series_number(sql: sqlite3.Connection, row: tuple[str | None, ...]) -> int:
    """The number of a series, which is made where there is none."""
    workload, backend, metric, scope, name, scope_id, unit, better = row
    found = sql.execute(
        f"SELECT number, better FROM series WHERE {_NAMED} AND unit = ?",
        (workload, metric, name, backend, scope, scope_id, unit),
    ).fetchone()
    if found is None:
        marks = ",".join("?" * len(row))
        return sql.execute(f"INSERT INTO series ({SERIES_COLUMNS}) VALUES ({marks})", row).lastrowid or 0
    if found[1] != better:  # the catalogue of metrics has learned it since
        sql.execute("UPDATE series SET better = ? WHERE number = ?", (better, found[0]))
    return int(found[0])
