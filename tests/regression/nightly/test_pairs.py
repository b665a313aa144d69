"""Nights in pairs: which commit a night is held against, and what becomes of it from the first night on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from workplace import InTurn, commit, git, night, notes_of, repository, told

from profkit.core.types import SampleSet
from profkit.regression import profile_process
from profkit.regression.history import open_history
from profkit.regression.profile_process import ProfileResult
from tests.cli_runner import profkit

pytestmark = pytest.mark.usefixtures("simulated")
HEAD = """version: 1
defaults: {backend: cpu, passes: [timing], timing: 0.1, precision: 0.3, budget: 60}
"""


def place_of(folder: Path, more: str = "", size: int = 100, workload: str = "") -> Path:
    """A repository of one commit, with a nightly's file for it."""
    place = repository(folder / "repo", size)
    line = f"workloads:\n  - {{name: work, command: [python, work.py]{workload}}}\n"
    (place / "night.yaml").write_text(HEAD + more + line)
    return place


def base_of(time: dict[str, Any]) -> str:
    return str(time["good_commit"])


def test_a_first_night_finds_a_commit_that_is_a_fifth_slower_than_the_one_before(
    tmp_path: Path, in_turn: InTurn
) -> None:
    place = place_of(tmp_path)
    good = git(place, "rev-parse", "HEAD")
    bad = commit(place, 120)
    code, workload, time = night(place, "a")
    assert (code, workload["outcome"], time["code"]) == (1, "regressed", "paired")
    assert (time["commit"], base_of(time), time["nights"]) == (bad, good, 1)
    assert time["change"]["ratio"] == pytest.approx(1.2, abs=0.01)
    assert f"+{100 * (time['change']['ratio'] - 1):.1f} %" in told(workload, "time.median")
    assert git(place, "worktree", "list").count("\n") == 0
    assert len(in_turn.runs) >= 8


def test_the_next_commands_hold_the_command_without_its_secrets(tmp_path: Path, in_turn: InTurn) -> None:
    place = place_of(tmp_path)
    file = place / "night.yaml"
    file.write_text(file.read_text().replace("work.py]", "work.py, --token, x1y2z3-9c1e7f2b5a]"))
    commit(place, 120)
    code, workload, _ = night(place, "a")
    assert code == 1
    assert workload["in_pairs"]["command"][:3] == ["python", "work.py", "--token"]
    assert "9c1e7f2b5a" not in json.dumps(workload)


def test_a_regression_stands_against_the_same_commit_until_it_is_mended(
    tmp_path: Path, in_turn: InTurn
) -> None:
    place = place_of(tmp_path)
    good = git(place, "rev-parse", "HEAD")
    bad = commit(place, 120)
    first = night(place, "a")[2]
    code, workload, again = night(place, "b")
    assert (code, base_of(again), again["commit"], again["nights"]) == (1, good, bad, 2)
    assert again["since"] == first["since"]
    assert "since" in told(workload)
    (place / "other.txt").write_text("this change touches nothing")
    commit(place, 120)
    code, _, third = night(place, "c")
    assert (code, base_of(third), third["commit"], third["nights"]) == (1, good, bad, 3)
    mended = commit(place, 100)
    code, workload, time = night(place, "d")
    assert (code, workload["outcome"], base_of(time)) == (0, "pass", good)
    commit(place, 101)
    assert base_of(night(place, "e")[2]) == mended


def test_what_was_accepted_is_what_later_nights_are_held_against(tmp_path: Path, in_turn: InTurn) -> None:
    place = place_of(tmp_path)
    slower = commit(place, 120)
    assert night(place, "a")[0] == 1
    said = profkit(
        "history", "accept", "work", "--because", "checks its input", "--history", "reports/history.sqlite",
        cwd=place, process=False,
    )  # fmt: skip
    assert said.code == 0, said.err
    code, workload, _ = night(place, "b")
    assert (code, workload["outcome"], workload["code"]) == (0, "pass", "same-code")
    assert "nothing was committed" in told(workload)
    commit(place, 150)
    code, _, time = night(place, "c")
    assert (code, base_of(time)) == (1, slower)


@pytest.mark.parametrize(
    ("more", "says", "fix"),
    [
        ("baseline: v9\n", "does not have the commit v9", "git fetch origin v9"),
        ("pairs: {setup: [sh, -c, exit 3]}\nbaseline: v1\n", "setup command exited with 3", "setup.log"),
    ],
)
def test_a_night_whose_pairs_are_prevented_is_not_decided_and_says_why_first(
    tmp_path: Path, in_turn: InTurn, more: str, says: str, fix: str
) -> None:
    place = place_of(tmp_path, more)
    git(place, "tag", "v1")
    commit(place, 120)
    code, found, _ = night(place, "a")
    assert in_turn.runs == []
    assert (code, found["outcome"], found["code"]) == (0, "ambiguous", "not-compared")
    assert told(found).startswith("time.median of work: not compared: ")
    assert says in told(found)
    assert fix in found["fix"]
    said = profkit("nightly", "night.yaml", "--strict", "--quiet", "--night", "b", cwd=place, process=False)
    assert said.code == 5
    assert "not compared" in " ".join(said.out.splitlines()[0:2])


def slower_machine(monkeypatch: pytest.MonkeyPatch, factor: float, hot: bool = False) -> None:
    """From now on every profile is longer by `factor`, whatever the code."""
    quiet = profile_process.profile_once

    def profile_once(*words: Any) -> ProfileResult:
        done = quiet(*words)
        assert done.document is not None
        readings = tuple(replace(r, value=(r.value or 0) * factor) for r in done.document.readings)
        (timing,) = done.document.timings
        seconds = tuple(second * factor for second in timing.processes[0].seconds)
        samples = SampleSet(seconds, throttle_reasons=("thermal",) if hot else ())
        timings = (replace(timing, processes=(samples,)),)
        return replace(done, document=replace(done.document, readings=readings, timings=timings))

    monkeypatch.setattr(profile_process, "profile_once", profile_once)


@pytest.mark.parametrize(("size", "outcome", "code"), [(100, "pass", 0), (120, "regressed", 1)])
def test_pairs_decide_a_night_of_which_the_run_itself_was_throttled(
    tmp_path: Path, in_turn: InTurn, monkeypatch: pytest.MonkeyPatch, size: int, outcome: str, code: int
) -> None:
    place = place_of(tmp_path)
    assert night(place, "a")[0] == 0
    commit(place, size)
    slower_machine(monkeypatch, 1.5, hot=True)
    got, workload, time = night(place, "b")
    assert (got, workload["outcome"], time["code"]) == (code, outcome, "paired")
    assert "throttled" in notes_of(workload)[0]
    with open_history(place / "reports" / "history.sqlite") as history:
        assert not history.entries()[-1].valid  # and no later night is compared with its time
