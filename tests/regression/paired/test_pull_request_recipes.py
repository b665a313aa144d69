"""The recipes for pull and merge requests: their shell runs for real in a throw-away repository, as a forge runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
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
# `gh` as far as the recipe needs it: it has a forge's comments in a file, and lists, makes or changes one.
GH = """#!{python}
import json, pathlib, sys
store = pathlib.Path("forge.json")
comments = json.loads(store.read_text()) if store.exists() else []
words = sys.argv[1:]
assert words[0] == "api", words
path = next(word for word in words if word.startswith("repos/"))
if "--method" not in words:
    assert path == "repos/o/r/issues/7/comments", path
    mark = "<!-- profkit compare -->"
    chosen = words[words.index("--jq") + 1]
    assert "startswith(\\"" + mark + "\\")" in chosen, words
    assert ".user.login == \\"github-actions[bot]\\"" in chosen, words
    for one in comments:
        if one["login"] == "github-actions[bot]" and one["body"].startswith(mark):
            print(one["id"])
else:
    name, _, value = words[words.index("--field") + 1].partition("=@")
    body = pathlib.Path(value).read_text()
    if words[words.index("--method") + 1] == "POST":
        comments.append({{"id": 100 + len(comments), "login": "github-actions[bot]", "body": body}})
    else:
        (one,) = [one for one in comments if path.endswith("/comments/" + str(one["id"]))]
        one["body"] = body
    store.write_text(json.dumps(comments))
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
    (bin / "gh").write_text(GH.format(python=sys.executable))
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


def test_the_comment_is_made_once_and_then_written_anew_and_nobody_elses_is_touched(checkout: Path) -> None:
    report = checkout / "profkit-report" / "report.md"
    report.parent.mkdir()
    others = [{"id": 1, "login": "somebody", "body": "<!-- profkit compare -->\nmine"}]
    (checkout / "forge.json").write_text(json.dumps(others))
    line = step("tell", "Comment")["run"]
    for text in ('## first `x` $HOME "q"\n', "## second\n"):
        report.write_text(text)
        done = run(line, checkout, REPOSITORY="o/r", NUMBER="7")
        assert done.returncode == 0, done.stderr
    found = json.loads((checkout / "forge.json").read_text())
    assert [one["body"] for one in found] == [
        "<!-- profkit compare -->\nmine",
        "<!-- profkit compare -->\n## second\n",
    ]


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


def test_the_job_of_gitlab_runs_and_its_reports_are_there(checkout: Path) -> None:
    job = yaml.safe_load((CI / "gitlab-merge-request.yml").read_text())["profkit-compare"]
    assert job["variables"]["GIT_DEPTH"] == "0"
    line = quick(job["script"][-1])
    assert job["script"][0] == "./setup.sh"
    base = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD^1"], capture_output=True, text=True, check=True
    ).stdout.strip()
    done = run(line, checkout, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert done.returncode == 1, done.stderr
    for path in job["artifacts"]["reports"].values():
        assert (checkout / path).is_file()


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
def test_the_workflows_have_no_slip() -> None:
    subprocess.run(["actionlint", str(CI / "github-pull-request.yml")], check=True)
