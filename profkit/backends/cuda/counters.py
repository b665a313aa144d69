"""The counters pass and the pass that explains: ncu on the chosen launch configurations, once each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from profkit.backends import PlanState, RunContext
from profkit.backends.cuda.kernels import (
    ChosenKernels,
    CountedLaunches,
    choose_kernels,
    count_in_benchmark,
    count_in_program,
    entries_needed,
)
from profkit.backends.cuda.trace import (
    NCU_SECONDS,
    SOURCE,
    WARMUP,
    group_seconds,
    kernel_seconds,
    region_seconds,
    traced_iterations,
)
from profkit.backends.passes import RegionWork, known_seconds, plain_runs, read_region_work, start_seconds
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import format_percent, plural
from profkit.core.types import (
    Directive,
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
from profkit.profilers.ncu.command import name_filter, ncu_argv
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.ncu.sets import CounterSet, counter_set

Pass = Literal["counters", "explain"]
_BY_TRACE = "which kernels, is decided by the trace: those that make up 95 % of its GPU time, once each"
# What ncu says (tools/ncu/faults.py) where it is the set that does not work here.
_OF_THE_SET = re.compile(r"metric|section|memory|replayed", re.IGNORECASE)
LEAST_COUNTING = 5.0  # wall seconds for launches that the shortest program gets
# Wall seconds after which a run under ncu is ended: replaying a kernel that waits for another one never ends, and
# saving what a kernel may write takes seconds where the program holds most of the device's memory. What was counted
# until then is kept.
LEAST_LIMIT, PATIENCE, FINISH = 60.0, 3.0, 20.0


@dataclass(frozen=True)
class CountingTask:
    """What a pass looks at: the launches of `counted` by the names of `chosen`, how often a benchmark runs, which
    entries of a region it sees, what is left out.
    """

    chosen: ChosenKernels
    counted: CountedLaunches
    iterations: int
    entries: tuple[int, int] | None
    notes: tuple[str, ...]


def choose_task(
    state: PlanState,
    trace: GpuTrace,
    done: RegionWork,
    *,
    only: frozenset[Kernel] | None = None,
    thorough: bool = False,
    replays: int = 1,
) -> CountingTask:
    """The launches to count of what the trace showed, in `replays` passes each; with `only` those of some
    configurations.

    `thorough`: also launches that take longer than a plain run of the workload. `done` is what the regions' records of
    the traced run say.
    """
    chosen = choose_kernels(trace)
    if only is not None:
        chosen = replace(chosen, kernels=tuple(k for k in chosen.kernels if k.kernel in only))
    iterations = traced_iterations(state)
    entries: tuple[int, int] | None = None
    if trace.marked and state.benchmark:
        counted, iterations = count_in_benchmark(chosen.kernels, iterations)
    elif (
        trace.marked and state.marked and done.entries
    ):  # those looked at are warm, so the first launch there will do
        entries = entries_needed(chosen.kernels, done.entries, done.processes)
        counted = CountedLaunches(chosen.kernels)
    else:
        unlimited = thorough or state.plain_seconds is None
        most_seconds = inf if unlimited else max(LEAST_COUNTING, state.plain_seconds or 0.0)
        counted = _in_program(trace, chosen.kernels, replays, most_seconds)
    notes = list(chosen.notes)
    if lost := sum(chosen.share(k) for k in chosen.kernels if k not in counted.kernels):
        notes.append(
            f"{format_percent(100 * lost)} % of the GPU time is in kernels that are launched at other times of "
            "the run: mark them with profkit.region to count them"
        )
    return CountingTask(chosen, counted, iterations, entries, tuple(notes))


def _in_program(
    trace: GpuTrace, kernels: Sequence[KernelTime], replays: int, most_seconds: float
) -> CountedLaunches:
    if not kernels:
        return CountedLaunches(())
    base, names = name_filter([KernelPlan(k.kernel, 0.0) for k in kernels])
    pattern = re.compile(names.removeprefix("regex:"))

    def matches(kernel: Kernel) -> bool:
        name = kernel.mangled if base == "mangled" else kernel.name
        return pattern.search(name or "") is not None

    return count_in_program(trace, kernels, matches, replays=replays, most_seconds=most_seconds)


def plan_counters(
    context: RunContext, ncu: NcuAbility, state: PlanState, chip: str | None, *, again: bool = False
) -> PassPlan:
    """The smallest set for the depth, on the configurations that the trace showed.

    `again`: with the smallest set of all, after a larger one failed (see `smaller_may_do`).
    """
    wanted = counter_set("gate" if context.depth == "gate" or again else "standard", chip, ncu.version)
    if not ncu.works:
        return PassPlan("counters", "ncu", counters=wanted.metrics, skipped=ncu.reason, fix=ncu.fix)
    traces = [result for result in state.passes if result.name == "trace"]
    trace = _trace_of_nsys(state)
    if trace is None and not traces and _is_traced(context):
        return _undecided_pass("counters", state, wanted, _BY_TRACE)
    if trace is None:
        return _plan_without_trace(context, ncu, state, counter_set("gate", chip, ncu.version))
    if not trace.kernels:
        reason, fix = _explain_no_kernels(state, trace)
        return PassPlan("counters", "ncu", skipped=reason, fix=fix)
    thorough = context.depth == "full"
    task = choose_task(
        state, trace, _traced_region_work(context), thorough=thorough, replays=wanted.replays or 1
    )
    if not task.counted.kernels:
        return PassPlan("counters", "ncu", skipped="; ".join(task.notes) or "no kernel is worth counting")
    return _plan_task(
        context, ncu, state, "counters", wanted, task, trace, "counters-gate" if again else "counters"
    )


def _explain_no_kernels(state: PlanState, trace: GpuTrace) -> tuple[str, str]:
    """Why a trace is empty. The last buffers of a process that does not end by its exit are lost."""
    launched = sum(call.calls for call in trace.api if "Launch" in call.name)
    if launched:
        lost = f"the host launched {plural(launched, 'kernel')}, but the trace lost them: it ended without its exit"
        return f"{lost} (os._exit, exec, a signal), or nsys cannot trace this device", "end it with sys.exit"
    if trace.marked or state.marked:
        return "the marked region launched no kernel on the GPU", "--backend cpu"
    if not trace.api:
        return "the workload launched no kernel on the GPU", "--backend cpu"
    return (
        "the trace holds no kernel, though the workload used CUDA: it launched none, or it ended without its exit "
        "(os._exit, exec, a signal), which loses what was traced last",
        "end it with sys.exit, or mark what counts with profkit.region; --backend cpu where it launches none",
    )


def smaller_may_do(result: PassResult) -> bool:
    """Whether a failed counters pass may do with the smallest set: one replay, which saves and patches nothing."""
    return (
        result.name == "counters"
        and result.state == "failed"
        and _OF_THE_SET.search(result.reason or "") is not None
    )


def plan_explain(context: RunContext, ncu: NcuAbility, state: PlanState, chip: str | None) -> PassPlan:
    """The counters that explain, on the configurations that missed a target; on all of them at full depth."""
    wanted = counter_set("explain", chip, ncu.version)
    if not ncu.works:
        return PassPlan("explain", "ncu", counters=wanted.metrics, skipped=ncu.reason, fix=ncu.fix)
    whom = "every kernel that was counted" if context.depth == "full" else "only kernels that missed a target"
    counted = [result for result in state.passes if result.name == "counters"]
    if state.verdicts is None or (not counted and _is_traced(context)):
        return _undecided_pass("explain", state, wanted, whom)
    if not any(result.state == "finished" for result in counted):
        return PassPlan("explain", "ncu", skipped="nothing was counted that could be explained")
    trace = _trace_of_nsys(state)
    if trace is None:
        return PassPlan("explain", "ncu", skipped="there is no trace that tells its kernels")
    failed = {verdict.scope for verdict in state.verdicts if _is_open(verdict)}
    only = frozenset(
        k.kernel for k in choose_kernels(trace).kernels if context.depth == "full" or k.kernel.scope in failed
    )
    if not only:
        return PassPlan("explain", "ncu", skipped="no kernel missed a target", fix="--depth full")
    return _plan_task(
        context,
        ncu,
        state,
        "explain",
        wanted,
        choose_task(
            state,
            trace,
            _traced_region_work(context),
            only=only,
            thorough=context.depth == "full",
            replays=wanted.replays or 1,
        ),
        trace,
        "explain",
    )


def _is_open(verdict: Verdict) -> bool:
    """Whether more counters may tell more: the target was missed, or the value there is decides nothing."""
    return verdict.verdict == "fail" or (verdict.verdict == "unknown" and verdict.value is not None)


def _plan_task(
    context: RunContext,
    ncu: NcuAbility,
    state: PlanState,
    name: Pass,
    wanted: CounterSet,
    task: CountingTask,
    trace: GpuTrace,
    step: str,
) -> PassPlan:
    counted, window = task.counted, task.counted.window
    kernels = _kernel_plans(task.chosen, counted.kernels, counted, wanted.replays)
    # A window is counted over the names of all that were chosen.
    named = kernels if window is None else _kernel_plans(task.chosen, task.chosen.kernels, counted, None)
    planned = _counting_step(context, ncu, state, step, wanted, named, task, window, marked=trace.marked)
    counting = group_seconds(counted, wanted.replays)
    once = start_seconds(state) + region_seconds(state, task.iterations) + NCU_SECONDS
    seconds = once + counting
    return PassPlan(
        name,
        "ncu",
        (planned,),
        wanted.metrics,
        cost=plain_runs(seconds, state),
        seconds=known_seconds(seconds, state),
        cost_note=(
            f"{once:.1f} s for a run of the workload under ncu and {counting:.2f} s for launches, "
            f"{SOURCE}; {_set_note(wanted)}"
        ),
        limit=max(LEAST_LIMIT, PATIENCE * seconds),
        kernels=kernels,
        notes=(*task.notes, *ncu.notes),
    )


def _plan_without_trace(
    context: RunContext, ncu: NcuAbility, state: PlanState, wanted: CounterSet
) -> PassPlan:
    """Without a trace: every launch configuration once, in the region where one is marked."""
    task = CountingTask(ChosenKernels((), 0.0), CountedLaunches(()), WARMUP, None, ())
    step = _counting_step(context, ncu, state, "counters", wanted, (), task, None, marked=state.marked)
    return PassPlan(
        "counters",
        "ncu",
        (step,),
        wanted.metrics,
        cost_note=_set_note(wanted),
        limit=LEAST_LIMIT,
        notes=(
            "no trace tells which kernels matter: every launch configuration is counted, at its first launch",
            *ncu.notes,
        ),
    )


def _kernel_plans(
    chosen: ChosenKernels, kernels: Sequence[KernelTime], counted: CountedLaunches, replays: int | None
) -> tuple[KernelPlan, ...]:
    launch = counted.launch if counted.window is None else None
    return tuple(
        KernelPlan(
            k.kernel, chosen.share(k), replays=replays, launch=launch, seconds=kernel_seconds(k, replays)
        )
        for k in sorted(kernels, key=lambda k: -chosen.share(k))
    )


def _counting_step(
    context: RunContext,
    ncu: NcuAbility,
    state: PlanState,
    name: str,
    wanted: CounterSet,
    kernels: tuple[KernelPlan, ...],
    task: CountingTask,
    window: tuple[int, int] | None,
    *,
    marked: bool,
) -> Step:
    folder = context.folder / "artifacts"
    argv = ncu_argv(
        context.workload.command,
        folder / f"{name}.ncu-rep",
        metrics=wanted.metrics,
        sections=wanted.sections,
        kernels=kernels,
        marked=marked,
        ncu=str(ncu.path),
        version=ncu.version,
        window=window,
    )
    return Step(
        name,
        argv,
        (f"artifacts/{name}.ncu-rep",),
        directive=Directive(
            "explain" if name.startswith("explain") else "counters",
            str(folder / f"{name}.region"),
            switch=Switch("cuda") if state.marked else None,
            iterations=task.iterations,
            warmup=WARMUP,
            entries=task.entries,
        ),
        tool="ncu",
        signals_as_codes=True,
        finish=FINISH,
    )


def _set_note(wanted: CounterSet) -> str:
    return f"set {wanted.name!r}: {wanted.note}"


def _undecided_pass(name: Pass, state: PlanState, wanted: CounterSet, note: str) -> PassPlan:
    """A pass of which only the passes before it can say what it looks at."""
    seconds = start_seconds(state) + NCU_SECONDS
    return PassPlan(
        name,
        "ncu",
        counters=wanted.metrics,
        cost=plain_runs(seconds, state),
        seconds=known_seconds(seconds, state),
        cost_note=f"one run under ncu, {SOURCE}, and the replays of the kernels; {_set_note(wanted)}",
        notes=(note,),
    )


def _traced_region_work(context: RunContext) -> RegionWork:
    """What the regions of the traced run recorded."""
    for name in ("trace-torch", "trace"):
        with contextlib.suppress(UnreadableReport):
            done = read_region_work(context.folder, name)
            if done.marked:
                return done
    return RegionWork()


def _trace_of_nsys(state: PlanState) -> GpuTrace | None:
    """The trace that tells which kernels there are; what ncu itself told of times is none."""
    return state.trace if state.trace is not None and state.trace.tool != "ncu" else None


def _is_traced(context: RunContext) -> bool:
    return context.wanted is None or "trace" in context.wanted
