"""Open files that others may have written: only regular files, opened once and read up to a limit.

Reading a pipe would block, and a device has no end. The open handle is checked and not the name, which may
belong to another file by then. Everything here raises OSError, whose `strerror` gives the reason, as for a
missing file.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sqlite3
import stat
from collections.abc import Iterable
from os import PathLike, fsencode
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote_from_bytes

if TYPE_CHECKING:
    from typing_extensions import Buffer

DOCUMENT_BYTES = 64 << 20  # of a file that one of our own programs wrote, where nothing else is said
_PIECE = 1 << 20  # bytes


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading; the caller closes it.

    A pipe is not waited for, and a device is not opened at all.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # some devices do something when they are opened
        raise _not_regular(path)
    file = cast("BinaryIO", io.BufferedReader(_WithoutWaiting(path, opener=_open)))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(path)
    return file


def read_bounded(path: Path | str, most: int = DOCUMENT_BYTES) -> bytes:
    """Return the content of a file of at most `most` bytes, also if it grows while it is read.

    Raises OSError (EFBIG) for a larger one.
    """
    content = read_start(path, most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def read_start(path: Path | str, most: int) -> bytes:
    """Return the first `most` bytes of a file, or all of it if it has fewer."""
    pieces: list[bytes] = []
    # In pieces: a single read asks for the memory of `most`, however small the file
    with open_regular(path) as file:
        while most > 0 and (piece := file.read(min(most, _PIECE))):
            pieces.append(piece)
            most -= len(piece)
    return b"".join(pieces)


def check_regular(path: Path | str, most: int | None = None) -> None:
    """Raise what `read_bounded` would raise, without reading: for files that another library opens by name."""
    with open_regular(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise _too_large(path, most)


class _WithoutWaiting(io.FileIO):
    """A file that raises where there is nothing to read yet: some files in /proc claim to be regular, and block."""

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into `buffer`. Raises BlockingIOError where nothing is there yet."""
        count = super().readinto(buffer)
        if count is None:
            raise BlockingIOError(errno.EAGAIN, "it is not a regular file", str(self.name))
        return count

    def readall(self) -> bytes:
        """Read to the end. Raises BlockingIOError where nothing is there yet."""
        content = super().readall()
        if content is None:
            raise BlockingIOError(errno.EAGAIN, "it is not a regular file", str(self.name))
        return content


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _not_regular(path: Path | str) -> OSError:
    if os.path.isdir(path):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return OSError(errno.EINVAL, "it is not a regular file", str(path))


def _too_large(path: Path | str, most: int) -> OSError:
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))


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


class ForeignConnection(sqlite3.Connection):
    """A connection to a database file that anybody may have written."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement.

        Raise sqlite3.DatabaseError where SQLite's own message quotes bytes that are not UTF-8.
        """
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError:
            raise sqlite3.DatabaseError("malformed database schema: its text is not UTF-8") from None


def connect(path: PathLike[str] | str, mode: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    """Connect to a database file as `mode` says: `mode=ro`, `mode=ro&immutable=1`, `mode=rw` or `mode=rwc`.

    A file opened for reading cannot be written to by any statement. Raises sqlite3.Error.
    """
    address = f"file:{quote_from_bytes(fsencode(abspath(path)))}?{mode}"
    connection = sqlite3.connect(
        address, uri=True, isolation_level=None, timeout=timeout, factory=ForeignConnection
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if hasattr(connection, "setlimit"):  # since Python 3.11
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
    if not mode.startswith("mode=rw"):
        connection.execute("PRAGMA query_only = ON")
    return connection


def plain_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of tables that are rows on disk, whether or not they have computed columns.

    Raises sqlite3.Error.
    """
    return frozenset(name for kind, name, sql in _objects(connection) if kind == "table" and _is_plain(sql))


def code_in(connection: sqlite3.Connection) -> str | None:
    """Name the first thing in the file that would run code, or return None if there is none.

    Raises sqlite3.Error.
    """
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
