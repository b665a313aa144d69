"""Loads tables of perf events: for each family of CPUs its events, and how many counters each takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from profkit.analysis.metrics.derive import DRIFT_LIMIT
from profkit.analysis.metrics.formula import Formula
from profkit.analysis.metrics.formulas import FormulaTable, formula_table
from profkit.core.tables import load_yaml
from profkit.core.types import Counter, Fact, Machine, Report, Scope


@dataclass(frozen=True)
class PerfEvent:
    """One event: `name` as formulas know it, `code` as perf expects it.

    `counters`: how many programmable counters it takes; some AMD events take two, kernel clocks none.
    """

    name: str
    code: str
    pmu: str | None = None
    counters: int = 1


@dataclass(frozen=True)
class CoreEvents:
    """One kind of core: its events by name, and the anchors that belong in every group.

    `programmable` counters are left next to the anchors, whether these have counters of their own or not.
    """

    pmu: str | None
    programmable: int
    anchors: tuple[PerfEvent, ...]
    events: Mapping[str, PerfEvent]


@dataclass(frozen=True)
class EventTable:
    """The events of one family of CPUs. `chip` names its formulas; hybrid parts have two `cores`."""

    name: str
    title: str
    chip: str
    cores: tuple[CoreEvents, ...]
    shared: Mapping[str, PerfEvent]  # system-wide events

    def without(self, codes: Collection[str]) -> EventTable:
        """Return the table without these events, so that a metric's next best formula is chosen."""
        cores = tuple(
            replace(core, events={n: e for n, e in core.events.items() if e.code not in codes})
            for core in self.cores
        )
        return replace(
            self, cores=cores, shared={n: e for n, e in self.shared.items() if e.code not in codes}
        )


# PMUs that belong to no core: memory controllers, shared caches, fabrics, the package's power.
_WIDE_PMU = re.compile(r"(uncore_\w+|amd_(l3|df|umc|iommu)\w*|l3|arm_cmn\w*|dmc620\w*|dsu\w*|power)/")


def is_system_wide(code: str) -> bool:
    """Return whether perf can count this event on the whole machine only."""
    return _WIDE_PMU.match(code) is not None


# Counted by the kernel and not the CPU: they cost no counter. task-clock is in every group, since its run
# time is what a multiplexed event's run time is held against.
CLOCK = PerfEvent("task-clock", "task-clock", counters=0)
SOFTWARE = tuple(
    PerfEvent(name, name, counters=0) for name in ("page-faults", "context-switches", "cpu-migrations")
)


_TABLES = Path(__file__).with_name("events.yaml")


@lru_cache(maxsize=1)
def all_tables() -> tuple[EventTable, ...]:
    """Load every table, the fallback last."""
    return tuple(_table(name, content) for name, content in load_yaml(_TABLES).items())


def table_for(machine: Machine) -> EventTable:
    """Return the table of this machine's CPU; the kernel's generic events for an unknown CPU."""
    contents = load_yaml(_TABLES)
    for table in all_tables():
        if any(_matches(rule, machine) for rule in contents[table.name].get("cpus", [])):
            return table
    return all_tables()[-1]


def _matches(rule: Mapping[str, Any], machine: Machine) -> bool:
    if rule["vendor"].lower() != machine.vendor.lower():
        return False
    if "family" in rule and machine.family != rule["family"]:
        return False
    models = rule.get("models")
    return models is None or (machine.model is not None and any(_in_range(machine.model, m) for m in models))


def _in_range(model: int, written: int | str) -> bool:
    """Return whether `model` is in a range written as `0x31` or `0x30-0x3f`."""
    if isinstance(written, int):
        return model == written
    low, _, high = written.partition("-")
    return int(low, 0) <= model <= int(high or low, 0)


def _table(name: str, content: Mapping[str, Any]) -> EventTable:
    kinds: Mapping[str | None, Any] = content.get("cores", {None: content})
    return EventTable(
        name=name,
        title=content["title"],
        chip=content["chip"],
        cores=tuple(_parse_core_events(pmu, rows) for pmu, rows in kinds.items()),
        shared={n: _parse_event(n, row, None) for n, row in content.get("system_wide", {}).items()},
    )


def _parse_core_events(pmu: str | None, rows: Mapping[str, Any]) -> CoreEvents:
    anchors = tuple(
        _parse_event(anchor, anchor, pmu) for anchor in rows.get("anchors", ("cycles", "instructions"))
    )
    return CoreEvents(
        pmu=pmu,
        programmable=rows["programmable"],
        anchors=anchors,
        events={name: _parse_event(name, row, pmu) for name, row in rows["events"].items()},
    )


def _parse_event(name: str, row: str | Mapping[str, Any] | None, pmu: str | None) -> PerfEvent:
    """Parse a row of a table: the encoding (`cpu/event=0x29,umask=0x7/`), or nothing for a kernel's event.

    The encoding gets `name=`, so that every perf prints the name that formulas know. `name=` hides the PMU that
    perf would print, so on a hybrid part the name carries it.
    """
    written: Mapping[str, Any] = row if isinstance(row, Mapping) else {"code": row}
    code: str = written["code"] or name
    if "=" in code and "name=" not in code:
        printed = f"{pmu}__{name}" if pmu else name
        code = f"{code.rstrip('/')},name={printed}/"
    elif pmu is not None and "/" not in code:
        code = f"{pmu}/{code}/"
    return PerfEvent(name, code, pmu, int(written.get("counters", 1)))


# Which the kernel lets a user count without rights: 0 is needed for what belongs to no process.
SYSTEM_WIDE_PARANOID = 0
_SHARED_COUNTERS = 4  # a memory controller's or a shared cache's PMU has four and more


def plan_groups(
    table: EventTable, metrics: Sequence[str], paranoid: int | None = None, *, watchdog: bool = False
) -> tuple[tuple[str, ...], ...]:
    """Plan groups of events for `metrics`, each for a run of its own, small enough not to multiplex.

    The counters of one formula stay in one group where they fit. `paranoid` is the kernel's setting as it holds
    for this user (PerfAbility.rights; None where unknown): above 0 nothing system-wide is planned. A system-wide
    group has no anchors, since it counts every program, and no duration_time, since perf tells the time of the
    whole process there, also when it was switched on for a region only. `watchdog`: the kernel's NMI watchdog
    holds one of the counters. A metric that this CPU has no events for is left out.
    """
    formulas = formula_table("perf", table.chip)
    wide_ok = paranoid is not None and paranoid <= SYSTEM_WIDE_PARANOID
    per_kind = [
        _pack_groups(_needed_events(cores, formulas, metrics), cores.programmable - watchdog)
        for cores in table.cores
    ]
    groups: list[tuple[str, ...]] = []
    for parts in zip_longest(*per_kind, fillvalue=()):
        codes = [CLOCK.code]
        for cores, part in zip(table.cores, parts, strict=True):
            codes += [event.code for event in (*cores.anchors, *part)]
        if not groups:
            codes += [event.code for event in SOFTWARE]
        groups.append(tuple(dict.fromkeys(codes)))
    if not groups:  # the metrics need nothing but anchors, or this CPU has no more
        anchors = [event.code for cores in table.cores for event in cores.anchors]
        groups.append((CLOCK.code, *anchors, *(event.code for event in SOFTWARE)))
    if wide_ok:
        wide = [_shared_events(table, formulas, name) for name in metrics]
        for part in _pack_groups([events for events in wide if events], _SHARED_COUNTERS):
            groups.append(tuple(event.code for event in part))
    return tuple(groups)


def _needed_events(
    cores: CoreEvents, formulas: FormulaTable, metrics: Sequence[str]
) -> list[tuple[PerfEvent, ...]]:
    """Return for each metric the events of its best formula that this kind of core can count."""
    anchors = {event.name for event in cores.anchors}
    free = anchors | {CLOCK.name, *(event.name for event in SOFTWARE)}
    needs: list[tuple[PerfEvent, ...]] = []
    for metric in metrics:
        for way in formulas.formulas.get(metric, ()):
            names = [formulas.resolve(name) for name in way.names]
            if all(name in free or name in cores.events for name in names):
                needs.append(tuple(cores.events[name] for name in names if name not in free))
                break
    return [need for need in needs if need]


def _shared_events(table: EventTable, formulas: FormulaTable, metric: str) -> tuple[PerfEvent, ...]:
    """Return the system-wide events of `metric`; none where a core can count it."""
    ways = formulas.formulas.get(metric, ())
    for way in ways:
        if any(_counted_in(cores, formulas, way) for cores in table.cores):
            return ()
        names = [formulas.resolve(name) for name in way.names if name != "duration_time"]
        if names and all(name in table.shared for name in names):
            return tuple(table.shared[name] for name in names)
    return ()


def _counted_in(cores: CoreEvents, formulas: FormulaTable, way: Formula) -> bool:
    countable = {*cores.events, *(event.name for event in cores.anchors), CLOCK.name}
    return all(formulas.resolve(name) in countable for name in way.names)


def _pack_groups(needs: Sequence[Sequence[PerfEvent]], limit: int) -> list[tuple[PerfEvent, ...]]:
    """Pack the needs into groups of at most `limit` counters; a larger need is split."""
    limit = max(limit, 1)
    groups: list[dict[str, PerfEvent]] = []

    def cost(events: Mapping[str, PerfEvent]) -> int:
        return sum(event.counters for event in events.values())

    for need in needs:
        wanted = {event.name: event for event in need}
        pieces = [wanted] if cost(wanted) <= limit else [{name: event} for name, event in wanted.items()]
        for piece in pieces:
            home = next((group for group in groups if cost({**group, **piece}) <= limit), None)
            if home is None:
                groups.append(dict(piece))
            else:
                home |= piece
    return [tuple(group.values()) for group in groups]


@dataclass(frozen=True)
class MergedCounters:
    """Several groups merged: each counter once, the groups, and how far the runs drifted."""

    counters: tuple[Counter, ...]
    groups: tuple[tuple[str, ...], ...]
    drift: float | None
    warnings: tuple[Fact, ...] = ()


def anchor_drift(groups: Sequence[Sequence[Counter]]) -> float | None:
    """Return how far the anchors of `groups` lie apart: (largest - smallest) / median.

    By retired instructions, else by cycles: instructions do not depend on clock or caches, so they show a
    different amount of work and nothing else. On a hybrid part the PMUs' instructions are added up for this,
    since a run may spread differently. None where there are not two groups to compare.
    """
    for anchor in ("instructions", "cycles"):
        counted = [[c.value for c in group if c.name == anchor and c.value is not None] for group in groups]
        totals = sorted(sum(values) for values in counted if values)
        if len(totals) > 1:
            middle = totals[len(totals) // 2]
            return (totals[-1] - totals[0]) / middle if middle else 0.0
    return None


def merge_groups(reports: Sequence[Report]) -> MergedCounters:
    """Merge the reports of all groups (and of repeated runs of one group) into one set of counters.

    Of an event that was counted several times the middle count is kept, counts that were on a counter all the
    time before multiplexed ones; so one disturbed run does not reach the result.
    """
    by_name: dict[tuple[str, str | None, Scope], list[Counter]] = {}
    for report in reports:
        for counter in report.counters:
            by_name.setdefault((counter.name, counter.pmu, counter.scope), []).append(counter)
    drift = anchor_drift([report.counters for report in reports])
    warnings = [warning for report in reports for warning in report.warnings]
    if drift is not None and drift >= DRIFT_LIMIT:
        warnings.append(Fact.of("unstable-groups", drift=drift, limit=DRIFT_LIMIT))
    groups = dict.fromkeys(tuple(counter.name for counter in report.counters) for report in reports)
    return MergedCounters(
        counters=tuple(_median_counter(counts) for counts in by_name.values()),
        groups=tuple(groups),
        drift=drift,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _median_counter(same: Sequence[Counter]) -> Counter:
    for state in ("measured", "multiplexed"):
        usable = sorted((c for c in same if c.state == state), key=lambda c: c.value or 0.0)
        if usable:
            return usable[(len(usable) - 1) // 2]
    return same[0]
