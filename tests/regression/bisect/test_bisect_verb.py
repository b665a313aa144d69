"""`profkit bisect` on real repositories, whose program uses so many seconds of a processor as a commit says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from profkit.core.errors import Silent
from profkit.core.types import BisectOptions
from profkit.profiling import time_limits
from profkit.regression.bisect import bisection
from tests import schemas
from tests.cli_runner import Said, profkit
from tests.git_repository import git
from tests.spoken import sentences

# Seconds of a processor: the same however busy the machine is.
PROGRAM = """
import time
import seconds
while time.process_time() < seconds.SECONDS:
    pass
"""
FAST, SLOW = 0.05, 0.075  # half as much again is told from the same after few pairs
COMMAND = ("--", "python", "work it.py")
# Twelve pairs fit also where each process takes ten times as long; where nobody else is about, no pair more is made.
SMALL = ("--budget", "60", "--floor", "15%", "--quiet")


def begin(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "work it.py").write_text(PROGRAM)
    (folder / ".gitignore").write_text("reports/\n__pycache__/\n")
    return folder


def commit(folder: Path, seconds: float, subject: str, text: str | None = None) -> str:
    (folder / "seconds.py").write_text(text if text is not None else f"SECONDS = {seconds}  # {subject}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def row(folder: Path, seconds: list[float], broken: tuple[int, ...] = ()) -> list[str]:
    begin(folder)
    return [
        commit(folder, value, f"change {n} <script>", "SECONDS = (\n" if n in broken else None)
        for n, value in enumerate(seconds)
    ]


def bisect(folder: Path, good: str, bad: str, *words: str, **named: Any) -> Said:
    return profkit("bisect", good, bad, *words, *COMMAND, cwd=folder, **named)


def state_in(folder: Path) -> Any:
    document = json.loads((folder / "bisect.json").read_text())
    assert sentences(document) == []
    return document


@pytest.mark.thorough
@pytest.mark.timed
def test_the_slow_one_of_twelve_commits_is_found_beside_one_that_does_not_run(tmp_path: Path) -> None:
    commits = row(tmp_path / "re po", [FAST] * 8 + [SLOW] * 5, broken=(6,))
    said = bisect(tmp_path / "re po", commits[0], "HEAD", *SMALL, "--format", "json")
    assert said.code == 0, said.err
    document = said.json()
    jsonschema.Draft202012Validator(schemas.bisect()).validate(document)
    search = document["search"]
    assert search["commits"] == commits[1:]
    assert search["state"] == "found"
    (part,) = search["parts"]
    assert (part["kind"], part["commits"], part["baseline"]) == ("one", [commits[8]], commits[7])
    assert part["probability"] >= 0.95
    assert part["word"] == "different"
    assert part["ratio"] == pytest.approx(1.5, abs=0.12)
    assert part["low"] <= part["ratio"] <= part["high"]
    assert list(search["skipped"]) == [commits[6]]
    assert "SyntaxError" in search["skipped"][commits[6]]["names"]["text"]
    assert search["steps"][0]["kind"] == "ends"
    assert (search["steps"][-1]["kind"], search["steps"][-1]["earlier"]) == ("confirm", commits[7])
    (folder,) = (tmp_path / "re po" / "reports").iterdir()
    assert state_in(folder) == document
    assert git(tmp_path / "re po", "worktree", "list").count("\n") == 0


@pytest.mark.thorough
@pytest.mark.timed
def test_two_commits_that_made_it_slower_are_both_named(tmp_path: Path) -> None:
    commits = row(tmp_path / "repo", [0.04, 0.04, 0.08, 0.08, 0.16, 0.16])
    said = bisect(tmp_path / "repo", commits[0], "HEAD", *SMALL, "--format", "json")
    assert said.code == 0, said.err
    search = said.json()["search"]
    assert search["state"] == "several"
    assert [part["commits"] for part in search["parts"] if part["kind"] == "one"] == [
        [commits[2]],
        [commits[4]],
    ]


def test_an_end_that_does_not_run_is_the_users(tmp_path: Path) -> None:
    commits = row(tmp_path / "repo", [FAST, FAST, FAST], broken=(2,))
    said = bisect(tmp_path / "repo", commits[0], "HEAD", *SMALL)
    assert (said.code, "SyntaxError" in said.err) == (4, True)


@pytest.mark.thorough
def test_a_commit_whose_program_never_ends_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(tmp_path / "repo")
    waits = "import time\ntime.sleep(3600)\n"
    commits = [
        commit(folder, value, f"change {n}", text)
        for n, (value, text) in enumerate([(FAST, None), (FAST, waits), (2 * SLOW, None), (2 * SLOW, None)])
    ]
    monkeypatch.setattr(time_limits, "REPEATED", (10.0, 1.0))
    monkeypatch.chdir(folder)
    document, _ = bisection.bisect(
        commits[0], commits[3], (sys.executable, "work it.py"), BisectOptions(12.0, 0.15, 1.0, None), Silent()
    )
    assert list(document.search.skipped) == [commits[1]]
    assert "time limit" in document.search.skipped[commits[1]].names["text"]
    assert {commits[1], commits[2]} <= set(document.search.parts[0].commits)


def test_ends_between_which_there_is_no_way_are_refused_with_a_line_that_helps(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    commits = row(folder, [FAST] * 3)
    git(folder, "checkout", "-q", "-b", "side", commits[0])
    side = commit(folder, FAST, "side")
    for good, bad, message in (
        (commits[0], commits[0], "same commit"),
        (commits[2], commits[0], "is older than GOOD"),
        (side, commits[2], f"profkit bisect {commits[0][:12]} {commits[2][:12]}"),
        ("nothing", commits[2], "there is no commit"),
        ("-x", commits[2], "No such option"),
    ):
        said = bisect(folder, good, bad)
        assert (said.code, message in said.err) == (2, True), said.err
    assert not (folder / "reports").exists()
    assert profkit("bisect", "HEAD", cwd=folder).code == 2
    outside = tmp_path / "outside"
    outside.mkdir()
    assert "is in no git repository" in bisect(outside, "a", "b").err


@pytest.mark.thorough
@pytest.mark.timed
def test_a_commit_whose_setup_fails_is_skipped_and_the_others_run_what_was_built(tmp_path: Path) -> None:
    folder = begin(tmp_path / "repo")
    (folder / ".gitignore").write_text("reports/\n__pycache__/\nbuilt.py\n")
    (folder / "work it.py").write_text(PROGRAM.replace("seconds", "built"))
    commits = [commit(folder, FAST if n < 5 else SLOW, f"change {n}") for n in range(8)]
    git(folder, "checkout", "-q", "-b", "broken", commits[3])
    git(folder, "rm", "-q", "seconds.py")
    git(folder, "commit", "-qm", "no file")
    broken = git(folder, "rev-parse", "HEAD")
    later = [commit(folder, FAST if n < 5 else SLOW, f"change {n}") for n in range(4, 8)]
    said = bisect(
        folder, commits[0], "broken", *SMALL, "--setup", "cp seconds.py built.py", "--format", "json",
        env={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert said.code == 0, said.err
    search = said.json()["search"]
    assert search["parts"][0]["commits"] == [later[1]]
    assert list(search["skipped"]) == [broken]
    assert not (folder / "built.py").exists()
    unbuilt = bisect(folder, broken, "broken", *SMALL, "--setup", "cp seconds.py built.py")
    assert (unbuilt.code, "the setup command" in unbuilt.err) == (2, True)
