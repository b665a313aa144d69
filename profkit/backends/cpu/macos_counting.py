"""The counters pass on macOS: CPU Counters with a list of events, one process for each group that fits together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.groups import NATIVE_SECONDS, iterations
from profkit.backends.cpu.macos_step import START_SECONDS, cpu_step, kept_facts, of_region
from profkit.backends.instruments import read_step
from profkit.backends.per_iteration import Done, done_in_region, per_iteration
from profkit.core.errors import UnreadableReport
from profkit.core.types import RUN, Counter, Machine, PassPlan, Reading, Report, Source, Step
from profkit.hardware import macos
from profkit.profilers.perf.counter_groups import check_drift, merge_groups
from profkit.profilers.xctrace.command import CPU_COUNTERS
from profkit.profilers.xctrace.cpu_events import CounterEvent, counter_options, plan_groups, read_events
from profkit.profilers.xctrace.cpu_report import GUIDED
from profkit.profilers.xctrace.find import XctraceAbility, recording_options

TABLES = ("counters-profile",)
MOST_EDGES = 0.02  # as far as counts of several runs may lie apart
_KIND = ("hw.cputype", "hw.cpusubtype", "hw.cpufamily")  # by which macOS names its table of a core's events
_WHOLE = "of the whole process: the region could not be found in the recording"
_NO_LIST = "this xctrace takes no list of CPU events on its command line (that of Xcode 16 and later does)"
_FIX_LIST = "install Xcode 16 or later"


@dataclass(frozen=True)
class Counting:
    """What can be counted here: groups of events with the options that ask for each; or why nothing can."""

    chip: str
    groups: tuple[tuple[CounterEvent, ...], ...] = ()
    options: tuple[str, ...] = ()
    told: bool = True  # macOS's own table of this chip was read
    reason: str | None = None
    fix: str | None = None


def choose_counting(machine: Machine, xctrace: XctraceAbility) -> Counting:
    """The groups for this Mac's cores. Asks xctrace for its options once."""
    chip = "apple" if machine.vendor == "Apple" or machine.architecture == "arm64" else "intel"
    lacking = xctrace.lacks(template=CPU_COUNTERS)
    if lacking is not None:
        return Counting(chip, reason=lacking, fix=xctrace.fix)
    cputype, subtype, family = (macos.sysctl_number(name) for name in _KIND)
    events = read_events(chip, cputype, subtype, family)
    groups = plan_groups(events) if events is not None else ()
    if events is None or not groups:
        return Counting(chip, reason="macOS has no table of this processor's events in /usr/share/kpep")
    shown = recording_options(CPU_COUNTERS)
    options = tuple(counter_options(shown, group) for group in groups)
    made = tuple(text for text in options if text is not None)
    if len(made) < len(groups):
        return Counting(chip, reason=_NO_LIST, fix=_FIX_LIST)
    return Counting(chip, groups, made, events.told)


def plan_counting(site: Site, xctrace: XctraceAbility, known: Known, counting: Counting) -> PassPlan:
    """One recording for each group; the region is picked out of it afterwards."""
    if counting.reason is not None:
        return PassPlan("counters", "xctrace", skipped=counting.reason, fix=counting.fix)
    steps = tuple(
        cpu_step(
            site,
            xctrace,
            known,
            "counters",
            f"count-{number}",
            CPU_COUNTERS,
            TABLES,
            iterations=iterations(known.iteration_seconds),
            seconds=NATIVE_SECONDS,
            options={str(site.folder / "artifacts" / f"count-{number}.options.json"): options},
        )
        for number, options in enumerate(counting.options, 1)
    )
    plain, count = known.plain_seconds, len(steps)
    source = "macOS's table of this chip" if counting.told else "those that all of Apple's chips have"
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


def plan_guided(site: Site, xctrace: XctraceAbility, known: Known) -> PassPlan:
    """The template as it is: its guided mode counts cycles, and what the pipeline was kept from doing."""
    step = cpu_step(
        site,
        xctrace,
        known,
        "counters",
        "count-guided",
        CPU_COUNTERS,
        (GUIDED,),
        iterations=iterations(known.iteration_seconds),
        seconds=NATIVE_SECONDS,
    )
    plain = known.plain_seconds
    return PassPlan(
        "counters",
        "xctrace",
        (step,),
        cost=1.1,
        seconds=None if plain is None else 1.1 * plain + START_SECONDS,
        cost_note="one run",
        notes=("the guided mode of CPU Counters, since its list of events left no counts",),
    )


def find_counting(site: Site, plan: PassPlan, counting: Counting) -> Findings:
    """Counters and readings per iteration; a group that was lost costs its own events only.

    Raises UnreadableReport where no group can be read.
    """
    table = formula_table("xctrace", counting.chip)
    reports: list[Report] = []
    kept: list[Step] = []
    notes: list[str] = []
    lost: dict[str, UnreadableReport] = {}
    facts: dict[str, str] = {}
    busy: Reading | None = None
    whole = shared = False
    edges = 0.0
    for step in plan.steps:
        try:
            report, done = read_step(site.folder, step), done_in_region(site.folder, step.name)
        except UnreadableReport as error:
            lost[step.name] = error
            continue
        if done.marked and not of_region(report):
            done, whole = Done(), True
        shared = shared or done.shared
        notes += [*done.notes, *([done.odd] if done.odd is not None else [])]
        facts = facts or kept_facts(report)
        edges = max(edges, _edges(report, done))
        kept.append(step)
        busy = busy or _busy(report, done.seconds, step.artifacts[1])
        reports.append(replace(report, counters=per_iteration(report.counters, done.iterations)))
    if not reports:
        raise next(iter(lost.values()), UnreadableReport("no group of counters was planned"))
    merged = merge_groups(reports)
    drift = check_drift([_as_formulas_name(report.counters, table) for report in reports])
    counters = (*merged.counters, *_missing(plan, counting, merged.counters))
    readings = tuple(
        _with_artifact(reading, kept, reports, table)
        for reading in derive(counters, table, "xctrace", groups=merged.groups, drift=drift.spread)
    )
    if whole:
        readings = tuple(_estimated(reading, _WHOLE) for reading in readings)
        notes.append(f"counts are {_WHOLE}")
    if shared:
        readings = tuple(_estimated(reading, None) for reading in readings)
    if edges > MOST_EDGES:
        why = f"an entry of the region begins and ends within samples of a millisecond: known to {edges:.0%}"
        readings = tuple(_estimated(r, why) if r.unit == "count" else r for r in readings)
    notes += [*merged.warnings, *([drift.warning] if drift.warning is not None else [])]
    found = (*readings, busy) if busy is not None else readings
    return Findings(counters=counters, readings=found, facts=facts, notes=tuple(dict.fromkeys(notes)))


def _edges(report: Report, done: Done) -> float:
    """How much of the counts (0..1) may belong outside the region: a sample for each entry, at its begin and end.

    Ratios of what was counted in the same samples are not touched by it.
    """
    samples = int(report.facts.get("samples", "0"))
    return done.entries * done.processes / samples if of_region(report) and samples else 0.0


def _as_formulas_name(counters: Sequence[Counter], table: FormulaTable) -> list[Counter]:
    return [replace(counter, name=table.resolve(counter.name)) for counter in counters]


def _missing(plan: PassPlan, counting: Counting, counted: Sequence[Counter]) -> list[Counter]:
    """The events that were asked for and are in no export. Instruments shows some by an alias."""
    aliases = {event.name: event.alias for group in counting.groups for event in group}
    there = {counter.name for counter in counted}
    reason = "it was asked for, and the recording has no counts of it"
    return [
        Counter(name, None, "not-counted", reason=reason)
        for name in plan.counters
        if name not in there and aliases.get(name) not in there
    ]


def _with_artifact(
    reading: Reading, steps: Sequence[Step], reports: Sequence[Report], table: FormulaTable
) -> Reading:
    """The reading with the exports of the first group that holds most of its counters."""
    needed = {table.resolve(name) for name in (reading.source.counter or "").split(", ")}
    held = [{table.resolve(counter.name) for counter in report.counters} for report in reports]
    place = max(range(len(steps)), key=lambda number: len(needed & held[number]))
    if not needed & held[place]:
        return reading
    return replace(reading, source=replace(reading.source, artifact=steps[place].artifacts[1]))


def _estimated(reading: Reading, why: str | None) -> Reading:
    if reading.value is None:
        return reading
    reason = "; ".join(part for part in (reading.reason, why) if part) or None
    return replace(reading, quality="estimated", reason=reason)


def _busy(report: Report, seconds: float | None, artifact: str) -> Reading | None:
    """Cores kept busy inside the region (%), as far as samples of a millisecond tell it."""
    sampled = next((p for p in report.profiles if p.unit == "s" and p.title.endswith(" by function")), None)
    if sampled is None or not sampled.total or not seconds or not of_region(report):
        return None
    formula = "100 * sampled CPU time / wall seconds inside the region"
    source = Source("xctrace", "counters-profile", artifact, formula)
    return Reading("cpu.utilization", 100 * sampled.total / seconds, "%", "estimated", RUN, source)
