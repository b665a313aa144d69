"""Counts beside the base commit: one value of each decides, from the first night on, where it repeats."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from workplace import InTurn, commit, git, night, notes_of, repository, told

from profkit.regression.paired.counts import Counts

HEAD = """version: 1
defaults: {backend: cpu, timing: 0.1, precision: 0.3, budget: 120}
pairs: {budget: 10, sampling: 0.1}
workloads:
  - {name: work, command: [python, work.py]}
"""
# A program that is up at once, since it is simulated four times; what it does is in `size.txt`.
COUNTING = """read size < size.txt
i=0
while [ $i -lt $((size * 10)) ]; do i=$((i + 1)); done
"""


def counted(place: Path, counts: str, iterations: int = 16) -> str:
    (place / "count.txt").write_text(counts)
    (place / "iterations.txt").write_text(str(iterations))
    return commit(place, 100)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = repository(tmp_path / "repo")
    (place / "night.yaml").write_text(HEAD)
    return place


def test_four_per_cent_more_instructions_than_the_base_fail_the_first_night(
    place: Path, simulated: list[str], in_turn: InTurn
) -> None:
    good = counted(place, "1000")
    bad = counted(place, "1041")
    code, workload, instructions = night(place, "a", "instructions")
    assert (code, instructions["outcome"], instructions["code"]) == (1, "regressed", "exact")
    assert told(workload, "instructions") == f"+4.1 % compared with {good[:12]}, exact"
    assert (instructions["good_commit"], instructions["commit"]) == (good, bad)
    assert told(workload).startswith("instructions: ")
    assert len(simulated) == 4  # tonight's and the base's, and as it fails the night each once more
    code, workload, again = night(place, "b", "instructions")
    assert (code, again["since"]) == (1, instructions["since"])
    assert "since" in told(workload)


def test_what_stays_within_the_floor_passes_and_fewer_are_better(
    place: Path, simulated: list[str], in_turn: InTurn
) -> None:
    counted(place, "1000")
    counted(place, "1003")
    assert night(place, "a", "instructions")[2]["outcome"] == "pass"
    assert len(simulated) == 2
    counted(place, "1005")
    code, _, instructions = night(place, "b", "instructions")
    assert (code, instructions["outcome"], instructions["code"]) == (0, "pass", "exact")
    counted(place, "900")
    assert night(place, "c", "instructions")[2]["outcome"] == "improved"


def test_means_over_different_numbers_of_iterations_are_not_compared(
    place: Path, simulated: list[str], in_turn: InTurn
) -> None:
    counted(place, "1000", iterations=16)
    counted(place, "1041", iterations=4)
    code, workload, instructions = night(place, "a", "instructions")
    assert (code, instructions["code"]) == (0, "new")
    assert any("another number of iterations" in note for note in notes_of(workload))


def test_counts_that_differ_between_runs_of_one_commit_decide_nothing_and_are_noted(
    place: Path, simulated: list[str], in_turn: InTurn
) -> None:
    counted(place, "1000")
    counted(place, "1041 1049 1030 1020")
    code, workload, instructions = night(place, "a", "instructions")
    assert (code, instructions["outcome"]) == (0, "new")
    assert any("runs of one commit differ by" in note for note in notes_of(workload))


def test_a_base_that_cannot_be_counted_is_noted_and_the_past_decides(
    place: Path, simulated: list[str], in_turn: InTurn
) -> None:
    commit(place, 100)  # without a count
    counted(place, "1041")
    code, workload, instructions = night(place, "a", "instructions")
    assert (code, instructions["code"]) == (0, "new")
    assert any("instructions of the base are not known" in note for note in notes_of(workload))


@pytest.mark.parametrize(("factor", "outcome", "code"), [(1.1, "regressed", 1), (1.001, "pass", 0)])
def test_instructions_that_the_pairs_alone_counted_decide_the_night(
    place: Path,
    simulated: list[str],
    in_turn: InTurn,
    monkeypatch: pytest.MonkeyPatch,
    factor: float,
    outcome: str,
    code: int,
) -> None:
    """Of a program whose own profile counts none; the peak of Python's memory is said to be absent."""

    class Counted:
        def __init__(self, *_: object) -> None: ...

        def count(self, seconds: float) -> Counts:
            assert seconds > 0
            return Counts("a counter", ((1e9, factor * 1e9), (1e9, factor * 1e9)))

    monkeypatch.setattr("profkit.regression.paired.interleave.CountedRuns", Counted)
    commit(place, 100)
    commit(place, 100)
    found, workload, instructions = night(place, "a", "instructions")
    assert (found, instructions["outcome"], instructions["code"]) == (code, outcome, "exact")
    assert any("memory.python_peak was not measured: its pass, tracemalloc" in n for n in notes_of(workload))


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_valgrind_counts_both_commits_alike_but_for_what_changed(place: Path, in_turn: InTurn) -> None:
    """Fewer instructions: what fails a night is counted twice, which takes as long again and is shown above."""
    watched = ["dram.bytes", "cache.l1.miss_rate"]
    text = HEAD.replace("budget: 10,", "budget: 4,").replace("python, work.py", "sh, work.sh")
    (place / "night.yaml").write_text(
        text.replace("budget: 120", f"budget: 120, passes: [timing, counters], watches: {watched}")
    )
    (place / "work.sh").write_text(COUNTING)
    commit(place, 104)
    base = git(place, "rev-parse", "HEAD")
    commit(place, 100)
    code, workload, instructions = night(place, "a", "instructions")
    assert (code, instructions["outcome"], instructions["code"]) == (0, "improved", "exact"), workload[
        "pairs"
    ]

    assert instructions["change"]["ratio"] == pytest.approx(100 / 104, abs=0.005)
    assert base[:12] in told(workload, "instructions")
    codes = {m["metric"]: m["code"] for m in workload["metrics"]}
    assert {name: codes[name] for name in watched} == dict.fromkeys(watched, "exact")
