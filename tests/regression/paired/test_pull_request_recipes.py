"""The recipes for pull and merge requests: their shell runs for real in a throw-away repository, as a forge runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from profkit.reporting.report_files import COMPARISON
from tests.conftest import ROOT
from tests.git_repository import ENVIRONMENT
from tests.regression.paired.suite_repository import repository

CI = ROOT / "ci"
SUITE = """version: 1
name: bench
workloads:
  - {name: slow, command: [python, slow.py]}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A pull request as it is checked out, the merge of `head` into `main`, and profkit where the recipes look."""
    folder = repository(tmp_path / "r", SUITE)
    commands = (("checkout", "-q", "main"), ("merge", "-q", "--no-ff", "-m", "merge", "head"))
    for words in commands:
        subprocess.run(["git", "-C", str(folder), *words], check=True, env={**os.environ, **ENVIRONMENT})
    bin = folder / ".venv" / "bin"
    bin.mkdir(parents=True)
    (bin / "profkit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m profkit "$@"\n')
    for path in bin.iterdir():
        path.chmod(0o755)
    return folder


def run(line: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", line],
        cwd=folder,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "PATH": f"{folder}/.venv/bin:{os.environ['PATH']}",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


def flow() -> dict[str, Any]:
    made = yaml.safe_load((CI / "github-pull-request.yml").read_text())
    assert isinstance(made, dict)
    return made


def step(job: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in flow()["jobs"][job]["steps"] if one.get("name") == name]
    assert isinstance(found, dict)
    return found


def quick(line: str) -> str:
    assert "--budget 120" in line
    return line.replace("--budget 120", "--budget 25 --no-cause")


def test_the_comparison_of_github_runs_on_the_merge_and_fills_the_folder_that_is_kept(
    checkout: Path, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    line = quick(step("compare", "Compare")["run"])
    done = run(line, checkout, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stderr
    kept = step("compare", "Keep the report")["with"]["path"]
    assert sorted(path.name for path in (checkout / kept).iterdir()) == sorted(COMPARISON)
    assert summary.read_text().startswith("## ✗ WORSE: slow: time.median +")
    assert re.search(r"^::error title=slow%3A worse::time\.median", done.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "ends", "warns"), [(0, 0, False), (1, 1, False), (4, 4, False), (5, 0, True)]
)
def test_what_is_not_decided_is_a_warning_and_no_red_job(
    checkout: Path, code: int, ends: int, warns: bool
) -> None:
    (checkout / ".venv" / "bin" / "profkit").write_text(f"#!/bin/sh\nexit {code}\n")
    done = run(step("compare", "Compare")["run"], checkout)
    assert done.returncode == ends
    assert ("::warning::" in done.stdout) is warns


def test_code_of_the_pull_request_has_no_token_that_writes_and_every_action_is_pinned() -> None:
    whole = flow()
    assert whole["permissions"] == {}
    assert whole["jobs"]["compare"]["permissions"] == {"contents": "read"}
    assert whole["jobs"]["compare"]["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert "head.repo.full_name == github.repository" in whole["jobs"]["tell"]["if"]
    writes = {name for name, right in whole["jobs"]["tell"]["permissions"].items() if right == "write"}
    assert writes == {"pull-requests"}
    told = whole["jobs"]["tell"]["steps"]
    assert not any("checkout" in one.get("uses", "") or one.get("run") == "profkit compare" for one in told)
    uses = [one["uses"] for job in whole["jobs"].values() for one in job["steps"] if "uses" in one]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) for name in uses)
    scripts = [one["run"] for job in whole["jobs"].values() for one in job["steps"] if "run" in one]
    assert not any("${{" in text for text in scripts)  # a name of a branch would be typed into the shell
