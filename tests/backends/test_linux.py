"""The trace of a program on Linux: how often it is sampled, and in which run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.summaries.host import INTERPRETER
from profkit.backends import PlanState, RunContext
from profkit.backends.cpu.linux import RecordedStacks, SampledTrace, compiler_facts
from profkit.backends.passes import AllocationsPass, CallsPass, StacksPass, sampled_runs
from profkit.core.types import PassResult, Workload
from profkit.hardware.machine import read_machine
from profkit.profilers.perf.probe import PerfAbility

PERF = PerfAbility("/usr/bin/perf", "6.1", software_ok=True, record_ok=True)


@pytest.mark.parametrize(
    ("seconds", "marked", "depth", "frequency"),
    [
        (0.5, False, "standard", 997),
        (4.0, False, "standard", 625),  # net.py: 20,000 samples took longer than the program
        (600.0, False, "standard", 49),
        (600.0, True, "standard", 997),  # its region is short
        (600.0, False, "full", 997),
    ],
)
def test_a_long_program_is_sampled_less_often(tmp_path, seconds, marked, depth, frequency):
    workload = Workload(("./work",), str(tmp_path), "work")
    context = RunContext(workload, replace(read_machine(), cores=2), tmp_path, depth, None, 0.5, 1.0)
    (planned,) = SampledTrace(context, PERF, None, beside=False).plan(
        PlanState(marked, plain_seconds=seconds)
    )
    argv = planned.steps[0].argv
    assert argv[argv.index("-F") + 1] == str(frequency)


@pytest.mark.parametrize(
    ("seconds", "switches_ok", "python", "noted"),
    [
        (2.0, True, None, True),
        (2.0, False, None, False),  # the kernel's samples are not for this user
        (600.0, True, None, False),  # its records of switches could fill a disk
        (2.0, True, sys.executable, False),  # its own sampler says what it waits for
    ],
)
def test_where_a_compiled_program_waits_is_recorded_where_it_can_be_and_stays_small(
    tmp_path: Path, seconds: float, switches_ok: bool, python: str | None, noted: bool
) -> None:
    workload = Workload(("./work",), str(tmp_path), "work", python)
    context = RunContext(workload, read_machine(), tmp_path, "full", None, 0.5, 1.0)
    perf = replace(PERF, switches_ok=switches_ok)
    (planned,) = SampledTrace(context, perf, None, beside=False).plan(PlanState(False, plain_seconds=seconds))
    step = planned.steps[0]
    assert ("--switch-events" in step.argv) == noted
    assert any("--show-switch-events" in argv for argv in step.after) == noted


def test_perf_samples_the_run_of_the_stacks_and_no_run_of_its_own(tmp_path):
    workload = Workload((sys.executable, "work.py"), str(tmp_path), "work", sys.executable)
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    trace = SampledTrace(context, PERF, (3, 11), beside=True)
    stacks, state = RecordedStacks(context, trace), PlanState(False, plain_seconds=2.0)
    (recorded,), (read,) = stacks.plan(state), trace.plan(state)
    assert recorded.steps[0].argv[0] == PERF.path
    assert recorded.steps[0].argv[-2:] == workload.command
    assert workload.command[0] not in read.steps[0].argv
    (tmp_path / "artifacts").mkdir()
    lost = replace(state, passes=(PassResult("stacks", None, "failed"),))
    (again,) = stacks.plan(lost)[
        1:
    ]  # perf did not start the program: without it, and perf in a run of its own
    (own,) = trace.plan(lost)
    assert again.steps[0].argv == workload.command == own.steps[0].argv[-2:]
    (marked,) = stacks.plan(replace(state, marked=True))
    assert marked.steps[0].argv == workload.command  # its region has iterations of its own in each pass


def test_a_program_is_sampled_again_while_the_first_answer_stays_within_2_t_and_3_s() -> None:
    for plain in (0.2, 0.7, 1.2, 2.0, 5.0):
        count = sampled_runs(plain, plain)
        assert count == 1 or plain * (1 + count) <= 2 * plain + 2.4
    assert sampled_runs(0.7, 0.7) > 2 > sampled_runs(5.0, 5.0)
    assert sampled_runs(2.2, 0.7) == 2  # on a busy machine


def test_further_samples_of_a_short_program_are_planned_without_the_seconds_of_a_first_start(
    tmp_path,
) -> None:
    """15 runs of 0.15 s were planned with 8.6 s and took 2.8: each had the 0.4 s of the first."""
    workload = Workload((sys.executable, "work.py"), str(tmp_path), "work", sys.executable)
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (planned,) = StacksPass(context).plan(PlanState(False, plain_seconds=0.15))
    assert len(planned.steps) == 15
    assert 2.8 <= planned.cost * 0.15 <= 1.5 * 2.8


@pytest.mark.parametrize(
    ("state", "cost"),
    [
        # Its window of 1.5 normal runs and 0.5 s ends it, and it is read: of 58 programs, those that it slows down
        # took 1.5 to 5 times as long when they went on after it.
        (PlanState(False, plain_seconds=4.0), 1.5 + 0.5 / 4 + 0.1),
        (PlanState(False, plain_seconds=4.0, python_share=0.1), 1.2),  # NumPy: 0.9 to 1.25 were taken
        (PlanState(False, plain_seconds=4.0, python_share=0.9, main_share=0.1), 1.19),  # a pool
        (PlanState(True, 0.1, plain_seconds=4.0, python_share=0.1), 1.6),
    ],
)
def test_cprofile_is_planned_by_the_python_code_of_the_main_thread(tmp_path, state, cost) -> None:
    (tmp_path / "work.py").touch()
    workload = Workload((sys.executable, "work.py"), str(tmp_path), "work", sys.executable)
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (planned,) = CallsPass(context).plan(state)
    assert planned.cost == pytest.approx(cost)


@pytest.mark.parametrize("library", ["libpython3.11.so.1.0", "python3.12", "/usr/bin/python3"])
def test_the_interpreter_is_known_by_its_name(library: str) -> None:
    assert INTERPRETER.search(library)
    assert not INTERPRETER.search("_multiarray_umath.cpython-311-x86_64-linux-gnu.so")


def test_tracemalloc_lasts_until_a_region_whose_program_it_slows_down_before(tmp_path):
    workload = Workload((sys.executable, "work.py"), str(tmp_path), "work")
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    state = PlanState(True, 0.001, benchmark=True, plain_seconds=3.0, start_seconds=1.5)
    (planned,) = AllocationsPass(context, device=False).plan(state)
    longest = planned.steps[0].directive.longest
    assert longest >= 2 * planned.cost * 3.0 > 1.5 * 3.0 + 0.5
    (marked,) = AllocationsPass(context, device=False).plan(replace(state, benchmark=False))
    assert marked.steps[0].directive.longest >= longest  # its region may begin as late
    (unmarked,) = AllocationsPass(context, device=False).plan(replace(state, marked=False, benchmark=False))
    assert unmarked.steps[0].directive.longest == 1.5 * 3.0 + 0.5


def test_a_program_ends_with_the_window_of_an_instrument_where_it_marks_no_region(tmp_path):
    workload = Workload((sys.executable, "work.py"), str(tmp_path), "work")
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    unmarked = PlanState(False, plain_seconds=4.0)
    for made in (CallsPass(context), AllocationsPass(context, device=False)):
        (planned,) = made.plan(unmarked)
        directive = planned.steps[0].directive
        assert directive.stops_program
        assert planned.cost * 4.0 == pytest.approx(
            directive.longest + made.fixed
        )  # both are slower than that
        (marked,) = made.plan(replace(unmarked, marked=True))
        assert not marked.steps[0].directive.stops_program
    (whole,) = CallsPass(replace(context, depth="full")).plan(unmarked)
    assert whole.steps[0].directive.longest is None
    assert not whole.steps[0].directive.stops_program


# ------------------------------------------------------------ test_build

O0 = b"GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O0 -fasynchronous-unwind-tables"


def facts(folder: Path, data: bytes, python: str | None = None) -> dict[str, str]:
    (folder / "program").write_bytes(data)
    return compiler_facts(Workload(("./program",), "program", str(folder), python))


def test_gccs_options_are_read_from_the_program(tmp_path: Path) -> None:
    assert facts(tmp_path, b"\x7fELF..\0" + O0 + b"\0main\0") == {"compiler": O0.decode()}


def test_options_are_read_to_their_end(tmp_path: Path) -> None:
    native = O0.replace(
        b"-g -O0", b" ".join(b"-mavx512option%d" % number for number in range(60)) + b" -g -O3"
    )
    assert " -O3 " in facts(tmp_path, b"\x7fELF..\0" + native + b"\0")["compiler"]


def test_what_is_no_compiled_program_says_nothing(tmp_path: Path) -> None:
    assert facts(tmp_path, b"#!/bin/sh\n# " + O0) == {}
    assert facts(tmp_path, b"\x7fELF..\0" + O0 + b"\0", python="python3") == {}
    assert compiler_facts(Workload(("no-such-program",), "x", str(tmp_path))) == {}
