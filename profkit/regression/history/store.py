"""The store of a history: add, mark, accept and prune runs, and read them back as entries and series."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from profkit.core.codec import valid_text
from profkit.core.errors import UsageError
from profkit.core.types import AcceptedChange, Entry, Series, SeriesKey
from profkit.regression.history.file import damage_error, default_path, explain_sqlite_error, open_file
from profkit.regression.history.queries import (
    ALL,
    HistoryFilter,
    machine_number,
    point_numbers,
    read_decisions,
    read_entries,
    read_series,
    read_values,
    series_number,
    where_clause,
)
from profkit.regression.history.rows import (
    ENTRY_COLUMNS,
    POINT_COLUMNS,
    accepted_of,
    accepted_row,
    entry_row,
    point_row,
    series_row,
)


def open_history(path: Path | None = None, *, read_only: bool = False, make_new: bool = True) -> History:
    """The history at `path` (default: $PROFKIT_HISTORY, else reports/history.sqlite), as a context manager.

    One that is not there is made, unless `read_only` or not `make_new`. Raises UsageError (2) where there is none,
    UnreadableReport (2) for what is broken, foreign or of another profkit, MachineError (3) where the system refuses.
    """
    path = path if path is not None else default_path()
    return History(path, open_file(path, write=not read_only, make_new=make_new))


class History:
    """An open history. Every change is a transaction: it is there as a whole after the call, or not at all."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    # ------------------------------------------------------------ write

    def add(self, entry: Entry) -> bool:
        """Store a run with its values. False where it is there already, and then nothing changes.

        Raises MachineError where it cannot be written; then nothing of it was.
        """
        with self._transaction() as sql:
            if sql.execute("SELECT 1 FROM entry WHERE id = ?", (entry.id,)).fetchone() is not None:
                return False
            rows = {series_row(value.key, value.unit, value.better): value for value in entry.values}
            row = entry_row(entry, machine_number(sql, entry))
            marks = ",".join("?" * len(row))
            number = sql.execute(f"INSERT INTO entry ({ENTRY_COLUMNS}) VALUES ({marks})", row).lastrowid
            assert number is not None
            for series, value in rows.items():
                point = point_row(series_number(sql, series), number, value)
                sql.execute(f"INSERT INTO point ({POINT_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)", point)
        return True

    def mark(self, entry: str, valid: bool, reason: str | None = None) -> None:
        """Store whether a run's values may decide anything, and why not. Raises UsageError where there is none."""
        self._update(entry, valid=int(valid), reason=None if valid else reason or "marked as not valid")

    def decide(self, entry: str, outcome: str | None) -> None:
        """Store the outcome of a run: `pass`, `regressed`, ... Raises UsageError where there is none."""
        self._update(entry, outcome=outcome)

    def confirm(self, entry: str, key: SeriesKey, word: str) -> None:
        """Store the result of a re-run of one value of a run. Raises UsageError where there is no such value."""
        with self._transaction() as sql:
            numbers = point_numbers(sql, entry, key)
            if numbers is None:
                raise UsageError(
                    f"{self.path} holds no {key.metric} of a run {entry!r}", "profkit history list"
                )
            row = (*numbers, valid_text(word))
            sql.execute("INSERT OR REPLACE INTO decision (series, entry, word) VALUES (?,?,?)", row)

    def accept(self, accepted: AcceptedChange) -> bool:
        """Store a known change: it begins a segment. False where this very one is there already."""
        row = accepted_row(accepted)
        with self._transaction() as sql:
            known = "SELECT 1 FROM accepted WHERE workload = ? AND metric IS ? AND since = ?"
            if sql.execute(known, row[:3]).fetchone() is not None:
                return False
            sql.execute("INSERT INTO accepted (workload, metric, since, word, by) VALUES (?,?,?,?,?)", row)
        return True

    def prune(self, entries: Iterable[str]) -> int:
        """Take these runs out with all their values; how many there were. The file shrinks by what they took."""
        taken = 0
        with self._transaction() as sql:
            for entry in entries:
                number = sql.execute("SELECT number FROM entry WHERE id = ?", (entry,)).fetchone()
                if number is not None:
                    sql.execute("DELETE FROM decision WHERE entry = ?", number)
                    sql.execute("DELETE FROM point WHERE entry = ?", number)
                    sql.execute("DELETE FROM entry WHERE number = ?", number)
                    taken += 1
            if taken:
                sql.execute("DELETE FROM series WHERE number NOT IN (SELECT series FROM point)")
                sql.execute("DELETE FROM machine WHERE number NOT IN (SELECT machine FROM entry)")
        if taken:
            with self._explain_errors(), contextlib.suppress(sqlite3.OperationalError):  # a reader in the way
                self._connection.execute("VACUUM")
        return taken

    # ------------------------------------------------------------ read

    def entries(self, chosen: HistoryFilter = ALL) -> tuple[Entry, ...]:
        """The runs, oldest first, without their values."""
        with self._explain_errors():
            entries = read_entries(self._connection, chosen)
        return tuple(entries.values())[-chosen.limit if chosen.limit else 0 :]

    def entry(self, name: str) -> Entry:
        """One run with its values, by its id, the beginning of it, or `last`. Raises UsageError for none or several."""
        with self._explain_errors():
            last = name == "last"
            matches = list(read_entries(self._connection, id_prefix=None if last else name).items())
            if name and matches and (last or len(matches) == 1):
                number, entry = matches[-1]
                return replace(entry, values=read_values(self._connection, number))
        if matches and name:
            raise UsageError(
                f"{name!r} is the beginning of {len(matches)} runs",
                "give more of its id: profkit history list",
            )
        raise self._no_run(name)

    def walk(self, workload: str | None = None) -> Iterator[Entry]:
        """Every run with its values, oldest first, one at a time: a year of them need not fit into memory."""
        with self._explain_errors():
            for number, entry in read_entries(self._connection, HistoryFilter(workload)).items():
                yield replace(entry, values=read_values(self._connection, number))

    def series(self, chosen: HistoryFilter = ALL, *, samples: bool = True) -> tuple[Series, ...]:
        """All series that match, each oldest first; points of the same second in the order in which they were added.

        Without `samples` the points have no `groups`.
        """
        with self._explain_errors():
            entries = read_entries(self._connection, chosen)
            return read_series(self._connection, entries, chosen, samples=samples)

    def confirmed(self, workload: str | None = None) -> dict[SeriesKey, dict[str, str]]:
        """The results of re-runs: of each series, the word by the id of the run."""
        with self._explain_errors():
            return read_decisions(self._connection, workload)

    def accepted(self, workload: str | None = None) -> tuple[AcceptedChange, ...]:
        """The accepted changes, oldest first."""
        with self._explain_errors():
            where, given = where_clause(workload=workload)
            rows = self._connection.execute(
                f"SELECT workload, metric, since, word, by FROM accepted {where} ORDER BY since, number",
                given,
            )
            return tuple(accepted_of(row) for row in rows)

    # ------------------------------------------------------------ inside

    def _no_run(self, name: str) -> UsageError:
        return UsageError(f"{self.path} holds no run {name!r}", "profkit history list")

    def _update(self, entry: str, **columns: Any) -> None:
        """Change some columns of a run."""
        assignments = ", ".join(f"{name} = ?" for name in columns)
        with self._transaction() as sql:
            given = (*columns.values(), entry)
            if sql.execute(f"UPDATE entry SET {assignments} WHERE id = ?", given).rowcount == 0:
                raise self._no_run(entry)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. The lock is taken first, so that no writer finds halfway that another one was faster."""
        with self._explain_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """SQLite's errors, and rows that are not what was written, as errors that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise explain_sqlite_error(self.path, error) from error
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error) as error:
            raise damage_error(self.path, f"a row cannot be read ({error})") from error
