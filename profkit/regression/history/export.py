"""A history as tidy rows: one per value, with all that is known of its run; as CSV, or as Parquet through pyarrow."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.safe_folder import chown_to_sudo_user
from profkit.core.formatting import table_cell
from profkit.core.whole_files import replacing
from profkit.regression.history.file import is_history
from profkit.regression.history.store import History

COLUMNS = (
    "started", "workload", "backend", "metric", "scope", "name", "scope_id", "unit", "better", "value", "low", "high",
    "quality", "valid", "reason", "outcome", "commit", "dirty", "machine", "night", "state", "source", "entry",
    "samples",
)  # fmt: skip
FORMATS = (".parquet", ".csv")


def export_table(history: History, target: Path, *, workload: str | None = None, force: bool = False) -> int:
    """Write all values to `target` (.parquet or .csv), and say how many rows there are.

    Parquet holds the raw samples as a list (float32, seconds in their order, processes one after the other); CSV says
    how many there were. Raises UsageError where `target` is there already (without `force`) or of another kind,
    MachineError without pyarrow, or where it cannot be written; then nothing of it is left.
    """
    if target.suffix.lower() not in FORMATS:
        raise UsageError(
            f"{target} is neither .parquet nor .csv", "--to history.parquet, or --to history.csv"
        )
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", "--force, or another name")
    if target.is_file() and is_history(target):  # whatever --force means, it is not this
        raise UsageError(f"{target} is a history, and no table is written over it", "--to another name")
    write = _write_csv if target.suffix.lower() == ".csv" else _parquet_writer()
    try:
        with replacing(target) as temporary:
            count = write(tidy_rows(history, workload), temporary)
    except OSError as error:
        raise MachineError(
            f"cannot write {target}: {error.strerror or error}", "--to FILE elsewhere"
        ) from error
    chown_to_sudo_user(target)
    return count


def tidy_rows(history: History, workload: str | None = None) -> Iterator[dict[str, Any]]:
    """One row per value, in the order of COLUMNS; `samples` is the list of raw samples."""
    for entry in history.walk(workload):
        for value in entry.values:
            key = value.key
            columns = (
                entry.started, key.workload, key.backend, key.metric, key.scope.kind, key.scope.name, key.scope.id,
                value.unit, value.better, value.value, value.low, value.high, value.quality,
                entry.valid and value.doubt is None, entry.reason or value.doubt, entry.outcome, entry.commit,
                entry.dirty, entry.machine, entry.night, entry.state, entry.source, entry.id,
                [sample for group in value.groups for sample in group],
            )  # fmt: skip
            yield dict(zip(COLUMNS, columns, strict=True))


def _write_csv(rows: Iterator[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([_cell(value) for value in {**row, "samples": len(row["samples"])}.values()])
            count += 1
    return count


def _cell(value: object) -> object:
    """What is not known is an empty cell, true and false are words that every reader takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return table_cell(value)
    return "" if value is None else value


def _parquet_writer() -> Callable[[Iterator[dict[str, Any]], Path], int]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MachineError(
            "Parquet is written by pyarrow, which is not here",
            "pip install 'profkit[parquet]' (or pip install pyarrow); or --to FILE.csv, which needs nothing",
        ) from error
    kinds = {"value": "float64", "low": "float64", "high": "float64", "valid": "bool", "dirty": "bool"}
    fields = [(name, pyarrow.type_for_alias(kinds.get(name, "string"))) for name in COLUMNS[:-1]]
    schema = pyarrow.schema([*fields, ("samples", pyarrow.list_(pyarrow.float32()))])

    def write(rows: Iterator[dict[str, Any]], path: Path) -> int:
        count, pending = 0, list[dict[str, Any]]()
        with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            for row in rows:
                pending.append(row)
                count += 1
                if len(pending) == 10_000:
                    writer.write_table(pyarrow.Table.from_pylist(pending, schema=schema))
                    pending = []
            if pending:
                writer.write_table(pyarrow.Table.from_pylist(pending, schema=schema))
        return count

    return write
