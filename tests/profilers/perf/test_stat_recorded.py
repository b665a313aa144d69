"""Every recorded `perf stat` file, with what was read from it by eye."""

from __future__ import annotations

import re

import pytest

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.types import RUN
from profkit.profilers.perf import stat_csv
from tests.spoken import spoken_lines

# file: event=value or state, @ the share of the time that it was counted; a PMU stands before the event
RECORDED = """
vm-without-pmu-perf6.1/stat.default.csv: task-clock=0.56 context-switches=1 cpu-migrations=0 page-faults=51
    cycles=not-supported instructions=not-supported branches=not-supported branch-misses=not-supported
vm-without-pmu-perf6.1/stat.control-roi.csv: task-clock=20.45 page-faults=0 cycles=not-supported
vm-without-pmu-perf6.1/stat.interval.csv: task-clock=0.77
vm-without-pmu-perf6.1/stat.noaggr.csv: task-clock=50.3 cycles=not-supported
vm-without-pmu-perf6.1/stat.per-core.csv: task-clock=93.84 cycles=not-supported
vm-without-pmu-perf6.1/stat.per-die.csv: task-clock=51.6 cycles=not-supported
vm-without-pmu-perf6.1/stat.per-node.csv: task-clock=51.81 cycles=not-supported
vm-without-pmu-perf6.1/stat.per-socket.csv: task-clock=60.28 cycles=not-supported
vm-without-pmu-perf6.1/stat.r3.csv: task-clock=0.78 cycles=not-supported page-faults=77 duration_time=58585651
    user_time=974000 system_time=521000
amd-e-series-perf6.12/perf_stat_vulkaninfo.csv: task-clock=63.4 context-switches=28 cpu-migrations=1 page-faults=603
    cycles=80114687@0.6415 stalled-cycles-frontend=hard-zero stalled-cycles-backend=hard-zero
    instructions=42830765@0.6922 branches=9128991@0.6397 branch-misses=989696@0.6068
amd-e-series-perf6.12/perf_stat_clinfo.csv: task-clock=366.06 context-switches=201 cpu-migrations=3 page-faults=10010
    cycles=459222578@0.66 stalled-cycles-frontend=hard-zero stalled-cycles-backend=hard-zero
    instructions=224327842@0.67 branches=43182625@0.7 branch-misses=4144766@0.69
amd-e-series-perf6.12/perf_stat_sleep.csv: cycles=784560416@0.79 instructions=94317181@0.79 branches=19222137@0.8
    branch-misses=4557596@0.8 cache-misses=6610681@0.8
intel-spr-and-hybrid/spr.stat.csv: cpu-clock=225851.2 context-switches=976 cpu-migrations=224 page-faults=76
    cycles=52288305 instructions=37977214 branches=7299859 branch-misses=51102
intel-spr-and-hybrid/hybrid-adl.stat.csv: cpu-clock=32139.34 context-switches=225 cpu-migrations=32 page-faults=72
    cpu_core/cycles=6766433 cpu_atom/cycles=256500230@0.541 cpu_core/instructions=4688595
    cpu_atom/instructions=37487490@0.633 cpu_core/branches=845211 cpu_atom/branches=6571193@0.632
    cpu_core/branch-misses=41359 cpu_atom/branch-misses=1020231@0.632
intel-cgroup-interval/cpu-bops.interval-cgroup.csv: uops_executed.core=25205422696@0.333
    mem_inst_retired.all_stores=3475824828@0.3335 mem_inst_retired.all_loads=7329700595@0.334
    br_inst_retired.all_branches=2283232066@0.335 fp_arith_inst_retired.scalar_double=8693488@0.3342
    fp_arith_inst_retired.scalar_single=0@0.3342 fp_arith_inst_retired.128b_packed_double=0@0.3341
    fp_arith_inst_retired.128b_packed_single=0@0.334 fp_arith_inst_retired.256b_packed_double=0@0.334
    fp_arith_inst_retired.256b_packed_single=0@0.3334 fp_arith_inst_retired.512b_packed_double=0@0.3324
    fp_arith_inst_retired.512b_packed_single=0@0.3315
json-quirks/vm-census.hard-zero.csv: instructions=4137979348 cycles=22227766667 L1-dcache-loads=786172946
    L1-dcache-load-misses=120303664 LLC-loads=not-supported LLC-load-misses=not-supported cache-misses=hard-zero
    r4f2e=hard-zero
json-quirks/zen5-perf7.2.recorded-shapes.csv: duration_time=hard-zero task-clock=1519.19 cycles=8019305103
    instructions=22287659913 ex_ret_brn=4120569627 ex_ret_brn_misp=73900351 ls_l1_d_tlb_miss.all=562200@0.5024
    bp_l1_tlb_miss_l2_tlb_hit=8847212@0.4977
vm-without-pmu-perf6.1/errors.txt: task-clock=0.52 context-switches=0 cpu-migrations=0 page-faults=50
    cycles=not-supported instructions=not-supported branches=not-supported branch-misses=not-supported
    duration_time=1144369 user_time=1243000 system_time=0
vm-without-pmu-perf6.1/stat.ddd.csv: task-clock=0.54 context-switches=0 cpu-migrations=0 page-faults=49
    cycles=not-supported instructions=not-supported branches=not-supported branch-misses=not-supported
    L1-dcache-loads=not-supported L1-dcache-load-misses=not-supported LLC-loads=not-supported
    LLC-load-misses=not-supported L1-icache-loads=not-supported L1-icache-load-misses=not-supported
    dTLB-loads=not-supported dTLB-load-misses=not-supported iTLB-loads=not-supported iTLB-load-misses=not-supported
    L1-dcache-prefetches=not-supported L1-dcache-prefetch-misses=not-supported
"""
EXPECTED = {
    (words := line.split())[0].rstrip(":"): [word.partition("=")[::2] for word in words[1:]]
    for line in re.sub(r"\n {4}", " ", RECORDED).strip().splitlines()
}
READERS = {
    ".csv": (stat_csv.looks_like_stat_csv, stat_csv.read_stat_csv, "perf-stat-csv"),
    ".txt": (stat_csv.looks_like_stat_text, stat_csv.read_stat_text, "perf-stat-text"),
}
VM = "vm-without-pmu-perf6.1"
CGROUP = "intel-cgroup-interval/cpu-bops.interval-cgroup.csv"


def read(fixtures, name):
    path = fixtures / "perf" / name
    looks_like, reader, format = READERS[path.suffix]
    assert looks_like(path.read_bytes())
    report = reader(path)
    assert (report.tool, report.format) == ("perf", format)
    return report


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_file_reads_as_what_stands_in_it(fixtures, name):
    counters = read(fixtures, name).counters
    assert [f"{c.pmu}/{c.name}" if c.pmu else c.name for c in counters] == [e for e, _ in EXPECTED[name]]
    for counter, (event, told) in zip(counters, EXPECTED[name], strict=True):
        value, _, share = told.partition("@")
        assert counter.scope == RUN, event
        if value[0].isdigit():
            assert counter.value == pytest.approx(float(value), rel=1e-8), event
            assert counter.state == ("multiplexed" if share else "measured"), event
            assert counter.share == pytest.approx(float(share or 1), abs=0.006 if share else 0), event
        else:
            assert (counter.value, counter.state) == (None, value), event


def test_no_recorded_stat_file_is_left_out_and_each_looks_like_one_format_only(fixtures):
    folder = fixtures / "perf"
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert {name for name in names if "stat" in name and not name.endswith(".json")} <= set(EXPECTED)
    others = [
        path for f in ("valgrind", "regression", "xctrace", "cuda") for path in (fixtures / f).rglob("*")
    ]
    for path in (*names.values(), *(path for path in others if path.is_file())):
        with path.open("rb") as file:
            head = file.read(64 * 1024)
        kinds = [suffix for suffix, (looks_like, _, _) in READERS.items() if looks_like(head)]
        known = path.is_relative_to(folder) and path.relative_to(folder).as_posix() in EXPECTED
        assert kinds == ([path.suffix] if known else []), path


FACTS = f"""
{VM}/stat.interval.csv intervals=3
{VM}/stat.default.csv started-on=Fri Nov 20 06:08:35 2026
json-quirks/zen5-perf7.2.recorded-shapes.csv space=user only
{CGROUP} cgroup=task_ramp_test
{CGROUP} intervals=2
"""


@pytest.mark.parametrize("line", FACTS.strip().splitlines())
def test_what_decides_comparability_is_kept_as_facts(fixtures, line):
    name, _, fact = line.partition(" ")
    report = read(fixtures, name)
    assert report.facts[fact.partition("=")[0]] == fact.partition("=")[2]
    assert ["not complete" in w for w in spoken_lines(report.warnings)] == ([True] if name == CGROUP else [])


# perf printed 5.54 and 120.71 % of the hybrid part, dividing one kind of core by the other.
METRICS = f"""
intel-spr-and-hybrid/spr.stat.csv ipc - {37977214 / 52288305} measured
intel-spr-and-hybrid/spr.stat.csv branch.miss_rate - {100 * 51102 / 7299859} measured
intel-spr-and-hybrid/hybrid-adl.stat.csv ipc - {37487490 / 256500230} multiplexed
intel-spr-and-hybrid/hybrid-adl.stat.csv branch.miss_rate - {100 * 1020231 / 6571193} multiplexed
amd-e-series-perf6.12/perf_stat_vulkaninfo.csv ipc - {42830765 / 80114687} multiplexed
json-quirks/zen5-perf7.2.recorded-shapes.csv branch.miss_rate - 1.7934 measured
json-quirks/vm-census.hard-zero.csv cache.l1.miss_rate - 15.302 measured
json-quirks/vm-census.hard-zero.csv cache.l3.miss_rate - - unavailable
{VM}/stat.ddd.csv cache.l1.miss_rate - - unavailable
{VM}/stat.default.csv time.cpu - {0.56e-3} measured
amd-e-series-perf6.12/perf_stat_vulkaninfo.csv stalls.backend - - unavailable
"""


@pytest.mark.parametrize("line", METRICS.strip().splitlines())
def test_the_metrics_of_a_recorded_file_are_recomputed_from_its_counts(fixtures, line):
    name, metric, pmu, value, quality = line.split()
    readings = derive(read(fixtures, name).counters, formula_table("perf"), "perf", name)
    reading = next(r for r in readings if r.metric == metric and r.scope.id == (None if pmu == "-" else pmu))
    assert reading.value == (None if value == "-" else pytest.approx(float(value), rel=1e-4))
    assert reading.quality == quality
