"""Counters without a PMU: callgrind simulates the caches and branches of the region, twice, for three cache levels."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path

from profkit.analysis.metrics import derive, formula_table
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.passes import divide_counters, divide_profile, read_region_work
from profkit.core.errors import UnreadableReport
from profkit.core.types import Cache, Counter, Depth, Directive, PassPlan, Reading, Report, Step, Switch
from profkit.hardware.processor import data_cache, instruction_cache
from profkit.profilers.valgrind.command import (
    COST,
    COST_NOTE,
    callgrind_argv,
    callgrind_outputs,
    changed_geometries,
    single_thread_env,
)
from profkit.profilers.valgrind.instructions import instruction_mix
from profkit.profilers.valgrind.levels import OF_SECOND_RUN, combine_levels
from profkit.profilers.valgrind.probe import ValgrindAbility
from profkit.profilers.valgrind.read import read_callgrind

# Simulated code is 50 to 100 times slower, and fused multiply-adds 3000 times (valgrind 3.19 does them in software,
# 65 ns a lane): 2 ms of native work is up to 6 s.
NATIVE_SECONDS = 0.002
MOST_ITERATIONS = 1000
LIMITS: dict[Depth, float | None] = {"gate": 180.0, "standard": 900.0, "full": None}
COUNTERS = ("Ir", "Dr", "Dw", "L1 misses", "L2 misses", "L3 misses", "branches", "FLOP", "SIMD")


def plan_simulation(context: RunContext, valgrind: ValgrindAbility, state: PlanState) -> PassPlan:
    """Two runs side by side: behind L1 stands L2 in one (which also tells instructions by kind), L3 in the other."""
    if not valgrind.works:
        return PassPlan("counters", "valgrind", simulated=True, skipped=valgrind.reason, fix=valgrind.fix)
    first, second, third = (data_cache(context.machine, level) for level in (1, 2, 3))
    if first is None or second is None:
        reason = (
            "this machine does not report its cache geometry; "
            "a simulation with a guessed one would not describe it"
        )
        return PassPlan("counters", "valgrind", simulated=True, skipped=reason)
    inner = instruction_cache(context.machine)
    levels = [("simulate-l2", second)] + ([("simulate-l3", third)] if third is not None else [])
    steps = tuple(
        _simulation_step(context, valgrind, state, name, inner, first, last) for name, last in levels
    )
    return PassPlan(
        "counters",
        "valgrind",
        steps,
        COUNTERS,
        cost=COST / 6 if state.marked else COST,
        cost_note=COST_NOTE,
        limit=LIMITS[context.depth],
        parallel=True,
        simulated=True,
        notes=(
            *(
                f"L{c.level}: {c.size // 1024} KiB, {c.ways}-way, {c.source}"
                for c in (first, second, third)
                if c
            ),
            *changed_geometries(inner, first, *(level for _, level in levels)),
        ),
    )


def _simulation_step(
    context: RunContext,
    valgrind: ValgrindAbility,
    state: PlanState,
    name: str,
    inner: Cache,
    first: Cache,
    last: Cache,
) -> Step:
    folder = context.folder / "artifacts"
    argv = callgrind_argv(
        context.workload.command,
        folder / f"{name}.callgrind",
        i1=inner,
        d1=first,
        last=last,
        region=state.marked,
        instructions=name == "simulate-l2",
        valgrind=str(valgrind.path),
        setarch=valgrind.setarch,
    )
    return Step(
        name,
        argv,
        env=single_thread_env(),
        directive=Directive(
            "counters",
            str(folder / f"{name}.region"),
            switch=Switch("valgrind") if state.marked else None,
            iterations=_simulated_iterations(state.iteration_seconds) if state.marked else 1,
        ),
        tool="valgrind",
    )


def _simulated_iterations(seconds: float | None) -> int:
    """As many as fit into the native time that is worth simulating, at least one."""
    if seconds is None or seconds <= 0:
        return 1
    return min(MOST_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))


def read_simulation(context: RunContext, plan: PassPlan) -> PassFindings:
    """Counters and readings per iteration, for the region and for its hottest functions.

    Raises UnreadableReport where a simulation left nothing that can be read.
    """
    files = {
        step.name: callgrind_outputs(context.folder / "artifacts" / f"{step.name}.callgrind")
        for step in plan.steps
    }
    reports = {name: _read_report(name, paths) for name, paths in files.items()}
    done = read_region_work(context.folder, "simulate-l2")
    count, odd = done.iterations, done.odd
    levels = combine_levels(reports["simulate-l2"], reports.get("simulate-l3"))
    mix = instruction_mix(*files["simulate-l2"])
    counters = [*levels.counters, *(mix.counters() if mix is not None else ())]
    counters = [c for c in counters if c.scope.kind != "region"]  # one region is the run; see per_iteration
    per_iteration = divide_counters(_known_functions(counters), count)
    of_mix = {counter.name for counter in (mix.counters() if mix is not None else ())}
    artifacts = {name: f"artifacts/{paths[0].name}" for name, paths in files.items()}
    readings = tuple(
        _with_artifact(reading, artifacts, OF_SECOND_RUN | of_mix)
        for reading in derive(per_iteration, formula_table("valgrind"), "valgrind")
    )
    notes = [*levels.warnings, *(mix.notes if mix is not None else ())]
    if count > 1:
        notes.append(f"counts are per iteration, of {count} simulated ones")
    if odd is not None:
        notes.append(odd)
    if not levels.same_work:
        readings = tuple(replace(r, quality="estimated") if r.value is not None else r for r in readings)
    # The run that is not slowed by instruction addresses has source lines: it is the one to look at by function.
    by_function = reports.get("simulate-l3", reports["simulate-l2"])
    return PassFindings(
        counters=tuple(c for c in per_iteration if c.scope.kind != "function"),
        readings=readings,
        profiles=tuple(divide_profile(p, count) for p in by_function.profiles),
        notes=tuple(notes),
        artifacts=tuple(f"artifacts/{path.name}" for paths in files.values() for path in paths),
    )


def _read_report(name: str, paths: tuple[Path, ...]) -> Report:
    if not paths:
        raise UnreadableReport(
            f"{name} left no callgrind file: the workload ended before valgrind could write"
        )
    report = read_callgrind(*paths)
    if not any(c.value for c in report.counters):
        raise UnreadableReport(
            f"{name} counted nothing: the region was never entered under the simulation",
            "mark what counts with profkit.region or profkit.benchmark, or mark nothing",
        )
    return report


def _with_artifact(reading: Reading, artifacts: Mapping[str, str], of_l2: Set[str]) -> Reading:
    """The reading with the file that its first counter stands in: that is above the line of a ratio."""
    first = (reading.source.counter or "").partition(", ")[0]
    name = "simulate-l3" if "simulate-l3" in artifacts and first not in of_l2 else "simulate-l2"
    return replace(reading, source=replace(reading.source, artifact=artifacts[name]))


def _known_functions(counters: list[Counter]) -> list[Counter]:
    """Of functions only those that have cache counters as well: the instruction mix knows more of them."""
    with_caches = {c.scope for c in counters if c.name == "Dr"}
    return [c for c in counters if c.scope.kind != "function" or c.scope in with_caches]
