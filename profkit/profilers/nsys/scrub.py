"""Takes what is private out of nsys' SQLite export: rows and columns that are not known to be harmless lose their text.

nsys writes the whole environment of each process into three places (TARGET_INFO_SYSTEM_ENV, META_DATA_CAPTURE, and
long entries of StringIds), beside the command line, the host, the user, every process of the machine by name
(ThreadNames), what the program printed (ProcessStreams) and the identity of each GPU. Times, launches, names of
kernels, NVTX ranges and API calls stay as they are. Tables and columns differ between versions, so a text stays only
where its place is known to hold no secret.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.nsys.private import OF_EVENTS, as_text, change_of, device, fact, message, system
from profkit.profilers.nsys.private_copy import Table, may_hold_text, opened, rewrite, tables_of
from profkit.profilers.nsys.private_strings import scrub_strings
from profkit.profilers.redact import COMMAND, ENVIRONMENT, HOST, PROCESS, USER, Redactor

_TIMES = ("TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS")
_META = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA")  # the last one before schema 3.2


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write a scrubbed copy of the SQLite file to `output`, which must not be there yet."""
    work = output.with_name(f"{output.name}.work")
    try:
        with contextlib.closing(opened(source, work)) as database:
            tables = tuple(tables_of(database))
            _learn(database, tables, redactor)
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


def _learn(database: sqlite3.Connection, tables: tuple[Table, ...], redactor: Redactor) -> None:
    """Know the environment, the command and the host, so that they are found wherever else they stand."""
    names = {table.name: table for table in tables}
    if (table := names.get("TARGET_INFO_SYSTEM_ENV")) is not None and table.has("value"):
        for name, value in database.execute("SELECT name, value FROM TARGET_INFO_SYSTEM_ENV"):
            if "environment" in str(name).lower():
                redactor.learn_environment(as_text(value))
            elif str(name).lower() == "hostname":
                redactor.learn(as_text(value), HOST, strong=True)
    for meta in _META:
        if meta in names and names[meta].has("value"):
            for name, value in database.execute(f"SELECT name, value FROM {meta}"):
                _learn_fact(str(name).upper(), as_text(value), redactor)
    if "StringIds" in names and names["StringIds"].has("value"):
        for (value,) in database.execute("SELECT value FROM StringIds WHERE length(value) > 200"):
            if "=" in (text := as_text(value)):
                redactor.learn_environment(text)


def _learn_fact(name: str, value: str, redactor: Redactor) -> None:
    if "ENV" in name:
        redactor.learn_environment(value)
        redactor.learn(value, ENVIRONMENT)
    elif "USER" in name:
        redactor.learn(value, USER, strong=True)
    elif "HOST" in name or "DISPLAY_NAME" in name:
        redactor.learn(value, HOST, strong=True)
    elif "COMMAND" in name or "ARG" in name:
        redactor.learn(value, COMMAND)


# ---------------------------------------------------------------- tables


def _scrub_table(database: sqlite3.Connection, table: Table, redactor: Redactor) -> None:
    name = table.name
    if name == "StringIds":
        return
    if name == "TARGET_INFO_SYSTEM_ENV":
        rewrite(database, table, "devStateName", lambda row: device(as_text(row[0]), redactor))
        rewrite(
            database, table, "value", lambda row: system(as_text(row[0]), as_text(row[1]), redactor), "name"
        )
    elif name in _META:
        if table.has("name"):  # how many words a command had is nobody's business either
            gone = database.execute(f"DELETE FROM {name} WHERE name GLOB 'PROCESS_*:ARGUMENT*'").rowcount
            redactor.note(COMMAND, max(0, gone))
        rewrite(
            database, table, "value", lambda row: fact(as_text(row[0]), as_text(row[1]), redactor), "name"
        )
    elif name == "DIAGNOSTIC_EVENT":
        rewrite(database, table, "text", lambda row: message(as_text(row[0]), redactor))
    elif name == "PROCESSES":
        _number_processes(database, table, redactor)
    else:
        known = OF_EVENTS.match(name) is not None or name in _TIMES
        for column, kind in table.columns:
            if column not in table.references and may_hold_text(kind):
                rewrite(database, table, column, change_of(column, known, redactor))


def _number_processes(database: sqlite3.Connection, table: Table, redactor: Redactor) -> None:
    numbers: dict[str, int] = {}

    def numbered(row: tuple[object, ...]) -> str:
        if not row[0] or re.fullmatch(r"process-\d+", as_text(row[0])):  # scrubbed before
            return as_text(row[0])
        number = numbers.setdefault(as_text(row[0]), len(numbers) + 1)
        redactor.note(PROCESS, 1, f"process-{number}" if number == 1 else None)
        return f"process-{number}"

    rewrite(database, table, "name", numbered)
