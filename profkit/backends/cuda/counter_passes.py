"""The passes that count kernels: ncu on chosen launch configurations.

Expected costs, in wall seconds, are those of one H200 with ncu 2025.3 (docs/cuda.md, what it costs): a torch program
that starts in 3 s took 5.6 s under ncu with two kernels of 5 passes, 22 s with 8 of 38 passes.
"""

from __future__ import annotations

import collections
import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from profkit.analysis.kernel_names.owner import OWN_CODE, kernel_owner
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
from profkit.backends.cuda.trace_pass import WARMUP, DeviceTracePass, region_seconds, traced_iterations
from profkit.backends.passes import Pass, RegionWork, plain_runs, read_region_work, start_seconds
from profkit.core.errors import UnreadableReport
from profkit.core.types import (
    Fact,
    GpuTrace,
    Kernel,
    KernelPlan,
    KernelTime,
    PassPlan,
    PassResult,
    Step,
    Switch,
    Verdict,
)
from profkit.profilers.ncu.command import CounterSet, counter_set, function_name, name_filter, ncu_argv
from profkit.profilers.ncu.probe import NcuAbility

MIN_WORK = 0.05  # share of the time: with less in kernels, a run that counts them is not worth its time
NCU_SECONDS = 2.0  # start, first launch, end
_OF_THE_SET = "counter-set"  # the code of ncu's faults where it is the set that does not work here
# Times the wall seconds that launches get, where they have so many times the GPU time of those that fit into these.
LONGEST_COUNTING, MUCH_MORE = 2.0, 2.0
MIN_COUNTING = 5.0  # wall seconds for launches that the shortest program gets
# Wall seconds after which a run under ncu is ended: replaying a kernel that waits for another one never ends, and
# saving what a kernel may write takes seconds where the program holds most of the device's memory. What was counted
# until then is kept.
MIN_LIMIT, PATIENCE, FINISH = 30.0, 3.0, 20.0
# By default JAX allocates most of the device's memory at its start, and a replay saves all that a kernel may write.
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
        passed_over = [k for k in chosen.kernels if counted.window is not None and k not in counted.over]
        if lost := sum(map(chosen.share, passed_over)):
            notes.append(Fact.of("launched-too-often", share=lost))
        left = [k for k in chosen.kernels if k not in counted.kernels and k not in passed_over]
        if lost := sum(map(chosen.share, left)):
            notes.append(Fact.of("launched-at-other-times", share=lost))
        return CountingTask(chosen, counted, iterations, entries, tuple(notes))

    def count(
        self, state: PlanState, wanted: CounterSet, task: CountingTask, trace: GpuTrace, step: str
    ) -> list[PassPlan]:
        """Return the plan of a task, its step called `step`."""
        counted, window = task.counted, task.counted.window
        kernels = _kernel_plans(task.chosen, counted.kernels, counted)
        named = kernels if window is None else _kernel_plans(task.chosen, counted.over, counted)
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
    """Return what to count in a program, by the names that ncu's filter takes.

    ncu stops at each launch whose name fits, also where it passes it over. Where that takes longer than `max_seconds`
    (9,000 small launches in each step), names that are launched most often are left out, as many as leave most GPU
    time to be counted.
    """
    every = _in_window(trace, kernels, replays, max_seconds)
    if every.seconds(replays) <= max_seconds:
        return every
    shorter: list[CountedLaunches] = []
    left = list(kernels)
    while left := _without_most_launched(trace, left):
        shorter.append(_in_window(trace, left, replays, max_seconds))
    fitting = [found for found in shorter if found.kernels and found.seconds(replays) <= max_seconds]
    best = max(fitting, key=_counted_seconds, default=every)
    worth = _counted_seconds(every) > MUCH_MORE * _counted_seconds(best)
    return every if worth and every.seconds(replays) <= LONGEST_COUNTING * max_seconds else best


def _counted_seconds(counted: CountedLaunches) -> float:
    """Return the GPU time of the kernels that are counted."""
    return sum(timed.total for timed in counted.kernels)


def _in_window(
    trace: GpuTrace, kernels: Sequence[KernelTime], replays: int, max_seconds: float
) -> CountedLaunches:
    """Return the stretch of launches to count, of those whose names are those of the kernels."""
    if not kernels:
        return CountedLaunches(())
    base, names = name_filter([KernelPlan(k.kernel, 0.0) for k in kernels])
    pattern = re.compile(names.removeprefix("regex:"))

    def matches(kernel: Kernel) -> bool:
        name = kernel.mangled if base == "mangled" else kernel.name
        return pattern.search(name or "") is not None

    return count_in_program(trace, kernels, matches, replays=replays, max_seconds=max_seconds)


def _without_most_launched(trace: GpuTrace, kernels: Sequence[KernelTime]) -> list[KernelTime]:
    """Return the kernels but those of the name with most launches, whatever their grids."""
    launches: collections.Counter[str] = collections.Counter()
    for timed in (*trace.kernels, *trace.setup):
        launches[_filtered_name(timed)] += timed.launches + timed.setup_launches
    most = max(map(_filtered_name, kernels), key=launches.__getitem__)
    return [timed for timed in kernels if _filtered_name(timed) != most]


def _filtered_name(timed: KernelTime) -> str:
    return timed.kernel.mangled or function_name(timed.kernel.name)


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
