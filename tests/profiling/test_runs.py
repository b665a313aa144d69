"""A workload that fails is told in every pass, with exit code 4, unless its exit code was said to be none."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_runner import profkit, runs

from profkit.core.progress import Silent
from profkit.core.types import RunDocument
from profkit.profiling import collect
from profkit.profiling.profile import ProfileOptions, profile_workload

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


# ------------------------------------------------------------ test_runs_of_one_program

PROGRAM = "sum(range(100_000))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def profiled(folder: Path) -> RunDocument:
    command = (sys.executable, "program.py")
    options = ProfileOptions(
        command, backend="cpu", passes=("timing",), output=folder / "runs", precision=0.5, sampling=0.1
    )
    return profile_workload(options, Silent(), page=False)[0]


def test_each_unchanged_run_adds_a_trial_and_a_changed_program_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "lost_shares", lambda _: (0.0, 0.0))  # this machine may be busy just now
    first, second, third = (profiled(folder) for _ in range(3))
    assert (first.run_spread, second.run_spread) == (None, None)
    assert third.run_spread is not None
    assert third.run_spread.trials == 1  # the first two: a run knows what was known before it
    (folder / "program.py").write_text(PROGRAM * 2)
    changed = profiled(folder)
    assert changed.run_spread is not None
    assert changed.run_spread.trials == 2
    again = profiled(folder)
    assert again.run_spread is not None
    assert again.run_spread.trials == 2


def test_a_run_beside_others_teaches_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "lost_shares", lambda _: (0.0, 0.3))
    assert [profiled(folder).run_spread for _ in range(3)] == [None] * 3


def test_every_process_of_the_timing_says_what_others_took(folder: Path) -> None:
    document = profiled(folder)
    processes = [s for timing in document.timings for process in timing.processes for s in process.seconds]
    assert len(document.disturbances) == len(processes)
    for told in document.disturbances:
        assert told.seconds > 0
        assert told.cpu is not None
        if sys.platform == "linux":
            assert told.others is not None
            assert told.others >= 0
            assert told.waited is not None
