"""The tables of a history.

    entry 1 ─< point >─ 1 series        one run, one metric in one scope, its value there
    entry >─ 1 machine                  what decides comparability, once for all runs that share it
    decision >─ point                   what a re-run of the same night said of one value
    accepted                            changes that were accepted as the new normal

`point` is clustered by series: a year of one metric is read in one pass. Types are checked by CHECK and not by STRICT:
a file with STRICT tables cannot even be opened by SQLite before 3.37, which is what Python 3.10 comes with on older
systems. `quick_check` looks at every CHECK when a history is opened.
"""

from __future__ import annotations

import sqlite3

# "PKH1": application_id of the file's header, which tells it from other SQLite files.
APPLICATION = 0x50_4B_48_31
VERSION = 4

_TABLES = """
CREATE TABLE machine (
    number   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL CHECK (typeof(id) = 'text'),
    features TEXT NOT NULL CHECK (typeof(features) = 'text'),
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
    reason   TEXT CHECK (typeof(reason) IN ('text', 'null'))
);
CREATE TABLE series (
    number   INTEGER PRIMARY KEY,
    workload TEXT NOT NULL CHECK (typeof(workload) = 'text'),
    backend  TEXT NOT NULL CHECK (typeof(backend) = 'text'),
    metric   TEXT NOT NULL CHECK (typeof(metric) = 'text'),
    scope    TEXT NOT NULL CHECK (typeof(scope) = 'text'),
    name     TEXT CHECK (typeof(name) IN ('text', 'null')),
    scope_id TEXT CHECK (typeof(scope_id) IN ('text', 'null')),
    unit     TEXT NOT NULL CHECK (typeof(unit) = 'text'),
    better   TEXT NOT NULL CHECK (better IN ('lower', 'higher', 'none'))
);
CREATE INDEX series_by_name ON series (workload, metric, name);
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
    PRIMARY KEY (series, entry)
) WITHOUT ROWID;
CREATE INDEX point_by_entry ON point (entry);
CREATE TABLE accepted (
    number   INTEGER PRIMARY KEY,
    workload TEXT NOT NULL CHECK (typeof(workload) = 'text'),
    metric   TEXT CHECK (typeof(metric) IN ('text', 'null')),
    since    INTEGER NOT NULL CHECK (typeof(since) = 'integer'),
    word     TEXT NOT NULL CHECK (typeof(word) = 'text'),
    by       TEXT CHECK (typeof(by) IN ('text', 'null'))
);
CREATE TABLE decision (
    series   INTEGER NOT NULL REFERENCES series (number),
    entry    INTEGER NOT NULL REFERENCES entry (number),
    word     TEXT NOT NULL CHECK (typeof(word) = 'text'),
    PRIMARY KEY (series, entry)
) WITHOUT ROWID;
"""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, in one transaction; where another process was faster, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        for statement in _TABLES.split(";\n"):  # `executescript` would end the transaction
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the file's tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
