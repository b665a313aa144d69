"""A nightly's file beside a throw-away repository, and a past for its history."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp
from pathlib import Path
from typing import Any

from profkit.core.codec import from_plain_data
from profkit.core.types import Scope, WorkloadOutcome
from profkit.profiling.plain_run import OneRun, RunOptions
from profkit.regression.history import open_history
from profkit.regression.paired.checkout import PRESENT, Version
from profkit.reporting.views.night_words import reason_of, workload_notes, workload_reason
from tests.cli_runner import profkit
from tests.git_repository import commit as commit
from tests.git_repository import git as git
from tests.git_repository import repository as repository
from tests.spoken import sentences


def night(place: Path, id: str, metric: str = "time.median") -> tuple[int, dict[str, Any], dict[str, Any]]:
    """One night of one workload: its exit code, the workload, and what became of the metric."""
    words = ("nightly", "night.yaml", "--format", "json", "--quiet", "--night", id)
    said = profkit(*words, cwd=place, process=False)
    assert said.out, said.err
    assert sentences(said.json()) == []
    (workload,) = said.json()["workloads"]
    return said.code, workload, next((m for m in workload["metrics"] if m["metric"] == metric), {})


def told(workload: dict[str, Any], metric: str | None = None) -> str:
    """The sentence that reports have on a workload of night.json, or on one of its metrics."""
    one = from_plain_data(WorkloadOutcome, workload)
    if metric is None:
        return workload_reason(one)
    return reason_of(next(m for m in one.metrics if m.metric == metric), one.pairs)


def notes_of(workload: dict[str, Any]) -> list[str]:
    """The notes that reports have on a workload of night.json."""
    return workload_notes(from_plain_data(WorkloadOutcome, workload))


def aged(history: Path, nights: int = 10) -> None:
    """Give every run of a history as many quiet nights before it, alike to ±0.5 %: a past without its hours."""
    with open_history(history) as store:
        for bare in store.entries():
            entry = store.entry(bare.id)
            for number in range(nights):
                factor = 1 + 0.005 * ((number % 3) - 1)
                values = tuple(replace(v, value=v.value * factor, low=None, high=None) for v in entry.values)
                started = datetime.fromisoformat(entry.started) - timedelta(days=nights - number)
                store.add(
                    replace(entry, id=f"a{number}-{entry.id}", started=started.isoformat(), values=values)
                )


class Profiled(list[str]):
    """The names of the workloads that were profiled, in order; `more` times as many instructions are counted."""

    more = 1.0


class InTurn:
    """Runs in pairs without a process: 10 us times the number in `size.txt` of the version's folder, within `sigma`."""

    def __init__(self) -> None:
        self.sigma = 0.002
        self.swing = (
            0.0  # every second run of tonight's version is longer by e^swing, every other one shorter
        )
        self.runs: list[str] = []  # the folders they ran in
        self.interrupt_at: int | None = None  # the run that a Ctrl-C hits
        self.lasts = 0.0  # seconds of the clock for one run
        self._draw = random.Random(1)

    def run_once(self, version: Version, options: RunOptions, *_: object) -> OneRun:
        """As `one_run.run_once`."""
        if len(self.runs) == self.interrupt_at:
            self.interrupt_at = None
            raise KeyboardInterrupt
        self.runs.append(str(version.cwd))
        time.sleep(self.lasts)
        number = self.runs.count(str(version.cwd))
        swing = self.swing * (-1 if number % 2 else 1) if version.name.startswith(PRESENT) else 0.0
        size = int((version.cwd / "size.txt").read_text())
        seconds = 1e-5 * size * exp(swing) * self._draw.lognormvariate(0, self.sigma)
        return OneRun({Scope("region", "work"): seconds}, 1.0, None, None, True)
