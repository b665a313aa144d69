"""Which events are counted together on this machine: planned from its table, then tried on a tiny program."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.types import Counter, Machine
from profkit.profilers.perf.counter_groups import plan_groups
from profkit.profilers.perf.events import table_for
from profkit.profilers.perf.probe import PerfAbility, find_refused_events, has_nmi_watchdog

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
class Choice:
    """What is counted together here, and what was tried and refused (each with its reason)."""

    groups: tuple[tuple[str, ...], ...]
    refused: tuple[Counter, ...] = ()


def choose_groups(machine: Machine, perf: PerfAbility) -> Choice:
    """The groups of this CPU's event table as far as perf and the CPU know its events; each is tried once.

    Where an event is refused, the metric's next best formula is used. Without a PMU, the kernel's own events.
    """
    if not perf.hardware_ok or perf.path is None:
        return Choice((SOFTWARE,))
    table, watchdog = table_for(machine), has_nmi_watchdog()
    refused: dict[str, Counter] = {}
    groups = plan_groups(table, METRICS, perf.rights, watchdog=watchdog)
    tried: set[tuple[str, ...]] = set()
    for _ in range(ROUNDS):
        found = find_refused_events(perf.path, [group for group in groups if group not in tried])
        tried |= set(groups)
        if not found:
            break
        refused |= found
        groups = plan_groups(table.without(refused), METRICS, perf.rights, watchdog=watchdog)
    if all(event in refused for group in groups for event in group):  # not events but counting is refused
        return Choice(plan_groups(table, METRICS, perf.rights, watchdog=watchdog))
    kept = (tuple(event for event in group if event not in refused) for group in groups)
    return Choice(tuple(group for group in kept if group), tuple(refused.values()))
