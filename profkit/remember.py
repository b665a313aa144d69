"""The story of a history: runs, reports of any profiler and results of other benchmark tools, into the store."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.errors import ProfkitError, UnreadableReport
from profkit.examine import examine
from profkit.history import History, entry_of
from profkit.history.entry import ID_LENGTH
from profkit.history.imports import SOURCES, begins_like_json, import_file
from profkit.model import Entry
from profkit.run import FILE_NAME, is_run, read_run
from profkit.tools.formats import read_head, sniff


@dataclass(frozen=True)
class Remembered:
    """What became of one path: stored (`added`), there already, or not read (`fault`)."""

    path: Path
    entry: Entry | None = None
    added: bool = False
    fault: ProfkitError | None = None


def remember(
    history: History,
    paths: Sequence[Path],
    *,
    workload: str | None = None,
    commit: str | None = None,
    night: str | None = None,
    told: Callable[[Remembered], None] | None = None,
) -> tuple[Remembered, ...]:
    """Store each path, and say of each what became of it; one that cannot be read does not cost the others.

    `workload` and `commit` stand for what a file does not say, or says otherwise. `told` hears of each at once.
    Raises MachineError where the history cannot be written.
    """
    done = []
    for path in paths:
        try:
            entry = entry_at(path, workload=workload, commit=commit, night=night)
        except ProfkitError as fault:
            done.append(Remembered(path, fault=fault))
        else:
            done.append(Remembered(path, entry, history.add(entry)))
        if told is not None:
            told(done[-1])
    return tuple(done)


def entry_at(
    path: Path, *, workload: str | None = None, commit: str | None = None, night: str | None = None
) -> Entry:
    """What a history keeps of a run's folder, a run.json, a profiler's report or another tool's result.

    Told by content. Raises UnreadableReport (2) for what is none of these, and what `examine` raises for reports.
    """
    if is_run(path):
        entry = entry_of(read_run(path), path=str(path))
    elif path.is_dir():
        raise _folder(path)
    else:
        found = _imported(path, workload, commit)
        entry = found if found is not None else entry_of(examine(path), path=str(path), id=_content(path))
    entry = entry if workload is None else renamed(entry, workload)
    return replace(entry, commit=commit or entry.commit, night=night or entry.night)


def renamed(entry: Entry, workload: str) -> Entry:
    """The entry under another workload's name, its values too."""
    values = tuple(replace(value, key=replace(value.key, workload=workload)) for value in entry.values)
    return replace(entry, workload=workload, values=values)


def _imported(path: Path, workload: str | None, commit: str | None) -> Entry | None:
    """The entry of another benchmark tool's result; None where a profiler wrote the file."""
    read_head(path)  # says in words what is no file, or empty
    if not begins_like_json(path):
        return None
    try:
        sniff(path)
    except UnreadableReport:
        entry = import_file(path, workload, commit)
        if entry is None:
            raise UnreadableReport(
                f"{path} is JSON, but of no tool that is known: neither a profiler's report nor a result of"
                f" {', '.join(SOURCES)}"
            ) from None
        return entry
    return None


def _folder(path: Path) -> UnreadableReport:
    """Why a folder is not taken, and what in it might be meant."""
    name = shlex.quote(str(path))
    if next(path.glob(f"*/{FILE_NAME}"), None) is not None:
        return UnreadableReport(f"{path} is a folder of runs, not a run", f"profkit history add {name}/*/")
    if (path / "machine.json").is_file():
        return UnreadableReport(
            f"{path} is a folder of asv's results", f"profkit history add {name}/*-*.json"
        )
    return UnreadableReport(f"{path} is a folder, but no run's folder: there is no {FILE_NAME} in it")


def _content(path: Path) -> str:
    """The id of a report: made of its bytes, so that a copy under another name is the same."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()[:ID_LENGTH]
