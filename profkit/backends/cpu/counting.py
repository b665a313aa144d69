"""Counters of the PMU, or without one those of the kernel: perf stat, a process for each group of events.

The groups are planned from the event table of this CPU, then tried on a tiny program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import FormulaTable, formula_table
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.passes import Pass, RegionWork, divide_counters, read_region_work
from profkit.core.errors import Fault, UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.process import status_wrapper
from profkit.core.types import (
    RUN,
    Counter,
    Directive,
    Fact,
    Machine,
    PassPlan,
    PassResult,
    Reading,
    Report,
    Source,
    Step,
    Switch,
)
from profkit.profilers.perf.command import STAT_ENV, events_of, stat_argv
from profkit.profilers.perf.events import merge_groups, plan_groups, table_for
from profkit.profilers.perf.probe import PerfAbility, find_refused_events, has_nmi_watchdog, probe_perf
from profkit.profilers.perf.stat_counters import split_name
from profkit.profilers.perf.stat_csv import read_stat_csv
from profkit.profilers.valgrind.command import callgrind_outputs, instructions_argv, single_thread_env
from profkit.profilers.valgrind.probe import probe_valgrind

NATIVE_SECONDS = 1.0  # of region for each group; of Instruments that is a thousand samples
MAX_ITERATIONS = 1_000_000


def counted_iterations(seconds: float | None) -> int | None:
    """Return the iterations to count, the same in every group; None where nothing was timed yet.

    One number for all lets the common events of groups be compared. `seconds` is the time of one iteration.
    """
    if seconds is None or seconds <= 0:
        return None
    return min(MAX_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))


@dataclass(frozen=True)
class CountedGroup:
    """The counters of one run, and how often it ran the region meanwhile."""

    step: Step
    report: Report
    work: RegionWork

    @cached_property
    def per_iteration(self) -> Report:
        """Return the report with counters of one iteration."""
        return replace(self.report, counters=divide_counters(self.report.counters, self.work.iterations))


def with_artifact(reading: Reading, groups: Sequence[CountedGroup], table: FormulaTable) -> Reading:
    """Return the reading with the artifact of the first group that holds most of its counters."""
    needed = {table.resolve(name) for name in (reading.source.counter or "").split(", ")}
    held = [{table.resolve(counter.name) for counter in group.report.counters} for group in groups]
    place = max(range(len(groups)), key=lambda number: len(needed & held[number]))
    if not needed & held[place]:
        return reading
    return replace(reading, source=replace(reading.source, artifact=groups[place].step.artifacts[-1]))


SOFTWARE = ("task-clock", "page-faults", "context-switches", "cpu-migrations")
METRICS = (
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
    "branch.miss_rate",
    "simd.utilization",
    "flops",
    "dram.bytes",
    "cache.l1i.miss_rate",
)
ROUNDS = 4  # of trying groups; each round takes away what was refused, and few metrics have more than three formulas


@dataclass(frozen=True)
class EventChoice:
    """The events that are counted together here, and those that were tried and refused (each with its reason)."""

    groups: tuple[tuple[str, ...], ...]
    refused: tuple[Counter, ...] = ()


def choose_groups(machine: Machine, perf: PerfAbility) -> EventChoice:
    """Choose the groups of this CPU's event table as far as perf and the CPU know its events; each is tried once.

    Where an event is refused, the metric's next best formula is used. Without a PMU, the kernel's own events.
    """
    if not perf.hardware_ok or perf.path is None:
        return EventChoice((SOFTWARE,))
    table, watchdog = table_for(machine), has_nmi_watchdog()
    refused: dict[str, Counter] = {}
    groups = plan_groups(table, METRICS, perf.rights, watchdog=watchdog)
    tried: set[tuple[str, ...]] = set()
    for _ in range(ROUNDS):
        newly_refused = find_refused_events(perf.path, [group for group in groups if group not in tried])
        tried |= set(groups)
        if not newly_refused:
            break
        refused |= newly_refused
        groups = plan_groups(table.without(refused), METRICS, perf.rights, watchdog=watchdog)
    if all(event in refused for group in groups for event in group):  # not events but counting is refused
        return EventChoice(plan_groups(table, METRICS, perf.rights, watchdog=watchdog))
    accepted = (tuple(event for event in group if event not in refused) for group in groups)
    return EventChoice(tuple(group for group in accepted if group), tuple(refused.values()))


class SwitchedStep:
    """A step of perf `name`, whose counting a marked region switches through two fifos."""

    def __init__(self, of: Pass, perf: PerfAbility, state: PlanState, name: str) -> None:
        self._of, self._name = of, name
        on = state.marked and perf.control_fifo_ok
        self.control = str(of.folder / f"{name}.control") if on else None
        self.ack = str(of.folder / f"{name}.ack") if on else None
        self._status = str(of.folder / f"{name}.status")
        self.command = status_wrapper(of.context.workload.command, self._status)

    def step(self, argv: tuple[str, ...], file: str, env: Mapping[str, str], **settings: Any) -> Step:
        """Return the step that runs `argv` and leaves `file`; `settings` go into its directive."""
        switch = Switch("perf-control", self.control, self.ack) if self.control is not None else None
        return Step(
            self._name,
            argv,
            (f"artifacts/{file}",),
            env=dict(env),
            directive=self._of.directive(self._name, switch, **settings),
            fifos=(self.control, self.ack) if self.control is not None and self.ack is not None else (),
            tool="perf",
            workload_status=self._status,
        )


class Counting(Pass):
    """The counters by perf stat: one process for each group of events."""

    name, tool = "counters", "perf"
    step_names, leaves = ("count-#",), ("count-#.csv",)

    def __init__(self, context: RunContext, perf: PerfAbility) -> None:
        super().__init__(context)
        self._perf = perf

    @cached_property
    def _choice(self) -> EventChoice:
        """Return the groups for this machine, chosen once."""
        return choose_groups(self.context.machine, self._perf)

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the groups of this CPU's event table, or the kernel's own events where there is no PMU."""
        perf = self._perf
        if not perf.software_ok:
            fault = perf.fault or Fault("perf does not work here")
            return self.skip(fault.reason, fault.fix)
        if state.marked and not perf.control_fifo_ok:
            return self.skip(Fact("no-switch"), "a newer perf")
        groups, refused = self._choice.groups, self._choice.refused
        steps = []
        for number, events in enumerate(groups, start=1):
            name = f"count-{number}"
            switched = SwitchedStep(self, perf, state, name)
            argv = stat_argv(
                switched.command,
                self.folder / f"{name}.csv",
                events,
                control=switched.control,
                ack=switched.ack,
                perf=str(perf.path),
            )
            iterations = counted_iterations(state.iteration_seconds)
            settings = {"iterations": iterations, "seconds": NATIVE_SECONDS}
            steps.append(switched.step(argv, f"{name}.csv", STAT_ENV, **settings))
        table = table_for(self.context.machine)
        notes = [Fact.of("events-of", name=table.title) if perf.hardware_ok else Fact("no-pmu")]
        if perf.user_only:
            notes.append(Fact("user-space-alone"))
        if refused:
            notes.append(Fact.of("events-not-known", names=", ".join(counter.name for counter in refused)))
        return self.planned(
            steps,
            counters=tuple(dict.fromkeys(event for group in groups for event in group)),
            cost=float(len(groups)),
            notes=tuple(notes),
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read counters and readings per iteration; a group that was lost costs its own events only."""
        groups, lost = self._read_groups(plan)
        merged = merge_groups([group.per_iteration for group in groups])
        there = {(counter.name, counter.pmu) for counter in merged.counters}
        missed = [c for step in lost for c in _lost_counters(step) if (c.name, c.pmu) not in there]
        counters = (*merged.counters, *dict.fromkeys(missed), *self._choice.refused)
        table = formula_table("perf", table_for(self.context.machine).chip)
        derived = derive(counters, table, "perf", groups=merged.groups, drift=merged.drift)
        readings = [with_artifact(reading, groups, table) for reading in derived]
        if plan.counters == SOFTWARE:  # the simulation, or nothing, speaks of what needs a PMU
            readings = [r for r in readings if r.value is not None]
        works = [group.work for group in groups]
        if any(work.shared for work in works):  # several marked at once: the window is not known to be theirs
            readings = [r if r.value is None else replace(r, quality="estimated") for r in readings]
        notes = [note for work in works for note in (*work.notes, *([work.odd] if work.odd else []))]
        busy = next((reading for group in groups if (reading := _utilization(group))), None)
        return PassFindings(
            counters=counters,
            readings=(*readings, busy) if busy is not None else tuple(readings),
            notes=tuple(dict.fromkeys((*merged.warnings, *notes))),
        )

    def _read_groups(self, plan: PassPlan) -> tuple[list[CountedGroup], list[Step]]:
        """Return what each step counted, and the lost steps. Raises UnreadableReport where all were lost."""
        groups: list[CountedGroup] = []
        lost: list[Step] = []
        fault = UnreadableReport("no group of counters was planned")
        for step in plan.steps:
            try:
                report = read_stat_csv(self.context.folder / step.artifacts[0])
                work = read_region_work(self.context.folder, step.name)
                switched = step.directive is not None and step.directive.switch is not None
                # what no region switched is of the whole process
                groups.append(CountedGroup(step, report, work if switched else RegionWork()))
            except UnreadableReport as error:
                fault = fault if lost else error
                lost.append(step)
        if not groups:
            raise fault
        return groups, lost


def _lost_counters(step: Step) -> list[Counter]:
    """Return the events of a group that left no counts, as not counted."""
    names = [split_name(event) for event in events_of(step.argv)]
    reason = Fact.of("no-counts-left", name=step.name)
    return [Counter(name.name, None, "not-counted", pmu=name.pmu, reason=reason) for name in names]


def _utilization(group: CountedGroup) -> Reading | None:
    """Return the busy cores inside the region, in %: it decides whether the peak of one thread or of all applies."""
    clock = next((c for c in group.report.counters if c.name == "task-clock" and c.value is not None), None)
    if clock is None or clock.value is None or not group.work.seconds:
        return None
    formula = "100 * task-clock / wall seconds inside the region"
    source = Source("perf", "task-clock", group.step.artifacts[0], formula)
    milliseconds = clock.value if clock.unit == "msec" else clock.value / 1e6
    return Reading("cpu.utilization", 0.1 * milliseconds / group.work.seconds, "%", "measured", RUN, source)


EVENT = "instructions:u"
ITERATIONS = 2  # of a marked region, after one to warm up
# Of a normal run's time, measured with Python programs: cachegrind without its caches took 25 times as long, callgrind
# outside of the region 12 times.
_SIMULATED, _COUNTED = 30.0, 1.2
_REFERENCES = re.compile(r"I\s+refs:\s+([\d,]+)")
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class InstructionCounter:
    """The tool that counts instructions here, by its name in reports.

    `slowdown`: how many times as long a counted run takes as a plain one.
    """

    tool: str
    slowdown: float
    program: str

    def argv(self, command: Sequence[str], out: Path, *, marked: bool) -> tuple[str, ...]:
        """Return the command that leaves its counts in files that begin with `out`."""
        if self.slowdown == _COUNTED:
            return stat_argv(command, out, [EVENT], perf=self.program)
        return instructions_argv(command, out, marked=marked, valgrind=self.program)

    def environment(self) -> Mapping[str, str]:
        """Return the environment for one thread, and the same order of sets of strings, in every run."""
        return single_thread_env()

    def directive(self, record: Path, *, marked: bool) -> Directive:
        """Return the directive for a marked region, which is repeated as often in every run."""
        simulated = marked and self.slowdown != _COUNTED
        return Directive(
            "counters", str(record), switch=Switch("valgrind") if simulated else None, iterations=ITERATIONS
        )

    def read(self, out: Path, *, marked: bool) -> float | None:
        """Return the number of instructions; None where the files do not say."""
        try:
            if self.slowdown == _COUNTED:
                values = [c.value for c in read_stat_csv(out).counters if c.name.startswith("instructions")]
                return values[0] if values else None
            if marked:
                texts = [read_bounded(path).decode() for path in callgrind_outputs(out)]
                counts = [int(number) for text in texts for number in _TOTALS.findall(text)]
            else:
                texts = [read_bounded(path).decode() for path in sorted(out.parent.glob(f"{out.name}.*"))]
                counts = [int(m[1].replace(",", "")) for text in texts if (m := _REFERENCES.search(text))]
        except (OSError, UnicodeDecodeError, UnreadableReport):
            return None
        return float(sum(counts)) or None


@lru_cache(maxsize=1)
def instruction_counter() -> InstructionCounter | None:
    """Return the cheapest counter that works on this machine; None where nothing counts."""
    perf = probe_perf()
    if perf.path is not None and "instructions" in perf.counting:
        return InstructionCounter("perf", _COUNTED, perf.path)
    valgrind = probe_valgrind()
    if valgrind.works and valgrind.path is not None:
        return InstructionCounter("valgrind", _SIMULATED, str(valgrind.path))
    return None
