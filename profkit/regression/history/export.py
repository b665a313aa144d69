"""A history as tidy rows: one per value, with all that is known of its run; as CSV or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
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


def export_table(history: History, target: Path, *, workload: str | None = None, force: bool = False) -> int:
    """Write all values to `target` (.csv or .json), and say how many rows there are.

    JSON, a list with an object on each line, holds the raw samples (processes one after the other); CSV says how many
    there were. Raises UsageError where `target` is there already (without `force`) or of another kind, MachineError
    where it cannot be written; then nothing of it is left.
    """
    write = {".csv": _write_csv, ".json": _write_json}.get(target.suffix.lower())
    if write is None:
        raise UsageError(f"{target} is neither .csv nor .json", "--to history.csv, or --to history.json")
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", "--force, or another name")
    if target.is_file() and is_history(target):  # whatever --force means, it is not this
        raise UsageError(f"{target} is a history, and no table is written over it", "--to another name")
    try:
        with replacing(target) as temporary:
            count = write(tidy_rows(history, workload), temporary)
    except OSError as error:
        raise MachineError(
            f"cannot write {target}: {error.strerror or error}", "--to FILE elsewhere"
        ) from error
    chown_to_sudo_user(target)
    return count


def tidy_rows(history: History, workload: str | None = None) -> Iterator[tuple[Any, ...]]:
    """One row per value, as COLUMNS; the last is the list of raw samples."""
    for entry in history.walk(workload):
        for value in entry.values:
            key = value.key
            yield (
                entry.started, key.workload, key.backend, key.metric, key.scope.kind, key.scope.name, key.scope.id,
                value.unit, value.better, value.value, value.low, value.high, value.quality,
                entry.valid and value.doubt is None, entry.reason or value.doubt, entry.outcome, entry.commit,
                entry.dirty, entry.machine, entry.night, entry.state, entry.source, entry.id,
                [sample for group in value.groups for sample in group],
            )  # fmt: skip


def _write_csv(rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for count, (*row, samples) in enumerate(rows, 1):  # noqa: B007
            writer.writerow([*map(_cell, row), len(samples)])
    return count


def _write_json(rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for count, row in enumerate(rows, 1):
            body = json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False, allow_nan=False)
            file.write(("[" if count == 1 else ",\n") + body)
        file.write("]\n" if count else "[]\n")
    return count


def _cell(value: object) -> object:
    """What is not known is an empty cell, true and false are words that every reader takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return table_cell(value)
    return "" if value is None else value
