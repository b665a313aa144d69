"""The recipes of `ci/`: as far as they can be tried here, with the command of each run for real on a tiny night."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT

CI = ROOT / "ci"
TINY = """version: 1
defaults: {backend: cpu, passes: [timing], timing: 0.1, precision: 0.3}
workloads:
  - {name: tiny, command: [python, -c, pass]}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a nightly's file, and profkit where the recipes look for it."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "nightly.yaml").write_text(TINY)
    bin = tmp_path / ".venv" / "bin"
    bin.mkdir(parents=True)
    (bin / "profkit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m profkit "$@"\n')
    (bin / "profkit").chmod(0o755)
    return tmp_path


def run(line: str, repository: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=repository,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def nights(repository: Path) -> list[str]:
    return sorted(path.name for path in (repository / "reports" / "nights").iterdir())


def held(done: subprocess.CompletedProcess[str], repository: Path) -> None:
    assert done.returncode == 0, done.stderr
    assert "1 NEW" in done.stdout
    assert len(nights(repository)) == 1


def test_the_workflow_of_github_is_one_and_its_command_runs(repository: Path, tmp_path: Path) -> None:
    flow = yaml.safe_load((CI / "github-nightly.yml").read_text())
    job = flow["jobs"]["nightly"]
    assert set(flow) == {"name", True, "concurrency", "permissions", "jobs"}  # YAML 1.1 reads `on` as true
    assert job["runs-on"][0] == "self-hosted"
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    (step,) = [one for one in job["steps"] if one.get("name") == "Night"]
    summary = tmp_path / "summary.md"
    done = run(
        step["run"].replace("${{ github.run_id }}", "4711"),
        repository,
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=str(summary),
    )
    held(done, repository)
    assert nights(repository) == ["4711"]
    assert "nightly: night 4711" in summary.read_text().splitlines()[0]
    kept = job["steps"][-1]["with"]["path"].splitlines()
    names = {Path(path).name for path in kept}
    assert names <= {path.name for path in (repository / "reports" / "nights" / "4711").iterdir()}
