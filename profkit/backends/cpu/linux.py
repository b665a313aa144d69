"""The run of a CPU on Linux: perf record, perf stat, and a simulation where there is no PMU.

In a Python program perf samples the same run as the sampler inside it; what perf wrote is read later, as the
trace.
"""

from __future__ import annotations

import contextlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from profkit.analysis.stacks.files import read_speedscope
from profkit.analysis.stacks.merge import python_functions
from profkit.analysis.stacks.wall_time import is_wall_time
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cpu.counting import Counting, SwitchedStep
from profkit.backends.cpu.simulation import Simulation
from profkit.backends.passes import BackendRun, Pass, StacksPass, head_of, leave_stacks, plain_runs
from profkit.backends.shell_script import script_of, with_lines
from profkit.backends.source_lines import program_file, seen_in_registers, source_places, with_text
from profkit.backends.watched_calls import seen_in_calls
from profkit.core.errors import Fault, UnreadableReport
from profkit.core.process import status_wrapper
from profkit.core.types import (
    Fact,
    PassName,
    PassPlan,
    PassResult,
    SampledTime,
    Stacks,
    Step,
    Timeline,
    Workload,
)
from profkit.profilers.host.stacks import read_wall_time
from profkit.profilers.perf.command import (
    FREQUENCY,
    inject_argv,
    python_frames,
    record_argv,
    recorded_pids,
    remove_leftovers,
    script_argv,
    switches_argv,
)
from profkit.profilers.perf.look_records import mark_stops, read_looks, watched_file
from profkit.profilers.perf.looks import looks_argv
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.perf.script import read_script
from profkit.profilers.perf.source_lines import native_lines
from profkit.profilers.perf.switches import read_switches
from profkit.profilers.perf.tasks import read_tasks
from profkit.profilers.perf.thread_lanes import read_threads
from profkit.profilers.perf.watch import read_watched
from profkit.profilers.valgrind.probe import probe_valgrind
from profkit.runtime.passes.command import may_run_python, python_version
from profkit.runtime.passes.host.stacks.samples import MOMENTS

# Of an unmarked program of all processors: a share of 10 % is known to a twentieth of itself, and perf needs seconds to
# read their 16 KiB of stack each.
MAX_SAMPLES = 5_000
MIN_FREQUENCY, MAX_FREQUENCY = 49, 3999  # Hz
SHORT_SECONDS = 0.3
SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
STARTING = 0.5  # seconds of a recording of its own: perf, and reading the stacks
READING = 0.3  # seconds: 5,000 samples at most, without their callers
# Records of switches are small and many: of 50,000 switches a second 6 MB a second. Longer programs do without.
LONGEST_SWITCHED = 60.0  # s
DATA, _JIT, TEXT, SWITCHED = "trace.perf.data", "trace.jit.data", "trace.script.txt", "trace.switches.txt"
LOOKS, WATCHED = "trace.looks", "trace.watched"


class SampledTrace(Pass):
    """The samples of perf record over the region, as tables and flame graphs."""

    name, tool = "trace", "perf"
    step_names, leaves = ("trace",), (DATA, _JIT, TEXT, SWITCHED, LOOKS, WATCHED, "trace.speedscope.json")

    def __init__(
        self, context: RunContext, perf: PerfAbility, python: tuple[int, int] | None, *, beside: bool
    ) -> None:
        """Create the pass; `beside` lets perf sample the run of the stacks pass."""
        super().__init__(context)
        self._perf, self._frames, self._beside = perf, python_frames(python), beside

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan one recording, restricted to a marked region; or the reading of the one made with the stacks."""
        perf, frames, folder = self._perf, self._frames, self.folder
        if not perf.record_ok:
            fault = perf.record_fault or Fault("perf record does not work here")
            return self.skip(fault.reason, fault.fix)
        data, jit, text = folder / DATA, folder / _JIT, folder / TEXT
        ran = any(result.name == "stacks" for result in state.passes)
        if self.is_beside(state) and (data.is_file() or not ran):
            step = Step(
                "trace", script_argv(data, text, perf=str(perf.path)), (f"artifacts/{TEXT}",), tool="perf"
            )
            return self.planned((step,), cost=plain_runs(READING, state), notes=(Fact("beside-stacks"),))
        switched = SwitchedStep(self, perf, state, "trace")
        native = self.context.workload.python is None
        short = state.plain_seconds is None or state.plain_seconds <= LONGEST_SWITCHED
        switches = native and perf.switches_ok and short
        argv = record_argv(
            self.context.workload.command,
            data,
            event="cycles" if perf.hardware_ok else "cpu-clock",
            call_graph=frames.call_graph,
            control=switched.control,
            ack=switched.ack,
            perf=str(perf.path),
            frequency=self._frequency(state),
            options=self._perf.record_options,
            switches=switches,
        )
        program = program_file(self.context.workload) if native else None
        if program is not None and self.context.machine.architecture == "x86_64":
            argv = looks_argv(argv, str(program), folder / LOOKS, state.plain_seconds or SECONDS)
        after = [script_argv(jit if frames.inject else data, text, perf=str(perf.path), offsets=native)]
        if switches:
            after.append(switches_argv(data, folder / SWITCHED, perf=str(perf.path)))
        if frames.inject:
            after.insert(0, inject_argv(data, jit, perf=str(perf.path)))
        step = switched.step(argv, TEXT, frames.env, seconds=SECONDS)
        step = replace(step, after=tuple(after), workload_status=None)
        return self.planned((step,), cost=1.1 + plain_runs(STARTING, state), notes=(frames.note,))

    def is_beside(self, state: PlanState) -> bool:
        """Return whether perf samples the run of the stacks pass, which is that of a whole program."""
        return self._beside and self._perf.record_ok and not state.marked

    def beside(self, step: Step, state: PlanState) -> Step:
        """Return the step with perf around it, which records addresses but no callers: the stacks have those."""
        status = str(self.folder / f"{step.name}.status")
        argv = record_argv(
            status_wrapper(step.argv, status),
            self.folder / DATA,
            event="cycles" if self._perf.hardware_ok else "cpu-clock",
            call_graph=None,
            perf=str(self._perf.path),
            frequency=self._frequency(state),
            options=self._perf.record_options,
        )
        env = {**step.env, MOMENTS: "1"}
        return replace(step, argv=argv, env=env, tool="perf", workload_status=status)

    def _frequency(self, state: PlanState) -> int:
        """Return samples per second and processor: fewer in a long program, whose stacks would take long to read."""
        if state.marked or state.plain_seconds is None or self.context.depth == "full":
            return FREQUENCY
        busy = state.plain_seconds * max(1, self.context.machine.cores)
        if state.plain_seconds < SHORT_SECONDS:  # one run of it has to do
            return min(MAX_FREQUENCY, int(FREQUENCY * SHORT_SECONDS / state.plain_seconds))
        return max(MIN_FREQUENCY, min(FREQUENCY, int(MAX_SAMPLES / busy)))

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read functions, libraries and stacks; leaves a speedscope file beside the text.

        The recording itself is removed: its copies of the stack hold the process's environment. So is what CPython
        and perf left in the temporary folder for the recorded processes.
        """
        folder, facts = self.folder, compiler_facts(self.context.workload)
        with contextlib.suppress(UnreadableReport):
            remove_leftovers(recorded_pids(folder / DATA), time.time() - result.seconds - 1)
        for name in (DATA, _JIT):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
        with contextlib.suppress(OSError, ValueError):
            mark_stops(folder / SWITCHED, read_looks(folder / LOOKS))
        report = read_script(folder / TEXT)
        self._join_stacks()
        if not report.stacks:
            return PassFindings(notes=report.warnings, facts=facts)
        stacks = report.stacks[0]
        wall, timeline = self._threads(folder / TEXT)
        drawn = (wall, *report.stacks) if wall is not None else report.stacks
        python = python_functions(stacks)
        deep = any(len(frames) > 1 for frames in stacks.weights)
        return PassFindings(
            profiles=(*report.profiles[:2], *([python] if python is not None else ())),
            stacks=report.stacks,
            timeline=timeline,
            sampled=self._sampled(folder / TEXT),
            facts=facts,
            notes=report.warnings,
            artifacts=leave_stacks(self.context, drawn, "trace") if deep else (),
        )

    def _join_stacks(self) -> None:
        """Put native code below Python's stacks in the flame graph of a run that both have sampled."""
        stacks, place = self.folder / "stacks.jsonl", self.folder / "stacks.speedscope.json"
        with contextlib.suppress(UnreadableReport, OSError):  # then the flame graph stays as it is
            if stacks.is_file() and (joined := read_wall_time(stacks, self.folder / TEXT)) is not None:
                kept = [drawn for drawn in read_speedscope(place) if not is_wall_time(drawn)]
                leave_stacks(self.context, (joined, *kept), "stacks")

    def _threads(self, text: Path) -> tuple[Stacks | None, Timeline | None]:
        """Return what the threads of a compiled program did, before the switches are removed."""
        program, switched = program_file(self.context.workload), self.folder / SWITCHED
        if self.context.workload.python is not None or program is None or not switched.is_file():
            return None, None
        with contextlib.suppress(UnreadableReport):
            return read_threads(switched, text, program)
        return None, None

    def _sampled(self, text: Path) -> SampledTime | None:
        """Return the program's own lines, and where it waits, if it is machine code."""
        workload = self.context.workload
        program, switched, looks = program_file(workload), self.folder / SWITCHED, self.folder / LOOKS
        watched = watched_file(looks)
        try:
            if workload.python is not None or program is None:
                return None
            switches = read_switches(switched) if switched.is_file() else None
            tasks = read_tasks(switched, program.name) if switched.is_file() else None
            sampled = with_text(native_lines(text, program, source_places, switches, tasks))
            if sampled is None:
                return None
            programs = with_lines(sampled.programs, script_of(workload))
            registers = seen_in_registers(program, read_looks(looks))
            calls = seen_in_calls(program, read_watched(watched))
            return replace(sampled, registers=(*registers, *calls), programs=programs)
        finally:
            for file in (
                switched,
                looks,
                watched,
            ):  # they say what the places say, and hold what the program worked on
                with contextlib.suppress(OSError):
                    file.unlink()


class RecordedStacks(StacksPass):
    """Python's stacks, with perf's samples of the same run beside them."""

    def __init__(self, context: RunContext, trace: SampledTrace) -> None:
        super().__init__(context)
        self._trace = trace

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the stacks under perf, and once more without it where perf did not start the program."""
        alone = super().plan(state)[0]
        if not alone.steps or not self._trace.is_beside(state):
            return [alone]
        first, *more = alone.steps
        recorded = replace(alone, steps=(self._trace.beside(first, state), *more))
        failed = any(result.name == self.name and result.state == "failed" for result in state.passes)
        return [recorded, alone] if failed and not (self.folder / self.file).exists() else [recorded]


class LinuxCounters(Pass):
    """The counters of perf stat, and a simulation where there is no PMU or at full depth."""

    name = "counters"

    def __init__(self, context: RunContext, perf: PerfAbility) -> None:
        super().__init__(context)
        self._perf, self._counting = perf, Counting(context, perf)
        simulated = not perf.hardware_ok or context.depth == "full"
        self._simulation = Simulation(context, probe_valgrind()) if simulated else None

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan what is counted, then what is simulated."""
        simulated = self._simulation.plan(state) if self._simulation is not None else []
        if simulated and simulated[0].steps and not self._perf.hardware_ok and self.context.depth != "full":
            return simulated  # without hardware counters perf would count page faults alone
        return [*self._counting.plan(state), *simulated]

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """Read what perf or callgrind left."""
        source = self._simulation if plan.simulated and self._simulation is not None else self._counting
        return source.read(plan, result)


LINUX_PASSES: tuple[type[Pass], ...] = (SampledTrace, RecordedStacks, LinuxCounters, Counting, Simulation)


class LinuxRun(BackendRun):
    """The passes for one workload, by perf, and by callgrind where there is no PMU."""

    name = "cpu"
    # What perf sampled in the stacks' run is read at once: it costs next to nothing.
    # Counters come before passes that may take longer than planned and so leave them no time. Counts of calls and peaks
    # of memory are known from a part of a run, too; the cache numbers of a short program are not (docs/decisions.md).
    order = ("timing", "stacks", "trace", "counters", "cprofile", "tracemalloc", "explain")

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the passes of the depth; the quick one samples Python's stacks, or else native ones."""
        if self.context.wanted is None and self.context.depth == "quick":
            python = self.context.workload.python is not None or may_run_python(self.context.workload.command)
            return ("timing", "stacks") if python else ("timing", "trace")
        return super().wanted

    def tool_versions(self) -> dict[str, str | None]:
        """Return the versions of perf, and of valgrind where something is counted."""
        versions: dict[str, str | None] = {}
        if "trace" in self.wanted or "counters" in self.wanted:
            versions["perf"] = self._perf.version
        if "counters" in self.wanted:
            versions["valgrind"] = probe_valgrind().version  # its answer is kept
        return versions

    def make_pass(self, name: PassName) -> Pass | None:
        """Make the passes of perf record, and of perf stat with the simulation."""
        if name == "counters":
            return LinuxCounters(self.context, self._perf)
        if name == "trace":
            return self._trace
        if name == "stacks" and "trace" in self.wanted:
            return RecordedStacks(self.context, self._trace)
        return super().make_pass(name)

    @cached_property
    def _trace(self) -> SampledTrace:
        """Return the trace pass, made once."""
        python = self.context.workload.python
        version = python_version(python) if python is not None else None
        beside = python is not None and "stacks" in self.wanted and self.context.depth != "full"
        return SampledTrace(
            self.context, self._perf, version[:2] if version is not None else None, beside=beside
        )

    @cached_property
    def _perf(self) -> PerfAbility:
        """Return what perf can do; valgrind is probed in parallel, since this precedes every run."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            perf = pool.submit(probe_perf)
            if "counters" in self.wanted:
                pool.submit(probe_valgrind)
            return perf.result()


# ------------------------------------------------------------ how a program was compiled


# To its end: -march=native becomes a kilobyte of options before the -O3.
_PRODUCER = re.compile(rb"GNU (?:C|C\+\+|Fortran)\d* [0-9][^\0\n]{3,8000}(?=[\0\n])")
FACT = "compiler"


def compiler_facts(workload: Workload) -> dict[str, str]:
    """Return `compiler`: gcc's name, version and options, where all parts of the program that tell agree.

    Empty for a program without debug information, of another compiler, or that is not compiled: clang and rustc
    do not write their options, and compressed sections are not read.
    """
    path = program_file(workload)
    if workload.python is not None or path is None:
        return {}
    data = head_of(path)
    producers = {match.decode("ascii", "replace") for match in _PRODUCER.findall(data)}
    return {FACT: producers.pop()} if len(producers) == 1 else {}
