"""The run of a CPU on macOS: Time Profiler, and CPU Counters as its template is.

Built from Instruments' exports and help texts, and against a stand-in: it has not run on a Mac yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.backends import PassFindings, PlanState
from profkit.backends.cpu.counting import (
    NATIVE_SECONDS,
    as_estimate,
    counted_iterations,
    read_groups,
    with_artifact,
)
from profkit.backends.instruments import START_SECONDS, InstrumentsPass, comparable_facts, is_of_region
from profkit.backends.passes import BackendRun, Pass, leave_stacks
from profkit.core.types import Counter, Fact, PassName, PassPlan, PassResult
from profkit.profilers.perf.events import check_drift, merge_groups
from profkit.profilers.xctrace.command import CPU_COUNTERS, TIME_PROFILER
from profkit.profilers.xctrace.cpu import GUIDED
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

_WHOLE = "of the whole process: the region could not be found in the recording"


SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
TABLES = ("time-profile",)
_NO_PYTHON = (
    "Instruments sees the interpreter, and not the Python functions that it runs: the cprofile pass does"
)


class CpuCounters(InstrumentsPass):
    """CPU Counters as its template is: its guided mode counts cycles, and what the pipeline was kept from doing."""

    name = "counters"

    def plan(self, state: PlanState) -> list[PassPlan]:
        """One recording."""
        lacking = self._xctrace.lacks(template=CPU_COUNTERS)
        if lacking is not None:
            return self.skip(lacking, self._xctrace.fix)
        iterations = counted_iterations(state.iteration_seconds)
        told = {"iterations": iterations, "seconds": NATIVE_SECONDS}
        step = self.of_cpu(state, "count-guided", CPU_COUNTERS, (GUIDED,), **told)
        return self.planned((step,), cost=1.1, seconds=_expected_seconds(state), cost_note="one run")

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Counters and readings per iteration."""
        counted = read_groups(self.context, plan, self.read_step, lambda _, report: is_of_region(report))
        table = formula_table("xctrace", "apple")
        reports = [group.per_iteration for group in counted.groups]
        merged = merge_groups(reports)
        drift = check_drift([_under_formula_names(report.counters, table) for report in reports])
        derived = derive(merged.counters, table, "xctrace", groups=merged.groups, drift=drift.spread)
        readings = [with_artifact(reading, counted.groups, table) for reading in derived]
        notes = counted.notes
        if counted.whole:
            readings = [as_estimate(reading, Fact("no-region-in-recording")) for reading in readings]
            notes.append(f"counts are {_WHOLE}")
        if counted.shared:
            readings = [as_estimate(reading) for reading in readings]
        notes += [*merged.warnings, *([drift.warning] if drift.warning is not None else [])]
        return PassFindings(
            counters=merged.counters,
            readings=tuple(readings),
            facts=next((facts for group in counted.groups if (facts := comparable_facts(group.report))), {}),
            notes=tuple(dict.fromkeys(notes)),
        )


class TimeProfiler(InstrumentsPass):
    """One recording of the whole process; what lies in a marked region is picked out of it afterwards."""

    name = "trace"

    def plan(self, state: PlanState) -> list[PassPlan]:
        """One recording."""
        lacking = self._xctrace.lacks(template=TIME_PROFILER)
        if lacking is not None:
            return self.skip(lacking, self._xctrace.fix)
        step = self.of_cpu(state, "trace", TIME_PROFILER, TABLES, seconds=SECONDS)
        return self.planned(
            (step,),
            cost=1.1,
            seconds=_expected_seconds(state),
            cost_note="a sample of each running thread each millisecond; then the export",
            notes=(_NO_PYTHON,) if self.context.workload.python is not None else (),
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Functions, libraries and stacks; leaves a speedscope and a collapsed-stack file beside the exports."""
        report = self.read_step(plan.steps[0])
        return PassFindings(
            profiles=report.profiles,
            stacks=report.stacks,
            facts=comparable_facts(report),
            notes=report.warnings,
            artifacts=leave_stacks(self.context, report.stacks, "trace"),
        )


def _expected_seconds(state: PlanState) -> float | None:
    return None if state.plain_seconds is None else 1.1 * state.plain_seconds + START_SECONDS


def _under_formula_names(counters: Sequence[Counter], table: FormulaTable) -> list[Counter]:
    return [replace(counter, name=table.resolve(counter.name)) for counter in counters]


class MacRun(BackendRun):
    """The passes for one workload, by Instruments. There is no simulation: valgrind does not run on macOS."""

    name = "cpu"

    def tool_versions(self) -> dict[str, str | None]:
        """Instruments' version, where it is used."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(self.wanted) else {}

    def make_pass(self, name: PassName) -> Pass | None:
        """Time Profiler, and CPU Counters."""
        kinds = {"trace": TimeProfiler, "counters": CpuCounters}
        return kinds[name](self.context, self._xctrace) if name in kinds else super().make_pass(name)

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()
