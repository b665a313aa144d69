"""What becomes of StringIds: strings of kernels, ranges and calls stay, all others go."""

from __future__ import annotations

import sqlite3

from profkit.profilers.nsys.private import OF_EVENTS, as_text, kind_of_string, kind_of_table
from profkit.profilers.nsys.private_copy import Table, quoted
from profkit.profilers.private_forms import environment_variables
from profkit.profilers.redact import ENVIRONMENT, Redactor

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def scrub_strings(database: sqlite3.Connection, tables: tuple[Table, ...], redactor: Redactor) -> None:
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
                    f"INSERT OR IGNORE INTO used SELECT DISTINCT {quoted(column)}, {int(kernel)} "
                    f"FROM {quoted(table.name)} WHERE {quoted(column)} IS NOT NULL"
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


def _point_to_nothing(database: sqlite3.Connection, table: Table, column: str) -> None:
    """A string that a kernel's name shares with a process must not name the process."""
    empty = database.execute("SELECT id FROM StringIds WHERE value = '' LIMIT 1").fetchone()
    if empty is None:
        database.execute(
            "INSERT INTO StringIds (id, value) SELECT coalesce(max(id), 0) + 1, '' FROM StringIds"
        )
        empty = database.execute("SELECT id FROM StringIds WHERE value = '' LIMIT 1").fetchone()
    database.execute(
        f"UPDATE {quoted(table.name)} SET {quoted(column)} = ? WHERE {quoted(column)} IS NOT NULL", empty
    )
