"""The queries of a history: rows back as runs and series, and the counts that belong to written rows."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from profkit.core.collector import without_collector
from profkit.core.errors import UnreadableReport
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
    seal,
    series_of,
    value_of,
)
from profkit.regression.times import microseconds

_MACHINE = ENTRY_COLUMNS.split(", ").index("machine")
_WIDTH = SERIES_COLUMNS.count(",") + 1
_MISCOUNTED = (
    "SELECT 1 FROM series LEFT JOIN (SELECT series, count(*) AS found FROM point GROUP BY series) AS there"
    " ON there.series = series.number WHERE ifnull(found, 0) != points"
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


# ---------------------------------------------------------------- read


def read_entries(
    sql: sqlite3.Connection, chosen: HistoryFilter = ALL, id_prefix: str | None = None
) -> dict[int, Entry]:
    """The runs by their numbers, oldest first; those of one second in the order in which they were added."""
    check_total(sql, "entry")
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
    entries = {}
    for number, *row in rows:
        fingerprint = machines.get(row[_MACHINE])
        if fingerprint is None:
            raise UnreadableReport("the machine of a run is missing")
        if fingerprint[0].startswith(chosen.machine or ""):
            entries[number] = entry_of_row(tuple(row), *fingerprint)
    return entries


def _read_machines(sql: sqlite3.Connection) -> dict[int, tuple[str, tuple[Feature, ...]]]:
    """Every fingerprint by its number."""
    machines = {}
    for number, name, text, sealed in sql.execute("SELECT number, id, features, seal FROM machine"):
        if seal(name, text) != sealed:
            raise UnreadableReport("the row of a machine is not what was stored")
        machines[number] = (name, features_of(text))
    return machines


def read_series(
    sql: sqlite3.Connection, entries: dict[int, Entry], chosen: HistoryFilter, *, samples: bool
) -> tuple[Series, ...]:
    """All series that match, with their points of these runs in the order of these runs."""
    check_total(sql, "series")
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
            key, unit, better = series_of(tuple(columns))
            points = _point_rows(sql, number, columns[9])
            points = sorted((row for row in points if row[1] in order), key=lambda row: order[row[1]])
            last = points[-chosen.limit if chosen.limit else 0 :]
            if last:
                series.append(Series(key, unit, better, tuple(points_of(patterns, last, samples=samples))))
    return tuple(series)


def _point_rows(sql: sqlite3.Connection, number: int, count: int) -> list[tuple[Any, ...]]:
    rows = sql.execute(f"SELECT {POINT_COLUMNS} FROM point WHERE series = ?", (number,)).fetchall()
    if len(rows) != count:
        raise UnreadableReport(f"{len(rows)} of {count} values of a series are there")
    return rows


def read_values(sql: sqlite3.Connection, number: int) -> tuple[Value, ...]:
    """All values of one run."""
    (count,) = sql.execute("SELECT points FROM entry WHERE number = ?", (number,)).fetchone()
    rows = sql.execute(
        f"SELECT {_qualified('series', SERIES_COLUMNS)}, {_qualified('point', POINT_COLUMNS)} FROM point"
        " JOIN series ON series.number = point.series WHERE point.entry = ? ORDER BY series.number",
        (number,),
    ).fetchall()
    if len(rows) != count:
        raise UnreadableReport(f"{len(rows)} of {count} values of a run are there")
    return tuple(value_of(*series_of(row[:_WIDTH]), row[_WIDTH:]) for row in rows)


def read_decisions(sql: sqlite3.Connection, workload: str | None) -> dict[SeriesKey, dict[str, str]]:
    """The results of re-runs: of each series, the word by the id of the run."""
    where, given = where_clause(**{"series.workload": workload})
    decision = _qualified("decision", "series, entry, word, seal")
    rows = sql.execute(
        f"SELECT {_qualified('series', SERIES_COLUMNS)}, entry.id, {decision} FROM decision"
        " JOIN series ON series.number = decision.series JOIN entry ON entry.number = decision.entry"
        f" {where} ORDER BY entry.started, entry.number",
        given,
    ).fetchall()
    words: dict[SeriesKey, dict[str, str]] = {}
    for row in rows:
        entry, series, number, word, sealed = row[_WIDTH:]
        if seal(series, number, word) != sealed:
            raise UnreadableReport("the result of a re-run is not what was stored")
        words.setdefault(series_of(row[:_WIDTH])[0], {})[entry] = word
    return words


def select_point_numbers(entry: str, key: SeriesKey) -> tuple[str, tuple[str | None, ...]]:
    """The query for the numbers of the series and the entry that one value of a run is stored under."""
    scope = key.scope
    return (
        "SELECT point.series, point.entry FROM entry JOIN point ON point.entry = entry.number"
        " JOIN series ON series.number = point.series WHERE entry.id = ? AND series.workload = ? AND series.backend = ?"
        " AND series.metric = ? AND series.scope = ? AND series.name IS ? AND series.scope_id IS ?",
        (entry, key.workload, key.backend, key.metric, scope.kind, scope.name, scope.id),
    )


def where_clause(**columns: str | None) -> tuple[str, list[Any]]:
    """A WHERE for the columns that are not None, and their values."""
    asked = {column: text for column, text in columns.items() if text is not None}
    if not asked:
        return "", []
    return "WHERE " + " AND ".join(f"{column} = ?" for column in asked), list(asked.values())


def _qualified(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


# ---------------------------------------------------------------- counts, within a transaction of the store


def check_total(sql: sqlite3.Connection, table: str) -> None:
    """Raise UnreadableReport where a table has lost rows. It holds also within a transaction of another process."""
    query = f"SELECT (SELECT count(*) FROM {table}), (SELECT number FROM total WHERE name = ?)"
    count, expected = sql.execute(query, (table,)).fetchone()
    if count != expected:
        raise UnreadableReport(f"{count} of {expected} rows of its table {table!r} are there")


def machine_number(sql: sqlite3.Connection, entry: Entry) -> int:
    """The number of the fingerprint that this run shares with others."""
    row = (entry.machine, features_text(entry.features))
    sql.execute("INSERT OR IGNORE INTO machine (id, features, seal) VALUES (?,?,?)", (*row, seal(*row)))
    return int(sql.execute("SELECT number FROM machine WHERE id = ? AND features = ?", row).fetchone()[0])


def series_number(sql: sqlite3.Connection, row: tuple[str, ...]) -> int:
    """The number of a series, which now has one point more."""
    key, better = row[0], row[-1]
    stored_series = sql.execute("SELECT number, points FROM series WHERE key = ?", (key,)).fetchone()
    if stored_series is None:
        stored = (*row, 1, seal(key, better, 1))
        marks = ",".join("?" * len(stored))
        sql.execute("UPDATE total SET number = number + 1 WHERE name = 'series'")
        return sql.execute(f"INSERT INTO series ({SERIES_COLUMNS}) VALUES ({marks})", stored).lastrowid or 0
    number, points = stored_series
    # `better` too: the catalogue of metrics may have learned it since.
    changed = (better, points + 1, seal(key, better, points + 1), number)
    sql.execute("UPDATE series SET better = ?, points = ?, seal = ? WHERE number = ?", changed)
    return int(number)


def check_counts(sql: sqlite3.Connection) -> None:
    """Raise UnreadableReport where rows are missing: to count again would hide what was lost."""
    for table in ("entry", "series"):
        check_total(sql, table)
    if sql.execute(_MISCOUNTED).fetchone() is not None:
        raise UnreadableReport("some values of a series are missing")


def update_counts(sql: sqlite3.Connection) -> None:
    """Count the rows again, after some were taken out."""
    counts = dict(sql.execute("SELECT series, count(*) FROM point GROUP BY series").fetchall())
    for number, key, better, points in sql.execute(
        "SELECT number, key, better, points FROM series"
    ).fetchall():
        now = counts.get(number, 0)
        if now == 0:
            sql.execute("DELETE FROM series WHERE number = ?", (number,))
        elif now != points:
            changed = (now, seal(key, better, now), number)
            sql.execute("UPDATE series SET points = ?, seal = ? WHERE number = ?", changed)
    sql.execute("DELETE FROM machine WHERE number NOT IN (SELECT DISTINCT machine FROM entry)")
    for table in ("entry", "series"):
        sql.execute(f"UPDATE total SET number = (SELECT count(*) FROM {table}) WHERE name = ?", (table,))
