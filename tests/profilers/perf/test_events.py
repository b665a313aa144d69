"""The event tables as data: every table can tell what the targets speak of, and no group multiplexes."""

import re

import pytest

from profkit.analysis.metrics.formulas import formula_table
from profkit.core.types import Machine
from profkit.profilers.perf.events import all_tables, is_system_wide, plan_groups, table_for
from profkit.profilers.perf.stat_counters import split_name

TABLES = all_tables()
CORE_METRICS = ["ipc", "cache.l1.miss_rate", "cache.l2.miss_rate", "cache.l3.miss_rate", "branch.miss_rate"]
ALL_METRICS = [
    *CORE_METRICS,
    "cache.l1i.miss_rate",
    "cache.l1i.mpki",
    "simd.utilization",
    "flops",
    "dram.bytes",
]
by_name = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def machine(vendor, family, model):
    unknown = dict.fromkeys(("virtual", "governor", "max_mhz"))
    chip = {"cpu": "x", "vendor": vendor, "family": family, "model": model, "cores": 8}
    system = {"system": "Linux", "release": "6.8", "architecture": "x86_64"}
    return Machine(**system, **chip, **unknown, caches=(), memory_bytes=0)


CHIPS = """
intel-skylake GenuineIntel 6 0x55 0x9E
intel-server GenuineIntel 6 0x6A 0x8F 0xCF
intel-hybrid GenuineIntel 6 0x97 0xB7
intel-haswell GenuineIntel 6 0x3F 0x4F
amd-zen2 AuthenticAMD 23 0x31 0x71
amd-zen3 AuthenticAMD 25 0x01 0x21 0x50
amd-zen4 AuthenticAMD 25 0x11 0x61 0xA0
amd-zen5 AuthenticAMD 26 0x02 0x44
arm-neoverse ARM 8 0xD0C 0xD40 0xD4F
generic AuthenticAMD 23 0x01
generic AuthenticAMD 20 0x02
generic GenuineIntel 6 0x2A
generic GenuineIntel 15 0x55
generic ARM 8 0xD08
"""


def test_a_machine_that_is_not_known_finds_the_fallback_which_is_last():
    assert table_for(machine("unknown", None, None)).name == "generic"
    assert table_for(machine("AuthenticAMD", 25, None)).name == "generic"
    assert [t.name for t in TABLES][-1] == "generic"
    assert {t.chip for t in TABLES} == {"intel", "amd", "arm", "generic"}


@by_name
def test_every_table_can_tell_what_the_targets_speak_of(table):
    formulas = formula_table("perf", table.chip)
    for cores in table.cores:
        free = {"cycles", "instructions", "task-clock"}
        for metric in CORE_METRICS:
            if table.name == "generic" and metric == "cache.l2.miss_rate":
                continue  # the kernel has no generic event of the second level
            known = cores.events.keys() | free | table.shared.keys()
            ways = [w for w in formulas.formulas[metric] if {formulas.resolve(n) for n in w.names} <= known]
            assert ways, (cores.pmu, metric)


@by_name
def test_perf_prints_each_event_under_the_name_that_formulas_know(table):
    formulas = formula_table("perf", table.chip)
    events = [e for cores in table.cores for e in (*cores.anchors, *cores.events.values())]
    for event in (*events, *table.shared.values()):
        printed = re.search(r"name=([^,/]+)", event.code)
        name = split_name(printed[1] if printed else event.code)
        assert formulas.resolve(name.name) == formulas.resolve(event.name), event
        assert name.pmu == event.pmu, event


def wide_codes(table):
    return {event.code for event in table.shared.values()}


@by_name
@pytest.mark.parametrize("watchdog", [False, True])
@pytest.mark.parametrize("paranoid", [None, 2, 0, -1])
def test_no_group_asks_for_more_counters_than_there_are(table, paranoid, watchdog):
    events = {e.code: e for cores in table.cores for e in cores.events.values()}
    for group in plan_groups(table, ALL_METRICS, paranoid, watchdog=watchdog):
        for cores in table.cores:
            taken = sum(events[c].counters for c in group if c in events and events[c].pmu == cores.pmu)
            assert taken <= 4 - watchdog


@by_name
def test_every_group_of_a_program_has_the_anchors_and_a_clock(table):
    for group in plan_groups(table, ALL_METRICS, -1):
        anchors = [a.code for cores in table.cores for a in cores.anchors]
        if any(map(is_system_wide, group)):
            assert all(map(is_system_wide, group))
            assert not set(anchors) & set(group), "every program is counted there"
        else:
            assert {*anchors, "task-clock"} <= set(group)


@by_name
def test_the_counters_of_a_formula_stay_together_where_they_fit(table):
    formulas = formula_table("perf", table.chip)
    groups = [set(map(printed_name, group)) for group in plan_groups(table, ALL_METRICS, 2)]
    for metric in CORE_METRICS:
        ways = [{formulas.resolve(n) for n in w.names} for w in formulas.formulas[metric]]
        collected = [w for w in ways if w <= set().union(*groups)]
        assert not collected or any(w <= group for w in collected for group in groups), metric


def printed_name(code):
    printed = re.search(r"name=([^,/]+)", code)
    return split_name(printed[1] if printed else code).name.lower()


@by_name
def test_nothing_system_wide_is_planned_without_the_right_to_it(table):
    for paranoid in (None, 1, 2, 3, 4):
        assert not any(is_system_wide(code) for g in plan_groups(table, ALL_METRICS, paranoid) for code in g)
