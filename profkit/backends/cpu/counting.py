"""Counters of the PMU (or, without one, of the kernel alone) by perf stat, one process per group of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.choice import SOFTWARE, Choice
from profkit.backends.cpu.groups import NATIVE_SECONDS, iterations
from profkit.backends.per_iteration import Done, done_in_region, per_iteration
from profkit.core.errors import UnreadableReport
from profkit.core.status import status_wrapper
from profkit.core.types import RUN, Counter, Directive, PassPlan, Reading, Report, Source, Step, Switch
from profkit.profilers.perf.command import STAT_ENV, events_of, stat_argv
from profkit.profilers.perf.counter_groups import merge_groups
from profkit.profilers.perf.events import table_for
from profkit.profilers.perf.probe import PerfAbility
from profkit.profilers.perf.stat_counters import split_name
from profkit.profilers.perf.stat_csv import read_stat_csv

# What is held against the time of one iteration: of no use where it was counted over something else.
_AGAINST_TIME = ("dram.bytes", "flops")
_NO_SWITCH = "of the whole process: this perf cannot be switched by a region (perf 5.10 and later can)"


def plan_counting(site: Site, perf: PerfAbility, known: Known, choice: Choice) -> PassPlan:
    """The groups of this CPU's event table, or the kernel's own events where there is no PMU."""
    if not perf.software_ok:
        fault = perf.fault
        return PassPlan(
            "counters",
            "perf",
            skipped=fault.reason if fault else "perf does not work here",
            fix=fault.fix if fault else None,
        )
    table, groups = table_for(site.machine), choice.groups
    steps = tuple(_step(site, perf, known, number, events) for number, events in enumerate(groups, start=1))
    notes = (
        [f"events of {table.title}"] if perf.hardware_ok else ["no PMU here: the kernel's own events only"]
    )
    if perf.user_only:
        notes.append("only user space is counted")
    if choice.refused:
        notes.append(f"not known here: {', '.join(counter.name for counter in choice.refused)}")
    if known.marked and not perf.control_fifo_ok:
        notes.append(f"counts are {_NO_SWITCH}")
    return PassPlan(
        "counters",
        "perf",
        steps,
        tuple(dict.fromkeys(event for group in groups for event in group)),
        cost=float(len(groups)),
        cost_note="one plain run for each group of events; counting itself is almost free",
        notes=tuple(notes),
    )


def _step(site: Site, perf: PerfAbility, known: Known, number: int, events: tuple[str, ...]) -> Step:
    folder = site.folder / "artifacts"
    name = f"count-{number}"
    control, ack = str(folder / f"{name}.control"), str(folder / f"{name}.ack")
    switched = known.marked and perf.control_fifo_ok
    status = str(folder / f"{name}.status")
    argv = stat_argv(
        status_wrapper(site.workload.command, status),
        folder / f"{name}.csv",
        events,
        control=control if switched else None,
        ack=ack if switched else None,
        perf=str(perf.path),
    )
    return Step(
        name,
        argv,
        (f"artifacts/{name}.csv",),
        env=dict(STAT_ENV),
        directive=Directive(
            "counters",
            str(folder / f"{name}.region"),
            switch=Switch("perf-control", control, ack) if switched else None,
            iterations=iterations(known.iteration_seconds),
            seconds=NATIVE_SECONDS,
        ),
        fifos=(control, ack) if switched else (),
        tool="perf",
        workload_status=status,
    )


def find_counting(site: Site, plan: PassPlan, choice: Choice) -> Findings:
    """Counters and readings per iteration; a group that was lost costs its own events only.

    Raises UnreadableReport where no group can be read.
    """
    reports: list[Report] = []
    kept: list[Step] = []
    notes: list[str] = []
    lost: dict[str, UnreadableReport] = {}
    busy: Reading | None = None
    shared = whole = False
    for step in plan.steps:
        try:
            report = read_stat_csv(site.folder / step.artifacts[0])
            done = done_in_region(site.folder, step.name)
        except UnreadableReport as error:
            lost[step.name] = error
            continue
        switched = step.directive is not None and step.directive.switch is not None
        if done.marked and not switched:
            done, whole = Done(), True
        shared = shared or done.shared
        notes += [*done.notes, *([done.odd] if done.odd is not None else [])]
        kept.append(step)
        reports.append(replace(report, counters=per_iteration(report.counters, done.iterations)))
        busy = busy if busy is not None else _busy(report, done.seconds, step.artifacts[0])
    if not reports:
        raise next(iter(lost.values()), UnreadableReport("no group of counters was planned"))
    merged = merge_groups(reports)
    known = {(counter.name, counter.pmu) for counter in merged.counters}
    missed = [c for s in plan.steps if s.name in lost for c in _lost(s) if (c.name, c.pmu) not in known]
    counters = (*merged.counters, *dict.fromkeys(missed), *choice.refused)
    table = formula_table("perf", table_for(site.machine).chip)
    readings = derive(counters, table, "perf", groups=merged.groups, drift=merged.drift.spread)
    readings = tuple(_with_artifact(reading, kept, reports, table) for reading in readings)
    if plan.counters == SOFTWARE:  # the simulation, or nothing, speaks of what needs a PMU
        readings = tuple(r for r in readings if r.value is not None)
    if whole:
        readings = tuple(_of_the_whole(reading) for reading in readings)
        notes.append(f"counts are {_NO_SWITCH}")
    if shared:
        readings = tuple(replace(r, quality="estimated") if r.value is not None else r for r in readings)
    found = (*readings, busy) if busy is not None else readings
    return Findings(counters=counters, readings=found, notes=tuple(dict.fromkeys((*merged.warnings, *notes))))


def _lost(step: Step) -> list[Counter]:
    """The events of a group that left no counts."""
    names = [split_name(event) for event in events_of(step.argv)]
    reason = f"its run, {step.name}, left no counts"
    return [Counter(name.name, None, "not-counted", pmu=name.pmu, reason=reason) for name in names]


def _with_artifact(
    reading: Reading, steps: Sequence[Step], reports: Sequence[Report], table: FormulaTable
) -> Reading:
    """The reading with the file of the first group that holds all its counters, else that of any."""
    needed = {table.resolve(name) for name in (reading.source.counter or "").split(", ")}
    held = [{table.resolve(counter.name) for counter in report.counters} for report in reports]
    ranked = sorted(range(len(steps)), key=lambda number: -len(needed & held[number]))
    if not needed & held[ranked[0]]:
        return reading
    return replace(reading, source=replace(reading.source, artifact=steps[ranked[0]].artifacts[0]))


def _of_the_whole(reading: Reading) -> Reading:
    """A reading over the whole process where a region was asked for: rates are a hint, totals say nothing."""
    if reading.value is None:
        return reading
    if reading.metric in _AGAINST_TIME:
        return replace(reading, value=None, quality="unavailable", share=None, reason=f"counted {_NO_SWITCH}")
    reason = f"{reading.reason}; {_NO_SWITCH}" if reading.reason else _NO_SWITCH
    return replace(reading, quality="estimated", reason=reason)


def _busy(report: Report, seconds: float | None, artifact: str) -> Reading | None:
    """Cores kept busy inside the region (%): decides whether one thread or all are held against the peaks."""
    clock = next((c for c in report.counters if c.name == "task-clock" and c.value is not None), None)
    if clock is None or clock.value is None or not seconds:
        return None
    source = Source("perf", "task-clock", artifact, "100 * task-clock / wall seconds inside the region")
    milliseconds = clock.value if clock.unit == "msec" else clock.value / 1e6
    return Reading("cpu.utilization", 0.1 * milliseconds / seconds, "%", "measured", RUN, source)
