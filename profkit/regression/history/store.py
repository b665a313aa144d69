"""The store of a history: add, mark, accept and prune runs, and read them back as entries and series."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from profkit.core.codec import without_collector
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.types import AcceptedChange, Entry, Series, Value
from profkit.regression.history.file import damage_error, default_path, explain_sqlite_error, open_file
from profkit.regression.history.rows import (
    ENTRY_COLUMNS,
    POINT_COLUMNS,
    SERIES_COLUMNS,
    accepted_of,
    accepted_row,
    entry_of_row,
    entry_row,
    features_of,
    features_text,
    microseconds,
    point_of,
    point_row,
    points_of,
    series_of,
    series_row,
    value_of,
)

_MACHINE = ENTRY_COLUMNS.split(", ").index("machine")
_WIDTH = SERIES_COLUMNS.count(",") + 1
_OF_SERIES = ", ".join(f"series.{column}" for column in SERIES_COLUMNS.split(", "))
_OF_POINT = ", ".join(f"point.{column}" for column in POINT_COLUMNS.split(", "))
_NAMED = (
    "series.workload = ? AND series.metric = ? AND series.name IS ? AND series.backend = ? AND series.scope = ?"
    " AND series.scope_id IS ?"
)


@dataclass(frozen=True)
class HistoryFilter:
    """Which runs and series are wanted; None: any.

    `since` <= started < `until` (ISO 8601). `limit`: only the last so many runs.
    """

    workload: str | None = None
    backend: str | None = None
    metric: str | None = None
    since: str | None = None
    until: str | None = None
    limit: int | None = None


ALL = HistoryFilter()


def open_history(path: Path | None = None, *, read_only: bool = False, make_new: bool = True) -> History:
    """Open the history at `path` (default: $PROFKIT_HISTORY, else reports/history.sqlite), as a context manager.

    A missing one is made, unless `read_only` or not `make_new`. Raises UsageError (2) if there is none,
    UnreadableReport (2) for a file that is broken, foreign or of another profkit, MachineError (3) if the system
    refuses.
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
        """Store a run with its values. Returns False, and changes nothing, if it is already there.

        Raises MachineError if it cannot be written; then nothing of it was.
        """
        with self._transaction() as sql:
            if sql.execute("SELECT 1 FROM entry WHERE id = ?", (entry.id,)).fetchone() is not None:
                return False
            rows = {series_row(value.key, value.unit, value.better): value for value in entry.values}
            machine = (entry.machine, features_text(entry.features))  # which this run shares with others
            sql.execute("INSERT OR IGNORE INTO machine (id, features) VALUES (?,?)", machine)
            row_of_machine = sql.execute("SELECT number FROM machine WHERE id = ? AND features = ?", machine)
            row = entry_row(entry, int(row_of_machine.fetchone()[0]))
            marks = ",".join("?" * len(row))
            number = sql.execute(f"INSERT INTO entry ({ENTRY_COLUMNS}) VALUES ({marks})", row).lastrowid
            assert number is not None
            for series, value in rows.items():
                point = point_row(_series_number(sql, series), number, value)
                sql.execute(f"INSERT INTO point ({POINT_COLUMNS}) VALUES (?,?,?,?,?,?,?)", point)
        return True

    def decide(self, entry: str, outcome: str | None) -> None:
        """Store the outcome of a run: `pass`, `regressed`, ... Raises UsageError if there is no such run."""
        with self._transaction() as sql:
            if sql.execute("UPDATE entry SET outcome = ? WHERE id = ?", (outcome, entry)).rowcount == 0:
                raise self._no_run(entry)

    def accept(self, accepted: AcceptedChange) -> bool:
        """Store a known change, which begins a segment. Returns False if the same one is already there."""
        row = accepted_row(accepted)
        with self._transaction() as sql:
            query = "SELECT 1 FROM accepted WHERE workload = ? AND metric IS ? AND since = ?"
            if sql.execute(query, row[:3]).fetchone() is not None:
                return False
            sql.execute("INSERT INTO accepted (workload, metric, since, word, by) VALUES (?,?,?,?,?)", row)
        return True

    def prune(self, entries: Iterable[str]) -> int:
        """Remove these runs with all their values, and return how many there were.

        The file shrinks by what they took.
        """
        taken = 0
        with self._transaction() as sql:
            for entry in entries:
                number = sql.execute("SELECT number FROM entry WHERE id = ?", (entry,)).fetchone()
                if number is not None:
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
        """Return the runs, oldest first, without their values."""
        with self._explain_errors():
            entries = self._entries(chosen)
        return tuple(entries.values())[-chosen.limit if chosen.limit else 0 :]

    def entry(self, name: str) -> Entry:
        """Return a run with its values, by its id, the beginning of it, or `last`.

        Raises UsageError for none or several.
        """
        with self._explain_errors():
            last = name == "last"
            matches = list(self._entries(id_prefix=None if last else name).items())
            if name and matches and (last or len(matches) == 1):
                number, entry = matches[-1]
                return replace(entry, values=self._values(number))
        if matches and name:
            raise UsageError(
                f"{name!r} is the beginning of {len(matches)} runs",
                "give more of its id: profkit history list",
            )
        raise self._no_run(name)

    def walk(self, workload: str | None = None) -> Iterator[Entry]:
        """Yield every run with its values, oldest first, one at a time: a year of them need not fit into memory."""
        with self._explain_errors():
            for number, entry in self._entries(HistoryFilter(workload)).items():
                yield replace(entry, values=self._values(number))

    def series(self, chosen: HistoryFilter = ALL) -> tuple[Series, ...]:
        """Return all series that match, each oldest first; within one second, in the order of insertion."""
        where, given = _where(workload=chosen.workload, backend=chosen.backend, metric=chosen.metric)
        matching = []
        with (
            self._explain_errors(),
            without_collector(),
        ):  # that takes a third of the time among 100,000 points
            entries = self._entries(chosen)
            order = {number: place for place, number in enumerate(entries)}
            patterns = {number: point_of(entry) for number, entry in entries.items()}
            rows = self._connection.execute(
                f"SELECT number, {SERIES_COLUMNS} FROM series {where}"
                " ORDER BY workload, backend, metric, scope, name, scope_id, unit",
                given,
            ).fetchall()
            for number, *columns in rows:
                query = f"SELECT {POINT_COLUMNS} FROM point WHERE series = ?"
                points = [row for row in self._connection.execute(query, (number,)) if row[1] in order]
                points.sort(key=lambda row: order[row[1]])
                if points:
                    values = tuple(points_of(patterns, points))
                    matching.append(Series(*series_of(tuple(columns)), values))
        return tuple(matching)

    def accepted(self, workload: str | None = None) -> tuple[AcceptedChange, ...]:
        """Return the accepted changes, oldest first."""
        with self._explain_errors():
            where, given = _where(workload=workload)
            rows = self._connection.execute(
                f"SELECT workload, metric, since, word, by FROM accepted {where} ORDER BY since, number",
                given,
            )
            return tuple(accepted_of(row) for row in rows)

    # ------------------------------------------------------------ inside

    def _entries(self, chosen: HistoryFilter = ALL, id_prefix: str | None = None) -> dict[int, Entry]:
        """Return the runs by their numbers, oldest first; within one second, in the order of insertion."""
        where, given = _where(workload=chosen.workload, backend=chosen.backend)
        conditions = [where or "WHERE 1"]
        for sign, text in ((">=", chosen.since), ("<", chosen.until)):
            if text is not None:
                conditions.append(f"started {sign} ?")
                given.append(microseconds(text))
        if id_prefix is not None:
            conditions.append("substr(id, 1, ?) = ?")
            given += [len(id_prefix), id_prefix]
        query = (
            f"SELECT number, {ENTRY_COLUMNS} FROM entry {' AND '.join(conditions)} ORDER BY started, number"
        )
        rows = self._connection.execute(query, given).fetchall()
        machine_rows = self._connection.execute("SELECT number, id, features FROM machine")
        machines = {number: (name, features_of(text)) for number, name, text in machine_rows}
        return {number: entry_of_row(tuple(row), *machines[row[_MACHINE]]) for number, *row in rows}

    def _values(self, number: int) -> tuple[Value, ...]:
        rows = self._connection.execute(
            f"SELECT {_OF_SERIES}, {_OF_POINT} FROM point"
            " JOIN series ON series.number = point.series WHERE point.entry = ? ORDER BY series.number",
            (number,),
        )
        return tuple(value_of(*series_of(row[:_WIDTH]), row[_WIDTH:]) for row in rows)

    def _no_run(self, name: str) -> UsageError:
        return UsageError(f"{self.path} holds no run {name!r}", "profkit history list")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as a transaction.

        The lock is taken first, so that no writer finds halfway that it was too late.
        """
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
        """Turn SQLite's errors, and rows that cannot be decoded, into faults that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise explain_sqlite_error(self.path, error) from error
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, UnreadableReport) as error:
            raise damage_error(self.path, f"a row cannot be read ({error})") from error


def _where(**columns: str | None) -> tuple[str, list[Any]]:
    """Return a WHERE clause for the columns that are not None, and their values."""
    wanted = {column: text for column, text in columns.items() if text is not None}
    if not wanted:
        return "", []
    return "WHERE " + " AND ".join(f"{column} = ?" for column in wanted), list(wanted.values())


def _series_number(sql: sqlite3.Connection, row: tuple[str | None, ...]) -> int:
    """Return the number of a series, which is inserted if there is none."""
    workload, backend, metric, scope, name, scope_id, unit, better = row
    existing = sql.execute(
        f"SELECT number, better FROM series WHERE {_NAMED} AND unit = ?",
        (workload, metric, name, backend, scope, scope_id, unit),
    ).fetchone()
    if existing is None:
        marks = ",".join("?" * len(row))
        return sql.execute(f"INSERT INTO series ({SERIES_COLUMNS}) VALUES ({marks})", row).lastrowid or 0
    if existing[1] != better:  # the catalogue of metrics has learned it since
        sql.execute("UPDATE series SET better = ? WHERE number = ?", (better, existing[0]))
    return int(existing[0])
