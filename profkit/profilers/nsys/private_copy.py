"""A copy of an nsys export that can be changed: its tables, and each different text of a column replaced at once."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_REFERENCE = re.compile(
    r"^\s*\"?(\w+)\"?\s+INTEGER[^\n]*REFERENCES\s+StringIds", re.IGNORECASE | re.MULTILINE
)
# Columns that point into StringIds where the export does not say so in a comment.
_STRING_COLUMNS = {
    "nameid", "textid", "jsontextid", "demangledname", "shortname", "mangledname", "filenameid", "contentid", "symbol",
    "module", "unresolvedsymbol", "valueid", "messageid", "threadnameid", "exitcodeid", "regionnameid", "sourcefileid",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One table of the export."""

    name: str
    columns: tuple[tuple[str, str], ...]  # name, declared type
    references: frozenset[str]  # columns that point into StringIds

    def has(self, column: str) -> bool:
        """Whether it has a column of that name, in capitals or not."""
        return any(name.lower() == column.lower() for name, _ in self.columns)


def opened(source: Path, work: Path) -> sqlite3.Connection:
    """A copy of the database to change, with what a log beside it holds, and with nothing in it that runs."""
    database = sqlite3.connect(work)
    try:
        with contextlib.closing(
            sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
        ) as original:
            original.backup(database)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA journal_mode = DELETE")
        for kind, name in database.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
        ).fetchall():
            database.execute(f"DROP {kind} IF EXISTS {quoted(name)}")
        for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'sqlite_stat%'"
        ).fetchall():
            database.execute(f"DELETE FROM {quoted(name)}")  # statistics of an index quote its values
    except sqlite3.Error:
        database.close()
        raise
    return database


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def tables_of(database: sqlite3.Connection) -> Iterator[Table]:
    """All tables but SQLite's own."""
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    for name, sql in rows:
        if name.startswith("sqlite_"):
            continue
        columns = tuple(
            (row[1], row[2] or "") for row in database.execute(f"PRAGMA table_info({quoted(name)})")
        )
        told = {column.lower() for column in _REFERENCE.findall(sql or "")}
        points = frozenset(
            column
            for column, kind in columns
            if "CHAR" not in kind.upper()
            and "TEXT" not in kind.upper()
            and (column.lower() in told or column.lower() in _STRING_COLUMNS)
        )
        yield Table(name, columns, points)


def may_hold_text(kind: str) -> bool:
    """SQLite keeps text in a column of any type; only those declared numeric are trusted, where they hold numbers."""
    return True if not kind else not re.search(r"INT|REAL|FLOA|DOUB", kind.upper())


def rewrite(
    database: sqlite3.Connection,
    table: Table,
    column: str,
    change: Callable[[tuple[object, ...]], object],
    *beside: str,
) -> None:
    """Replace each different text of a column; `change` gets the columns `beside` it first."""
    if not all(table.has(name) for name in (column, *beside)):
        return
    what = ", ".join(quoted(name) for name in (*beside, column))
    same = " AND ".join(f"{quoted(name)} IS ?" for name in (*beside, column))
    typed = f"typeof({quoted(column)}) IN ('text', 'blob')"
    rows = database.execute(f"SELECT DISTINCT {what} FROM {quoted(table.name)} WHERE {typed}").fetchall()
    changed = [(new, *row) for row in rows if (new := change(row)) != row[-1]]
    if len(changed) > 64:  # without an index each UPDATE below goes through the whole table
        database.execute(f"CREATE INDEX profkit_scrub ON {quoted(table.name)} ({quoted(column)})")
    update = f"UPDATE {quoted(table.name)} SET {quoted(column)} = ? WHERE {same}"
    database.executemany(update, changed)
    database.execute("DROP INDEX IF EXISTS profkit_scrub")
