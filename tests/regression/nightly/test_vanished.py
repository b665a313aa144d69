"""A workload that had regressed and is no longer declared; modules of the repository in a night."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli_runner import profkit
from tests.git_repository import commit, git, repository

NIGHT = """version: 1
{answer}
defaults: {{backend: cpu, passes: [timing], timing: 0.1}}
paired: never
workloads:
  - {{name: now, command: [python, bench/work.py]{was}}}
"""


def past(place: Path, night: str, name: str, outcome: str, ratio: float | None) -> None:
    """A night of the past that says so of the workload."""
    change = {"ratio": ratio} if ratio is not None else None
    metric = {"outcome": outcome, "change": change}
    workload = {"name": name, "backend": "cpu", "outcome": outcome, "code": "paired", "message": ""}
    folder = place / "reports" / "nights" / night
    folder.mkdir(parents=True)
    (folder / "night.json").write_text(json.dumps({"workloads": [{**workload, "metrics": [metric]}]}))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository whose script imports a package at its root, and a module there that is called as one of Python's."""
    place = repository(tmp_path / "repo")
    (place / "bench").mkdir()
    (place / "bench" / "work.py").write_text("import own\n")
    (place / "own.py").write_text("")
    (place / "random.py").write_text("raise RuntimeError('this is not the random of Python')\n")
    git(place, "add", "-A")
    commit(place, 1)
    return place


@pytest.mark.parametrize(
    ("answer", "was", "code"),
    [("", "", 1), ("retired: [parse]", "", 0), ("", ", was: parse", 0)],
)
def test_a_workload_that_vanishes_while_it_is_worse_fails_each_night_until_it_is_answered(
    place: Path, answer: str, was: str, code: int
) -> None:
    past(place, "a", "parse", "regressed", 1.439)
    past(place, "b", "mended", "pass", None)
    (place / "night.yaml").write_text(NIGHT.format(answer=answer, was=was))
    for night in ("c", "d"):
        said = profkit("nightly", "night.yaml", "--format", "json", "--quiet", "--night", night, cwd=place)
        document = said.json()
        assert said.code == code, said.err
        assert [one["name"] for one in document["workloads"]] == ["parse", "now"][1 - code :]
        assert document["workloads"][-1]["ending"] == "done"  # `own` was found, and Python's own `random`
    text = (place / "reports" / "nights" / "d" / "report.md").read_text()
    assert ("it was worse by +43.9 % and is no longer declared" in text) == bool(code)
    assert ("retired: [parse]" in text) == bool(code)
