"""Counters of the PMU (or, without one, of the kernel alone) by perf stat, one process per group of events."""

from __future__ import annotations

from dataclasses import replace

from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.per_iteration import done_in_region, per_iteration
from profkit.metrics import derive, formula_table
from profkit.model import RUN, Directive, PassPlan, Reading, Report, Source, Step, Switch
from profkit.status import status_wrapper
from profkit.tools.perf.events import table_for
from profkit.tools.perf.probe import PerfAbility, nmi_watchdog
from profkit.tools.perf.stat_command import STAT_ENV, stat_argv
from profkit.tools.perf.stat_csv import read_stat_csv
from profkit.tools.perf.stat_groups import merge_groups, plan_groups

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
NATIVE_SECONDS = 1.0  # of region for each group
MOST_ITERATIONS = 1_000_000


def plan_counting(site: Site, perf: PerfAbility, known: Known) -> PassPlan:
    """The groups of this CPU's event table, or the kernel's own events where there is no PMU."""
    if not perf.software_ok:
        fault = perf.faults[0] if perf.faults else None
        return PassPlan(
            "counters",
            "perf",
            skipped=fault.reason if fault else "perf does not work here",
            fix=fault.fix if fault else None,
        )
    table = table_for(site.machine)
    groups = (
        plan_groups(table, METRICS, perf.rights, watchdog=nmi_watchdog()) if perf.hardware_ok else (SOFTWARE,)
    )
    steps = tuple(_step(site, perf, known, number, events) for number, events in enumerate(groups, start=1))
    notes = (
        [f"events of {table.title}"] if perf.hardware_ok else ["no PMU here: the kernel's own events only"]
    )
    if perf.user_only:
        notes.append("only user space is counted")
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
            iterations=_iterations(known.iteration_seconds),
            seconds=NATIVE_SECONDS,
        ),
        fifos=(control, ack) if switched else (),
        tool="perf",
        workload_status=status,
    )


def _iterations(seconds: float | None) -> int | None:
    """The same number in every group, so that the anchors can be compared; None where nothing was timed yet."""
    if seconds is None or seconds <= 0:
        return None
    return min(MOST_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))


def find_counting(site: Site, plan: PassPlan) -> Findings:
    """Counters and readings per iteration. Raises UnreadableReport where no group can be read."""
    reports: list[Report] = []
    notes: list[str] = []
    busy: Reading | None = None
    for step in plan.steps:
        report = read_stat_csv(site.folder / step.artifacts[0])
        done = done_in_region(site.folder, step.name)
        notes += [done.odd] if done.odd is not None and done.odd not in notes else []
        reports.append(replace(report, counters=per_iteration(report.counters, done.iterations)))
        busy = busy if busy is not None else _busy(report, done.seconds, step.artifacts[0])
    merged = merge_groups(reports)
    table = table_for(site.machine)
    artifact = plan.steps[0].artifacts[0]
    chip = table.chip
    readings = derive(
        merged.counters,
        formula_table("perf", chip),
        "perf",
        artifact,
        groups=merged.groups,
        drift=merged.drift.spread,
    )
    if plan.counters == SOFTWARE:  # the simulation, or nothing, speaks of what needs a PMU
        readings = tuple(r for r in readings if r.value is not None)
    found = (*readings, busy) if busy is not None else readings
    return Findings(counters=merged.counters, readings=found, notes=(*merged.warnings, *notes))


def _busy(report: Report, seconds: float | None, artifact: str) -> Reading | None:
    """Cores kept busy inside the region (%): decides whether one thread or all are held against the peaks."""
    clock = next((c for c in report.counters if c.name == "task-clock" and c.value is not None), None)
    if clock is None or clock.value is None or not seconds:
        return None
    source = Source("perf", "task-clock", artifact, "100 * task-clock / wall seconds inside the region")
    milliseconds = clock.value if clock.unit == "msec" else clock.value / 1e6
    return Reading("cpu.utilization", 0.1 * milliseconds / seconds, "%", "measured", RUN, source)
