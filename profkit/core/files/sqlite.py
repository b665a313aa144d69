"""SQLite files that others may have written: nothing in them runs.

A view, a trigger, a virtual table and a computed column are code: a view can count without end, a trigger deletes what
is stored beside it. `code_in` says which there are; a reader reads none of them, or refuses the file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from os import PathLike, fsencode
from os.path import abspath
from typing import Literal
from urllib.parse import quote_from_bytes

# By the numbers of sqlite3.h, since Python names them only from 3.11 on. What is in use stays far below.
_LIMITS = {
    0: 256 << 20,  # bytes of a text, a blob or a row
    1: 1 << 20,  # bytes of a statement
    3: 200,  # depth of an expression
    4: 20,  # SELECTs joined by UNION
    7: 1,  # attached files: VACUUM needs one
    8: 1000,  # bytes of a pattern of LIKE
    10: 1,  # triggers that call triggers
    11: 0,  # threads beside this one
}
_PLAIN_TABLE = re.compile(r"CREATE\s+TABLE\b", re.IGNORECASE)
_COMPUTED = re.compile(r"\bGENERATED\s+ALWAYS\b|\)?\s*\bAS\s*\(", re.IGNORECASE)
_OF_COLUMNS = re.compile(  # no expression, no condition
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+[\w\"]+\s+ON\s+[\w\"]+\s*\(\s*[\w\"]+(?:\s*,\s*[\w\"]+)*\s*\)\s*",
    re.IGNORECASE,
)


def connect(
    path: PathLike[str] | str,
    mode: str,
    *,
    isolation_level: Literal["DEFERRED"] | None = None,
    timeout: float = 5.0,
) -> sqlite3.Connection:
    """The file as `mode` says: `mode=ro`, `mode=ro&immutable=1`, `mode=rw` or `mode=rwc`. Raises sqlite3.Error.

    What is opened to be read cannot be written to, by whatever statement.
    """
    address = f"file:{quote_from_bytes(fsencode(abspath(path)))}?{mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=isolation_level, timeout=timeout)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if hasattr(connection, "setlimit"):  # since Python 3.11
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
    if not mode.startswith("mode=rw"):
        connection.execute("PRAGMA query_only = ON")
    return connection


def plain_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """The tables that are rows on disk; computed columns in them are not looked at. Raises sqlite3.Error."""
    return frozenset(name for kind, name, sql in _objects(connection) if kind == "table" and _is_plain(sql))


def code_in(connection: sqlite3.Connection) -> str | None:
    """The first thing in the file that would run, in words; None where there is none. Raises sqlite3.Error."""
    for kind, name, sql in _objects(connection):
        if kind in ("view", "trigger"):
            return f"the {kind} {name}"
        if kind == "table" and not _is_plain(sql):
            return f"the virtual table {name}"
        if kind == "table" and _COMPUTED.search(sql):
            return f"a computed column in the table {name}"
        if kind == "index" and sql and not _OF_COLUMNS.fullmatch(sql):
            return f"an expression in the index {name}"
    return None


def _objects(connection: sqlite3.Connection) -> Iterable[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return [(str(kind), str(name), str(sql)) for kind, name, sql in rows]


def _is_plain(sql: str) -> bool:
    return _PLAIN_TABLE.match(sql) is not None
