"""Every `perf stat` file of tests/data/reports, with what was read from it by eye."""

from __future__ import annotations

import re

import pytest

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.types import RUN
from profkit.profilers.perf import stat_csv
from tests.conftest import ROOT
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
by-grammar/amd-multiplexed.stat.csv: task-clock=40.2 context-switches=12 cpu-migrations=2 page-faults=410
    cycles=50000000@0.64 stalled-cycles-frontend=hard-zero stalled-cycles-backend=hard-zero
    instructions=30000000@0.69 branches=6000000@0.63 branch-misses=450000@0.6
by-grammar/amd-system-wide.stat.csv: cycles=700000000@0.79 instructions=84000000@0.79 branches=17000000@0.8
    branch-misses=3400000@0.8 cache-misses=5200000@0.8
by-grammar/topdown.stat.csv: cpu-clock=64000 context-switches=640 cpu-migrations=128 page-faults=80
    cycles=40000000 instructions=30000000 branches=5000000 branch-misses=40000
by-grammar/hybrid.stat.csv: cpu-clock=16000 context-switches=160 cpu-migrations=16 page-faults=70
    cpu_core/cycles=6000000 cpu_atom/cycles=200000000@0.54 cpu_core/instructions=4500000
    cpu_atom/instructions=30000000@0.63 cpu_core/branches=800000 cpu_atom/branches=5000000@0.63
    cpu_core/branch-misses=40000 cpu_atom/branch-misses=900000@0.63
by-grammar/cgroup-intervals-cut.stat.csv: uops_executed.core=25000000000@0.33
    mem_inst_retired.all_stores=3400000000@0.33 mem_inst_retired.all_loads=7200000000@0.34
    br_inst_retired.all_branches=2200000000@0.335 fp_arith_inst_retired.scalar_double=8000000@0.334
    fp_arith_inst_retired.scalar_single=0@0.334 fp_arith_inst_retired.512b_packed_double=0@0.332
by-grammar/vm-hard-zero.stat.csv: instructions=4000000000 cycles=20000000000 L1-dcache-loads=800000000
    L1-dcache-load-misses=120000000 LLC-loads=not-supported LLC-load-misses=not-supported cache-misses=hard-zero
    r4f2e=hard-zero
by-grammar/zen5-user-only.stat.csv: duration_time=hard-zero task-clock=1500 cycles=8000000000
    instructions=22000000000 ex_ret_brn=4000000000 ex_ret_brn_misp=72000000 ls_l1_d_tlb_miss.all=560000@0.5
    bp_l1_tlb_miss_l2_tlb_hit=8800000@0.49
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
CGROUP = "by-grammar/cgroup-intervals-cut.stat.csv"


def read(reports, name):
    path = reports / "perf" / name
    looks_like, reader, format = READERS[path.suffix]
    assert looks_like(path.read_bytes())
    report = reader(path)
    assert (report.tool, report.format) == ("perf", format)
    return report


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_file_reads_as_what_stands_in_it(reports, name):
    counters = read(reports, name).counters
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


def test_no_recorded_stat_file_is_left_out_and_each_looks_like_one_format_only(reports):
    folder = reports / "perf"
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert {name for name in names if "stat" in name and not name.endswith(".json")} <= set(EXPECTED)
    others = [
        path
        for folder in (
            reports / "valgrind",
            reports / "cuda",
            ROOT / "tests/data/xctrace",
            ROOT / "tests/data/evaluations",
        )
        for path in folder.rglob("*")
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
by-grammar/zen5-user-only.stat.csv space=user only
{CGROUP} cgroup=batch_job
{CGROUP} intervals=2
"""


@pytest.mark.parametrize("line", FACTS.strip().splitlines())
def test_what_decides_comparability_is_kept_as_facts(reports, line):
    name, _, fact = line.partition(" ")
    report = read(reports, name)
    assert report.facts[fact.partition("=")[0]] == fact.partition("=")[2]
    assert ["not complete" in w for w in spoken_lines(report.warnings)] == ([True] if name == CGROUP else [])


# Where it printed 5.00 and 112.50 % of the hybrid part, perf divided one kind of core by the other.
METRICS = f"""
by-grammar/topdown.stat.csv ipc - 0.75 measured
by-grammar/topdown.stat.csv branch.miss_rate - 0.8 measured
by-grammar/hybrid.stat.csv ipc - 0.15 multiplexed
by-grammar/hybrid.stat.csv branch.miss_rate - 18 multiplexed
by-grammar/amd-multiplexed.stat.csv ipc - 0.6 multiplexed
by-grammar/zen5-user-only.stat.csv branch.miss_rate - 1.8 measured
by-grammar/vm-hard-zero.stat.csv cache.l1.miss_rate - 15 measured
by-grammar/vm-hard-zero.stat.csv cache.l3.miss_rate - - unavailable
{VM}/stat.ddd.csv cache.l1.miss_rate - - unavailable
{VM}/stat.default.csv time.cpu - {0.56e-3} measured
by-grammar/amd-multiplexed.stat.csv stalls.backend - - unavailable
"""


@pytest.mark.parametrize("line", METRICS.strip().splitlines())
def test_the_metrics_of_a_recorded_file_are_recomputed_from_its_counts(reports, line):
    name, metric, pmu, value, quality = line.split()
    readings = derive(read(reports, name).counters, formula_table("perf"), "perf", name)
    reading = next(r for r in readings if r.metric == metric and r.scope.id == (None if pmu == "-" else pmu))
    assert reading.value == (None if value == "-" else pytest.approx(float(value), rel=1e-4))
    assert reading.quality == quality
