"""The counters pass and the pass that explains: ncu on the chosen launch configurations, once each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from profkit.backends import Known, Site
from profkit.backends.cuda import cost
from profkit.backends.cuda.choice import Chosen, choose
from profkit.backends.cuda.launches import Group, Steady, group, in_benchmark, in_program, iterations_needed
from profkit.backends.cuda.trace import WARMUP
from profkit.backends.cuda.trace import iterations as traced_iterations
from profkit.model import (
    Directive,
    GpuTrace,
    Kernel,
    KernelPlan,
    PassPlan,
    PassResult,
    Step,
    Switch,
)
from profkit.status import status_wrapper
from profkit.tools.ncu.command import ncu_argv
from profkit.tools.ncu.probe import NcuAbility
from profkit.tools.ncu.sets import CounterSet, counter_set
from profkit.words import percent, plural

Pass = Literal["counters", "explain"]
_BY_TRACE = "which kernels, is decided by the trace: those that make up 95 % of its GPU time, once each"
# What ncu says (tools/ncu/faults.py) where it is the set that does not work here.
_OF_THE_SET = re.compile(r"metric|section|memory|replayed", re.IGNORECASE)
MOST_RUNS = 3  # of the workload for one pass; what needs more is left out
# Wall seconds after which a run under ncu is ended: replaying a kernel that waits for another one never ends.
LEAST_LIMIT, PATIENCE = 300.0, 20.0


@dataclass(frozen=True)
class Look:
    """What a pass looks at: kernels in the runs that serve them, how often a benchmark runs, what is left out."""

    chosen: Chosen
    groups: tuple[Group, ...]
    iterations: int
    notes: tuple[str, ...]


def look(known: Known, trace: GpuTrace, *, only: frozenset[Kernel] | None = None) -> Look:
    """The launches to count of what the trace showed; with `only` those of some configurations."""
    chosen = choose(trace)
    kernels = [k for k in chosen.kernels if only is None or k.kernel in only]
    traced = traced_iterations(known)
    counted = iterations_needed(kernels, traced) if trace.marked and known.benchmark else traced
    steady: list[Steady] = []
    for kernel in kernels:
        if trace.marked and known.benchmark:
            steady.append(in_benchmark(kernel, traced, counted))
        else:
            steady.append(in_program(kernel, before=0 if trace.marked else kernel.setup_launches))
    groups, notes = group(steady), list(chosen.notes)
    if len(groups) > MOST_RUNS:
        lost = sum(chosen.share(k) for g in groups[MOST_RUNS:] for k in g.kernels)
        notes.append(
            f"{percent(100 * lost)} % of the GPU time is in kernels that are launched at other times of the run; "
            f"counting them would take {plural(len(groups) - MOST_RUNS, 'more run')} of it"
        )
    return Look(chosen, groups[:MOST_RUNS], counted, tuple(notes))


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
        where = "the marked region" if trace.marked or known.marked else "the workload"
        return PassPlan(
            "counters", "ncu", skipped=f"{where} launched no kernel on the GPU", fix="--backend cpu"
        )
    seen = look(known, trace)
    if not seen.groups:
        return PassPlan("counters", "ncu", skipped="; ".join(seen.notes) or "no kernel is worth counting")
    return _plan(site, ncu, known, "counters", wanted, seen, trace, "counters-gate" if again else "counters")


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
    failed = {verdict.scope for verdict in known.verdicts if verdict.verdict == "fail"}
    only = frozenset(
        k.kernel for k in choose(trace).kernels if site.depth == "full" or k.kernel.scope in failed
    )
    if not only:
        return PassPlan("explain", "ncu", skipped="no kernel missed a target", fix="--depth full")
    return _plan(site, ncu, known, "explain", wanted, look(known, trace, only=only), trace, "explain")


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
    steps = tuple(
        _step(
            site,
            ncu,
            known,
            step if number == 0 else f"{step}-{number + 1}",
            wanted,
            kernels,
            seen.iterations,
            marked=trace.marked,
        )
        for number, kernels in enumerate(runs)
    )
    kernels = tuple(sorted((k for run in runs for k in run), key=lambda k: -k.share))
    counting = sum(k.seconds or 0.0 for k in kernels)
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
            f"{once:.1f} s for each run of the workload under ncu and {counting:.2f} s for replays, {cost.SOURCE}; "
            f"{_set_note(wanted)}"
        ),
        limit=max(LEAST_LIMIT, PATIENCE * seconds / len(steps)),
        kernels=kernels,
        notes=(*seen.notes, *ncu.notes),
    )


def _blind(site: Site, ncu: NcuAbility, known: Known, wanted: CounterSet) -> PassPlan:
    """Without a trace: every launch configuration once, in the region where one is marked."""
    step = _step(site, ncu, known, "counters", wanted, (), WARMUP, marked=known.marked)
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
            launch=one.launch,
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
    iterations: int,
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
    )
    return Step(
        name,
        argv,
        (f"artifacts/{name}.ncu-rep",),
        directive=Directive(
            "explain" if name.startswith("explain") else "counters",
            str(folder / f"{name}.region"),
            switch=Switch("cuda") if known.marked else None,
            iterations=iterations,
            warmup=WARMUP,
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


def _of_trace(known: Known) -> GpuTrace | None:
    """The trace that tells which kernels there are; what ncu itself told of times is none."""
    return known.trace if known.trace is not None and known.trace.tool != "ncu" else None


def _traced(site: Site) -> bool:
    return site.wanted is None or "trace" in site.wanted
