"""A simulated profile for nights: what `profkit profile` would leave, without a process and without a clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from nights import document

from profkit.core.run_folder import write_run
from profkit.core.types import Revision
from profkit.regression import profile_process
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.paired.checkout import commit_of
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
