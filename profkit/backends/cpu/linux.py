"""The run of a CPU on Linux, and its trace pass: perf record over the region, as tables and flame graphs."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from profkit.analysis.stacks.merge import by_function, by_library, keep_python_frames
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cpu.counting import EventChoice, choose_groups, plan_counting, read_counting
from profkit.backends.cpu.simulation import plan_simulation, read_simulation
from profkit.backends.passes import PlannedRun, head_of, leave_stacks
from profkit.core.errors import UnreadableReport
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, PassName, PassPlan, PassResult, Step, Switch, Workload
from profkit.profilers.perf.command import FREQUENCY, inject_argv, python_frames, record_argv, script_argv
from profkit.profilers.perf.perf_data import recorded_pids, remove_leftovers
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.perf.script import read_script
from profkit.profilers.valgrind.probe import ValgrindAbility, probe_valgrind
from profkit.runtime.passes.command import python_version

# Of an unmarked program of all processors: a share of 10 % is known to a twentieth of itself, and perf needs seconds to
# read their 16 KiB of stack each.
MOST_SAMPLES = 5_000
LEAST_FREQUENCY = 49  # Hz
SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
_DATA, _JIT, _TEXT = "trace.perf.data", "trace.jit.data", "trace.script.txt"


def plan_trace(
    context: RunContext, perf: PerfAbility, python: tuple[int, int] | None, state: PlanState
) -> PassPlan:
    """One recording, restricted to the region where the workload marks one."""
    if not perf.record_ok:
        fault = perf.record_fault
        reason = fault.reason if fault else "perf record does not work here"
        return PassPlan("trace", "perf", skipped=reason, fix=fault.fix if fault else None)
    program = str(perf.path)
    folder = context.folder / "artifacts"
    marked = state.marked and perf.control_fifo_ok
    frames = python_frames(python)
    control, ack = str(folder / "trace.control"), str(folder / "trace.ack")
    status = str(folder / "trace.status")
    data, jit, text = folder / _DATA, folder / _JIT, folder / _TEXT
    argv = record_argv(
        status_wrapper(context.workload.command, status),
        data,
        event="cycles" if perf.hardware_ok else "cpu-clock",
        call_graph=frames.call_graph,
        control=control if marked else None,
        ack=ack if marked else None,
        perf=program,
        frequency=_frequency(context, state),
    )
    after = [script_argv(jit if frames.inject else data, text, perf=program)]
    if frames.inject:
        after.insert(0, inject_argv(data, jit, perf=program))
    step = Step(
        "trace",
        argv,
        (f"artifacts/{_TEXT}",),
        env={**frames.env},
        directive=Directive(
            "trace",
            str(folder / "trace.region"),
            switch=Switch("perf-control", control, ack) if marked else None,
            seconds=SECONDS,
        ),
        fifos=(control, ack) if marked else (),
        tool="perf",
        workload_status=status,
        after=tuple(after),
    )
    return PassPlan(
        "trace",
        "perf",
        (step,),
        cost=1.5,
        seconds=_expected_seconds(context, state),
        cost_note="sampling itself costs a few per cent; reading the stacks comes after it",
        notes=(frames.note,) if frames.note else (),
    )


def _frequency(context: RunContext, state: PlanState) -> int:
    """Samples a second of each processor: fewer in a long program, whose stacks would take as long to read."""
    if state.marked or state.plain_seconds is None or context.depth == "full":
        return FREQUENCY
    busy = state.plain_seconds * max(1, context.machine.cores)
    return max(LEAST_FREQUENCY, min(FREQUENCY, int(MOST_SAMPLES / busy)))


READING_SECONDS = 2.0  # that perf takes for its text of MOST_SAMPLES


def _expected_seconds(context: RunContext, state: PlanState) -> float | None:
    if state.marked or state.plain_seconds is None or context.depth == "full":
        return None
    return state.plain_seconds + READING_SECONDS * min(1.0, state.plain_seconds)


def read_trace(context: RunContext, result: PassResult) -> PassFindings:
    """Functions, libraries and stacks; leaves a speedscope and a collapsed-stack file beside the text.

    The recording itself is removed: its copies of the stack hold the process's environment.
    """
    folder = context.folder / "artifacts"
    _remove_leftovers(folder / _DATA, result.seconds)
    for name in (_DATA, _JIT):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    report = read_script(folder / _TEXT)
    if not report.stacks:
        return PassFindings(notes=report.warnings)
    stacks = report.stacks[0]
    python = keep_python_frames(stacks)
    profiles = [by_function(stacks), by_library(stacks)]
    if python is not None:
        title = f"{stacks.title} by Python function"
        profiles.append(replace(by_function(python), title=title, kind="python-functions"))
    return PassFindings(
        profiles=tuple(profiles),
        stacks=report.stacks,
        notes=report.warnings,
        artifacts=leave_stacks(context, report.stacks, "trace"),
    )


def _remove_leftovers(recording: Path, seconds: float) -> None:
    """Remove what CPython and perf left in the temporary folder for the recorded processes."""
    with contextlib.suppress(UnreadableReport):
        remove_leftovers(recorded_pids(recording), time.time() - seconds - 1)


class LinuxRun(PlannedRun):
    """The passes for one workload, by perf, and by callgrind where there is no PMU."""

    name = "cpu"

    def tool_versions(self) -> dict[str, str | None]:
        """perf, and valgrind where something is counted."""
        versions: dict[str, str | None] = {}
        if "trace" in self.wanted or "counters" in self.wanted:
            versions["perf"] = self._perf.version
        if "counters" in self.wanted:
            versions["valgrind"] = self._valgrind.version
        return versions

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        """perf record; perf stat, and the simulation where there is no PMU or all is asked for."""
        if name == "trace":
            return [plan_trace(self.context, self._perf, self._python, state)]
        if name != "counters":
            return []
        plans = [plan_counting(self.context, self._perf, state, self._choice)]
        if not self._perf.hardware_ok or self.context.depth == "full":
            plans.append(plan_simulation(self.context, self._valgrind, state))
        return plans

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """What perf or callgrind left."""
        if plan.name == "trace":
            findings = read_trace(self.context, result)
            return replace(findings, facts={**findings.facts, **compiler_facts(self.context.workload)})
        if plan.simulated:
            return read_simulation(self.context, plan, result.seconds)
        return read_counting(self.context, plan, self._choice)

    @cached_property
    def _perf(self) -> PerfAbility:
        return probe_perf()

    @cached_property
    def _choice(self) -> EventChoice:
        return choose_groups(self.context.machine, self._perf)

    @cached_property
    def _valgrind(self) -> ValgrindAbility:
        return probe_valgrind()

    @cached_property
    def _python(self) -> tuple[int, int] | None:
        python = self.context.workload.python
        version = python_version(python) if python is not None else None
        return version[:2] if version is not None else None


# ------------------------------------------------------------ how a program was compiled

_PRODUCER = re.compile(rb"GNU (?:C|C\+\+|Fortran)\d* [0-9][^\0\n]{3,300}")
FACT = "compiler"


def compiler_facts(workload: Workload) -> dict[str, str]:
    """`compiler`: gcc's name, version and options, where all parts of the program that tell have the same ones.

    Empty for a program without debug information, of another compiler, or one that is not compiled: clang and rustc
    do not write their options, and compressed sections are not read.
    """
    program = workload.command[0] if workload.command else ""
    path = Path(workload.folder, program) if "/" in program else Path(shutil.which(program) or "")
    if workload.python is not None or not path.is_file():
        return {}
    data = head_of(path)
    if not data.startswith(b"\x7fELF"):
        return {}
    producers = {match.decode("ascii", "replace") for match in _PRODUCER.findall(data)}
    return {FACT: producers.pop()} if len(producers) == 1 else {}
