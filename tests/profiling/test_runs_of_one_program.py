"""Real runs of one program: each says what others took beside it, and teaches how far equal runs lie apart here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profkit.core.progress import Silent
from profkit.core.types import RunDocument
from profkit.profiling import collect
from profkit.profiling.profile import ProfileOptions, profile_workload

PROGRAM = "sum(range(100_000))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def profiled(folder: Path) -> RunDocument:
    command = (sys.executable, "program.py")
    options = ProfileOptions(
        command, backend="cpu", passes=("timing",), output=folder / "runs", precision=0.5, sampling=0.1
    )
    return profile_workload(options, Silent(), page=False)[0]


def test_each_unchanged_run_adds_a_trial_and_a_changed_program_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "lost_shares", lambda _: (0.0, 0.0))  # this machine may be busy just now
    first, second, third = (profiled(folder) for _ in range(3))
    assert (first.run_spread, second.run_spread) == (None, None)
    assert third.run_spread is not None
    assert third.run_spread.trials == 1  # the first two: a run knows what was known before it
    (folder / "program.py").write_text(PROGRAM * 2)
    changed = profiled(folder)
    assert changed.run_spread is not None
    assert changed.run_spread.trials == 2
    again = profiled(folder)
    assert again.run_spread is not None
    assert again.run_spread.trials == 2


def test_a_run_beside_others_teaches_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "lost_shares", lambda _: (0.0, 0.3))
    assert [profiled(folder).run_spread for _ in range(3)] == [None] * 3


def test_every_process_of_the_timing_says_what_others_took(folder: Path) -> None:
    document = profiled(folder)
    processes = [s for timing in document.timings for process in timing.processes for s in process.seconds]
    assert len(document.disturbances) == len(processes)
    for told in document.disturbances:
        assert told.seconds > 0
        assert told.cpu is not None
        if sys.platform == "linux":
            assert told.others is not None
            assert told.others >= 0
            assert told.waited is not None
