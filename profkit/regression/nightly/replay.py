"""Runs that were recorded elsewhere, decided as if their nights were tonight: one after the other, oldest first.

For a CI that profiles on many machines and decides in one place, and for a year that is walked through in minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

from profkit.core.errors import Interrupted, ProfkitError, UsageError
from profkit.core.progress import Progress, Silent
from profkit.core.run_folder import FILE_NAME, clean_name, is_run, read_run
from profkit.core.signals import raise_on_signals
from profkit.core.types import Entry, Night
from profkit.regression.history import History, entry_of, open_history
from profkit.regression.nightly.config import NightConfig
from profkit.regression.nightly.session import (
    CALIBRATION_FOLDER,
    EXACT_FOLDER,
    PAIRS_FOLDER,
    NightSession,
    NightState,
    WorkloadState,
    nightly_lock,
    read_state,
    with_validity,
    write_state,
)
from profkit.regression.nightly.workflow import (
    NIGHTS,
    NightOptions,
    choose_workloads,
    decide_night,
    finish_night,
)
from profkit.regression.times import iso_time, microseconds

_NO_NIGHTS = {PAIRS_FOLDER, CALIBRATION_FOLDER, EXACT_FOLDER, "reruns"}  # the last one of older nights


@dataclass(frozen=True)
class RecordedRun:
    """One run that was found: where, what a history keeps of it, and how many seconds its passes took."""

    path: Path
    entry: Entry
    state: str
    failure: str | None
    seconds: float


def replay_nights(config: NightConfig, options: NightOptions, progress: Progress) -> tuple[list[Night], Path]:
    """Every night of these runs decided in turn; the nights, and the folder of the last one.

    A night is a UTC day of the runs, or the one that `options.night` names for all of them. Nothing is profiled, so
    nothing is confirmed in the same night: further nights decide. Of several runs of one workload in one night the
    last one counts, and all are stored. Raises UsageError where no run is found, Interrupted after a Ctrl-C.
    """
    specs = choose_workloads(config, options.only)
    recorded, troubles = find_runs(options.runs, progress)
    if not recorded:
        places = ", ".join(str(folder) for folder in options.runs)
        raise UsageError(
            f"no run was found in {places}" + (f" ({troubles[0]})" if troubles else ""),
            "--runs FOLDER, with run.json below it",
        )
    names = {w.name for w in config.workloads}
    undeclared = sorted({run.entry.workload for run in recorded} - names)
    notes = [
        *troubles,
        *(f"{name} is not declared in {config.path.name}: its runs were left out" for name in undeclared),
    ]
    if not any(run.entry.workload in names for run in recorded):
        raise UsageError(
            f"none of the {len(recorded)} runs is of a workload that {config.path.name} declares",
            f"workloads: [{{name: {undeclared[0]}}}]",
        )
    chosen = [run for run in recorded if run.entry.workload in {s.name for s in specs}]
    by_night: dict[str, list[RecordedRun]] = {}
    for run in sorted(chosen, key=lambda r: (r.entry.started, str(r.path))):
        by_night.setdefault(options.night or run.entry.started[:10], []).append(run)
    without = {} if options.night else _missing_days(list(by_night))
    nights: list[Night] = []
    folder = config.output
    with raise_on_signals(), nightly_lock(config.output), open_history(config.history) as history:
        for change in config.accepted:
            history.accept(change)
        for number, (id, runs) in enumerate(by_night.items(), 1):
            progress.begin(f"night {id}", f"{number} of {len(by_night)}")
            night_notes = [*without.get(id, ()), *(notes if number == len(by_night) else ())]
            try:
                night, folder = _replay_night(config, options, history, id, runs, night_notes)
            except KeyboardInterrupt:
                raise Interrupted(f"interrupted after {len(nights)} of {len(by_night)} nights") from None
            nights.append(night)
            progress.end(night.outcome if night.outcome == "pass" else f"{night.outcome}: {night.reason}")
    return nights, folder


def _missing_days(days: Sequence[str]) -> dict[str, list[str]]:
    """By the first day after it what is said of days without any run; nothing where most nights are not each day's."""
    dates = [date.fromisoformat(day) for day in days]
    notes = {}
    apart = [(after - before).days for before, after in pairwise(dates)]
    for day, last, days_on in zip(days[1:], dates, apart, strict=False):
        if days_on > 1 and 2 * apart.count(1) > len(apart):
            first, end = last + timedelta(days=1), last + timedelta(days=days_on - 1)
            when = f"of {first}" if first == end else f"from {first} to {end}"
            notes[day] = [f"there is no run {when}: that night is missing"]
    return notes


def find_runs(folders: Sequence[Path], progress: Progress) -> tuple[list[RecordedRun], list[str]]:
    """Every run below these folders, and what is wrong with those that cannot be read."""
    recorded: dict[str, RecordedRun] = {}
    troubles = []
    progress.begin("runs", "reading what was recorded")
    start = time.monotonic()
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"there is no folder {folder}", "--runs FOLDER")
        for path in _run_files(folder):
            progress.tick(time.monotonic() - start)
            try:
                document = read_run(path)
                where = path.parent if path.name == FILE_NAME else path
                entry = with_validity(entry_of(document, path=str(where.absolute())), document)
                entry = replace(
                    entry, started=iso_time(microseconds(entry.started))
                )  # in UTC: the order, and the day
            except ProfkitError as fault:
                message = fault.message
                troubles.append(message if str(path) in message else f"cannot take {path}: {message}")
                continue
            seconds = sum(done.seconds for done in document.passes if done.seconds is not None)
            recorded.setdefault(
                entry.id, RecordedRun(where, entry, document.state, document.failure, seconds)
            )
    progress.end(f"{len(recorded)} found" + (f", {len(troubles)} not readable" if troubles else ""))
    return list(recorded.values()), troubles


def _run_files(folder: Path) -> list[Path]:
    """The run documents below a folder, one that is given itself included; links are not followed."""
    if folder.is_file():
        return [folder]
    files: list[Path] = []
    for place, folders, names in os.walk(folder):
        if FILE_NAME in names:
            files.append(Path(place, FILE_NAME))
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - _NO_NIGHTS)
        candidates = [Path(place, name) for name in sorted(names) if name.endswith(".json")]
        files += [path for path in candidates if is_run(path)]
    return files


def _replay_night(
    config: NightConfig,
    options: NightOptions,
    history: History,
    id: str,
    runs: Sequence[RecordedRun],
    notes: Sequence[str],
) -> tuple[Night, Path]:
    """One night of recorded runs, stored, decided and reported."""
    name = clean_name(id)
    folder = (config.output / NIGHTS / name).absolute()
    commit = next((r.entry.commit for r in runs if r.entry.commit is not None), None)
    state = read_state(folder) or NightState(name, runs[0].entry.started, commit)
    for run in runs:
        entry = replace(run.entry, night=run.entry.night or name)
        history.add(entry)
        state = state.with_done(entry.workload, _state_of_run(run, entry))
    write_state(folder, state)
    session = NightSession(config, folder, state, history, Silent(), time.monotonic(), list(notes))
    specs = choose_workloads(config, options.only)
    night = decide_night(session, specs, interrupted=False, strict=options.strict)
    return finish_night(session, night, strict=options.strict), folder


def _state_of_run(run: RecordedRun, entry: Entry) -> WorkloadState:
    if run.state == "failed":
        return WorkloadState("workload-failed", run.failure or "the workload failed", entry=entry.id)
    if run.state != "complete":
        return WorkloadState("died", f"the run is {run.state}", entry=entry.id)
    return WorkloadState("done", entry=entry.id, seconds=run.seconds)


def worst_code(nights: Sequence[Night]) -> int:
    """The exit code of several nights: the gravest that any of them has."""
    order = (1, 4, 3, 5, 0)
    codes = {night.exit_code for night in nights}
    return next((code for code in order if code in codes), 0)
