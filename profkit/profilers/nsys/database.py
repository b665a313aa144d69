"""An nsys SQLite file, opened so that nothing in it can run, change or wait: anybody may have written it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import check_regular
from profkit.core.files.sqlite import connect, plain_tables


def call_name(name: str) -> str:
    """`cudaLaunchKernel_v7000` as it is called in a program; nsys adds the version in which it last changed."""
    stem, mark, version = name.rpartition("_v")
    return stem if mark and version.isdigit() and len(version) > 2 else name


LONGEST = 65536  # characters of a text; a demangled C++ name has some thousand
ROWS = 65536  # fetched at a time


class Database:
    """The tables of one file. Views, virtual and generated columns do not exist here: a table is rows on disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables = plain_tables(connection)
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Its columns; none where there is no such table."""
        if table not in self.tables:
            return frozenset()
        if table not in self._columns:
            rows = self._connection.execute(f'PRAGMA table_info("{table}")').fetchall()
            self._columns[table] = frozenset(str(row[1]) for row in rows)
        return self._columns[table]

    def number(self, table: str, column: str, default: int = 0) -> str:
        """An expression that is a whole number whatever the file has there: NULL, text, or no such column."""
        return f'coalesce("{column}" | 0, {default})' if column in self.columns(table) else str(default)

    def text(self, table: str, column: str) -> str:
        """An expression that is a text of bearable length, or NULL."""
        return f'substr("{column}", 1, {LONGEST})' if column in self.columns(table) else "NULL"

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query that has few."""
        found: list[tuple[Any, ...]] = self._connection.execute(query, tuple(parameters)).fetchall()
        return found

    def blocks(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query that may have millions."""
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(ROWS):
            yield rows

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """The texts of `StringIds` with these numbers; what is not there is left out."""
        if not {"id", "value"} <= self.columns("StringIds"):
            return {}
        found: dict[int, str] = {}
        for at in range(0, len(ids), 500):
            part = tuple(ids[at : at + 500])
            marks = ",".join("?" * len(part))
            query = f"SELECT id, {self.text('StringIds', 'value')} FROM StringIds WHERE id IN ({marks})"
            found.update((number, text) for number, text in self.rows(query, part) if isinstance(text, str))
        return found


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """The file at `path`, which is not changed and for which no lock is waited. Raises UnreadableReport."""
    if not path.exists():
        raise UnreadableReport(f"{path} does not exist")
    connection: sqlite3.Connection | None = None
    try:
        check_regular(path)
        connection = connect(path, _mode(path))
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA cache_size = -16384")  # KiB; a table is read once, from front to back
        yield Database(connection)
    except (sqlite3.Error, OverflowError) as error:
        raise UnreadableReport(_reason(path, error), _fix(error)) from error
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # an embedded null byte in the name
        raise UnreadableReport(f"{str(path)!r} is no file name: {error}") from error
    finally:
        if connection is not None:
            connection.close()


def _mode(path: Path) -> str:
    """`immutable` reads a locked file too, and where nothing can be written; but it does not see a WAL beside it."""
    wal = path.with_name(path.name + "-wal")
    return "mode=ro" if wal.is_file() and wal.stat().st_size else "mode=ro&immutable=1"


def _reason(path: Path, error: Exception) -> str:
    said = str(error)
    if "not a database" in said:
        return f"{path} begins as a SQLite file, but is none"
    if any(word in said for word in ("malformed", "corrupt", "disk I/O", "database schema")):
        return f"{path} is damaged or cut short: {said}"
    return f"{path} cannot be read as an nsys export: {said}"


def _fix(error: Exception) -> str | None:
    if any(word in str(error) for word in ("malformed", "corrupt", "not a database", "disk I/O")):
        return "export it again: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep"
    return None
