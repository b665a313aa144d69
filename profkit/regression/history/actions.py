"""The actions of `profkit history`: add runs and reports; accept changes; prune; write a table."""

from __future__ import annotations

import csv
import hashlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core.errors import ProfkitError, UnreadableReport, UsageError, writing
from profkit.core.files.regular import open_regular
from profkit.core.files.safe_folder import chown_to_sudo_user, replacing
from profkit.core.formatting import table_cell
from profkit.core.run_folder import FILE_NAME, is_run, read_run
from profkit.core.types import AcceptedChange, Entry
from profkit.kernels.evaluation.document import is_evaluation
from profkit.profilers.registry import folder_format
from profkit.profiling.summarize import refuse_generation, summarize_report
from profkit.regression.history import History, HistoryFilter, entry_of
from profkit.regression.history.rows import ID_LENGTH, iso_time, microseconds
from profkit.reporting.facts import fact_text


@dataclass(frozen=True)
class AddResult:
    """The result for one path: stored (`added`), already there, or not read (`fault`)."""

    path: Path
    entry: Entry | None = None
    added: bool = False
    fault: ProfkitError | None = None


def add_paths(
    history: History,
    paths: Sequence[Path],
    report: Callable[[AddResult], None],
    workload: str | None = None,
    commit: str | None = None,
) -> tuple[AddResult, ...]:
    """Store each path; one that cannot be read does not stop the others. `report` is called after each.

    `workload` and `commit` override what a file says, or add what it does not. Raises MachineError if the history
    cannot be written.
    """
    results = []
    for path in paths:
        try:
            entry = entry_at(path, workload, commit)
        except ProfkitError as fault:
            results.append(AddResult(path, fault=fault))
        else:
            results.append(AddResult(path, entry, history.add(entry)))
        report(results[-1])
    return tuple(results)


def entry_at(path: Path, workload: str | None = None, commit: str | None = None) -> Entry:
    """Return the entry for a run's folder, a run.json, an evaluation or a profiler's report.

    The kind is recognized by the content. Raises UnreadableReport (2) for anything else, and what `examine`
    raises for reports.
    """
    if workload is not None and not workload.strip():
        raise UsageError("the name of the workload is empty", "-w NAME")
    refuse_generation(path)
    if is_run(path):
        entry = entry_of(read_run(path), path=str(path))
    elif is_evaluation(path):
        entry = entry_of(summarize_report(path), path=str(path))
    elif path.is_dir() and folder_format(path) is None:
        raise UnreadableReport(
            f"{path} is a folder, but no run's folder: there is no {FILE_NAME} in it",
            f"profkit history add {shlex.quote(str(path))}/*/   (its runs)",
        )
    else:
        entry = entry_of(summarize_report(path), path=str(path), id=_content_id(path))
    if workload is not None:
        values = tuple(replace(value, key=replace(value.key, workload=workload)) for value in entry.values)
        entry = replace(entry, workload=workload, values=values)
    return replace(entry, commit=commit or entry.commit)


def _content_id(path: Path) -> str:
    """Make the id of a report from its bytes, so that a copy under another name is the same.

    For a folder, from those of its files in the order of their names.
    """
    digest = hashlib.sha256()
    for part in sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]:
        with open_regular(part) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:ID_LENGTH]


def accept_change(
    history: History,
    workload: str,
    word: str,
    metric: str | None = None,
    since: str | None = None,
    by: str | None = None,
) -> tuple[AcceptedChange, bool]:
    """Store a known change, and return it with whether it is new.

    `since`: a run's id or a time; None: the last run of the workload. Raises UsageError for a workload or a
    metric that the history does not hold, and without a text that says why.
    """
    runs = history.entries(HistoryFilter(workload))
    if not runs:
        raise UsageError(f"{history.path} holds no workload {workload!r}", "profkit history list")
    if not word.strip():
        raise UsageError("say why the change is accepted", '--because "WORDS"')
    if metric is not None and not history.series(HistoryFilter(workload, metric=metric)):
        raise UsageError(
            f"{workload} has no metric {metric!r} in {history.path}", "profkit history show last lists them"
        )
    matches = runs[-1:] if since is None else [entry for entry in runs if entry.id.startswith(since)]
    begin = matches[0].started if len(matches) == 1 else iso_time(microseconds(since or ""))
    change = AcceptedChange(workload, begin, word.strip(), metric, by)
    return change, history.accept(change)


def entries_to_prune(
    history: History, keep: int | None, older_than: str | None, workload: str | None
) -> tuple[Entry, ...]:
    """Return the runs of `workload`, before `older_than` and not among the last `keep`, the oldest first.

    `keep` counts for each workload and backend. Raises UsageError if none of the three is given: no run is
    removed by default.
    """
    if keep is None and older_than is None and workload is None:
        raise UsageError("say which runs to remove", "--keep N, --older-than WHEN or --workload NAME")
    recent: set[str] = set()
    if keep is not None:
        last: dict[tuple[str, str], list[str]] = {}
        for entry in history.entries():
            last.setdefault((entry.workload, entry.backend), []).append(entry.id)
        recent = {name for names in last.values() for name in names[-keep:]}
    chosen = history.entries(HistoryFilter(workload, until=older_than))
    return tuple(entry for entry in chosen if entry.id not in recent)


# ---------------------------------------------------------------- a table

COLUMNS = (
    "started", "workload", "backend", "metric", "scope", "name", "scope_id", "unit", "better", "value", "low", "high",
    "quality", "valid", "reason", "outcome", "commit", "dirty", "machine", "night", "state", "source", "entry",
)  # fmt: skip


def export_table(history: History, target: Path, workload: str | None = None) -> int:
    """Write all values to `target` as CSV, and return the number of rows.

    Raises UsageError if `target` exists or is not a .csv, MachineError if it cannot be written; then nothing of
    it is left.
    """
    if target.suffix.lower() != ".csv":
        raise UsageError(f"{target} is no .csv", "--to history.csv")
    if target.exists():
        raise UsageError(f"{target} exists already", "--to another name")
    count = 0
    with (
        writing(target, "--to FILE elsewhere"),
        replacing(target) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in _rows(history, workload):
            writer.writerow(map(_cell, row))
            count += 1
    chown_to_sudo_user(target)
    return count


def _rows(history: History, workload: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield one row per value, as COLUMNS."""
    for entry in history.walk(workload):
        for value in entry.values:
            key = value.key
            yield (
                entry.started, key.workload, key.backend, key.metric, key.scope.kind, key.scope.name, key.scope.id,
                value.unit, value.better, value.value, value.low, value.high, value.quality,
                entry.valid and value.doubt is None, fact_text(entry.reason or value.doubt), entry.outcome,
                entry.commit, entry.dirty, entry.machine, entry.night, entry.state, entry.source, entry.id,
            )  # fmt: skip


def _cell(value: object) -> object:
    """Convert a value to a CSV cell: None is empty, and booleans are the words that every reader takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return table_cell(value)
    return "" if value is None else value
