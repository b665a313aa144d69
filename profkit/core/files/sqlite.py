"""SQLite files that others may have written: nothing in them runs, nothing in them makes a command wait for ever.

A view, a trigger, a virtual table and a computed column are code: a view can count without end, a trigger deletes what
is stored beside it. `code_in` says which there are; a reader reads none of them, or refuses the file.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterable
from os import PathLike, fsencode
from os.path import abspath
from typing import Any, Literal, TypeVar
from urllib.parse import quote_from_bytes

STATEMENT_SECONDS = 600.0  # for one step of a statement: SQLite goes through many GB meanwhile
_STEPS = 100_000  # of SQLite's machine, some ms, between two looks at the clock and at Ctrl-C
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
_T = TypeVar("_T")


class GuardedConnection(sqlite3.Connection):
    """A connection that hears Ctrl-C while SQLite computes, and ends a statement that takes too long.

    It raises KeyboardInterrupt as any other code does, and sqlite3.OperationalError after STATEMENT_SECONDS.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._interrupt: BaseException | None = None
        self._deadline = float("inf")
        self.set_progress_handler(self._look_up, _STEPS)
        self.execute("PRAGMA trusted_schema = OFF")
        self.execute("PRAGMA cell_size_check = ON")
        if hasattr(self, "setlimit"):  # since Python 3.11
            for limit, most in _LIMITS.items():
                self.setlimit(limit, most)

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        """A cursor whose steps are guarded."""
        return super().cursor(*arguments, **{"factory": _GuardedCursor, **named})

    def execute(self, *arguments: Any) -> Any:
        """A guarded cursor that has executed the statement, and so for the other two."""
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        """One statement for many rows."""
        return self.cursor().executemany(*arguments)

    def executescript(self, *arguments: Any) -> Any:
        """Many statements."""
        return self.cursor().executescript(*arguments)

    def guard(self, step: Callable[[], _T]) -> _T:
        """Run one step of a statement. Raises what stopped it."""
        self._deadline = time.monotonic() + STATEMENT_SECONDS
        try:
            return step()
        except sqlite3.OperationalError as error:
            stopped, self._interrupt = self._interrupt, None
            if stopped is not None:
                raise stopped from None
            if str(error) == "interrupted":  # Ctrl-C came while `_look_up` was being entered
                raise KeyboardInterrupt from None
            raise
        finally:
            self._deadline = float("inf")

    def _look_up(self) -> int:
        """Called by SQLite now and then: Python hears signals here, and what it raises would be lost."""
        try:
            if time.monotonic() < self._deadline:
                return 0
            self._interrupt = sqlite3.OperationalError(
                f"one statement took more than {STATEMENT_SECONDS:.0f} s"
            )
        except BaseException as stopped:  # Ctrl-C: raised again where the step ends
            self._interrupt = stopped
        return 1


class _GuardedCursor(sqlite3.Cursor):
    connection: GuardedConnection

    def execute(self, *arguments: Any) -> Any:
        return self.connection.guard(lambda: super(_GuardedCursor, self).execute(*arguments))

    def executemany(self, *arguments: Any) -> Any:
        return self.connection.guard(lambda: super(_GuardedCursor, self).executemany(*arguments))

    def executescript(self, *arguments: Any) -> Any:
        return self.connection.guard(lambda: super(_GuardedCursor, self).executescript(*arguments))

    def fetchone(self) -> Any:
        return self.connection.guard(super().fetchone)

    def fetchmany(self, *arguments: Any) -> Any:
        return self.connection.guard(lambda: super(_GuardedCursor, self).fetchmany(*arguments))

    def fetchall(self) -> Any:
        return self.connection.guard(super().fetchall)

    def __next__(self) -> Any:
        return self.connection.guard(super().__next__)


def connect(
    path: PathLike[str] | str,
    mode: str,
    *,
    isolation_level: Literal["DEFERRED"] | None = None,
    timeout: float = 5.0,
) -> GuardedConnection:
    """The file as `mode` says: `mode=ro`, `mode=ro&immutable=1`, `mode=rw` or `mode=rwc`. Raises sqlite3.Error.

    What is opened to be read cannot be written to, by whatever statement.
    """
    address = f"file:{quote_from_bytes(fsencode(abspath(path)))}?{mode}"
    connection = sqlite3.connect(
        address, uri=True, isolation_level=isolation_level, timeout=timeout, factory=GuardedConnection
    )
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
