"""Event tables as data: for each family of CPUs, what to ask perf for, and on how many counters it runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.tables import load_yaml
from profkit.core.types import Machine


@dataclass(frozen=True)
class PerfEvent:
    """One event. `name` as formulas know it, `code` as perf is asked for it.

    `system_wide`: it belongs to no process (memory controller, shared cache), needs -a and its rights.
    `counters`: how many programmable counters it takes; some AMD events take two, kernel clocks none.
    """

    name: str
    code: str
    pmu: str | None = None
    system_wide: bool = False
    counters: int = 1


@dataclass(frozen=True)
class CoreEvents:
    """One kind of core: its events by name and the anchors that belong in every group.

    `programmable` counters are left beside the anchors, whether these have counters of their own or not.
    """

    pmu: str | None
    programmable: int
    anchors: tuple[PerfEvent, ...]
    events: Mapping[str, PerfEvent]


@dataclass(frozen=True)
class EventTable:
    """What can be asked of one family of CPUs. `chip` names its formulas; hybrid parts have two `cores`."""

    name: str
    title: str
    chip: str
    cores: tuple[CoreEvents, ...]
    shared: Mapping[str, PerfEvent]  # system-wide events
    note: str | None = None

    def codes(self) -> tuple[str, ...]:
        """Every event string of the table."""
        every = [e for cores in self.cores for e in (*cores.anchors, *cores.events.values())]
        return tuple(dict.fromkeys(e.code for e in (*every, *self.shared.values())))

    def without(self, codes: Collection[str]) -> EventTable:
        """The table without these events, so that the next best formula of a metric finds its own."""
        cores = tuple(
            replace(one, events={n: e for n, e in one.events.items() if e.code not in codes})
            for one in self.cores
        )
        return replace(
            self, cores=cores, shared={n: e for n, e in self.shared.items() if e.code not in codes}
        )


# PMUs that belong to no core: memory controllers, shared caches, fabrics, the package's power.
_WIDE_PMU = re.compile(r"(uncore_\w+|amd_(l3|df|umc|iommu)\w*|l3|arm_cmn\w*|dmc620\w*|dsu\w*|power)/")


def is_system_wide(code: str) -> bool:
    """Whether perf can count this event on the whole machine only."""
    return _WIDE_PMU.match(code) is not None


# Counted by the kernel and not the CPU: they cost no counter. task-clock is in every group, since its run
# time is what a multiplexed event's run time is held against.
CLOCK = PerfEvent("task-clock", "task-clock", counters=0)
SOFTWARE = tuple(
    PerfEvent(name, name, counters=0) for name in ("page-faults", "context-switches", "cpu-migrations")
)


@lru_cache(maxsize=1)
def all_tables() -> tuple[EventTable, ...]:
    """Every table, the fallback last."""
    folder = Path(__file__).parent
    tables = [_table(path.stem, load_yaml(path)) for path in sorted(folder.glob("*.yaml"))]
    return tuple(sorted(tables, key=lambda table: table.name == "generic"))


def table_for(machine: Machine) -> EventTable:
    """The table of this machine's CPU; the kernel's generic events where the CPU is not known."""
    folder = Path(__file__).parent
    for table in all_tables():
        rules = load_yaml(folder / f"{table.name}.yaml").get("cpus", [])
        if any(_matches(rule, machine) for rule in rules):
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
    """`0x31` or `0x30-0x3f`."""
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
        shared={
            n: _parse_event(n, row, None, system_wide=True)
            for n, row in content.get("system_wide", {}).items()
        },
        note=content.get("note"),
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


def _parse_event(
    name: str, row: str | Mapping[str, Any] | None, pmu: str | None, system_wide: bool = False
) -> PerfEvent:
    """A row is the encoding (`cpu/event=0x29,umask=0x7/`), or nothing for an event that the kernel names.

    The encoding gets `name=`, so that every perf prints the name that formulas know. `name=` hides the PMU
    that perf would print, so on a hybrid part the name carries it.
    """
    written: Mapping[str, Any] = row if isinstance(row, Mapping) else {"code": row}
    code: str = written["code"] or name
    if "=" in code and "name=" not in code:
        printed = f"{pmu}__{name}" if pmu else name
        code = f"{code.rstrip('/')},name={printed}/"
    elif pmu is not None and "/" not in code:
        code = f"{pmu}/{code}/"
    return PerfEvent(name, code, pmu, system_wide, int(written.get("counters", 1)))
