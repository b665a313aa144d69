"""The rows that others stand on, written within a transaction of the store: machines, series, and the counts."""

from __future__ import annotations

import sqlite3

from profkit.core.errors import UnreadableReport
from profkit.core.types import Entry
from profkit.regression.history.reading import check_total
from profkit.regression.history.rows import SERIES_COLUMNS, features_text, seal

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


def recount(sql: sqlite3.Connection) -> None:
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
