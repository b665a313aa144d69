"""The queries of a history: rows back as runs and series, and the counts that belong to written rows."""

from __future__ import annotations

import contextlib
import gc
import sqlite3
from collections.abc import Iterator
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Entry, Feature, Point, Series, SeriesKey, Value
from profkit.regression.history.rows import (
    ENTRY_COLUMNS,
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

POINT_COLUMNS = "series, entry, value, low, high, quality, doubt, taken, samples, seal"
_MACHINE = ENTRY_COLUMNS.split(", ").index("machine")
_WIDTH = SERIES_COLUMNS.count(",") + 1


def read_entries(
    sql: sqlite3.Connection,
    *,
    since: str | None = None,
    until: str | None = None,
    valid: bool | None = None,
    machine: str | None = None,
    id_begins: str | None = None,
    **wanted: str | None,
) -> dict[int, Entry]:
    """The runs by their numbers, oldest first; those of one second in the order in which they were added."""
    check_total(sql, "entry")
    where, given = where_clause(**wanted)
    more = []
    for sign, text in ((">=", since), ("<", until)):
        if text is not None:
            more.append(f"started {sign} ?")
            given.append(microseconds(text))
    if id_begins is not None:
        more.append("substr(id, 1, ?) = ?")
        given += [len(id_begins), id_begins]
    if valid is not None:
        more.append("valid = ?")
        given.append(int(valid))
    rows = sql.execute(
        f"SELECT number, {ENTRY_COLUMNS} FROM entry {' AND '.join([where or 'WHERE 1', *more])}"
        " ORDER BY started, number",
        given,
    ).fetchall()
    machines = _machines(sql)
    found = {}
    for number, *row in rows:
        print_ = machines.get(row[_MACHINE])
        if print_ is None:
            raise UnreadableReport("the machine of a run is not there")
        if machine in (None, print_[0]):
            found[number] = entry_of_row(tuple(row), *print_)
    return found


def _machines(sql: sqlite3.Connection) -> dict[int, tuple[str, tuple[Feature, ...]]]:
    """Every fingerprint by its number."""
    found = {}
    for number, name, text, sealed in sql.execute("SELECT number, id, features, seal FROM machine"):
        if seal(name, text) != sealed:
            raise UnreadableReport("what is told of a machine is not what was stored")
        found[number] = (name, features_of(text))
    return found


def read_series(
    sql: sqlite3.Connection,
    entries: dict[int, Entry],
    *,
    scope: str | None,
    limit: int | None,
    samples: bool,
    **wanted: str | None,
) -> tuple[Series, ...]:
    """All series that match, with their points of these runs in the order of these runs."""
    check_total(sql, "series")
    order = {number: place for place, number in enumerate(entries)}
    patterns = {number: point_of(entry) for number, entry in entries.items()}
    where, given = where_clause(**wanted)
    rows = sql.execute(
        f"SELECT number, {SERIES_COLUMNS} FROM series {where}"
        " ORDER BY workload, backend, metric, scope, name, scope_id, unit",
        given,
    ).fetchall()
    found = []
    with _collector_paused():
        for number, *columns in rows:
            key, unit, better = series_of(tuple(columns))
            if scope is None or scope in (key.scope.name, key.scope.kind):
                points = _read_points(sql, number, columns[9], patterns, order, limit, samples=samples)
                if points:
                    found.append(Series(key, unit, better, points))
    return tuple(found)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """No search for cycles among a hundred thousand new points, which hold none: it takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def check_total(sql: sqlite3.Connection, table: str) -> None:
    """Raise UnreadableReport where a table has lost rows. Also within a transaction of another one it holds."""
    query = f"SELECT (SELECT count(*) FROM {table}), (SELECT number FROM total WHERE name = ?)"
    found, expected = sql.execute(query, (table,)).fetchone()
    if found != expected:
        raise UnreadableReport(f"{found} of {expected} rows of its table {table!r} are there")


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
    """What re-runs said: of each series, the word by the id of the run."""
    where, given = where_clause(**{"series.workload": workload})
    rows = sql.execute(
        f"SELECT {_qualified('series', SERIES_COLUMNS)}, entry.id, {_qualified('decision', 'series, entry, word, seal')}"
        " FROM decision JOIN series ON series.number = decision.series JOIN entry ON entry.number = decision.entry"
        f" {where} ORDER BY entry.started, entry.number",
        given,
    ).fetchall()
    found: dict[SeriesKey, dict[str, str]] = {}
    for row in rows:
        entry, series, number, word, sealed = row[_WIDTH:]
        if seal(series, number, word) != sealed:
            raise UnreadableReport("what a re-run said is not what was stored")
        found.setdefault(series_of(row[:_WIDTH])[0], {})[entry] = word
    return found


def point_numbers(entry: str, key: SeriesKey) -> tuple[str, tuple[str | None, ...]]:
    """The query for the series and the entry, as numbers, that one value of a run is stored under."""
    scope = key.scope
    return (
        "SELECT point.series, point.entry FROM entry JOIN point ON point.entry = entry.number"
        " JOIN series ON series.number = point.series WHERE entry.id = ? AND series.workload = ? AND series.backend = ?"
        " AND series.metric = ? AND series.scope = ? AND series.name IS ? AND series.scope_id IS ?",
        (entry, key.workload, key.backend, key.metric, scope.kind, scope.name, scope.id),
    )


def where_clause(**wanted: str | None) -> tuple[str, list[Any]]:
    """A WHERE for all columns that are asked for."""
    asked = {column: text for column, text in wanted.items() if text is not None}
    if not asked:
        return "", []
    return "WHERE " + " AND ".join(f"{column} = ?" for column in asked), list(asked.values())


def _read_points(
    sql: sqlite3.Connection,
    number: int,
    count: int,
    patterns: dict[int, Point],
    order: dict[int, int],
    limit: int | None,
    *,
    samples: bool,
) -> tuple[Point, ...]:
    query = f"SELECT {POINT_COLUMNS} FROM point WHERE series = ?"
    rows = sql.execute(query, (number,)).fetchall()
    if len(rows) != count:
        raise UnreadableReport(f"{len(rows)} of {count} values of a series are there")
    rows = [row for row in rows if row[1] in order]
    rows.sort(key=lambda row: order[row[1]])
    return tuple(points_of(patterns, rows[-limit if limit else 0 :], samples=samples))


def _qualified(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


_MISCOUNTED = (
    "SELECT 1 FROM series LEFT JOIN (SELECT series, count(*) AS found FROM point GROUP BY series) AS there"
    " ON there.series = series.number WHERE ifnull(found, 0) != points"
)


def machine_number(sql: sqlite3.Connection, entry: Entry) -> int:
    """The number of the fingerprint that this run shares with others."""
    row = (entry.machine, features_text(entry.features))
    sql.execute("INSERT OR IGNORE INTO machine (id, features, seal) VALUES (?,?,?)", (*row, seal(*row)))
    return int(sql.execute("SELECT number FROM machine WHERE id = ? AND features = ?", row).fetchone()[0])


def series_number(sql: sqlite3.Connection, row: tuple[str, ...]) -> int:
    """The number of a series, with one point more than it had."""
    key, better = row[0], row[-1]
    found = sql.execute("SELECT number, points FROM series WHERE key = ?", (key,)).fetchone()
    if found is None:
        told = (*row, 1, seal(key, better, 1))
        marks = ",".join("?" * len(told))
        sql.execute("UPDATE total SET number = number + 1 WHERE name = 'series'")
        return sql.execute(f"INSERT INTO series ({SERIES_COLUMNS}) VALUES ({marks})", told).lastrowid or 0
    number, points = found
    changed = (
        better,
        points + 1,
        seal(key, better, points + 1),
        number,
    )  # the catalogue may have learned better
    sql.execute("UPDATE series SET better = ?, points = ?, seal = ? WHERE number = ?", changed)
    return int(number)


def check_counts(sql: sqlite3.Connection) -> None:
    """Raise UnreadableReport where rows are not there: to count them anew would hide what was lost."""
    for table in ("entry", "series"):
        check_total(sql, table)
    if sql.execute(_MISCOUNTED).fetchone() is not None:
        raise UnreadableReport("some values of a series are not there")


def update_counts(sql: sqlite3.Connection) -> None:
    """Write down anew how many rows there are, after some were taken out."""
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
