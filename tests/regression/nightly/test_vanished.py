"""A workload that had regressed and is no longer declared; modules of the repository in a night."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from profkit.core.types import Change, MetricOutcome, NightPairs, Sample, WorkloadOutcome
from profkit.core.types.history import PAIRED
from profkit.regression.nightly.judge import with_steps
from profkit.reporting.views.night_words import reason_of
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
    change = (
        {"change": {"ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01}} if ratio is not None else {}
    )
    metric = {"metric": "time.median", "outcome": outcome, "good_commit": "a" * 40, **change}
    workload = {"name": name, "backend": "cpu", "outcome": outcome, "code": "paired"}
    folder = place / "reports" / "nights" / night
    folder.mkdir(parents=True)
    document = {"commit": "b" * 40, "workloads": [{**workload, "metrics": [metric]}]}
    (folder / "night.json").write_text(json.dumps(document))


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


@pytest.mark.thorough
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


@pytest.mark.parametrize(
    ("ratio", "good", "step"),
    [(1.666, "a", 0.158), (1.45, "a", None), (1.666, "c", None)],  # the same as before; another base
)
def test_a_step_on_top_of_a_regression_that_stood_is_told_with_the_commit_before_it(
    tmp_path: Path, ratio: float, good: str, step: float | None
) -> None:
    past(tmp_path, "a", "parse", "regressed", 1.439)
    sample = Sample(1.0)
    change = Change(
        "time.median", "s", "lower", sample, sample, "different", "worse",
        ratio=ratio, low=ratio - 0.01, high=ratio + 0.01, floor=0.02,
    )  # fmt: skip
    metric = MetricOutcome("time.median", "regressed", PAIRED, change=change, good_commit=good * 40)
    workload = WorkloadOutcome("parse", "cpu", "regressed", PAIRED, metrics=(metric,))
    session = SimpleNamespace(folder=tmp_path / "reports" / "nights" / "b")
    (found,) = with_steps(session, workload).metrics  # type: ignore[arg-type]
    assert found.step == (pytest.approx(step, abs=0.001) if step is not None else None)
    told = reason_of(found, NightPairs("a" * 40))
    assert ("+15.8 % more since bbbbbbbbbbbb" in told) == (step is not None)
