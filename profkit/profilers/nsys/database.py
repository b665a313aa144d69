"""Opens an nsys SQLite file so that nothing in it can run, change or block: anybody may have written it.

Reads from it what describes the session: devices, versions, the command, and what went wrong while recording.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault, UnreadableReport
from profkit.core.files.regular import check_regular, connect, plain_tables
from profkit.core.process import without_wrapper
from profkit.core.types import Fact, Gpu
from profkit.profilers.files import reading
from profkit.profilers.nsys.command import NOT_IMPORTED, explain


def call_name(name: str) -> str:
    """Return a CUDA call's name as in a program, without the version that nsys adds.

    Of `cudaLaunchKernel_v7000` it is `cudaLaunchKernel`; the number is the version in which the call last
    changed.
    """
    stem, mark, version = name.rpartition("_v")
    return stem if mark and version.isdigit() and len(version) > 2 else name


LONGEST = 65536  # characters of a text; a demangled C++ name has some thousand
ROWS = 65536  # fetched at a time


class Database:
    """The tables of one file; views, virtual tables and generated columns are not visible."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables = plain_tables(connection)
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; none where there is no such table."""
        if table not in self.tables:
            return frozenset()
        if table not in self._columns:
            rows = self._connection.execute(f'PRAGMA table_info("{table}")').fetchall()
            self._columns[table] = frozenset(str(row[1]) for row in rows)
        return self._columns[table]

    def number(self, table: str, column: str, default: int = 0) -> str:
        """Return an SQL expression that is a whole number whatever the file has: NULL, text, or no such column."""
        return f'coalesce("{column}" | 0, {default})' if column in self.columns(table) else str(default)

    def text(self, table: str, column: str) -> str:
        """Return an SQL expression that is a text of at most LONGEST characters, or NULL."""
        return f'substr("{column}", 1, {LONGEST})' if column in self.columns(table) else "NULL"

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query that has few."""
        rows: list[tuple[Any, ...]] = self._connection.execute(query, tuple(parameters)).fetchall()
        return rows

    def blocks(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query that may have millions, in blocks."""
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(ROWS):
            yield rows

    def numbers(self, query: str) -> Iterator[Any]:
        """Yield the rows of a query as arrays (rows, columns) of 64-bit numbers.

        A row is gone before the next one is made: a block of tuples costs twice the time. Raises TypeError,
        ValueError or OverflowError for anything but such numbers.
        """
        import numpy as np

        cursor = self._connection.execute(query)
        width = len(cursor.description)
        while True:
            values = np.fromiter(chain.from_iterable(islice(cursor, ROWS)), dtype=np.int64)
            if not len(values):
                return
            yield values.reshape(-1, width)

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the texts of `StringIds` with these ids; missing ones are left out."""
        if not {"id", "value"} <= self.columns("StringIds"):
            return {}
        texts: dict[int, str] = {}
        for at in range(0, len(ids), 500):
            part = tuple(ids[at : at + 500])
            marks = ",".join("?" * len(part))
            query = f"SELECT id, {self.text('StringIds', 'value')} FROM StringIds WHERE id IN ({marks})"
            texts.update((number, text) for number, text in self.rows(query, part) if isinstance(text, str))
        return texts


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open the file at `path`, without changing it or waiting for a lock. Raises UnreadableReport."""
    connection: sqlite3.Connection | None = None
    try:
        with reading(path):
            if not path.exists():
                raise UnreadableReport(f"{path} does not exist")
            check_regular(path)
            connection = connect(path, _mode(path))
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("PRAGMA cache_size = -16384")  # KiB; a table is read once, from front to back
            yield Database(connection)
    except (sqlite3.Error, OverflowError) as error:
        raise UnreadableReport(_reason(path, error), _fix(error)) from error
    finally:
        if connection is not None:
            connection.close()


def _mode(path: Path) -> str:
    """Return the SQLite options to open the file with.

    `immutable` reads a locked file too, and where nothing can be written; but it does not see a WAL next to the
    file.
    """
    wal = path.with_name(path.name + "-wal")
    return "mode=ro" if wal.is_file() and wal.stat().st_size else "mode=ro&immutable=1"


def _reason(path: Path, error: Exception) -> str:
    message = str(error)
    if "not a database" in message:
        return f"{path} begins as a SQLite file, but is none"
    if any(word in message for word in ("malformed", "corrupt", "disk I/O", "database schema")):
        return f"{path} is damaged or cut short: {message}"
    return f"{path} cannot be read as an nsys export: {message}"


def _fix(error: Exception) -> str | None:
    if any(word in str(error) for word in ("malformed", "corrupt", "not a database", "disk I/O")):
        return "export it again: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep"
    return None


_MAX_ROWS = 10_000
_ERROR = 3  # ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_CAPTURED = "Profiling started due to cudaProfilerStart"


def read_gpus(database: Database, used: frozenset[int]) -> tuple[Gpu, ...]:
    """Return the devices that were used, or all where that is not known. Empty where the export has none."""
    table = "TARGET_INFO_GPU"
    if table not in database.tables:
        return ()
    number = database.number
    query = (
        f"SELECT {number(table, 'id')}, {database.text(table, 'name')}, {number(table, 'computeMajor', -1)}, "
        f"{number(table, 'computeMinor', -1)}, {database.text(table, 'chipName')}, {number(table, 'smCount')}, "
        f"{number(table, 'totalMemory')}, {number(table, 'l2CacheSize')}, {number(table, 'memoryBandwidth')}, "
        f"{number(table, 'clockRate')}, {number(table, 'cuDevice', -1)} FROM {table} LIMIT 1024"
    )
    environment = _environment(database)
    gpus = {}
    for row in database.rows(query):
        index, name, major, minor, chip, multiprocessors, memory, l2, bandwidth, clock, cuda = row
        index = cuda if cuda >= 0 else index
        gpus[index] = Gpu(
            name if isinstance(name, str) and name else "GPU",
            index,
            f"{major}.{minor}" if major >= 0 and minor >= 0 else None,
            chip if isinstance(chip, str) and chip else None,
            multiprocessors or None,
            memory or None,
            l2 or None,
            float(bandwidth) if bandwidth > 0 else None,
            _driver(environment),
            highest_clock=float(clock) if clock > 0 else None,
        )
    chosen = [gpus[index] for index in sorted(gpus) if index in used]
    return tuple(chosen or gpus.values())


def read_version(database: Database) -> str | None:
    """Return the nsys version that wrote the export; None for exports before 2021, which do not say."""
    return _export(database).get("EXPORT_PRODUCT_VERSION")


def read_facts(database: Database) -> dict[str, str]:
    """Return the facts that decide whether two traces may be compared. Nothing of the environment is read."""
    export, capture = _export(database), _pairs(database, "META_DATA_CAPTURE")
    environment = _environment(database)
    facts: dict[str, str] = {}
    if (command := _command(capture)) is not None:
        facts["command"] = command
    if driver := _driver(environment):
        facts["driver"] = driver
    if (cuda := environment.get("CudaDriverVersion", "")).isdigit():
        facts["CUDA"] = f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}"
    if schema := export.get("EXPORT_SCHEMA_VERSION"):
        facts["schema"] = schema
    if mode := next((v for k, v in capture.items() if k.endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE")), None):
        facts["CUDA graphs"] = f"traced as {'wholes' if mode == 'Graph' else 'nodes'}"
    return facts


def _export(database: Database) -> dict[str, str]:
    """Return the metadata of the export; before schema 3.2 (nsys 2023.2) its table had another name."""
    return _pairs(database, "META_DATA_EXPORT") or _pairs(database, "EXPORT_META_DATA")


def _driver(environment: Mapping[str, str]) -> str | None:
    """Return the driver's version as NVIDIA writes it: 525.105.17 for 52510517, without its points."""
    version = environment.get("NvDriverVersion")
    if version is not None and (parts := re.fullmatch(r"([3-9]\d\d)(\d\d\d?)??(\d\d)", version)):
        return ".".join(part for part in parts.groups() if part)
    return version or None


def was_captured(database: Database) -> bool:
    """Return whether only the time between cudaProfilerStart and Stop was recorded."""
    return any(_CAPTURED in text for _, text in _diagnostics(database))


def read_import_fault(database: Database) -> Fault | None:
    """Return why nsys lost its recording while it made the report; None where it did not."""
    faults = (explain(text, 0) for _, text in _diagnostics(database))
    return next((fault for fault in faults if fault is not None and fault.code == NOT_IMPORTED), None)


def read_complaints(database: Database) -> tuple[Fact, ...]:
    """Return what nsys itself marked as an error, in our words where it is known."""
    texts = []
    for severity, text in _diagnostics(database):
        fault = explain(text, 0)
        if severity == _ERROR or (fault is not None and fault.code == NOT_IMPORTED):
            texts.append(
                f"{fault.reason} (fix: {fault.fix})"
                if fault and fault.fix
                else fault.reason
                if fault
                else text
            )
    return tuple(Fact.of("says", program="nsys", said=text[:500]) for text in dict.fromkeys(texts))[:20]


def _diagnostics(database: Database) -> list[tuple[int, str]]:
    table = "DIAGNOSTIC_EVENT"
    if not {"severity", "text"} <= database.columns(table):
        return []
    fields = f"{database.number(table, 'severity')}, {database.text(table, 'text')}"
    query = f"SELECT {fields} FROM {table} LIMIT {_MAX_ROWS}"
    return [
        (severity, " ".join(text.split())) for severity, text in database.rows(query) if isinstance(text, str)
    ]


def _pairs(database: Database, table: str) -> dict[str, str]:
    """Read a table of names and values; of a name that comes twice, the first."""
    if not {"name", "value"} <= database.columns(table):
        return {}
    query = f"SELECT {database.text(table, 'name')}, {database.text(table, 'value')} FROM {table} LIMIT {_MAX_ROWS}"
    pairs: dict[str, str] = {}
    for name, value in database.rows(query):
        if isinstance(name, str) and isinstance(value, str):
            pairs.setdefault(name, value)
    return pairs


def _environment(database: Database) -> dict[str, str]:
    """Return the target's properties: versions and devices. Its environment variables are not read."""
    return _pairs(database, "TARGET_INFO_SYSTEM_ENV")


def _command(capture: Mapping[str, str]) -> str | None:
    program = capture.get("PROCESS_0:COMMAND")
    if program is None:
        return None
    prefix = "PROCESS_0:ARGUMENT_"
    numbered = sorted(
        (int(key.removeprefix(prefix)), value)
        for key, value in capture.items()
        if key.startswith(prefix) and key.removeprefix(prefix).isdigit()
    )
    return shlex.join(without_wrapper([program, *(value for _, value in numbered)]))
