"""The run of a CPU on macOS: Time Profiler, and CPU Counters with a list of events, one process for each group.

Built from Instruments' exports and help texts, and against a stand-in: it has not run on a Mac yet.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cpu.counting import (
    NATIVE_SECONDS,
    CountedGroup,
    as_estimate,
    counted_iterations,
    read_groups,
    with_artifact,
)
from profkit.backends.instruments import START_SECONDS, comparable_facts, cpu_step, is_of_region, read_step
from profkit.backends.passes import PlannedRun
from profkit.core.errors import UnreadableReport
from profkit.core.types import RUN, Counter, Machine, PassName, PassPlan, PassResult, Reading, Source
from profkit.hardware import macos
from profkit.profilers.perf.counter_groups import check_drift, merge_groups
from profkit.profilers.xctrace.command import CPU_COUNTERS, TIME_PROFILER
from profkit.profilers.xctrace.cpu_events import CounterEvent, counter_options, plan_groups, read_events
from profkit.profilers.xctrace.cpu_report import GUIDED
from profkit.profilers.xctrace.find import XctraceAbility, leftover_note, probe_xctrace, recording_options

COUNTER_TABLES = ("counters-profile",)
MOST_EDGES = 0.02  # as far as counts of several runs may lie apart
_KIND = ("hw.cputype", "hw.cpusubtype", "hw.cpufamily")  # by which macOS names its table of a core's events
_WHOLE = "of the whole process: the region could not be found in the recording"
_NO_LIST = "this xctrace takes no list of CPU events on its command line (that of Xcode 16 and later does)"
_FIX_LIST = "install Xcode 16 or later"


@dataclass(frozen=True)
class CountingChoice:
    """What can be counted here: groups of events with the options that ask for each; or why nothing can."""

    chip: str
    groups: tuple[tuple[CounterEvent, ...], ...] = ()
    options: tuple[str, ...] = ()
    from_system: bool = True  # macOS's own table of this chip was read
    reason: str | None = None
    fix: str | None = None


def choose_counting(machine: Machine, xctrace: XctraceAbility) -> CountingChoice:
    """The groups for this Mac's cores. Asks xctrace for its options once."""
    chip = "apple" if machine.vendor == "Apple" or machine.architecture == "arm64" else "intel"
    lacking = xctrace.lacks(template=CPU_COUNTERS)
    if lacking is not None:
        return CountingChoice(chip, reason=lacking, fix=xctrace.fix)
    cputype, subtype, family = (macos.sysctl_number(name) for name in _KIND)
    events = read_events(chip, cputype, subtype, family)
    groups = plan_groups(events) if events is not None else ()
    if events is None or not groups:
        return CountingChoice(chip, reason="macOS has no table of this processor's events in /usr/share/kpep")
    shown = recording_options(CPU_COUNTERS)
    options = tuple(counter_options(shown, group) for group in groups)
    texts = tuple(text for text in options if text is not None)
    if len(texts) < len(groups):
        return CountingChoice(chip, reason=_NO_LIST, fix=_FIX_LIST)
    return CountingChoice(chip, groups, texts, events.from_macos)


def plan_counting(
    context: RunContext, xctrace: XctraceAbility, state: PlanState, counting: CountingChoice
) -> PassPlan:
    """One recording for each group; the region is picked out of it afterwards."""
    if counting.reason is not None:
        return PassPlan("counters", "xctrace", skipped=counting.reason, fix=counting.fix)
    steps = tuple(
        cpu_step(
            context,
            xctrace,
            state,
            "counters",
            f"count-{number}",
            CPU_COUNTERS,
            COUNTER_TABLES,
            iterations=counted_iterations(state.iteration_seconds),
            seconds=NATIVE_SECONDS,
            options={str(context.folder / "artifacts" / f"count-{number}.options.json"): options},
        )
        for number, options in enumerate(counting.options, 1)
    )
    plain, count = state.plain_seconds, len(steps)
    source = "macOS's table of this chip" if counting.from_system else "those that all of Apple's chips have"
    return PassPlan(
        "counters",
        "xctrace",
        steps,
        tuple(dict.fromkeys(event.name for group in counting.groups for event in group)),
        cost=1.1 * count,
        seconds=None if plain is None else count * (1.1 * plain + START_SECONDS),
        cost_note="one run for each group of events; the counters are read each millisecond, then exported",
        notes=(f"events: {source}", "only user space is counted"),
    )


def plan_guided(context: RunContext, xctrace: XctraceAbility, state: PlanState) -> PassPlan:
    """The template as it is: its guided mode counts cycles, and what the pipeline was kept from doing."""
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
        notes=("the guided mode of CPU Counters, since its list of events left no counts",),
    )


def read_counting(context: RunContext, plan: PassPlan, counting: CountingChoice) -> PassFindings:
    """Counters and readings per iteration; a group that was lost costs its own events only.

    Raises UnreadableReport where no group can be read.
    """
    counted = read_groups(
        context, plan, lambda step: read_step(context.folder, step), lambda _, report: is_of_region(report)
    )
    table = formula_table("xctrace", counting.chip)
    reports = [group.per_iteration for group in counted.groups]
    merged = merge_groups(reports)
    drift = check_drift([_under_formula_names(report.counters, table) for report in reports])
    counters = (*merged.counters, *_missing_counters(plan, counting, merged.counters))
    derived = derive(counters, table, "xctrace", groups=merged.groups, drift=drift.spread)
    readings = [with_artifact(reading, counted.groups, table) for reading in derived]
    notes = counted.notes
    if counted.whole:
        readings = [as_estimate(reading, _WHOLE) for reading in readings]
        notes.append(f"counts are {_WHOLE}")
    if counted.shared:
        readings = [as_estimate(reading) for reading in readings]
    edges = max(_edge_share(group) for group in counted.groups)
    if edges > MOST_EDGES:
        why = f"an entry of the region begins and ends within samples of a millisecond: known to {edges:.0%}"
        readings = [as_estimate(r, why) if r.unit == "count" else r for r in readings]
    notes += [*merged.warnings, *([drift.warning] if drift.warning is not None else [])]
    busy = next((reading for group in counted.groups if (reading := _utilization(group))), None)
    return PassFindings(
        counters=counters,
        readings=(*readings, busy) if busy is not None else tuple(readings),
        facts=next((facts for group in counted.groups if (facts := comparable_facts(group.report))), {}),
        notes=tuple(dict.fromkeys(notes)),
    )


def _edge_share(group: CountedGroup) -> float:
    """How much of the counts (0..1) may belong outside the region: a sample for each entry, at its begin and end.

    Ratios of what was counted in the same samples are not touched by it.
    """
    samples = int(group.report.facts.get("samples", "0"))
    if not samples or not is_of_region(group.report):
        return 0.0
    return group.work.entries * group.work.processes / samples


def _under_formula_names(counters: Sequence[Counter], table: FormulaTable) -> list[Counter]:
    return [replace(counter, name=table.resolve(counter.name)) for counter in counters]


def _missing_counters(plan: PassPlan, counting: CountingChoice, counted: Sequence[Counter]) -> list[Counter]:
    """The events that were asked for and are in no export. Instruments shows some by an alias."""
    aliases = {event.name: event.alias for group in counting.groups for event in group}
    there = {counter.name for counter in counted}
    reason = "it was asked for, and the recording has no counts of it"
    return [
        Counter(name, None, "not-counted", reason=reason)
        for name in plan.counters
        if name not in there and aliases.get(name) not in there
    ]


def _utilization(group: CountedGroup) -> Reading | None:
    """Cores kept busy inside the region (%), as far as samples of a millisecond tell it."""
    profiles = group.report.profiles
    sampled = next((p for p in profiles if p.unit == "s" and p.kind == "functions"), None)
    if sampled is None or not sampled.total or not group.work.seconds or not is_of_region(group.report):
        return None
    formula = "100 * sampled CPU time / wall seconds inside the region"
    source = Source("xctrace", "counters-profile", group.step.artifacts[1], formula)
    return Reading("cpu.utilization", 100 * sampled.total / group.work.seconds, "%", "estimated", RUN, source)


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
