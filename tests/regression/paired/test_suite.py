"""Several workloads between two versions: one report, one exit code, and a fault of one costs no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.types import ComparedEnding, ComparedWorkload
from profkit.regression.paired.suite import suite_exit_code, suite_outcome
from tests.git_repository import git
from tests.paired_documents import compared
from tests.regression.paired.suite_repository import compare, repository
from tests.spoken import sentences

DIFFERENT, SAME, OPEN = compared(0.12), compared(0.0, 0.001), compared(0.02, 0.02)
BETTER = compared(-0.12)


def of(*words: str) -> list[ComparedWorkload]:
    known = {"worse": DIFFERENT, "same": SAME, "open": OPEN, "better": BETTER}
    endings: dict[str, ComparedEnding] = {
        "failed": "failed", "machine": "machine", "refused": "refused", "new": "new", "elsewhere": "elsewhere",
    }  # fmt: skip
    return [
        ComparedWorkload(word, "compared", known[word])
        if word in known
        else ComparedWorkload(word, endings[word])
        for word in words
    ]


@pytest.mark.parametrize(
    ("words", "outcome", "code", "strict"),
    [
        (("same", "better", "new"), "improved", 0, 0),
        (("same", "open"), "same", 0, 5),
        (("open",), "ambiguous", 5, 5),
        (("open", "new"), "ambiguous", 5, 5),
        (("worse", "failed", "open"), "regressed", 1, 1),
        (("failed", "machine", "same"), "failed", 4, 4),
        (("machine", "refused", "same"), "refused", 3, 3),
        (("refused", "same"), "refused", 2, 2),
        (("new",), "new", 0, 0),
        (("elsewhere",), "ambiguous", 5, 5),
        ((), "ambiguous", 5, 5),
    ],
)
def test_the_gravest_workload_makes_the_outcome_and_one_open_one_of_several_stops_no_merge(
    words: tuple[str, ...], outcome: str, code: int, strict: int
) -> None:
    workloads = of(*words)
    assert suite_outcome(workloads) == outcome
    assert suite_exit_code(workloads, interrupted=False, strict=False) == code
    assert suite_exit_code(workloads, interrupted=False, strict=True) == strict
    assert suite_exit_code(workloads, interrupted=True, strict=False) == 130


@pytest.mark.thorough
def test_all_workloads_are_compared_and_each_ends_as_it_is(tmp_path: Path) -> None:
    """A real suite: one slower, one as before with its own variable, one that fails, one that is new, one elsewhere."""
    folder = repository(tmp_path / "a repository")
    said = compare(folder, "--suite", "nightly.yaml", "--base", "main", "--format", "json", "--output", "out")
    assert said.returncode == 1, said.stderr
    document = json.loads(said.stdout)
    assert sentences(document) == []
    assert (document["schema"], document["outcome"], document["exit_code"]) == (
        "profkit.comparisons/3",
        "regressed",
        1,
    )
    endings = {one["name"]: one["ending"] for one in document["workloads"]}
    assert endings == {
        "slow": "compared", "as 'before'": "compared", "broken": "failed", "fresh": "new", "far": "elsewhere",
    }  # fmt: skip
    assert [one["name"] for one in document["workloads"]][:2] == ["slow", "broken"]
    slow = document["workloads"][0]["comparison"]
    assert slow["changes"][0]["ratio"] > 1.2
    assert slow["changes"][0]["floor"] == pytest.approx(0.04)  # of the file
    assert document["workloads"][1]["reason"]["names"]["text"].endswith("no such thing")
    assert "workload 2 of 5" in said.stderr
    assert git(folder, "worktree", "list").count("\n") == 0


def test_a_base_that_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    said = compare(repository(tmp_path / "r"), "--suite", "nightly.yaml", "--base", "no such")
    assert said.returncode == 2
    assert "there is no commit 'no such'" in said.stderr
    assert "first runs" not in said.stderr
