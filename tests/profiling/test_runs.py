"""A workload that fails is told in every pass, with exit code 4, unless its exit code was said to be none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_runner import profkit, runs

from profkit.core.errors import Silent
from profkit.core.types import RunDocument
from profkit.profiling.profile import ProfileOptions, profile_workload

FAILS = "print('cannot open the data'); raise SystemExit(7)"
IN_PYTHON = (sys.executable, "-c", FAILS)
IN_SHELL = ("sh", "-c", "echo cannot open the data; exit 7")  # where valgrind counts
PASSES = ("timing", "stacks", "cprofile", "tracemalloc", "trace", "counters")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PASSES)
def test_a_failing_workload_is_exit_code_4_in_every_pass_unless_it_may_fail_so(
    tmp_path: Path, name: str
) -> None:
    line = ("profile", "--backend", "cpu", "--passes", name, "--depth", "gate", "--quiet")
    fails = IN_SHELL if name == "counters" else IN_PYTHON
    said = profkit(*line, "--", *fails, cwd=tmp_path)
    (run,) = runs(tmp_path / "reports")
    if run["passes"] and run["passes"][0]["state"] == "skipped":
        pytest.skip(run["passes"][0]["reason"])
    assert said.code == 4
    assert "the workload exited with 7" in said.err
    assert "cannot open the data" in said.err
    assert run["state"] == "failed"
    assert "exited with 7" in run["failure"]


def test_a_missing_script_is_told_with_what_its_interpreter_says(tmp_path: Path) -> None:
    line = ("profile", "--backend", "cpu", "--passes", "cprofile", "--quiet")
    said = profkit(*line, "--", sys.executable, "absent.py", cwd=tmp_path)
    assert said.code == 4
    assert "absent.py" in said.err
    assert "No such file" in said.err
    checked = profkit("check", next((tmp_path / "reports").iterdir()), cwd=tmp_path)
    assert checked.code == 4


def test_a_pass_whose_workload_fails_after_it_ran_well_is_the_instruments(tmp_path: Path) -> None:
    once = "import sys, tracemalloc; sys.exit(3 if tracemalloc.is_tracing() else 0)"
    line = ("profile", "--passes", "cprofile,tracemalloc", "--quiet", "--")
    assert profkit(*line, sys.executable, "-c", once, cwd=tmp_path).code == 0
    states = {result["name"]: result["state"] for result in runs(tmp_path / "reports")[0]["passes"]}
    assert states == {"cprofile": "finished", "tracemalloc": "failed"}


@pytest.mark.thorough
def test_a_program_with_a_profiler_of_its_own_is_told_so_and_is_not_at_fault(tmp_path: Path) -> None:
    """What CPython 3.12 and later say of a second profiler, by a program that looks for the first."""
    (tmp_path / "own.py").write_text(
        "import sys\nif sys.getprofile() is not None:\n"
        "    raise ValueError('Another profiling tool is already active')\nsum(range(10**6))\n"
    )
    line = ("profile", "--passes", "timing,cprofile", "--quiet", "--")
    assert profkit(*line, sys.executable, "own.py", cwd=tmp_path).code == 0
    passes = {one["name"]: one for one in runs(tmp_path / "reports")[0]["passes"]}
    assert passes["cprofile"]["state"] == "failed"
    assert "the program profiles itself" in str(passes["cprofile"]["reason"])
    assert passes["cprofile"]["fix"] == "run it without its own profiler"


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
