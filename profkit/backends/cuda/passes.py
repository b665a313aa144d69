"""The passes of a run on CUDA: a trace, then ncu on chosen launch configurations.

The trace of a JAX program is by jax.profiler, of others by nsys, or else by torch's own profiler. Expected
costs, in wall seconds, are those of one H200 with ncu 2025.3 and nsys 2025.3 (docs/cuda.md, what it costs): a
torch program that starts in 3 s took 5.0 s under nsys with its export, 5.6 s under ncu with two kernels of 5
passes, 22 s with 8 of 38 passes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

from profkit.analysis.kernel_names.owner import OWN_CODE, kernel_owner
from profkit.analysis.timeline.xla_order import with_schedules
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cuda.kernels import (
    NO_GRAPHS,
    ONE_COMPILATION,
    XLA_FLAGS,
    ChosenKernels,
    CountedLaunches,
    choose_kernels,
    count_in_benchmark,
    count_in_program,
    entries_needed,
    read_counters,
)
from profkit.backends.cuda.process_rows import (
    lines_of,
    said_by_processes,
    said_reason,
    schedules_of,
    seconds_after,
)
from profkit.backends.cuda.program_source import with_definitions
from profkit.backends.passes import Pass, RegionWork, plain_runs, read_region_work, start_seconds
from profkit.core.errors import UnreadableReport
from profkit.core.process import status_wrapper
from profkit.core.types import (
    Fact,
    GpuLine,
    GpuTrace,
    Kernel,
    KernelPlan,
    KernelTime,
    PassPlan,
    PassResult,
    Report,
    Step,
    Switch,
    Verdict,
    message_of,
    together,
)
from profkit.profilers.ncu.command import CounterSet, counter_set, name_filter, ncu_argv
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.nsys.command import NOT_IMPORTED, export_argv, nsys_argv
from profkit.profilers.programs import ToolAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import host_command

NSYS_SECONDS = 1.3  # start, stop and writing the report, for a trace of few seconds
EXPORT_SECONDS = 0.4
TORCH_SECONDS = 2.5
JAX_SECONDS = 1.0
MIN_WORK = 0.05  # of the time: what kernels with less could win is not worth a run that counts them
NCU_SECONDS = 2.0  # start, first launch, end


def region_seconds(state: PlanState, iterations: int | None) -> float:
    """Return the seconds of the iterations that an instrument wants of a benchmark; 0 where unknown."""
    if not state.benchmark or iterations is None or state.iteration_seconds is None:
        return 0.0
    return iterations * state.iteration_seconds


SECONDS = 0.2  # of a benchmark's region: tens to hundreds of iterations, a report of some 100 kB
MIN_ITERATIONS, MAX_ITERATIONS = 5, 500  # of a benchmark
LONGEST = 60.0  # seconds, for the sake of the least
WARMUP = 3  # calls before the region: compiling, tuning, the first growth of the memory pool
TORCH, JAX = "torch_profiler", "jax_profiler"
# Of a window of jax.profiler: a tenth of the program, so that a long one waits for no large file, and some steps fit.
MIN_WINDOW, WINDOW_SHARE, MAX_WINDOW = 2.0, 0.1, 6.0
SAID_BY_JAX = "trace.jax.operations"
_Why: TypeAlias = "tuple[Fact, str | None] | None"  # why the instrument before has made no trace, and its fix
_Attempt: TypeAlias = "Callable[[PlanState, _Why], list[PassPlan]]"


def traced_iterations(state: PlanState) -> int:
    """Return how often a benchmark runs in the trace."""
    seconds = state.iteration_seconds
    if seconds is None or seconds <= 0:
        return MIN_ITERATIONS
    return max(1, min(MAX_ITERATIONS, max(MIN_ITERATIONS, int(SECONDS / seconds)), int(LONGEST / seconds)))


class DeviceTracePass(Pass):
    """The trace of kernels, copies and launches, by the first instrument that succeeds.

    A JAX program is traced by jax.profiler, then by nsys without NVTX ranges, since it does not find the names of
    those that XLA writes; any other by nsys, once more without ranges where it could not import them, then by
    torch's own profiler.

    `ranges`: the workload can write NVTX ranges. Then the whole process is traced, and they mark the region in
    it: that also shows what was compiled before, and every entry of a region that is entered many times. Without
    them only what nsys captures is known to be the region, and of several entries that is the first.
    """

    name, tool = "trace", "nsys"
    step_names = ("trace", "trace-jax", "trace-plain", "trace-torch")
    leaves = (
        "trace.nsys-rep", "trace.sqlite", "trace-plain.nsys-rep", "trace-plain.sqlite",
        "trace.torch.#.json", "trace.jax.#-#.json.gz", "trace.jax.operations",
    )  # fmt: skip

    def __init__(self, context: RunContext, nsys: ToolAbility, *, ranges: bool, jax: bool = False) -> None:
        super().__init__(context)
        self._nsys, self._ranges, self._jax = nsys, ranges, jax

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan one run, and another after each that failed: without a trace there is nothing to count."""
        done = [result for result in state.passes if result.name == "trace"]
        plans: list[PassPlan] = []
        why: _Why = None
        for make in self._attempts(done):
            plans += make(state, why)
            result = done[len(plans) - 1] if len(plans) <= len(done) else None
            if result is None or result.state != "failed":
                break
            if len(plans) == len(done) and state.trace is not None:
                break  # what it had written until it failed is a trace all the same
            code = "nsys-failed" if result.tool == "nsys" else "jax-failed"
            why = Fact.of(code, *filter(None, (result.reason,))), result.fix
        return plans

    def _attempts(self, done: Sequence[PassResult]) -> Iterator[_Attempt]:
        """Yield what makes the plan of each instrument, in the order in which they are tried."""
        hosted, _ = self._hosted("jax")
        if self._jax and hosted is not None:
            yield self._by_jax
        if self._nsys.works and not self._jax:
            yield self._by_nsys
        if self._nsys.works and (self._jax or any(_lost_ranges(result) for result in done)):
            yield self._by_nsys_without_ranges
        if not self._jax or (hosted is None and not self._nsys.works):
            yield self._by_torch

    def _hosted(self, kind: Literal["jax", "torch"]) -> tuple[list[str] | None, str | None]:
        """Return the command under this instrument, or the code of why its Python cannot be looked into."""
        return host_command(self.context.workload.command, kind, self.folder / f"trace.{kind}")

    def _by_jax(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by jax.profiler inside the workload, the first of all instruments."""
        assert why is None
        argv, _ = self._hosted("jax")
        seconds = min(MAX_WINDOW, max(MIN_WINDOW, WINDOW_SHARE * (state.plain_seconds or 0.0)))
        directive = self.directive(
            "trace-jax", iterations=traced_iterations(state), seconds=round(seconds, 1), warmup=WARMUP
        )
        return [
            self._traced(JAX, Step("trace-jax", tuple(argv or ()), directive=directive), state, JAX_SECONDS)
        ]

    def _by_nsys(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by nsys."""
        return self._recorded(state, why, "trace", ranges=self._ranges)

    def _by_nsys_without_ranges(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by nsys without NVTX ranges."""
        return self._recorded(state, why, "trace-plain", ranges=False, nvtx=False)

    def _recorded(
        self, state: PlanState, why: _Why, name: str, *, ranges: bool, nvtx: bool = True
    ) -> list[PassPlan]:
        """Plan the trace by nsys in the step `name`; `why` says why the instrument before failed."""
        report, sqlite, status = (self.folder / f"{name}.{end}" for end in ("nsys-rep", "sqlite", "status"))
        command = status_wrapper(self.context.workload.command, status)
        nsys = str(self._nsys.path)
        step = Step(
            name,
            nsys_argv(command, report, marked=state.marked and not ranges, nsys=nsys, ranges=nvtx),
            (f"artifacts/{name}.nsys-rep", f"artifacts/{name}.sqlite"),
            directive=self.directive(
                name,
                Switch("cuda") if state.marked else None,
                iterations=traced_iterations(state),
                warmup=WARMUP,
            ),
            tool="nsys",
            workload_status=str(status),
            after=(export_argv(report, sqlite, nsys=nsys),),
        )
        planned = self._traced("nsys", step, state, NSYS_SECONDS + EXPORT_SECONDS)
        notes = () if why is None else (Fact.of("without-ranges", why[0]),)
        return [replace(planned, notes=(*notes, *planned.notes))]

    def _by_torch(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by torch.profiler inside the workload; `why` says why nsys does not make it."""
        name = "trace-torch" if why is not None else "trace"
        if why is None:
            why = Fact.of("of", Fact.message(str(self._nsys.reason)), what="nsys"), self._nsys.fix
        argv, reason = self._hosted("torch")
        if argv is None:
            return self.skip(together(why[0], self.no_python(reason)), why[1])
        directive = self.directive(name, iterations=traced_iterations(state), warmup=WARMUP)
        planned = self._traced(TORCH, Step(name, tuple(argv), directive=directive), state, TORCH_SECONDS)
        return [replace(planned, fix=why[1], notes=(Fact.of("by-torch", why[0]), *planned.notes))]

    def _traced(self, tool: str, step: Step, state: PlanState, more: float) -> PassPlan:
        """Return a plan of one step with its cost; `more` are the tool's own seconds."""
        seconds = start_seconds(state) + region_seconds(state, traced_iterations(state)) + more
        return PassPlan(
            self.name, tool, (step,), cost=plain_runs(seconds, state), notes=(Fact("kernels-chosen"),)
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Read kernels, copies and gaps. Raises UnreadableReport where there is no trace."""
        artifacts: tuple[str, ...] = ()
        lines: tuple[tuple[str, str, GpuLine], ...] = ()
        if plan.tool == TORCH:
            path = next(self.folder.glob("trace.torch.*.json"), None)
            if path is None:
                # else nsys' own pass says it
                why = f" ({message_of(plan.notes[0])})" if plan.steps[0].name == "trace" else ""
                raise UnreadableReport(
                    f"torch's profiler left no trace: the workload did not end by itself, or uses no torch{why}",
                    plan.fix,
                )
            report, artifacts = recognise_format(path).read(path), (f"artifacts/{path.name}",)
        elif plan.tool == JAX:
            report, path = _best_window(self.folder)
            artifacts = (f"artifacts/{path.name}",)
            said = said_by_processes(self.folder / SAID_BY_JAX)
            lines = lines_of(said)
            trace = with_schedules(report.trace, schedules_of(said), report.launches)
            if trace is not None:
                trace = replace(trace, untraced=seconds_after(said, path))
            report = replace(report, trace=trace)
        else:
            report = _read_export(self.folder, Path(plan.steps[0].artifacts[0]).stem)
        if report.fault is not None:
            raise UnreadableReport(report.fault.reason, report.fault.fix, report.fault.code)
        trace = with_definitions(report.trace, self.context.workload)
        notes = [*report.warnings, *read_region_work(self.context.folder, plan.steps[0].name).notes]
        if trace is not None and any(kernel.graph for kernel in trace.kernels):
            notes.append(Fact("kernels-of-graphs"))
        return PassFindings(
            trace=trace,
            gpus=report.gpus,
            facts=report.facts,
            profiles=report.profiles,
            notes=tuple(dict.fromkeys(notes)),
            artifacts=artifacts,
            kernel_lines=lines,
        )


def _lost_ranges(result: PassResult) -> bool:
    """Return whether nsys recorded, and could not import it because it did not find the names of ranges."""
    reason = result.reason
    return result.tool == "nsys" and reason is not None and reason.root.names.get("fault") == NOT_IMPORTED


def _best_window(folder: Path) -> tuple[Report, Path]:
    """Return the window of jax.profiler with repeated steps, then with most work, and its file.

    Raises UnreadableReport where none has a kernel.
    """
    paths = sorted(folder.glob("trace.jax.*.json.gz"))
    reports = [(recognise_format(path).read(path), path) for path in paths]
    with_kernels = [(report, path) for report, path in reports if report.trace and report.trace.kernels]
    if not with_kernels:
        said = said_reason(folder / SAID_BY_JAX)
        raise UnreadableReport(
            said or "jax.profiler saw no kernel: the program computed nothing on a GPU with JAX"
            if reports or said
            else "jax.profiler left no trace: the workload did not end by itself"
        )

    def worth(window: tuple[Report, Path]) -> tuple[bool, float]:
        trace = window[0].trace
        assert trace is not None
        return trace.repeats is not None or trace.marked, sum(kernel.total for kernel in trace.kernels)

    return max(with_kernels, key=worth)


def _read_export(folder: Path, name: str) -> Report:
    """Read the SQLite export of what nsys recorded. Raises UnreadableReport if there is none."""
    sqlite = folder / f"{name}.sqlite"
    if sqlite.is_file():
        return recognise_format(sqlite).read(sqlite)
    if not (folder / f"{name}.nsys-rep").is_file():
        raise UnreadableReport("nsys left no report")
    raise UnreadableReport(
        f"nsys recorded {name}.nsys-rep, but could not export it to SQLite",
        f"see {shlex.quote(name)}.after0.log; where nsys works: nsys export --type=sqlite {shlex.quote(name)}.nsys-rep",
    )


_OF_THE_SET = "counter-set"  # the code of ncu's faults where it is the set that does not work here
MIN_COUNTING = 5.0  # wall seconds for launches that the shortest program gets
# Wall seconds after which a run under ncu is ended: replaying a kernel that waits for another one never ends, and
# saving what a kernel may write takes seconds where the program holds most of the device's memory. What was counted
# until then is kept.
MIN_LIMIT, PATIENCE, FINISH = 30.0, 3.0, 20.0
# JAX takes most of the device's memory ahead, and a replay saves all that a kernel may write.
NOT_AHEAD = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


@dataclass(frozen=True)
class CountingTask:
    """The launches `counted` by the names of `chosen`, a benchmark's iterations, and a region's entries.

    `notes` say what is left out.
    """

    chosen: ChosenKernels
    counted: CountedLaunches
    iterations: int
    entries: tuple[int, int] | None = None
    notes: tuple[Fact, ...] = ()


class NcuPass(Pass):
    """A run of ncu on chosen launch configurations, each counted once."""

    tool = "ncu"

    def __init__(self, context: RunContext, ncu: NcuAbility, chip: str | None, *, jax: bool = False) -> None:
        super().__init__(context)
        self._ncu, self._chip, self._jax = ncu, chip, jax

    def _without_graphs(self, state: PlanState) -> bool:
        """Return whether XLA has to launch its kernels one by one: it makes graphs of them, as far as known."""
        graphs = state.trace is None or any(kernel.graph for kernel in state.trace.kernels)
        return self._jax and graphs

    def _environment(self, state: PlanState, *, again: bool = False) -> dict[str, str]:
        """Return the variables for these runs alone; what the user set stays."""
        env = {key: value for key, value in NOT_AHEAD.items() if key not in os.environ}
        flags = [NO_GRAPHS] if self._without_graphs(state) else []
        flags += [ONE_COMPILATION] if again else []
        if flags:
            env[XLA_FLAGS] = " ".join([os.environ.get(XLA_FLAGS, ""), *flags]).strip()
        return env

    def _notes(self, state: PlanState, wanted: CounterSet) -> tuple[Fact, ...]:
        """Return notes on the counters, and on how the program runs under ncu."""
        return (
            _set_note(wanted),
            *((Fact("counted-without-graphs"),) if self._without_graphs(state) else ()),
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Read the counters of each kernel."""
        return read_counters(self.context, plan)

    def counter_set(self, name: str) -> CounterSet:
        """Return the counters of this name on this chip."""
        return counter_set(name, self._chip, self._ncu.version)

    def choose(
        self, state: PlanState, trace: GpuTrace, wanted: CounterSet, only: frozenset[Kernel] | None = None
    ) -> CountingTask:
        """Choose the launches to count of those traced; with `only`, those of some configurations.

        At full depth also launches that take longer than a normal run of the workload.
        """
        chosen, done = choose_kernels(trace), self._traced_work()
        if only is not None:
            chosen = replace(chosen, kernels=tuple(k for k in chosen.kernels if k.kernel in only))
        iterations = traced_iterations(state)
        entries: tuple[int, int] | None = None
        if trace.marked and state.benchmark:
            counted, iterations = count_in_benchmark(chosen.kernels, iterations)
        elif trace.marked and state.marked and done.entries:
            # those looked at are warm, so the first launch there will do
            entries = entries_needed(chosen.kernels, done.entries, done.processes)
            counted = CountedLaunches(chosen.kernels)
        else:
            unlimited = self.context.depth == "full" or state.plain_seconds is None
            max_seconds = inf if unlimited else max(MIN_COUNTING, state.plain_seconds or 0.0)
            counted = _in_program(trace, chosen.kernels, wanted.replays or 1, max_seconds)
        notes = list(chosen.notes)
        if lost := sum(chosen.share(k) for k in chosen.kernels if k not in counted.kernels):
            notes.append(Fact.of("launched-at-other-times", share=lost))
        return CountingTask(chosen, counted, iterations, entries, tuple(notes))

    def count(
        self, state: PlanState, wanted: CounterSet, task: CountingTask, trace: GpuTrace, step: str
    ) -> list[PassPlan]:
        """Return the plan of a task, its step called `step`."""
        counted, window = task.counted, task.counted.window
        kernels = _kernel_plans(task.chosen, counted.kernels, counted)
        # A window is counted over the names of all that were chosen.
        named = kernels if window is None else _kernel_plans(task.chosen, task.chosen.kernels, counted)
        once = start_seconds(state) + region_seconds(state, task.iterations) + NCU_SECONDS
        seconds = once + counted.seconds(wanted.replays)
        return self.planned(
            (self.step(state, step, wanted, task, named, marked=trace.marked),),
            counters=wanted.metrics,
            cost=plain_runs(seconds, state),
            limit=max(MIN_LIMIT, PATIENCE * seconds),
            kernels=kernels,
            notes=(*self._notes(state, wanted), *task.notes),
        )

    def step(
        self,
        state: PlanState,
        name: str,
        wanted: CounterSet,
        task: CountingTask,
        kernels: tuple[KernelPlan, ...] = (),
        *,
        marked: bool,
    ) -> Step:
        """Return a run of the workload under ncu; without `kernels` each configuration is counted."""
        argv = ncu_argv(
            self.context.workload.command,
            self.folder / f"{name}.ncu-rep",
            metrics=wanted.metrics,
            sections=wanted.sections,
            kernels=kernels,
            marked=marked,
            ncu=str(self._ncu.path),
            version=self._ncu.version,
            window=task.counted.window,
            code=bool(kernels) and all(kernel_owner(planned.kernel.name) in OWN_CODE for planned in kernels),
        )
        switch = Switch("cuda") if state.marked else None
        settings = {"iterations": task.iterations, "warmup": WARMUP, "entries": task.entries}
        return Step(
            name,
            argv,
            (f"artifacts/{name}.ncu-rep",),
            env=self._environment(state, again=name == "counters-again"),
            directive=self.directive(name, switch, **settings),
            tool="ncu",
            signals_as_codes=True,
            finish=FINISH,
        )

    def undecided(self, state: PlanState, wanted: CounterSet, note: Fact) -> list[PassPlan]:
        """Return a plan whose kernels only earlier passes can decide."""
        cost = plain_runs(start_seconds(state) + NCU_SECONDS, state)
        return self.planned((), counters=wanted.metrics, cost=cost, notes=(note, _set_note(wanted)))

    @property
    def is_traced(self) -> bool:
        """Return whether there is a trace pass before."""
        return self.context.wanted is None or "trace" in self.context.wanted

    def _traced_work(self) -> RegionWork:
        """Return what the regions of the traced run recorded."""
        for name in reversed(DeviceTracePass.step_names):
            with contextlib.suppress(UnreadableReport):
                done = read_region_work(self.context.folder, name)
                if done.marked:
                    return done
        return RegionWork()


class KernelCountersPass(NcuPass):
    """The smallest set of counters for the depth, on the configurations that the trace showed."""

    name = "counters"
    step_names = ("counters", "counters-again", "counters-gate")
    leaves = ("counters.ncu-rep", "counters-again.ncu-rep", "counters-gate.ncu-rep")

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the counters, and a second try.

        Where the set was too much for this machine the smallest set is tried; where ncu ended a program of JAX, the
        same again, with one compilation at a time.
        """
        wanted = "gate" if self.context.depth == "gate" else "standard"
        plans = self._with_set(state, wanted, "counters")
        if self._jax and any(_crashed(result) for result in state.passes):
            plans += self._with_set(state, wanted, "counters-again")
        if self.context.depth != "gate" and any(smaller_may_do(result) for result in state.passes):
            plans += self._with_set(state, "gate", "counters-gate")
        return plans

    def _with_set(self, state: PlanState, name: str, step: str) -> list[PassPlan]:
        """Plan the counters of the set `name` in one step, or say why they are skipped."""
        wanted = self.counter_set(name)
        if not self._ncu.works:
            return self.skip(self._ncu.reason, self._ncu.fix, counters=wanted.metrics)
        trace = _trace_of_nsys(state)
        if trace is None and self.is_traced and all(result.name != "trace" for result in state.passes):
            return self.undecided(state, wanted, Fact("kernels-by-trace"))
        if trace is None:
            return self._without_trace(state, self.counter_set("gate"))
        if not trace.kernels:
            return self.skip(*_explain_no_kernels(state, trace))
        if (share := _kernel_share(trace)) < MIN_WORK and self._may_leave_out(trace):
            return self.skip(
                Fact.of("kernels-take-little", share=share), "--depth full", counters=wanted.metrics
            )
        task = self.choose(state, trace, wanted)
        if not task.counted.kernels:
            return self.skip(Fact("nothing-worth-counting"), notes=task.notes)
        return self.count(state, wanted, task, trace, step)

    def _may_leave_out(self, trace: GpuTrace) -> bool:
        """Return whether the user did not ask for the counters of just this work."""
        return self.context.depth == "standard" and self.context.wanted is None and not trace.marked

    def _without_trace(self, state: PlanState, wanted: CounterSet) -> list[PassPlan]:
        """Plan every launch configuration once, in the region where one is marked."""
        task = CountingTask(ChosenKernels((), 0.0), CountedLaunches(()), WARMUP)
        return self.planned(
            (self.step(state, "counters", wanted, task, marked=state.marked),),
            counters=wanted.metrics,
            limit=max(MIN_LIMIT, PATIENCE * (start_seconds(state) + NCU_SECONDS)),
            notes=(Fact("no-trace-to-choose-by"), *self._notes(state, wanted)),
        )


class ExplanationPass(NcuPass):
    """The counters that explain, on the program's own kernels that missed a target; on all at full depth."""

    name = "explain"
    step_names, leaves = ("explain",), ("explain.ncu-rep",)

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the pass, once the counters have been judged."""
        wanted, everything = self.counter_set("explain"), self.context.depth == "full"
        if not self._ncu.works:
            return self.skip(self._ncu.reason, self._ncu.fix, counters=wanted.metrics)
        whom = Fact("every-counted-kernel" if everything else "own-kernels-that-missed")
        counted = [result for result in state.passes if result.name == "counters"]
        if state.verdicts is None or (not counted and self.is_traced):
            return self.undecided(state, wanted, whom)
        if not any(result.state == "finished" for result in counted):
            return self.skip(Fact("nothing-to-explain"))
        trace = _trace_of_nsys(state)
        if trace is None:
            return self.skip(Fact("no-trace-of-kernels"))
        failed = {verdict.scope for verdict in state.verdicts if _is_open(verdict)}
        kernels = (k.kernel for k in choose_kernels(trace).kernels)
        only = frozenset(
            kernel
            for kernel in kernels
            if everything or (kernel.scope in failed and kernel_owner(kernel.name) in OWN_CODE)
        )
        if not only:
            return self.skip(Fact("no-kernel-missed"), "--depth full")
        return self.count(state, wanted, self.choose(state, trace, wanted, only), trace, "explain")


def _kernel_share(trace: GpuTrace) -> float:
    """Return the share of the time in which kernels run, 0..1; 1 where that is not known."""
    if trace.busy is None or not trace.span:
        return 1.0
    return max(0.0, trace.busy - (trace.copying or 0.0)) / trace.span


def _crashed(result: PassResult) -> bool:
    """Return whether the program crashed in a counters pass, and ends well without ncu."""
    reason = result.reason
    return result.name == "counters" and reason is not None and reason.code == "ended-by-tool"


def smaller_may_do(result: PassResult) -> bool:
    """Return whether the smallest set may succeed where a counters pass failed: it needs only one replay."""
    failed = result.name == "counters" and result.state == "failed"
    return failed and result.reason is not None and result.reason.root.names.get("fault") == _OF_THE_SET


def _in_program(
    trace: GpuTrace, kernels: Sequence[KernelTime], replays: int, max_seconds: float
) -> CountedLaunches:
    """Return what to count in a program, by the names that ncu's filter takes."""
    if not kernels:
        return CountedLaunches(())
    base, names = name_filter([KernelPlan(k.kernel, 0.0) for k in kernels])
    pattern = re.compile(names.removeprefix("regex:"))

    def matches(kernel: Kernel) -> bool:
        name = kernel.mangled if base == "mangled" else kernel.name
        return pattern.search(name or "") is not None

    return count_in_program(trace, kernels, matches, replays=replays, max_seconds=max_seconds)


def _explain_no_kernels(state: PlanState, trace: GpuTrace) -> tuple[Fact, str]:
    """Return why a trace is empty, and the fix: a process that does not exit normally loses its last buffers."""
    launched = sum(call.calls for call in trace.api if "Launch" in call.name)
    if launched:
        return Fact.of("lost-kernels", count=launched), "end it with sys.exit"
    if trace.marked or state.marked:
        return Fact("no-kernel-in-region"), "--backend cpu"
    return Fact("no-kernel-traced"), "--backend cpu"


def _is_open(verdict: Verdict) -> bool:
    """Return whether more counters may help: the target was missed, or the known value decides nothing."""
    return verdict.verdict == "fail" or (verdict.verdict == "unknown" and verdict.value is not None)


def _kernel_plans(
    chosen: ChosenKernels, kernels: Sequence[KernelTime], counted: CountedLaunches
) -> tuple[KernelPlan, ...]:
    """Return the plans of these kernels, largest share first."""
    launch = counted.launch if counted.window is None else None
    return tuple(
        KernelPlan(k.kernel, chosen.share(k), launch) for k in sorted(kernels, key=lambda k: -chosen.share(k))
    )


def _set_note(wanted: CounterSet) -> Fact:
    """Return a note on the counter set."""
    return Fact.of("counter-set", wanted.note, name=wanted.name)


def _trace_of_nsys(state: PlanState) -> GpuTrace | None:
    """Return the trace that shows which kernels there are; times from ncu itself are not one."""
    return state.trace if state.trace is not None and state.trace.tool != "ncu" else None
