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
from workplace import InTurn, Profiled

from profkit.core.run_folder import write_run
from profkit.core.types import RUN, Reading, Revision, Source
from profkit.regression import profile_process
from profkit.regression.history.rows import COUNTED
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.paired import interleave
from profkit.regression.paired.checkout import commit_of
from profkit.regression.paired.same_code import Loaded
from profkit.regression.profile_process import ProfileResult


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Profiled:
    """The names of the workloads that were profiled, in order.

    A run's time is 10 us times the number in `size.txt` of its folder (100 where there is none), within 0.5 %. Where
    there is a `count.txt`, it counts so many thousand instructions; of two numbers there one after the other. The first
    iteration has 2 % more, and `iterations.txt` says of how many the count is the mean. `lines.txt`: so many thousand
    cache lines from memory. `more`: the factor of a package that changed.
    """
    profiled = Profiled()

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
            revision=Revision(commit, False) if commit is not None else None,
        )
        if (spec.cwd / "count.txt").exists():
            counts = (spec.cwd / "count.txt").read_text().split()
            count = 1000.0 * int(counts[len(profiled) % len(counts)])
            count *= profiled.more
            reading = Reading("instructions", count, "count", "simulated", RUN, Source("valgrind"))
            timed = spec.passes is None or "timing" in spec.passes
            iterations = int((spec.cwd / "iterations.txt").read_text()) if timed else 1
            reading = replace(reading, value=count * (1 + 0.02 / iterations))
            run = replace(run, readings=(*run.readings, reading), facts={COUNTED: str(iterations)})
        if (spec.cwd / "lines.txt").exists():
            lines = (spec.cwd / "lines.txt").read_text().split()
            moved = 64_000.0 * int(lines[len(profiled) % len(lines)])
            reading = Reading("dram.bytes", moved, "B", "simulated", RUN, Source("valgrind"))
            run = replace(run, readings=(*run.readings, reading))
        folder = into / f"run-{len(profiled)}"
        folder.mkdir(parents=True)
        write_run(folder, run)
        profiled.append(spec.name)
        return ProfileResult("done", None, None, folder, run, 0.1)

    monkeypatch.setattr(profile_process, "profile_once", profile_once)
    return profiled


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> InTurn:
    """What `InTurn` says, in place of the processes of pairs."""
    turns = InTurn()
    monkeypatch.setattr(interleave, "run_once", turns.run_once)
    module = importlib.import_module("profkit.regression.paired.one_run")
    monkeypatch.setattr(module, "loaded_files", lambda *_: Loaded())
    return turns


@pytest.fixture(autouse=True)
def _no_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs count no instructions, which takes 25 times a run: `paired/test_counts.py` shows that they do."""
    monkeypatch.setattr("profkit.regression.paired.counts.instruction_counter", lambda: None)
