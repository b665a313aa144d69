"""What goes on and on is ended, also where the user has set no limit, and the page comes without it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from profkit.core.run_folder import read_run
from profkit.core.types import PassPlan, RunDocument, Step
from profkit.profiling import time_limits
from profkit.profiling.time_limits import UNKNOWN_SECONDS, plain_time_limit, time_limit
from tests.cli_runner import Said, profkit
from tests.spoken import spoken, spoken_lines

DEAF = """
import os, signal, sys, time, tracemalloc
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
"""
# Python's own lock is kept all the time: nothing in the process can stop the instrument.
HELD = "import ctypes; ctypes.PyDLL(None).sleep(600)"
# tracemalloc waits for itself where another interpreter allocates: its lock is taken with the interpreter's own.
SUBINTERPRETER = """
import _xxsubinterpreters as interpreters
one = interpreters.create()
interpreters.run_string(one, "total = 0\\nfor k in range(300_000):\\n    total += k % 7\\n")
sum(range(1000))
"""


def profiled(folder: Path, code: str, *words: str) -> tuple[Said, RunDocument]:
    (folder / "made.py").write_text(code)
    words = ("profile", "--backend", "cpu", "--quiet", "--output", "runs", *words)
    said = profkit(*words, "--", sys.executable, "made.py", cwd=folder)
    (run,) = (folder / "runs").iterdir()
    return said, read_run(run)


def plan(cost: float, tool: str | None = None, limit: float | None = None, *, cut: bool = False) -> PassPlan:
    return PassPlan("tracemalloc", tool, (Step("one", ("true",), cut=cut),), cost=cost, limit=limit)


@pytest.mark.parametrize(
    ("planned", "depth", "plain", "asked", "seconds"),
    [
        (plan(2.5), "standard", 2.0, None, 30.0),
        (plan(1.5, "perf"), "standard", 2.0, None, 66.0),
        (plan(2.5), "full", 2.0, None, 800.0),
        (plan(2.5), "standard", None, None, UNKNOWN_SECONDS),
        (plan(2.5), "standard", 2.0, 5000.0, 5000.0),  # what the user says holds, more as well as less
        (plan(2.5), "standard", 2.0, 1.0, 1.0),
        (plan(2.5, "ncu", 40.0), "standard", 2.0, None, 40.0),
        (plan(2.5, "ncu", 40.0), "standard", 2.0, 500.0, 500.0),
        (plan(50.0, "valgrind", 20.0, cut=True), "standard", 2.0, 500.0, 20.0),  # its report stays in bounds
        (plan(50.0, "valgrind", 20.0, cut=True), "standard", 2.0, 5.0, 5.0),
    ],
)
def test_a_process_may_take_several_times_what_was_planned_or_what_the_user_says(
    planned: PassPlan, depth: str, plain: float | None, asked: float | None, seconds: float
) -> None:
    assert time_limit(planned, depth, plain, asked) == seconds  # type: ignore[arg-type]


def test_the_first_plain_run_takes_as_long_as_it_takes_and_later_ones_some_multiple_of_it() -> None:
    assert plain_time_limit(None, None, None) is None
    assert plain_time_limit(3.0, None, None) == 90.0
    assert plain_time_limit(3.0, 7.0, 5.0) == 5.0


@pytest.mark.thorough
def test_a_pass_that_never_ends_is_killed_and_the_page_says_what_would_give_it_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "PATIENCE", (1.0, 3.0))
    code = f"{DEAF}\nif tracemalloc.is_tracing():\n    {HELD}\n"
    begin = time.monotonic()
    said, document = profiled(tmp_path, code, "--passes", "timing,tracemalloc")
    assert time.monotonic() - begin < 90
    timing, memory = document.passes
    assert (said.code, document.state, timing.state, memory.state) == (0, "complete", "finished", "failed")
    assert spoken(memory.reason).startswith("tracemalloc took more than ")
    assert spoken(memory.reason).endswith(" s and was ended")
    assert (memory.fix or "").startswith("--timeout ")


@pytest.mark.thorough
@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="the module has another name, and tracemalloc no such fault"
)
def test_a_program_with_another_interpreter_below_tracemalloc_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "PATIENCE", (2.0, 3.0))
    said, document = profiled(tmp_path, SUBINTERPRETER, "--passes", "timing,tracemalloc")
    assert (said.code, document.state) == (0, "complete")
    if document.passes[1].state == "failed":
        assert "took more than" in spoken(document.passes[1].reason)


def test_a_pass_alone_has_a_limit_though_no_plain_run_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "UNKNOWN_SECONDS", 3.0)
    _, document = profiled(tmp_path, f"{DEAF}\ntime.sleep(600)\n", "--passes", "tracemalloc")
    assert [one.state for one in document.passes] == ["failed"]
    assert "took more than 3 s and was ended" in spoken(document.passes[0].reason)


@pytest.mark.thorough
def test_a_budget_ends_also_the_first_plain_run_of_a_program_that_no_signal_ends(tmp_path: Path) -> None:
    begin = time.monotonic()
    said, document = profiled(tmp_path, f"{DEAF}\ntime.sleep(600)\n", "--budget", "3")
    assert time.monotonic() - begin < 60
    assert (said.code, document.state) == (4, "failed")
    assert "ran past its time limit" in said.err
    assert "fix: --budget 6" in said.err


def test_a_further_plain_run_that_never_ends_is_not_counted_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "REPEATED", (1.0, 2.0))
    code = f"{DEAF}\nif os.path.exists('ran'):\n    time.sleep(600)\nopen('ran', 'w').close()\n"
    said, document = profiled(tmp_path, code, "--passes", "timing")
    assert said.code == 0
    assert len(document.timings[0].processes[0].seconds) == 1
    assert any("timing-2 took more than" in note for note in spoken_lines(document.notes))
