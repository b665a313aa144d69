"""One token in each place where a program may have one; nothing that leaves the machine has it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profkit.core.run_folder import read_run
from profkit.fronts import answers
from profkit.profiling.api import load
from profkit.runtime.passes.shown_command import MASK
from tests.cli_runner import Said, profkit

# Where each stands; by their letters they are the same form, so that a file with one of them says which it was.
PLACES = ("argument", "variable", "stdout", "stderr", "exception", "file", "function", "region")


def token(place: str) -> str:
    return "gh" + "p_" + f"{place}a1B2c3D4e5F6g7H8i9J0k1L2m3N4"[:36].ljust(36, "Q")


MODULE = """
def {function}(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
"""
PROGRAM = """
import os, sys
import profkit
from {module} import {function}

print("it said", "{stdout}")
print("it complained", "{stderr}", file=sys.stderr)
os.environ["A_PLAIN_NAME"]
for _ in range(3):
    with profkit.region("{region}"):
        {function}(300_000)
if "fail" in sys.argv:
    raise RuntimeError("cannot log in with {exception}")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    named = {place: token(place) for place in PLACES}
    (tmp_path / f"{named['file']}.py").write_text(MODULE.format(**named))
    (tmp_path / "app.py").write_text(PROGRAM.format(module=named["file"], **named))
    return tmp_path


def profiled(project: Path, *words: str) -> tuple[Path, Said]:
    line = (
        "profile",
        "--backend",
        "cpu",
        "--passes",
        "timing,cprofile,stacks,tracemalloc",
        "--sampling",
        "0.2",
    )
    program = (sys.executable, "app.py", "--note", token("argument"), *words)
    said = profkit(
        *line, "--precision", "0.5", "--output", "out", "--", *program,
        cwd=project, env={"A_PLAIN_NAME": token("variable")}, process=True,
    )  # fmt: skip
    (folder,) = (project / "out").iterdir()
    return folder.rename(project / ("failed" if words else "run")), said


def shown_of(project: Path, *runs: str) -> list[tuple[str, str]]:
    """What each command prints of the runs, and every file that it leaves to be given away."""
    calls = [
        (verb, *runs, "--format", form)
        for verb in ("summarize",)
        for form in ("terminal", "markdown", "json")
    ]
    calls += [
        ("compare", runs[0], runs[-1], "--force", "--format", form)
        for form in ("terminal", "markdown", "json")
    ]
    calls += [("compare", runs[0], runs[-1], "--force", "--output", "files")]
    calls += [
        ("history", "add", *runs),
        ("history", "list", "--format", "json"),
        ("history", "show", "--format", "json"),
    ]
    calls += [("history", "show"), ("history", "trend", "*:*"), ("history", "site", "--to", "site")]
    for run in dict.fromkeys(runs):
        calls += [
            ("report", run, "--format", form) for form in ("terminal", "markdown", "html", "json", "junit")
        ]
        calls += [("check", run, "--format", form) for form in ("terminal", "markdown", "json")]
        calls += [("scrub", run, "--output", f"{run}-copy", "--format", "json")]
    shown = []
    for words in calls:
        said = profkit(*words, cwd=project, env={"GITHUB_ACTIONS": "true"})
        assert said.code in (0, 1, 4, 5) or "the history holds nothing" in said.err, (words, said.err)
        shown += [(" ".join(words), said.out + said.err)]
    given = [project / name for name in ("files", "site", *(f"{run}-copy" for run in runs))]
    given += [project / run / page for run in runs for page in ("report.md", "report.html")]
    files = [
        path
        for place in given
        for path in ([place] if place.is_file() else place.rglob("*"))
        if path.is_file()
    ]
    shown += [(str(path), path.read_text(errors="replace")) for path in files]
    shown += [(f"mcp {run}", answers.text_of(answers.of_run(load(project / run), run, part)))
              for run in runs for part in (None, *answers.PARTS)]  # fmt: skip
    return shown


def found_in(shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Which token stands in which output, whole or cut."""
    return [(name, place) for name, text in shown for place in PLACES if token(place)[:16] in text]


@pytest.mark.thorough
def test_no_token_of_a_program_is_in_anything_that_leaves_the_machine(project: Path) -> None:
    run, said = profiled(project)
    assert said.code == 0, said.err
    assert run.name == "run"
    shown = [("profile", said.out + said.err), *shown_of(project, "run", "run")]
    assert found_in(shown) == []
    assert any(MASK in text for _, text in shown)
    assert token("function") in (run / "run.json").read_text()  # it was there to be found


def test_no_token_of_a_program_that_failed_is_on_the_screen_or_in_what_leaves_the_machine(
    project: Path,
) -> None:
    run, said = profiled(project, "fail")
    assert said.code == 4
    assert f"cannot log in with {MASK}" in said.err
    assert token("exception") in str(read_run(run).failure)
    assert found_in([("profile", said.out + said.err), *shown_of(project, "failed", "failed")]) == []
    printed = profkit("profile", "--backend", "cpu", "--passes", "timing", "--format", "json", "--output", "out", "--",
                      sys.executable, "app.py", "fail", cwd=project, env={"A_PLAIN_NAME": "x"})  # fmt: skip
    assert printed.json()["state"] == "failed"
    assert found_in([("json of a failure", printed.out + printed.err)]) == []
