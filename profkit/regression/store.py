"""The story of a history: runs, reports of any profiler and results of other benchmark tools, into the store."""

from __future__ import annotations

import difflib
import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.run_folder import FILE_NAME, is_run, read_run
from profkit.core.types import Accepted, Entry
from profkit.profilers.files import read_head
from profkit.profilers.registry import is_folder_report, recognise_format
from profkit.profiling.summarize import examine
from profkit.regression.history import History, entry_of
from profkit.regression.history.entry import ID_LENGTH
from profkit.regression.history.imports import SOURCES, begins_like_json, import_file
from profkit.regression.history.times import iso, stamp


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
    if workload is not None and not workload.strip():
        raise UsageError("the name of the workload is empty", "-w NAME")
    if is_run(path):
        entry = entry_of(read_run(path), path=str(path))
    elif path.is_dir() and not is_folder_report(path):
        raise _folder(path)
    else:
        found = None if path.is_dir() else _imported(path, workload, commit)
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
        recognise_format(path)
    except UnreadableReport:
        try:
            entry = import_file(path, workload, commit)
        except UnreadableReport as fault:
            fault.fix = fault.fix or "let its tool write it again, and add that"
            raise
        if entry is None:
            raise UnreadableReport(
                f"{path} is JSON, but of no tool that is known: neither a profiler's report nor a result of"
                f" {', '.join(SOURCES)}",
                "profkit history add --help says what is read",
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
    return UnreadableReport(
        f"{path} is a folder, but no run's folder: there is no {FILE_NAME} in it",
        "profkit history add RUN, as `profkit profile` leaves it",
    )


def _content(path: Path) -> str:
    """The id of a report: made of its bytes, so that a copy under another name is the same.

    Of a folder, those of its files in the order of their names.
    """
    digest = hashlib.sha256()
    for one in sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]:
        with one.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:ID_LENGTH]


# ---------------------------------------------------------------- what is said of it afterwards


def accept_change(
    history: History,
    workload: str,
    word: str,
    *,
    metric: str | None = None,
    since: str | None = None,
    by: str | None = None,
) -> tuple[Accepted, bool]:
    """Store a known change, and whether it is new. `since`: a run's id or a time; None: the last run of the workload.

    Raises UsageError for a workload or a metric that the history does not hold, and without a word that says why.
    """
    runs = history.entries(workload=workload)
    if not runs:
        names = sorted({entry.workload for entry in history.entries()})
        near = difflib.get_close_matches(workload, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{history.path} holds no workload {workload!r}{hint}", "profkit history list")
    if not word.strip():
        raise UsageError("a change is accepted with a word that says why", '--because "WORDS"')
    if metric is not None and not history.series(workload=workload, metric=metric, limit=1, samples=False):
        raise UsageError(
            f"{workload} has no metric {metric!r} in {history.path}", "profkit history show last lists them"
        )
    change = Accepted(workload, _moment(runs, since), word.strip(), metric, by)
    return change, history.accept(change)


def to_prune(
    history: History, *, keep: int | None = None, older_than: str | None = None, workload: str | None = None
) -> tuple[Entry, ...]:
    """The runs that are meant, oldest first: of `workload`, before `older_than`, not among the last `keep` of theirs.

    Raises UsageError where nothing is said: no run is taken out by default.
    """
    if keep is None and older_than is None and workload is None:
        raise UsageError("say which runs are meant", "--keep N, --older-than WHEN or --workload NAME")
    kept: set[str] = set()
    if keep is not None:
        last: dict[tuple[str, str], list[str]] = {}
        for entry in history.entries():
            last.setdefault((entry.workload, entry.backend), []).append(entry.id)
        kept = {name for names in last.values() for name in names[-keep:]}
    meant = history.entries(workload=workload, until=older_than)
    return tuple(entry for entry in meant if entry.id not in kept)


def _moment(runs: Sequence[Entry], since: str | None) -> str:
    if since is None:
        return runs[-1].started
    found = [entry for entry in runs if entry.id.startswith(since)]
    return found[0].started if len(found) == 1 else iso(stamp(since))
