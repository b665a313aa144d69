"""The run of a CPU on macOS, and its trace pass: Time Profiler and CPU Counters of Instruments.

Built from its exports and help texts, and against a stand-in: it has not run on a Mac yet.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cpu.macos_counting import (
    CountingChoice,
    choose_counting,
    plan_counting,
    plan_guided,
    read_counting,
)
from profkit.backends.instruments import START_SECONDS, comparable_facts, cpu_step, read_step
from profkit.backends.passes import PlannedRun
from profkit.core.errors import UnreadableReport
from profkit.core.types import PassName, PassPlan, PassResult
from profkit.profilers.xctrace.command import TIME_PROFILER
from profkit.profilers.xctrace.find import XctraceAbility, leftover_note, probe_xctrace

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
    facts = comparable_facts(report)
    if not report.stacks:
        return PassFindings(facts=facts, notes=report.warnings)
    folder = context.folder / "artifacts"
    write_speedscope(report.stacks, folder / "trace.speedscope.json", context.workload.name)
    write_collapsed(report.stacks[0], folder / "trace.collapsed.txt")
    return PassFindings(
        profiles=report.profiles,
        stacks=report.stacks,
        facts=facts,
        notes=report.warnings,
        artifacts=("artifacts/trace.speedscope.json", "artifacts/trace.collapsed.txt"),
    )


class MacRun(PlannedRun):
    """The passes for one workload, by Instruments. xctrace is asked once, when the first plan asks for it."""

    name = "cpu"
    _list_failed = False  # the list of events was taken, and nothing was counted

    def tool_versions(self) -> dict[str, str | None]:
        """Instruments' version, where it is used."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(self.wanted) else {}

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        """Time Profiler; CPU Counters with a list of events, and in its guided mode where that left nothing.

        There is no simulation on macOS: valgrind does not run there.
        """
        if name == "trace":
            return [plan_trace(self.context, self._xctrace, state)]
        if name != "counters":
            return []
        plans = [plan_counting(self.context, self._xctrace, state, self._counting)]
        if self._list_failed:
            plans.append(plan_guided(self.context, self._xctrace, state))
        return plans

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """What xctrace left, and a note on the files that it leaves in the temporary folder."""
        findings = self._read_exports(plan)
        note = leftover_note(time.time() - result.seconds)
        return findings if note is None else replace(findings, notes=(*findings.notes, note))

    def _read_exports(self, plan: PassPlan) -> PassFindings:
        if plan.name == "trace":
            return read_trace(self.context, plan)
        try:
            findings = read_counting(self.context, plan, self._counting)
        except UnreadableReport:
            self._list_failed = bool(plan.counters)
            raise
        if plan.counters and all(counter.value is None for counter in findings.counters):
            self._list_failed = True
        return findings

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()

    @cached_property
    def _counting(self) -> CountingChoice:
        return choose_counting(self.context.machine, self._xctrace)
