"""Takes what is private out of nsys' SQLite export: a text stays only where its place is known to hold no secret.

nsys writes the whole environment of each process into three places (TARGET_INFO_SYSTEM_ENV, META_DATA_CAPTURE, and
long entries of StringIds), beside the command line, the host, the user, every process of the machine by name
(ThreadNames), what the program printed (ProcessStreams) and the identity of each GPU. Times, launches, names of
kernels, NVTX ranges and API calls stay as they are. Tables and columns differ between versions.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import check_regular
from profkit.core.files.sqlite import connect, plain_tables
from profkit.profilers.nsys.scrub_values import (
    as_text,
    column_scrubber,
    scrub_device,
    scrub_fact,
    scrub_message,
    scrub_property,
)
from profkit.profilers.redact import (
    COMMAND,
    ENVIRONMENT,
    HOST,
    OTHER,
    OUTPUT,
    PATH,
    PROCESS,
    USER,
    Redactor,
    environment_variables,
)

# Tables whose strings say what was done on the device or called on the host. CALLCHAINS hold symbols and modules.
OF_EVENTS = re.compile(
    r"CUPTI_|CUDA_|CUDNN_|CUBLAS_|CUSPARSE_|NVTX_|OSRT_|MPI_|UCX_|NCCL_|OPENACC_|OPENMP_|OPENSHMEM_|OPENGL_|VULKAN_|"
    r"DX1|KHR_|NVVIDEO_|NVMEDIA_|PROFILER_OVERHEAD|GPU_|GENERIC_EVENT|NET_|NIC_|SAMPLING_CALLCHAINS|ENUM_|"
    r"TARGET_INFO_(?:GPU|CUDA|NIC|GPU_METRICS)"
)


def kind_of_table(name: str) -> str:
    """What the strings are that a table points to."""
    if "Stream" in name:
        return OUTPUT
    return PATH if "FILE" in name.upper() else PROCESS


def kind_of_string(text: str, private: dict[str, str]) -> str:
    """What a string is that no event points to; `private` has the columns of other tables that point to strings."""
    if re.match(r"[A-Za-z_]\w*=", text):
        return ENVIRONMENT
    if text.startswith(("/", "./")):
        return PATH
    return PROCESS if "ThreadNames.nameId" in private and len(text) < 64 else OTHER


_REFERENCE = re.compile(
    r"^\s*\"?(\w+)\"?\s+INTEGER[^\n]*REFERENCES\s+StringIds", re.IGNORECASE | re.MULTILINE
)
# Columns that point into StringIds where the export does not say so in a comment.
_STRING_COLUMNS = {
    "nameid", "textid", "jsontextid", "demangledname", "shortname", "mangledname", "filenameid", "contentid", "symbol",
    "module", "unresolvedsymbol", "valueid", "messageid", "threadnameid", "exitcodeid", "regionnameid", "sourcefileid",
}  # fmt: skip


@dataclass(frozen=True)
class SqliteTable:
    """One table of the export."""

    name: str
    columns: tuple[tuple[str, str], ...]  # name, declared type
    references: frozenset[str]  # columns that point into StringIds

    def has(self, column: str) -> bool:
        """Whether it has a column of that name, in capitals or not."""
        return any(name.lower() == column.lower() for name, _ in self.columns)


def open_copy(source: Path, work: Path) -> sqlite3.Connection:
    """A copy of the database to change, with what a log beside it holds, and with nothing in it that runs."""
    check_regular(source)
    database = connect(work, "mode=rwc", isolation_level="DEFERRED")
    try:
        with contextlib.closing(connect(source, "mode=ro")) as original:
            original.backup(database)
        database.execute("PRAGMA journal_mode = DELETE")
        for kind, name in database.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
        ).fetchall():
            database.execute(f"DROP {kind} IF EXISTS {quote_name(name)}")
        for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'sqlite_stat%'"
        ).fetchall():
            database.execute(f"DELETE FROM {quote_name(name)}")  # statistics of an index quote its values
    except sqlite3.Error:
        database.close()
        raise
    return database


def quote_name(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def list_tables(database: sqlite3.Connection) -> Iterator[SqliteTable]:
    """All tables but SQLite's own."""
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    plain = plain_tables(database)
    for name, sql in rows:
        if name.startswith("sqlite_") or name not in plain:
            continue
        columns = tuple(
            (row[1], row[2] or "") for row in database.execute(f"PRAGMA table_info({quote_name(name)})")
        )
        referring = {column.lower() for column in _REFERENCE.findall(sql or "")}
        points = frozenset(
            column
            for column, kind in columns
            if "CHAR" not in kind.upper()
            and "TEXT" not in kind.upper()
            and (column.lower() in referring or column.lower() in _STRING_COLUMNS)
        )
        yield SqliteTable(name, columns, points)


def may_hold_text(kind: str) -> bool:
    """SQLite keeps text in a column of any type; only those declared numeric are trusted, where they hold numbers."""
    return True if not kind else not re.search(r"INT|REAL|FLOA|DOUB", kind.upper())


def blank_numbers(database: sqlite3.Connection, table: SqliteTable, redactor: Redactor) -> None:
    """Write 0 where text stands in a column of numbers: SQLite takes any value in any column."""
    names = [name for name, kind in table.columns if not may_hold_text(kind)]
    texts = [f"typeof({quote_name(name)}) IN ('text', 'blob')" for name in names]
    if not names:
        return
    where = (
        f"SELECT 1 FROM {quote_name(table.name)} WHERE {' OR '.join(texts)} LIMIT 1"  # mostly there is none
    )
    if database.execute(where).fetchone() is None:
        return
    for name, is_text in zip(names, texts, strict=True):
        column = quote_name(name)
        changed = database.execute(
            f"UPDATE {quote_name(table.name)} SET {column} = 0 WHERE {is_text}"
        ).rowcount
        redactor.note(OTHER, max(0, changed))


def rewrite_column(
    database: sqlite3.Connection,
    table: SqliteTable,
    column: str,
    change: Callable[[tuple[object, ...]], object],
    *beside: str,
) -> None:
    """Replace each different text of a column; `change` gets the columns `beside` it first."""
    if not all(table.has(name) for name in (column, *beside)):
        return
    what = ", ".join(quote_name(name) for name in (*beside, column))
    same = " AND ".join(f"{quote_name(name)} IS ?" for name in (*beside, column))
    typed = f"typeof({quote_name(column)}) IN ('text', 'blob')"
    rows = database.execute(f"SELECT DISTINCT {what} FROM {quote_name(table.name)} WHERE {typed}").fetchall()
    changed = [(new, *row) for row in rows if (new := change(row)) != row[-1]]
    if len(changed) > 64:  # without an index each UPDATE below goes through the whole table
        database.execute(f"CREATE INDEX profkit_scrub ON {quote_name(table.name)} ({quote_name(column)})")
    update = f"UPDATE {quote_name(table.name)} SET {quote_name(column)} = ? WHERE {same}"
    database.executemany(update, changed)
    database.execute("DROP INDEX IF EXISTS profkit_scrub")


_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def scrub_strings(database: sqlite3.Connection, tables: tuple[SqliteTable, ...], redactor: Redactor) -> None:
    """Keep the strings of kernels, ranges and calls; all others, pointed to or not, become empty."""
    strings = next((table for table in tables if table.name == "StringIds"), None)
    if strings is None or not (strings.has("id") and strings.has("value")):
        return
    database.execute("CREATE TEMP TABLE used (id INTEGER PRIMARY KEY, kernel INTEGER)")
    private: dict[str, str] = {}
    for table in tables:
        for column in sorted(table.references):
            if OF_EVENTS.match(table.name):
                kernel = table.name.startswith((_KERNELS, "CUDA_GRAPH")) or "mangled" in column.lower()
                database.execute(
                    f"INSERT OR IGNORE INTO used SELECT DISTINCT {quote_name(column)}, {int(kernel)} "
                    f"FROM {quote_name(table.name)} WHERE {quote_name(column)} IS NOT NULL"
                )
            else:
                private[f"{table.name}.{column}"] = kind_of_table(table.name)
                _point_to_nothing(database, table, column)
    names = "SELECT s.rowid, s.value, u.kernel FROM StringIds s LEFT JOIN used u ON u.id = s.id"
    changes: list[tuple[str, int]] = []
    for row, value, kernel in database.execute(names):
        text, new = as_text(value), ""
        if kernel is None:
            if text:
                kind = kind_of_string(text, private)
                redactor.note(kind, sum(1 for _ in environment_variables(text)) if kind is ENVIRONMENT else 1)
        else:
            new = redactor.kernel(text) if kernel else redactor.text(text)
        if new != text:
            changes.append((new, row))
    database.executemany("UPDATE StringIds SET value = ? WHERE rowid = ?", changes)
    database.execute("DROP TABLE used")


def _point_to_nothing(database: sqlite3.Connection, table: SqliteTable, column: str) -> None:
    """A string that a kernel's name shares with a process must not name the process."""
    empty = database.execute("SELECT id FROM StringIds WHERE value = '' LIMIT 1").fetchone()
    if empty is None:
        database.execute(
            "INSERT INTO StringIds (id, value) SELECT coalesce(max(id), 0) + 1, '' FROM StringIds"
        )
        empty = database.execute("SELECT id FROM StringIds WHERE value = '' LIMIT 1").fetchone()
    database.execute(
        f"UPDATE {quote_name(table.name)} SET {quote_name(column)} = ? WHERE {quote_name(column)} IS NOT NULL",
        empty,
    )


_META = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA")  # the last one before schema 3.2


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write a scrubbed copy of the SQLite file to `output`, which must not be there yet."""
    work = output.with_name(f"{output.name}.work")
    try:
        with contextlib.closing(open_copy(source, work)) as database:
            tables = tuple(list_tables(database))
            _learn_private(database, tables, redactor)
            for table in tables:
                _scrub_table(database, table, redactor)
            scrub_strings(database, tables, redactor)
            database.commit()
            # A new file: what was deleted stays in the free pages of the old one.
            database.execute("VACUUM INTO ?", (str(output),))
    except sqlite3.Error as error:
        output.unlink(missing_ok=True)
        raise UnreadableReport(f"{source} cannot be read as an nsys export: {error}") from error
    finally:
        for left in (work, *(work.with_name(work.name + end) for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)


# ---------------------------------------------------------------- what is private in this file


def _learn_private(database: sqlite3.Connection, tables: tuple[SqliteTable, ...], redactor: Redactor) -> None:
    """Know the environment, the command and the host, so that they are found wherever else they stand."""
    names = {table.name: table for table in tables}
    if (table := names.get("TARGET_INFO_SYSTEM_ENV")) is not None and table.has("value"):
        for name, value in database.execute("SELECT name, value FROM TARGET_INFO_SYSTEM_ENV"):
            if "environment" in str(name).lower():
                redactor.learn_environment(as_text(value))
            elif str(name).lower() == "hostname":
                redactor.learn_name(as_text(value), HOST)
    for meta in _META:
        if meta in names and names[meta].has("value"):
            for name, value in database.execute(f"SELECT name, value FROM {meta}"):
                _learn_fact(str(name).upper(), as_text(value), redactor)
    if "StringIds" in names and names["StringIds"].has("value"):
        for (value,) in database.execute("SELECT value FROM StringIds WHERE length(value) > 200"):
            if "=" in (text := as_text(value)):
                redactor.learn_environment(text)
        for (value,) in database.execute("SELECT value FROM StringIds"):
            redactor.learn_text(as_text(value))


def _learn_fact(name: str, value: str, redactor: Redactor) -> None:
    if "ENV" in name:
        redactor.learn_environment(value)
        redactor.learn(value, ENVIRONMENT)
    elif "USER" in name:
        redactor.learn_name(value, USER)
    elif "HOST" in name or "DISPLAY_NAME" in name:
        redactor.learn_name(value, HOST)
    elif "COMMAND" in name or "ARG" in name:
        redactor.learn(value, COMMAND)
        redactor.learn_command(value.split())


# ---------------------------------------------------------------- tables


def _scrub_table(database: sqlite3.Connection, table: SqliteTable, redactor: Redactor) -> None:
    name = table.name
    blank_numbers(database, table, redactor)
    if name == "StringIds":
        _blank_others(database, table, redactor, "value")
        return
    if name == "TARGET_INFO_SYSTEM_ENV":
        rewrite_column(database, table, "devStateName", lambda row: scrub_device(as_text(row[0]), redactor))
        rewrite_column(
            database,
            table,
            "value",
            lambda row: scrub_property(as_text(row[0]), as_text(row[1]), redactor),
            "name",
        )
    elif name in _META:
        if table.has("name"):  # how many words a command had is nobody's business either
            gone = database.execute(f"DELETE FROM {name} WHERE name GLOB 'PROCESS_*:ARGUMENT*'").rowcount
            redactor.note(COMMAND, max(0, gone))
        rewrite_column(
            database,
            table,
            "value",
            lambda row: scrub_fact(as_text(row[0]), as_text(row[1]), redactor),
            "name",
        )
    elif name == "DIAGNOSTIC_EVENT":
        rewrite_column(database, table, "text", lambda row: scrub_message(as_text(row[0]), redactor))
    elif name == "PROCESSES":
        _number_processes(database, table, redactor)
    _blank_others(database, table, redactor, *_OWN_COLUMNS.get(name, ()))


# What is rewritten by itself, above
_OWN_COLUMNS: dict[str, tuple[str, ...]] = {
    "TARGET_INFO_SYSTEM_ENV": ("devStateName", "value"),
    **dict.fromkeys(_META, ("value",)),
    "DIAGNOSTIC_EVENT": ("text",),
    "PROCESSES": ("name",),
}


def _blank_others(database: sqlite3.Connection, table: SqliteTable, redactor: Redactor, *own: str) -> None:
    for column, kind in table.columns:
        if column not in own and column not in table.references and may_hold_text(kind):
            rewrite_column(database, table, column, column_scrubber(table.name, column, redactor))


def _number_processes(database: sqlite3.Connection, table: SqliteTable, redactor: Redactor) -> None:
    numbers: dict[str, int] = {}

    def numbered(row: tuple[object, ...]) -> str:
        if not row[0] or re.fullmatch(r"process-\d+", as_text(row[0])):  # scrubbed before
            return as_text(row[0])
        number = numbers.setdefault(as_text(row[0]), len(numbers) + 1)
        redactor.note(PROCESS, 1, f"process-{number}" if number == 1 else None)
        return f"process-{number}"

    rewrite_column(database, table, "name", numbered)
