"""The tables of a history, and the steps that bring an older file forward.

    entry 1 ─< point >─ 1 series        one run, one metric in one scope, its value there
    entry >─ 1 machine                  what decides comparability, once for all runs that share it
    decision >─ point                   what a re-run of the same night said of one value (since version 2)
    accepted                            changes that were accepted as the new normal
    total                               how many rows there must be (since version 3)

`point` is clustered by series: a year of one metric is read in one pass. Types are
checked by CHECK and not by STRICT: a file with STRICT tables cannot even be opened by SQLite before 3.37, which is
what Python 3.10 comes with on older systems. `seal` is a CRC of the row's content (`rows.py`): a flipped bit in a
number looks like a number. `points` of an entry and of a series count its rows in `point`, since a page that is lost
looks like a run that was never there.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable

from profkit.core.errors import UnreadableReport

# "PKH1": application_id of the file's header, which tells it from other SQLite files.
APPLICATION = 0x50_4B_48_31
VERSION = 3

_TABLES = """
CREATE TABLE machine (
    number   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL CHECK (typeof(id) = 'text'),
    features TEXT NOT NULL CHECK (typeof(features) = 'text'),
    seal     INTEGER NOT NULL CHECK (typeof(seal) = 'integer'),
    UNIQUE (id, features)
);
CREATE TABLE entry (
    number   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE CHECK (typeof(id) = 'text'),
    started  INTEGER NOT NULL CHECK (typeof(started) = 'integer'),
    workload TEXT NOT NULL CHECK (typeof(workload) = 'text'),
    backend  TEXT NOT NULL CHECK (typeof(backend) = 'text'),
    state    TEXT NOT NULL CHECK (typeof(state) = 'text'),
    source   TEXT NOT NULL CHECK (typeof(source) = 'text'),
    machine  INTEGER NOT NULL REFERENCES machine (number),
    commit_id TEXT CHECK (typeof(commit_id) IN ('text', 'null')),
    dirty    INTEGER CHECK (dirty IS NULL OR dirty IN (0, 1)),
    path     TEXT CHECK (typeof(path) IN ('text', 'null')),
    night    TEXT CHECK (typeof(night) IN ('text', 'null')),
    facts    TEXT NOT NULL CHECK (typeof(facts) = 'text'),
    outcome  TEXT CHECK (typeof(outcome) IN ('text', 'null')),
    valid    INTEGER NOT NULL CHECK (valid IN (0, 1)),
    reason   TEXT CHECK (typeof(reason) IN ('text', 'null')),
    seal     INTEGER NOT NULL CHECK (typeof(seal) = 'integer')
);
CREATE INDEX entry_by_workload ON entry (workload, started);
CREATE TABLE series (
    number   INTEGER PRIMARY KEY,
    key      TEXT NOT NULL UNIQUE CHECK (typeof(key) = 'text'),
    workload TEXT NOT NULL CHECK (typeof(workload) = 'text'),
    backend  TEXT NOT NULL CHECK (typeof(backend) = 'text'),
    metric   TEXT NOT NULL CHECK (typeof(metric) = 'text'),
    scope    TEXT NOT NULL CHECK (typeof(scope) = 'text'),
    name     TEXT CHECK (typeof(name) IN ('text', 'null')),
    scope_id TEXT CHECK (typeof(scope_id) IN ('text', 'null')),
    unit     TEXT NOT NULL CHECK (typeof(unit) = 'text'),
    better   TEXT NOT NULL CHECK (better IN ('lower', 'higher', 'none'))
);
CREATE INDEX series_by_workload ON series (workload, metric);
CREATE TABLE point (
    series   INTEGER NOT NULL REFERENCES series (number),
    entry    INTEGER NOT NULL REFERENCES entry (number),
    value    REAL NOT NULL CHECK (typeof(value) = 'real'),
    low      REAL CHECK (typeof(low) IN ('real', 'null')),
    high     REAL CHECK (typeof(high) IN ('real', 'null')),
    quality  TEXT NOT NULL CHECK (typeof(quality) = 'text'),
    doubt    TEXT CHECK (typeof(doubt) IN ('text', 'null')),
    taken    INTEGER CHECK (typeof(taken) IN ('integer', 'null')),
    samples  BLOB CHECK (typeof(samples) IN ('blob', 'null')),
    seal     INTEGER NOT NULL CHECK (typeof(seal) = 'integer'),
    PRIMARY KEY (series, entry)
) WITHOUT ROWID;
CREATE INDEX point_by_entry ON point (entry);
CREATE TABLE accepted (
    number   INTEGER PRIMARY KEY,
    workload TEXT NOT NULL CHECK (typeof(workload) = 'text'),
    metric   TEXT CHECK (typeof(metric) IN ('text', 'null')),
    since    INTEGER NOT NULL CHECK (typeof(since) = 'integer'),
    word     TEXT NOT NULL CHECK (typeof(word) = 'text'),
    by       TEXT CHECK (typeof(by) IN ('text', 'null')),
    seal     INTEGER NOT NULL CHECK (typeof(seal) = 'integer'),
    UNIQUE (workload, metric, since, word)
);
"""

_DECISION = """
CREATE TABLE decision (
    series   INTEGER NOT NULL REFERENCES series (number),
    entry    INTEGER NOT NULL REFERENCES entry (number),
    word     TEXT NOT NULL CHECK (typeof(word) = 'text'),
    seal     INTEGER NOT NULL CHECK (typeof(seal) = 'integer'),
    PRIMARY KEY (series, entry)
) WITHOUT ROWID;
"""


def _add_decisions(connection: sqlite3.Connection) -> None:
    """1 to 2: a night's re-run is remembered, so that the nights after it know what it said."""
    _run_script(connection, _DECISION)


_COUNTS = """
ALTER TABLE series ADD COLUMN points INTEGER NOT NULL DEFAULT 0;
ALTER TABLE series ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entry ADD COLUMN points INTEGER NOT NULL DEFAULT 0;
CREATE TABLE total (
    name     TEXT PRIMARY KEY CHECK (typeof(name) = 'text'),
    number   INTEGER NOT NULL CHECK (typeof(number) = 'integer')
) WITHOUT ROWID;
INSERT INTO total SELECT 'entry', count(*) FROM entry;
INSERT INTO total SELECT 'series', count(*) FROM series;
DROP INDEX entry_by_workload;
DROP INDEX series_by_workload;
"""


def _add_counts(connection: sqlite3.Connection) -> None:
    """2 to 3: rows are counted, and series sealed. Two indices go: to read a few thousand rows takes no longer."""
    _run_script(connection, _COUNTS)
    connection.execute(
        "UPDATE series SET points = (SELECT count(*) FROM point WHERE point.series = series.number)"
    )
    connection.execute(
        "UPDATE entry SET points = (SELECT count(*) FROM point WHERE point.entry = entry.number)"
    )
    entry = (
        "id, started, workload, backend, state, source, machine, commit_id, dirty, path, night, facts, outcome, valid,"
        " reason"
    )
    for number, points, sealed, *row in connection.execute(
        f"SELECT number, points, seal, {entry} FROM entry"
    ).fetchall():
        if _seal_of_version_3(*row) != sealed:
            raise UnreadableReport("the row of a run is not what was stored")
        connection.execute(
            "UPDATE entry SET seal = ? WHERE number = ?", (_seal_of_version_3(*row, points), number)
        )
    for number, *row in connection.execute("SELECT number, key, better, points FROM series").fetchall():
        connection.execute("UPDATE series SET seal = ? WHERE number = ?", (_seal_of_version_3(*row), number))


def _seal_of_version_3(*content: object) -> int:
    """As it was in version 3, whatever becomes of `rows.seal`."""
    return zlib.crc32(repr(content).encode("utf-8", "surrogatepass"))


# From the version of the key to the next one. Each runs within the transaction that also writes the new version.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_decisions, 2: _add_counts}


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of the present version in an empty file, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    _run_script(connection, _TABLES + _DECISION + _COUNTS)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the file's tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the present version, step by step. The caller holds the transaction."""
    for step in range(version_of(connection), VERSION):
        MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {step + 1}")


def _run_script(connection: sqlite3.Connection, script: str) -> None:
    """Each statement by itself: `executescript` would end the transaction that holds them together."""
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement)
