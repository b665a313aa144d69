"""A workload that fails is told in every pass, with exit code 4, unless its exit code was said to be none."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_runner import profkit, runs

FAILS = "print('cannot open the data'); raise SystemExit(7)"
IN_PYTHON = (sys.executable, "-c", FAILS)
IN_SHELL = ("sh", "-c", "echo cannot open the data; exit 7")
PASSES = ("timing", "stacks", "cprofile", "tracemalloc", "trace", "counters")


@dataclass(frozen=True)
class OnePass:
    """The line of one pass; what fails under it, and the interpreter of a script: where valgrind counts, a shell."""

    line: tuple[str, ...]
    fails: tuple[str, ...]
    interpreter: str


@pytest.fixture(params=PASSES)
def one_pass(request: pytest.FixtureRequest, tmp_path: Path) -> OnePass:
    line = ("profile", "--backend", "cpu", "--passes", request.param, "--depth", "gate", "--quiet")
    plan = profkit(*line, "--plan", "--format", "json", "--", *IN_PYTHON, cwd=tmp_path).json()
    if all(planned["skipped"] for planned in plan["passes"]):
        pytest.skip(plan["passes"][0]["skipped"])
    if request.param == "counters":
        return OnePass(line, IN_SHELL, "sh")
    return OnePass(line, IN_PYTHON, sys.executable)


def test_a_failing_workload_is_exit_code_4_in_every_pass(tmp_path: Path, one_pass: OnePass) -> None:
    said = profkit(*one_pass.line, "--", *one_pass.fails, cwd=tmp_path)
    assert said.code == 4
    assert "the workload exited with 7" in said.err
    assert "cannot open the data" in said.err
    (run,) = runs(tmp_path / "reports")
    assert run["state"] == "failed"
    assert "exited with 7" in run["failure"]
    checked = profkit("check", next((tmp_path / "reports").iterdir()), cwd=tmp_path)
    assert checked.code == 4
    assert "exited with 7" in checked.out


def test_a_missing_script_is_told_with_what_its_interpreter_says(tmp_path: Path, one_pass: OnePass) -> None:
    said = profkit(*one_pass.line, "--", one_pass.interpreter, "absent.py", cwd=tmp_path)
    assert said.code == 4
    assert "absent.py" in said.err
    assert "No such file" in said.err


def test_an_accepted_exit_code_is_no_failure(tmp_path: Path, one_pass: OnePass) -> None:
    quick = ("--sampling", "0.1", "--precision", "0.5", "--accept-exit", "0,7")
    said = profkit(*one_pass.line, *quick, "--", *one_pass.fails, cwd=tmp_path)
    assert said.code == 0, said.err
    (run,) = runs(tmp_path / "reports")
    assert run["state"] == "complete"
    assert {result["state"] for result in run["passes"]} == {"finished"}


def test_a_pass_whose_workload_fails_after_it_ran_well_is_the_instruments(tmp_path: Path) -> None:
    once = "import sys, tracemalloc; sys.exit(3 if tracemalloc.is_tracing() else 0)"
    line = ("profile", "--passes", "cprofile,tracemalloc", "--quiet", "--")
    assert profkit(*line, sys.executable, "-c", once, cwd=tmp_path).code == 0
    states = {result["name"]: result["state"] for result in runs(tmp_path / "reports")[0]["passes"]}
    assert states == {"cprofile": "finished", "tracemalloc": "failed"}
