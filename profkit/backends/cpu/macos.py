"""The run of a CPU on macOS: Time Profiler, and CPU Counters as its template is.

Built from Instruments' exports and help texts, and against a stand-in: it has not run on a Mac yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cpu.counting import (
    NATIVE_SECONDS,
    as_estimate,
    counted_iterations,
    read_groups,
    with_artifact,
)
from profkit.backends.instruments import START_SECONDS, comparable_facts, cpu_step, is_of_region, read_step
from profkit.backends.passes import PlannedRun, leave_stacks
from profkit.core.types import Counter, PassName, PassPlan, PassResult
from profkit.profilers.perf.counter_groups import check_drift, merge_groups
from profkit.profilers.xctrace.command import CPU_COUNTERS, TIME_PROFILER
from profkit.profilers.xctrace.cpu import GUIDED
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

_WHOLE = "of the whole process: the region could not be found in the recording"


def plan_counting(context: RunContext, xctrace: XctraceAbility, state: PlanState) -> PassPlan:
    """The template as it is: its guided mode counts cycles, and what the pipeline was kept from doing."""
    lacking = xctrace.lacks(template=CPU_COUNTERS)
    if lacking is not None:
        return PassPlan("counters", "xctrace", skipped=lacking, fix=xctrace.fix)
    step = cpu_step(
        context,
        xctrace,
        state,
        "counters",
        "count-guided",
        CPU_COUNTERS,
        (GUIDED,),
        iterations=counted_iterations(state.iteration_seconds),
        seconds=NATIVE_SECONDS,
    )
    plain = state.plain_seconds
    return PassPlan(
        "counters",
        "xctrace",
        (step,),
        cost=1.1,
        seconds=None if plain is None else 1.1 * plain + START_SECONDS,
        cost_note="one run",
    )


def read_counting(context: RunContext, plan: PassPlan) -> PassFindings:
    """Counters and readings per iteration. Raises UnreadableReport where they cannot be read."""
    counted = read_groups(
        context, plan, lambda step: read_step(context.folder, step), lambda _, report: is_of_region(report)
    )
    table = formula_table("xctrace", "apple")
    reports = [group.per_iteration for group in counted.groups]
    merged = merge_groups(reports)
    drift = check_drift([_under_formula_names(report.counters, table) for report in reports])
    counters = merged.counters
    derived = derive(counters, table, "xctrace", groups=merged.groups, drift=drift.spread)
    readings = [with_artifact(reading, counted.groups, table) for reading in derived]
    notes = counted.notes
    if counted.whole:
        readings = [as_estimate(reading, _WHOLE) for reading in readings]
        notes.append(f"counts are {_WHOLE}")
    if counted.shared:
        readings = [as_estimate(reading) for reading in readings]
    notes += [*merged.warnings, *([drift.warning] if drift.warning is not None else [])]
    return PassFindings(
        counters=counters,
        readings=tuple(readings),
        facts=next((facts for group in counted.groups if (facts := comparable_facts(group.report))), {}),
        notes=tuple(dict.fromkeys(notes)),
    )


def _under_formula_names(counters: Sequence[Counter], table: FormulaTable) -> list[Counter]:
    return [replace(counter, name=table.resolve(counter.name)) for counter in counters]


SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
TABLES = ("time-profile",)
_NO_PYTHON = (
    "Instruments sees the interpreter, and not the Python functions that it runs: the cprofile pass does"
)


def plan_trace(context: RunContext, xctrace: XctraceAbility, state: PlanState) -> PassPlan:
    """One recording of the whole process; what lies in a marked region is picked out of it afterwards."""
    reason = xctrace.lacks(template=TIME_PROFILER)
    if reason is not None:
        return PassPlan("trace", "xctrace", skipped=reason, fix=xctrace.fix)
    step = cpu_step(context, xctrace, state, "trace", "trace", TIME_PROFILER, TABLES, seconds=SECONDS)
    plain = state.plain_seconds
    return PassPlan(
        "trace",
        "xctrace",
        (step,),
        cost=1.1,
        seconds=None if plain is None else 1.1 * plain + START_SECONDS,
        cost_note="a sample of each running thread each millisecond; then the export",
        notes=(_NO_PYTHON,) if context.workload.python is not None else (),
    )


def read_trace(context: RunContext, plan: PassPlan) -> PassFindings:
    """Functions, libraries and stacks; leaves a speedscope and a collapsed-stack file beside the exports."""
    report = read_step(context.folder, plan.steps[0])
    return PassFindings(
        profiles=report.profiles,
        stacks=report.stacks,
        facts=comparable_facts(report),
        notes=report.warnings,
        artifacts=leave_stacks(context, report.stacks, "trace"),
    )


class MacRun(PlannedRun):
    """The passes for one workload, by Instruments. xctrace is asked once, when the first plan asks for it."""

    name = "cpu"

    def tool_versions(self) -> dict[str, str | None]:
        """Instruments' version, where it is used."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(self.wanted) else {}

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        """Time Profiler, and CPU Counters.

        There is no simulation on macOS: valgrind does not run there.
        """
        if name == "trace":
            return [plan_trace(self.context, self._xctrace, state)]
        return [plan_counting(self.context, self._xctrace, state)] if name == "counters" else []

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """What xctrace left."""
        return (read_trace if plan.name == "trace" else read_counting)(self.context, plan)

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()
