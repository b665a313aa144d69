"""Older files brought forward: in place, a copy of them laid beside first; in memory where writing is not allowed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.run_folder import hand_over
from profkit.regression.history.schema import VERSION, migrate, version_of


def migrate_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file forward in one transaction; a copy of it as it was is laid beside it before.

    Several processes may come to it at once: the lock decides, and the others find it done.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if (found := version_of(connection)) < VERSION:
            reader = sqlite3.connect(path)  # the lock keeps writers out, not readers
            try:
                copy_whole(reader, path.with_name(f"{path.name}.v{found}"))
            finally:
                reader.close()
            migrate(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The same history of the present version, in memory: for a file that may only be read."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(memory)
    connection.close()
    if version_of(memory) < VERSION:
        memory.execute("BEGIN")
        migrate(memory)
        memory.execute("COMMIT")
    memory.execute("PRAGMA query_only = 1")
    return memory


def copy_whole(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy a history as it stands, its log included, to `copy`: whole or not at all. Raises MachineError."""
    temporary = copy.with_name(f".{copy.name}.{os.getpid()}.tmp")
    try:
        target = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
        os.replace(temporary, copy)
        hand_over(copy)
    except (OSError, sqlite3.Error) as error:
        raise MachineError(
            f"cannot lay a copy at {copy}, which comes before anything is changed: {error}",
            f"df -h {copy.parent}",
        ) from error
    finally:
        for name in (
            temporary.name,
            f"{temporary.name}-journal",
            f"{temporary.name}-wal",
            f"{temporary.name}-shm",
        ):
            with contextlib.suppress(OSError):
                temporary.with_name(name).unlink()
