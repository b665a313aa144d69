"""The workflows of profkit's own repository: the Pythons that they try, and what they ask of commits and releases."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from profkit.core.tables import load_yaml
from tests.conftest import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"


def test_every_python_that_is_promised_is_tried_on_linux_and_the_ends_on_a_mac() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    promised = re.findall(r"Python :: (3\.\d+)\"", settings)
    jobs = load_yaml(WORKFLOWS / "ci.yml")["jobs"]
    assert promised
    assert jobs["linux"]["strategy"]["matrix"]["python"] == promised
    assert jobs["mac"]["strategy"]["matrix"]["python"] == [promised[0], promised[-1]]
    assert f'requires-python = ">={promised[0]}"' in settings


def test_all_tests_are_tried_on_every_python_also_those_that_check_leaves_out() -> None:
    steps = load_yaml(WORKFLOWS / "ci.yml")["jobs"]["linux"]["steps"]
    assert [step["run"] for step in steps if "check.sh" in step.get("run", "")] == ["./check.sh --all"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_each_file_for_github_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.mark.parametrize(("length", "code"), [(72, 0), (73, 1)])
def test_a_subject_of_more_than_72_characters_is_named(tmp_path: Path, length: int, code: int) -> None:
    git(tmp_path, "init", "-q")
    for subject in ("first", "é" * length):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", subject)
    done = subprocess.run(
        [ROOT / "ci" / "subjects.sh", "HEAD~1..HEAD"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, "é" in done.stdout) == (code, bool(code))


def test_the_release_finds_the_version_and_its_heading(tmp_path: Path) -> None:
    """The step is run as it is: of another tag, and of a version that the changelog has not, it fails."""
    steps = load_yaml(WORKFLOWS / "release.yml")["jobs"]["build"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name", "").startswith("The tag is the version"))
    (tmp_path / "profkit").mkdir()
    (tmp_path / "profkit" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    for tag, heading, code in (
        ("v1.2.3", "## [1.2.3] - 2026-12-01", 0),
        ("v1.2.4", "## [1.2.3] - 2026-12-01", 1),
        ("v1.2.3", "## [Unreleased]", 1),
    ):
        (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env={"TAG": tag, "PATH": "/usr/bin:/bin"},
            capture_output=True,
        )
        assert done.returncode == code, (tag, heading)
