"""The one file of a history: made, recognized, checked, opened.

    entry 1 ─< point >─ 1 series        one run, one metric in one scope, its value there
    entry >─ 1 machine                  what decides comparability, once for all runs that share it
    accepted                            changes that were accepted as the new normal

`point` is clustered by series: a year of one metric is read in one pass. Types are checked by CHECK and not by STRICT:
a file with STRICT tables cannot even be opened by SQLite before 3.37, which is what Python 3.10 comes with on older
systems. `quick_check` looks at every CHECK when a history is opened.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
from pathlib import Path

from profkit.core.errors import MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.core.files.regular import code_in, connect, open_regular
from profkit.core.files.safe_folder import check_links, chown_to_sudo_user, make_parents

# "PKH1": application_id of the file's header, which tells it from other SQLite files.
APPLICATION = 0x50_4B_48_31
VERSION = 5

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
"""


VARIABLE = "PROFKIT_HISTORY"
DEFAULT = Path("reports/history.sqlite")  # beside the runs
MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 30.0  # how long one writer waits for the others before it gives up


def default_path() -> Path:
    """Return the file used without --history: $PROFKIT_HISTORY, else reports/history.sqlite."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def damage_error(path: Path, what: str) -> UnreadableReport:
    """Build the fault for a file that was a history and is not whole."""
    return UnreadableReport(
        f"the history {path} is damaged: {what}; it was left as it is",
        "profkit history add reports/*/ --history FILE makes another of the runs; or sqlite3's .recover",
    )


# By the system, and not by what is in the file.
_REFUSED = ("locked", "full", "readonly", "unable to open", "disk i/o")


def explain_sqlite_error(path: Path, error: sqlite3.Error) -> ProfkitError:
    """Convert an error of SQLite to a fault, by its text: Python 3.10 does not give SQLite's codes."""
    message = str(error).lower().encode("ascii", "replace").decode()
    word = next((word for word in _REFUSED if word in message), None)
    if word is None:
        return damage_error(path, message)
    quoted = shlex.quote(str(path.parent))
    return MachineError(
        f"cannot use the history {path}: {message}",
        f"df -h {quoted}; ls -l {quoted}",
    )


def open_file(path: Path, *, write: bool, make_new: bool = True) -> sqlite3.Connection:
    """Connect to the history at `path`; with `write` and `make_new` a missing file is made.

    Raises UsageError (2) if there is none, UnreadableReport (2) for anything that is no whole history,
    MachineError (3) if the system refuses.
    """
    try:
        if write and make_new:
            _create_file(path)
        elif not os.path.lexists(path):
            raise UsageError(
                f"there is no history at {path}",
                "profkit history add RUN makes one; --history FILE names another",
            )
        elif write:  # SQLite would follow a link
            check_links(path)
        _refuse_foreign(path)
        return _open_checked(path, write=write)
    except OSError as error:
        raise MachineError(
            f"cannot read the history {path}: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}"
        ) from error
    except sqlite3.Error as error:
        raise explain_sqlite_error(path, error) from error
    except UnicodeDecodeError as error:  # SQLite's own message cannot be decoded
        raise damage_error(path, "its schema cannot be read") from error
    except ValueError as error:  # a null byte in the name
        raise UsageError(f"{str(path)!r} is not a file name: {error}", "--history FILE") from error


def _open_checked(path: Path, *, write: bool) -> sqlite3.Connection:
    connection = connect(path, "mode=rw", timeout=BUSY_SECONDS)
    try:
        if (code := code_in(connection)) is not None:
            raise UnreadableReport(
                f"the history {path} holds {code}: no history has one, and it would run; it was left as it is",
                "--history FILE names another",
            )
        _check_version(connection, path)
        if (fault := connection.execute("PRAGMA quick_check (1)").fetchone()[0]) != "ok":
            raise damage_error(path, " ".join(str(fault).split()))
        if path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0]:
            raise damage_error(path, "it is cut off")  # SQLite takes the missing end of a page for zeros
        if write:
            connection.execute("PRAGMA synchronous = FULL")  # what was stored survives a power cut
            with contextlib.suppress(sqlite3.OperationalError):  # somebody reads: a later one does it
                connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version != VERSION:
        raise UnreadableReport(
            f"the history {path} has version {version} of its tables, and this profkit knows {VERSION}",
            "upgrade profkit, or make a new one of the runs: profkit history add reports/*/ --history FILE",
        )


def _refuse_foreign(path: Path) -> None:
    """Raise UnreadableReport for anything but a history, by its header."""
    if not path.is_file():  # asked first: to open a pipe would wait for its writer
        raise UnreadableReport(f"{path} is not a history: it is not a regular file", "--history FILE")
    if not is_history(path):
        raise UnreadableReport(f"{path} is not a history; it was left as it is", "--history FILE")
    if path.stat().st_size < 100:
        raise damage_error(path, "it is cut off")


def is_history(path: Path) -> bool:
    """Return whether a file is a history, whole or not, by its header."""
    with open_regular(path) as file:
        head = file.read(72)
    return head.startswith(MAGIC) and head[68:72] == APPLICATION.to_bytes(4, "big")


def _create_file(path: Path) -> None:
    """Make a history if there is no file, or an empty one; leave anything else as it is.

    The tables are made in one transaction, so of several processes one makes them and the others find them.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        make_parents(path.parent)
        chown_to_sudo_user(*missing)
        check_links(path)
        if os.path.lexists(path) and not (path.is_file() and path.stat().st_size == 0):
            return
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o666))
        with contextlib.closing(connect(path, "mode=rw", timeout=BUSY_SECONDS)) as connection:
            _create_tables(connection)
        chown_to_sudo_user(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"cannot make a history at {path}: {path.parent} is not a folder", "--history FILE"
        ) from error
    except OSError as error:
        raise MachineError(
            f"cannot make a history at {path}: {error.strerror or error}",
            "--history FILE in a folder that you may write to",
        ) from error


def _create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, in one transaction; do nothing if another process was faster."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        for statement in _TABLES.split(";\n"):  # `executescript` would end the transaction
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
