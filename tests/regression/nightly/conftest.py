"""A simulated profile for nights: what `profkit profile` would leave, without a process and without a clock."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from nights import document

from profkit.core.run_folder import write_run
from profkit.core.types import Revision, Scope
from profkit.regression import profile_process
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.paired import interleave
from profkit.regression.paired.checkout import commit_of
from profkit.regression.paired.one_run import OneRun, RunOptions
from profkit.regression.paired.version import Version
from profkit.regression.profile_process import ProfileResult


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the workloads that were profiled, in order.

    A run's time is 10 us times the number in `size.txt` of its folder (100 where there is none), within 0.5 %.
    """
    profiled: list[str] = []

    def profile_once(
        spec: WorkloadSpec, into: Path, tick: Callable[[float], None] | None = None
    ) -> ProfileResult:
        size = spec.cwd / "size.txt"
        noise = random.Random(len(profiled)).gauss(1, 0.002)
        seconds = 1e-5 * int(size.read_text() if size.exists() else 100) * noise
        commit = commit_of(spec.cwd)
        run = replace(
            document(spec.name, len(profiled), seconds),
            started=datetime.now(timezone.utc).isoformat(),
            revision=Revision(commit, "main", False) if commit is not None else None,
        )
        folder = into / f"run-{len(profiled)}"
        folder.mkdir(parents=True)
        write_run(folder, run)
        profiled.append(spec.name)
        return ProfileResult("done", "", None, folder, run, 0.1)

    monkeypatch.setattr(profile_process, "profile_once", profile_once)
    return profiled


class InTurn:
    """Runs in pairs without a process: 10 us times the number in `size.txt` of the version's folder, within `sigma`."""

    def __init__(self) -> None:
        self.sigma = 0.002
        self.runs: list[str] = []  # the folders they ran in
        self.interrupt_at: int | None = None  # the run that a Ctrl-C hits
        self._draw = random.Random(1)

    def run_once(self, version: Version, options: RunOptions, *_: object) -> OneRun:
        """As `one_run.run_once`."""
        if len(self.runs) == self.interrupt_at:
            self.interrupt_at = None
            raise KeyboardInterrupt
        self.runs.append(str(version.cwd))
        size = int((version.cwd / "size.txt").read_text())
        seconds = 1e-5 * size * self._draw.lognormvariate(0, self.sigma)
        return OneRun({Scope("region", "work"): seconds}, 1.0, None, None, True)


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> InTurn:
    """What `InTurn` says, in place of the processes of pairs."""
    turns = InTurn()
    monkeypatch.setattr(interleave, "run_once", turns.run_once)
    module = importlib.import_module("profkit.regression.paired.compare_versions")  # a function has its name
    monkeypatch.setattr(module, "loaded_files", lambda *_: frozenset())
    return turns
