"""The counters pass and the pass that explains: ncu on the chosen launch configurations, once each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from profkit.backends import Known, Site
from profkit.backends.cuda import cost
from profkit.backends.cuda.choice import Chosen, choose
from profkit.backends.cuda.launches import (
    Group,
    entries_needed,
    group,
    in_benchmark,
    in_entries,
    in_program,
    iterations_needed,
    windows,
)
from profkit.backends.cuda.trace import WARMUP
from profkit.backends.cuda.trace import iterations as traced_iterations
from profkit.backends.per_iteration import Done, done_in_region
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import percent, plural
from profkit.core.status import status_wrapper
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
MOST_RUNS = 3  # of the workload for one pass; what needs more is left out
# Wall seconds after which a run under ncu is ended: replaying a kernel that waits for another one never ends.
LEAST_LIMIT, PATIENCE = 300.0, 20.0


@dataclass(frozen=True)
class Look:
    """What a pass looks at: kernels in the runs that serve them, how often a benchmark runs, which entries of a region
    it sees, what is left out.
    """

    chosen: Chosen
    groups: tuple[Group, ...]
    iterations: int
    entries: tuple[int, int] | None
    notes: tuple[str, ...]


def look(known: Known, trace: GpuTrace, done: Done, *, only: frozenset[Kernel] | None = None) -> Look:
    """The launches to count of what the trace showed; with `only` those of some configurations.

    `done` is what the regions' records of the traced run say.
    """
    chosen = choose(trace)
    kernels = [k for k in chosen.kernels if only is None or k.kernel in only]
    counted = traced = traced_iterations(known)
    entries: tuple[int, int] | None = None
    if trace.marked and known.benchmark:
        counted = iterations_needed(kernels, traced)
        groups = group([in_benchmark(kernel, traced, counted) for kernel in kernels])
    elif trace.marked and known.marked and done.entries:
        entries = entries_needed(kernels, done.entries, done.processes)
        groups = group([in_entries(k, done.entries * done.processes, entries[1]) for k in kernels])
    else:
        groups = _in_program(trace, kernels)
    notes = list(chosen.notes)
    if len(groups) > MOST_RUNS:
        lost = sum(chosen.share(k) for g in groups[MOST_RUNS:] for k in g.kernels)
        notes.append(
            f"{percent(100 * lost)} % of the GPU time is in kernels that are launched at other times of the run; "
            f"counting them would take {plural(len(groups) - MOST_RUNS, 'more run')} of it"
        )
    return Look(chosen, groups[:MOST_RUNS], counted, entries, tuple(notes))


def _in_program(trace: GpuTrace, kernels: Sequence[KernelTime]) -> tuple[Group, ...]:
    """In a program that runs as it ran under the trace: a window of launches, or where none is known, late ones."""
    if not kernels:
        return ()
    base, names = name_filter([KernelPlan(k.kernel, 0.0) for k in kernels])
    pattern = re.compile(names.removeprefix("regex:"))

    def matches(kernel: Kernel) -> bool:
        name = kernel.mangled if base == "mangled" else kernel.name
        return pattern.search(name or "") is not None

    found = windows(trace, kernels, matches, from_start=not trace.marked)
    if found:
        return found
    all_launches = sum(k.launches + k.setup_launches for k in trace.kernels if matches(k.kernel))
    late = group([in_program(k, before=0 if trace.marked else k.setup_launches) for k in kernels])
    return tuple(replace(one, passed=all_launches) for one in late)


def plan_counters(
    site: Site, ncu: NcuAbility, known: Known, chip: str | None, *, again: bool = False
) -> PassPlan:
    """The smallest set for the depth, on the configurations that the trace showed.

    `again`: with the smallest set of all, after a larger one failed (see `smaller_may_do`).
    """
    wanted = counter_set("gate" if site.depth == "gate" or again else "standard", chip, ncu.version)
    if not ncu.counters_ok:
        return PassPlan("counters", "ncu", counters=wanted.metrics, skipped=ncu.reason, fix=ncu.fix)
    traces = [result for result in known.passes if result.name == "trace"]
    trace = _of_trace(known)
    if trace is None and not traces and _traced(site):
        return _undecided("counters", known, wanted, _BY_TRACE)
    if trace is None:
        return _blind(site, ncu, known, counter_set("gate", chip, ncu.version))
    if not trace.kernels:
        reason, fix = _no_kernels(known, trace)
        return PassPlan("counters", "ncu", skipped=reason, fix=fix)
    seen = look(known, trace, _done(site))
    if not seen.groups:
        return PassPlan("counters", "ncu", skipped="; ".join(seen.notes) or "no kernel is worth counting")
    return _plan(site, ncu, known, "counters", wanted, seen, trace, "counters-gate" if again else "counters")


def _no_kernels(known: Known, trace: GpuTrace) -> tuple[str, str]:
    """Why a trace is empty. The last buffers of a process that does not end by its exit are lost."""
    launched = sum(call.calls for call in trace.api if "Launch" in call.name)
    if launched:
        lost = f"the host launched {plural(launched, 'kernel')}, but the trace lost them: it ended without its exit"
        return f"{lost} (os._exit, exec, a signal), or nsys cannot trace this device", "end it with sys.exit"
    if trace.marked or known.marked:
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


def plan_explain(site: Site, ncu: NcuAbility, known: Known, chip: str | None) -> PassPlan:
    """The counters that explain, on the configurations that missed a target; on all of them at full depth."""
    wanted = counter_set("explain", chip, ncu.version)
    if not ncu.counters_ok:
        return PassPlan("explain", "ncu", counters=wanted.metrics, skipped=ncu.reason, fix=ncu.fix)
    whom = "every kernel that was counted" if site.depth == "full" else "only kernels that missed a target"
    counted = [result for result in known.passes if result.name == "counters"]
    if known.verdicts is None or (not counted and _traced(site)):
        return _undecided("explain", known, wanted, whom)
    if not any(result.state == "finished" for result in counted):
        return PassPlan("explain", "ncu", skipped="nothing was counted that could be explained")
    trace = _of_trace(known)
    if trace is None:
        return PassPlan("explain", "ncu", skipped="there is no trace that tells its kernels")
    failed = {verdict.scope for verdict in known.verdicts if _is_open(verdict)}
    only = frozenset(
        k.kernel for k in choose(trace).kernels if site.depth == "full" or k.kernel.scope in failed
    )
    if not only:
        return PassPlan("explain", "ncu", skipped="no kernel missed a target", fix="--depth full")
    return _plan(
        site, ncu, known, "explain", wanted, look(known, trace, _done(site), only=only), trace, "explain"
    )


def _is_open(verdict: Verdict) -> bool:
    """Whether more counters may tell more: the target was missed, or the value there is decides nothing."""
    return verdict.verdict == "fail" or (verdict.verdict == "unknown" and verdict.value is not None)


def _plan(
    site: Site,
    ncu: NcuAbility,
    known: Known,
    name: Pass,
    wanted: CounterSet,
    seen: Look,
    trace: GpuTrace,
    step: str,
) -> PassPlan:
    runs = [_kernels(seen.chosen, one, wanted.replays) for one in seen.groups]
    kernels = tuple(sorted((k for run in runs for k in run), key=lambda k: -k.share))
    steps = tuple(
        _step(
            site,
            ncu,
            known,
            step if number == 0 else f"{step}-{number + 1}",
            wanted,
            run if one.window is None else kernels,  # a window is counted over the names of all
            seen,
            one.window,
            marked=trace.marked,
        )
        for number, (one, run) in enumerate(zip(seen.groups, runs, strict=True))
    )
    counting = sum(cost.group_seconds(one, wanted.replays) for one in seen.groups)
    once = cost.start_seconds(known) + cost.region_seconds(known, seen.iterations) + cost.NCU_SECONDS
    seconds = once * len(steps) + counting
    return PassPlan(
        name,
        "ncu",
        steps,
        wanted.metrics,
        cost=cost.in_plain_runs(seconds, known),
        seconds=seconds if known.plain_seconds is not None else None,
        cost_note=(
            f"{once:.1f} s for each run of the workload under ncu and {counting:.2f} s for launches, {cost.SOURCE}; "
            f"{_set_note(wanted)}"
        ),
        limit=max(LEAST_LIMIT, PATIENCE * seconds / len(steps)),
        kernels=kernels,
        notes=(*seen.notes, *ncu.notes),
    )


def _blind(site: Site, ncu: NcuAbility, known: Known, wanted: CounterSet) -> PassPlan:
    """Without a trace: every launch configuration once, in the region where one is marked."""
    seen = Look(Chosen((), 0.0), (), WARMUP, None, ())
    step = _step(site, ncu, known, "counters", wanted, (), seen, None, marked=known.marked)
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


def _kernels(chosen: Chosen, one: Group, replays: int | None) -> tuple[KernelPlan, ...]:
    return tuple(
        KernelPlan(
            k.kernel,
            chosen.share(k),
            replays=replays,
            launch=one.launch if one.window is None else None,
            seconds=cost.kernel_seconds(k, replays),
        )
        for k in one.kernels
    )


def _step(
    site: Site,
    ncu: NcuAbility,
    known: Known,
    name: str,
    wanted: CounterSet,
    kernels: tuple[KernelPlan, ...],
    seen: Look,
    window: tuple[int, int] | None,
    *,
    marked: bool,
) -> Step:
    folder = site.folder / "artifacts"
    status = folder / f"{name}.status"
    argv = ncu_argv(
        status_wrapper(site.workload.command, status),
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
            switch=Switch("cuda") if known.marked else None,
            iterations=seen.iterations,
            warmup=WARMUP,
            entries=seen.entries,
        ),
        tool="ncu",
        workload_status=str(status),
    )


def _set_note(wanted: CounterSet) -> str:
    return f"set {wanted.name!r}: {wanted.note}"


def _undecided(name: Pass, known: Known, wanted: CounterSet, note: str) -> PassPlan:
    """A pass of which only the passes before it can say what it looks at."""
    seconds = cost.start_seconds(known) + cost.NCU_SECONDS
    return PassPlan(
        name,
        "ncu",
        counters=wanted.metrics,
        cost=cost.in_plain_runs(seconds, known),
        seconds=seconds if known.plain_seconds is not None else None,
        cost_note=f"one run under ncu, {cost.SOURCE}, and the replays of the kernels; {_set_note(wanted)}",
        notes=(note,),
    )


def _done(site: Site) -> Done:
    """What the regions of the traced run recorded."""
    for name in ("trace-torch", "trace"):
        with contextlib.suppress(UnreadableReport):
            done = done_in_region(site.folder, name)
            if done.marked:
                return done
    return Done()


def _of_trace(known: Known) -> GpuTrace | None:
    """The trace that tells which kernels there are; what ncu itself told of times is none."""
    return known.trace if known.trace is not None and known.trace.tool != "ncu" else None


def _traced(site: Site) -> bool:
    return site.wanted is None or "trace" in site.wanted
