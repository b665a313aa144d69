"""Every recorded `perf stat` file, with what was read from it by eye."""

from pathlib import Path

import pytest

from profkit.analysis.metrics import derive, formula_table
from profkit.core.types import RUN
from profkit.profilers.perf import stat_csv, stat_text

VM = "vm-without-pmu-perf6.1"
NOT_SUPPORTED = (None, "not-supported")
COUNTED = "measured"
DEAD = (None, "hard-zero")


def part(value, share):
    return (value, "multiplexed", share)


DEFAULT_DEAD = dict.fromkeys(("cycles", "instructions", "branches", "branch-misses"), NOT_SUPPORTED)

# file -> event (with its PMU where there are two) -> (value, state[, share])
EXPECTED = {
    f"{VM}/stat.default.csv": {
        "task-clock": (0.56, COUNTED),
        "context-switches": (1, COUNTED),
        "cpu-migrations": (0, COUNTED),
        "page-faults": (51, COUNTED),
        **DEFAULT_DEAD,
    },
    f"{VM}/stat.default.json": {
        "task-clock": (0.442316, COUNTED),
        "context-switches": (0, COUNTED),
        "cpu-migrations": (0, COUNTED),
        "page-faults": (49, COUNTED),
        **DEFAULT_DEAD,
    },
    f"{VM}/stat.control-roi.csv": {
        "task-clock": (20.45, COUNTED),
        "page-faults": (0, COUNTED),
        "cycles": NOT_SUPPORTED,
    },
    # three intervals, of which one found the task asleep
    f"{VM}/stat.interval.csv": {"task-clock": (0.72 + 0.05, COUNTED)},
    f"{VM}/stat.interval.json": {"task-clock": (0.811755 + 0.049403, COUNTED)},
    f"{VM}/stat.noaggr.csv": {"task-clock": (50.30, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-core.csv": {"task-clock": (32.95 + 60.89, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-core.json": {"task-clock": (201.569315 + 38.795011, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-die.csv": {"task-clock": (51.60, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-die.json": {"task-clock": (60.183575, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-node.csv": {"task-clock": (51.81, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-node.json": {"task-clock": (110.603361, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-socket.csv": {"task-clock": (60.28, COUNTED), "cycles": NOT_SUPPORTED},
    f"{VM}/stat.per-socket.json": {"task-clock": (61.081729, COUNTED), "cycles": NOT_SUPPORTED},
    # three runs: the variance stands before the run time
    f"{VM}/stat.r3.csv": {
        "task-clock": (0.78, COUNTED),
        "cycles": NOT_SUPPORTED,
        "page-faults": (77, COUNTED),
        "duration_time": (58585651, COUNTED),
        "user_time": (974000, COUNTED),
        "system_time": (521000, COUNTED),
    },
    f"{VM}/stat.r3.json": {
        "task-clock": (0.787899, COUNTED),
        "cycles": NOT_SUPPORTED,
        "page-faults": (75, COUNTED),
    },
    "amd-e-series-perf6.12/perf_stat_vulkaninfo.csv": {
        "task-clock": (63.40, COUNTED),
        "context-switches": (28, COUNTED),
        "cpu-migrations": (1, COUNTED),
        "page-faults": (603, COUNTED),
        "cycles": part(80114687, 40665932 / 63395472),
        "stalled-cycles-frontend": DEAD,
        "stalled-cycles-backend": DEAD,
        "instructions": part(42830765, 43883446 / 63395472),
        "branches": part(9128991, 40555023 / 63395472),
        "branch-misses": part(989696, 38466008 / 63395472),
    },
    "amd-e-series-perf6.12/perf_stat_clinfo.csv": {
        "task-clock": (366.06, COUNTED),
        "context-switches": (201, COUNTED),
        "cpu-migrations": (3, COUNTED),
        "page-faults": (10010, COUNTED),
        "cycles": part(459222578, 0.66),  # its run time over the task's is 65.8 %: it was enabled for less
        "stalled-cycles-frontend": DEAD,
        "stalled-cycles-backend": DEAD,
        "instructions": part(224327842, 0.67),
        "branches": part(43182625, 0.70),
        "branch-misses": part(4144766, 0.69),
    },
    "amd-e-series-perf6.12/perf_stat_sleep.csv": {
        "cycles": part(784560416, 0.79),
        "instructions": part(94317181, 0.79),
        "branches": part(19222137, 0.80),
        "branch-misses": part(4557596, 0.80),
        "cache-misses": part(6610681, 0.80),
    },
    "intel-spr-and-hybrid/spr.stat.csv": {
        "cpu-clock": (225851.20, COUNTED),
        "context-switches": (976, COUNTED),
        "cpu-migrations": (224, COUNTED),
        "page-faults": (76, COUNTED),
        "cycles": (52288305, COUNTED),
        "instructions": (37977214, COUNTED),
        "branches": (7299859, COUNTED),
        "branch-misses": (51102, COUNTED),
    },
    "intel-spr-and-hybrid/spr.stat.json": {
        "cpu-clock": (225904.823297, COUNTED),
        "context-switches": (986, COUNTED),
        "cpu-migrations": (224, COUNTED),
        "page-faults": (76, COUNTED),
        "cycles": (48433482, COUNTED),
        "instructions": (38620409, COUNTED),
        "branches": (7369473, COUNTED),
        "branch-misses": (54747, COUNTED),
    },
    "intel-spr-and-hybrid/hybrid-adl.stat.csv": {
        "cpu-clock": (32139.34, COUNTED),
        "context-switches": (225, COUNTED),
        "cpu-migrations": (32, COUNTED),
        "page-faults": (72, COUNTED),
        "cpu_core cycles": (6766433, COUNTED),
        "cpu_atom cycles": part(256500230, 0.541),
        "cpu_core instructions": (4688595, COUNTED),
        "cpu_atom instructions": part(37487490, 0.633),
        "cpu_core branches": (845211, COUNTED),
        "cpu_atom branches": part(6571193, 0.632),
        "cpu_core branch-misses": (41359, COUNTED),
        "cpu_atom branch-misses": part(1020231, 0.632),
    },
    "intel-spr-and-hybrid/hybrid-adl.stat.json": {
        "cpu-clock": (32131.530625, COUNTED),
        "context-switches": (328, COUNTED),
        "cpu-migrations": (32, COUNTED),
        "page-faults": (353, COUNTED),
        "cpu_core cycles": (18685492, COUNTED),
        "cpu_atom cycles": part(255620352, 0.541),
        "cpu_core instructions": (15489913, COUNTED),
        "cpu_atom instructions": part(38790161, 0.633),
        "cpu_core branches": (2908031, COUNTED),
        "cpu_atom branches": part(6814948, 0.633),
        "cpu_core branch-misses": (97638, COUNTED),
        "cpu_atom branch-misses": part(1017066, 0.633),
    },
    "intel-cgroup-interval/cpu-bops.interval-cgroup.csv": {
        # two intervals of these three, one of the others: the file was cut off there
        "uops_executed.core": part(12155448696 + 13049974000, 0.333),
        "mem_inst_retired.all_stores": part(1675196566 + 1800628262, 0.3335),
        "mem_inst_retired.all_loads": part(3532382411 + 3797318184, 0.334),
        "br_inst_retired.all_branches": part(2283232066, 0.335),
        "fp_arith_inst_retired.scalar_double": part(8693488, 0.3342),
        "fp_arith_inst_retired.scalar_single": part(0, 0.3342),
        "fp_arith_inst_retired.128b_packed_double": part(0, 0.3341),
        "fp_arith_inst_retired.128b_packed_single": part(0, 0.3340),
        "fp_arith_inst_retired.256b_packed_double": part(0, 0.3340),
        "fp_arith_inst_retired.256b_packed_single": part(0, 0.3334),
        "fp_arith_inst_retired.512b_packed_double": part(0, 0.3324),
        "fp_arith_inst_retired.512b_packed_single": part(0, 0.3315),
    },
    "json-quirks/arm-cortex-a57.trailing-comma.json": {"armv8_pmuv3_1 branch-misses": (3112, COUNTED)},
    "json-quirks/benchkit-109.multiplexed-10pct.head.json": {
        "task-clock": (1.397967, COUNTED),
        "context-switches": (1, COUNTED),
        "cpu-migrations": (0, COUNTED),
        "page-faults": (66, COUNTED),
        "cycles": part(1419380, 139903 / 1397967),
        "stalled-cycles-frontend": (141415, COUNTED),
    },
    "json-quirks/hybrid.dropped-metric-after.json": {
        "cpu_atom branch-misses": (None, "not-counted"),
        "cpu_core branch-misses": (5778, COUNTED),
    },
    "json-quirks/hybrid.empty-metric-before-6.13.json": {
        "cpu_atom branch-misses": (None, "not-counted"),
        "cpu_core branch-misses": (6326, COUNTED),
    },
    "json-quirks/metric-threshold.json": {
        "instructions": (973733, COUNTED),
        "cpu-cycles": (1256220, COUNTED),
        "ref-cycles": (1006416, COUNTED),
        "branch-instructions": (173880, COUNTED),
        "branch-misses": (6016, COUNTED),
        "cache-misses": (1312, COUNTED),
        "cache-references": (14498, COUNTED),
        "context-switches": (0, COUNTED),
        "page-faults": (57, COUNTED),
        "system_time": (None, "not-counted"),
    },
    "json-quirks/vm-census.hard-zero.csv": {
        "instructions": (4137979348, COUNTED),
        "cycles": (22227766667, COUNTED),
        "L1-dcache-loads": (786172946, COUNTED),
        "L1-dcache-load-misses": (120303664, COUNTED),
        "LLC-loads": NOT_SUPPORTED,
        "LLC-load-misses": NOT_SUPPORTED,
        "cache-misses": DEAD,
        "r4f2e": DEAD,
    },
    "json-quirks/zen5-perf7.2.recorded-shapes.csv": {
        "duration_time": DEAD,
        "task-clock": (1519.19, COUNTED),
        "cycles": (8019305103, COUNTED),
        "instructions": (22287659913, COUNTED),
        "ex_ret_brn": (4120569627, COUNTED),
        "ex_ret_brn_misp": (73900351, COUNTED),
        "ls_l1_d_tlb_miss.all": part(562200, 758573160 / 1509882571),
        "bp_l1_tlb_miss_l2_tlb_hit": part(8847212, 756066504 / 1519190989),
    },
    f"{VM}/errors.txt": {
        "task-clock": (0.52, COUNTED),
        "context-switches": (0, COUNTED),
        "cpu-migrations": (0, COUNTED),
        "page-faults": (50, COUNTED),
        **DEFAULT_DEAD,
        "duration_time": (1144369, COUNTED),
        "user_time": (1243000, COUNTED),
        "system_time": (0, COUNTED),
    },
}
DDD = "L1-dcache-loads L1-dcache-load-misses LLC-loads LLC-load-misses L1-icache-loads L1-icache-load-misses "
DDD += (
    "dTLB-loads dTLB-load-misses iTLB-loads iTLB-load-misses L1-dcache-prefetches L1-dcache-prefetch-misses"
)
EXPECTED[f"{VM}/stat.ddd.csv"] = {
    "task-clock": (0.54, COUNTED),
    "context-switches": (0, COUNTED),
    "cpu-migrations": (0, COUNTED),
    "page-faults": (49, COUNTED),
    **DEFAULT_DEAD,
    **dict.fromkeys(DDD.split(), NOT_SUPPORTED),
}
READERS = {
    ".csv": (stat_csv.looks_like_stat_csv, stat_csv.read_stat_csv, "perf-stat-csv"),
    ".json": (stat_text.looks_like_stat_json, stat_text.read_stat_json, "perf-stat-json"),
    ".txt": (stat_text.looks_like_stat_text, stat_text.read_stat_text, "perf-stat-text"),
}


def read(fixtures: Path, name: str):
    path = fixtures / "perf" / name
    looks_like, reader, format = READERS[path.suffix]
    assert looks_like(path.read_bytes())
    report = reader(path)
    assert (report.tool, report.format) == ("perf", format)
    return report


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_file_reads_as_what_stands_in_it(fixtures, name):
    found = {f"{c.pmu} {c.name}" if c.pmu else c.name: c for c in read(fixtures, name).counters}
    assert list(found) == list(EXPECTED[name])
    for event, (value, state, *share) in EXPECTED[name].items():
        counter = found[event]
        assert counter.state == state, event
        assert counter.scope == RUN, event
        assert counter.value == (None if value is None else pytest.approx(value, rel=1e-9)), event
        if share:
            assert counter.share == pytest.approx(share[0], abs=0.006), event
        elif value is not None:
            assert counter.share == 1.0, event


def test_no_recorded_stat_file_is_left_out(fixtures):
    stat = {
        p.relative_to(fixtures / "perf").as_posix()
        for p in (fixtures / "perf").rglob("*stat*")
        if p.is_file()
    }
    quirks = {p.relative_to(fixtures / "perf").as_posix() for p in (fixtures / "perf/json-quirks").iterdir()}
    assert stat | quirks <= set(EXPECTED) | {"intel-cgroup-interval/cpu-bops.interval-cgroup.csv"}


def test_a_recorded_file_looks_like_one_format_only(fixtures):
    for path in sorted((fixtures / "perf").rglob("*")):
        if not path.is_file():
            continue
        head = path.read_bytes()[: 64 * 1024]
        kinds = [suffix for suffix, (looks_like, _, _) in READERS.items() if looks_like(head)]
        name = path.relative_to(fixtures / "perf").as_posix()
        assert kinds == ([path.suffix] if name in EXPECTED else []), name


def test_reports_of_other_tools_are_not_taken_for_perf_stat(fixtures):
    others = [
        p for folder in ("valgrind", "regression", "xctrace", "cuda") for p in (fixtures / folder).rglob("*")
    ]
    for path in others:
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(64 * 1024)
            assert not any(looks_like(head) for looks_like, _, _ in READERS.values()), path


@pytest.mark.parametrize(
    ("name", "facts", "warning"),
    [
        (f"{VM}/stat.interval.csv", {"intervals": "3"}, None),
        (f"{VM}/stat.per-core.json", {"aggregation": "core"}, None),
        (f"{VM}/stat.per-die.csv", {"aggregation": "die"}, None),
        (f"{VM}/stat.per-node.csv", {"aggregation": "node"}, None),
        (f"{VM}/stat.noaggr.csv", {"aggregation": "cpu"}, None),
        (f"{VM}/stat.default.csv", {"started-on": "Fri Nov 20 06:08:35 2026"}, None),
        ("json-quirks/zen5-perf7.2.recorded-shapes.csv", {"space": "user only"}, None),
        (
            "intel-cgroup-interval/cpu-bops.interval-cgroup.csv",
            {"cgroup": "task_ramp_test", "intervals": "2"},
            "the last interval is not complete",
        ),
    ],
)
def test_what_decides_comparability_is_kept_as_facts(fixtures, name, facts, warning):
    report = read(fixtures, name)
    assert facts.items() <= dict(report.facts).items()
    assert [w for w in report.warnings if warning is None or warning not in w] == []
    assert bool(report.warnings) == (warning is not None)


@pytest.mark.parametrize(
    ("name", "metric", "pmu", "value", "quality"),
    [
        ("intel-spr-and-hybrid/spr.stat.csv", "ipc", None, 37977214 / 52288305, "measured"),
        ("intel-spr-and-hybrid/spr.stat.csv", "branch.miss_rate", None, 100 * 51102 / 7299859, "measured"),
        # perf printed 5.54 and 120.71 % here, dividing one kind of core by the other
        ("intel-spr-and-hybrid/hybrid-adl.stat.csv", "ipc", "cpu_atom", 37487490 / 256500230, "multiplexed"),
        ("intel-spr-and-hybrid/hybrid-adl.stat.csv", "ipc", "cpu_core", 4688595 / 6766433, "measured"),
        ("intel-spr-and-hybrid/hybrid-adl.stat.csv", "ipc", None, 37487490 / 256500230, "multiplexed"),
        (
            "intel-spr-and-hybrid/hybrid-adl.stat.csv",
            "branch.miss_rate",
            "cpu_atom",
            100 * 1020231 / 6571193,
            "multiplexed",
        ),
        ("amd-e-series-perf6.12/perf_stat_vulkaninfo.csv", "ipc", None, 42830765 / 80114687, "multiplexed"),
        ("json-quirks/metric-threshold.json", "ipc", None, 973733 / 1256220, "measured"),
        ("json-quirks/zen5-perf7.2.recorded-shapes.csv", "branch.miss_rate", None, 1.7934, "measured"),
        ("json-quirks/vm-census.hard-zero.csv", "cache.l1.miss_rate", None, 15.302, "measured"),
        ("json-quirks/vm-census.hard-zero.csv", "cache.l3.miss_rate", None, None, "unavailable"),
        (f"{VM}/stat.ddd.csv", "cache.l1.miss_rate", None, None, "unavailable"),
        (f"{VM}/stat.default.csv", "time.cpu", None, 0.56e-3, "measured"),
        ("amd-e-series-perf6.12/perf_stat_vulkaninfo.csv", "stalls.backend", None, None, "unavailable"),
    ],
)
def test_the_metrics_of_a_recorded_file_are_recomputed_from_its_counts(
    fixtures, name, metric, pmu, value, quality
):
    readings = derive(read(fixtures, name).counters, formula_table("perf"), "perf", name)
    reading = next(r for r in readings if r.metric == metric and r.scope.id == pmu)
    assert reading.value == (None if value is None else pytest.approx(value, rel=1e-4))
    assert reading.quality == quality
