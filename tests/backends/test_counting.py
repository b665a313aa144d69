"""Counting where there is a PMU, from the command to the verdicts, with a stand-in for perf (tests/stand_ins)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.backends.conftest import maker
from tests.spoken import spoken, spoken_lines

pytestmark = pytest.mark.usefixtures("no_page")

# One iteration each. Every expected reading below is worked out from these by hand.
ZEN4 = {
    "cycles": 1_000_000,
    "instructions": 2_500_000,
    "branches": 400_000,
    "branch-misses": 8_000,
    "ls_dispatch.all": 800_000,
    "ls_any_fills_from_sys.all": 24_000,
    "l2_cache_req_stat.ic_dc_miss_in_l2": 5_000,
    "l2_cache_req_stat.ic_dc_hit_in_l2": 20_000,
    "ls_dmnd_fills_from_sys.beyond_l3": 1_000,
    "ls_dmnd_fills_from_sys.beyond_l2": 4_000,
    "fp_ops_retired_by_width.scalar_uops_retired": 100_000,
    "fp_ops_retired_by_width.pack_128_uops_retired": 50_000,
    "fp_ops_retired_by_width.pack_256_uops_retired": 250_000,
    "fp_ops_retired_by_width.pack_512_uops_retired": 0,
    "fp_ret_sse_avx_ops.all": 3_000_000,
    "amd_umc/event=0x0a,rdwrmask=0x1,name=umc_cas_cmd.rd/": 0,
    "umc_cas_cmd.rd": 6_000,
    "umc_cas_cmd.wr": 2_000,
    "ic_tag_hit_miss.instruction_cache_miss": 3_000,
    "ic_tag_hit_miss.all_instruction_cache_accesses": 100_000,
}
ZEN4_READS = {
    "ipc": 2.5,
    "instructions": 2_500_000,
    "branch.miss_rate": 2.0,
    "cache.l1.miss_rate": 3.0,
    "cache.l2.miss_rate": 20.0,
    "cache.l3.miss_rate": 25.0,
    "simd.utilization": 75.0,
    "flops": 3_000_000,
    "cache.l1i.miss_rate": 3.0,
}
WITH_MEMORY = {"window": ZEN4, "pmus": ["amd_umc", "amd_l3"], "double": ["fp_ret_sse_avx_ops.all"]}
INTEL = {
    "cycles": 1_000_000,
    "instructions": 1_500_000,
    "branches": 300_000,
    "branch-misses": 30_000,
    "mem_load_retired.l1_hit": 380_000,
    "mem_load_retired.l1_miss": 20_000,
    "mem_load_retired.l2_hit": 15_000,
    "mem_load_retired.l2_miss": 5_000,
    "mem_load_retired.l3_hit": 4_000,
    "mem_load_retired.l3_miss": 1_000,
    "fp_arith_inst_retired.scalar": 100_000,
    "fp_arith_inst_retired.vector": 300_000,
    "fp_arith_inst_retired.128b_packed_double": 100_000,
    "fp_arith_inst_retired.4_flops": 100_000,
    "fp_arith_inst_retired.8_flops": 80_000,
    "fp_arith_inst_retired.512b_packed_single": 20_000,
    "cas_count_read": 5_000,
    "l2_rqsts.miss": 6_000,
    "l2_rqsts.references": 60_000,
    "l1-icache-load-misses": 700,
}


@pytest.fixture(scope="module")
def zen4(tmp_path_factory):
    """One run that several claims are about, with nothing of profkit replaced but the machine."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        make = maker(tmp_path_factory.mktemp("zen4"), monkeypatch)
        yield make("amd_zen4", WITH_MEMORY, passes="timing,counters", probe=True)


@pytest.mark.thorough
def test_zen4_readings_are_those_worked_out_by_hand_per_iteration(zen4):
    run = zen4
    told = {metric: run.reading(metric) for metric in ZEN4_READS}
    assert {metric: r.value for metric, r in told.items()} == pytest.approx(ZEN4_READS)
    assert {r.quality for r in told.values()} == {"measured"}
    assert run.reading("dram.bytes").value == pytest.approx(64 * 8_000)
    assert "all programs" in spoken(run.reading("dram.bytes").reason)
    assert run.verdict("branch-miss-rate").verdict == "pass"
    assert run.verdict("l1-miss-rate").verdict == "pass"
    assert run.verdict("l2-miss-rate").verdict == "fail"
    assert run.verdict("ipc").verdict == "pass"
    assert run.document.passes[-1].state == "finished"


def test_every_group_fits_the_counters_and_has_the_anchors(zen4):
    run = zen4
    groups = run.counted()
    assert len(groups) >= 4
    for group in groups:
        if not any("umc" in event for event in group):
            assert {"cycles", "instructions", "task-clock"} <= set(group)
    assert {c.state for c in run.document.counters if c.value is not None} == {"measured"}


@pytest.mark.thorough
def test_events_that_take_turns_are_multiplexed_with_their_share(pmu_run):
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "counters": 3})
    shares = {c.name: c.share for c in run.document.counters if c.state == "multiplexed"}
    assert shares
    assert set(shares.values()) == {0.75}
    reading = run.reading("simd.utilization")
    assert (reading.quality, reading.share) == ("multiplexed", 0.75)


@pytest.mark.thorough
def test_an_event_without_a_count_is_named_and_its_reading_is_never_zero(pmu_run):
    cases = [
        ("branch-misses", "zero", "hard-zero", "branch.miss_rate", "always reads 0"),
        ("fp_ret_sse_avx_ops.all", "not counted", "not-counted", "flops", "not counted"),
    ]
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "states": {event: state for event, state, *_ in cases}})
    for event, _, state, metric, reason in cases:
        assert run.counter(event).state == state
        assert run.reading(metric).value is None
        assert reason in spoken(run.reading(metric).reason)
    assert run.verdict("branch-miss-rate").verdict == "unknown"
    assert run.reading("cache.l2.miss_rate").value == pytest.approx(20.0)


@pytest.mark.thorough
def test_groups_that_saw_different_work_make_estimates_and_say_so(pmu_run):
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "counters": 3, "drift": {"branches": 1.05}}, watchdog=True)
    simd = run.reading("simd.utilization")
    assert simd.quality == "estimated"
    assert "unstable" in spoken(simd.reason)
    assert run.reading("instructions").quality == "estimated"
    assert run.reading("branch.miss_rate").quality == "measured"  # both of its counters come from one run
    assert any(
        "unstable: the work of the counter groups differs by" in note
        for note in spoken_lines(run.document.notes)
    )


@pytest.mark.thorough
def test_perf_killed_in_one_group_costs_that_group_only(pmu_run):
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "killed": "branches"})
    counters = next(p for p in run.document.passes if p.tool == "perf")
    assert counters.state == "failed"
    assert "killed" in spoken(counters.reason)
    assert "runs are kept" in spoken(counters.reason)
    assert run.counter("branches").state == "not-counted"
    assert "count-" in spoken(run.counter("branches").reason)
    assert run.reading("branch.miss_rate").value is None
    assert run.reading("simd.utilization").value == pytest.approx(75.0)
    assert run.reading("ipc").value == pytest.approx(2.5)


def machine_of(monkeypatch, vendor, family, model):
    """A machine that no tree was recorded of."""
    from profkit.hardware.machine import read_machine

    told = replace(read_machine(), vendor=vendor, family=family, model=model)
    monkeypatch.setattr("profkit.profiling.profile.read_machine", lambda: told)


@pytest.mark.thorough
def test_intel_server_readings_are_those_worked_out_by_hand(pmu_run, monkeypatch):
    machine_of(monkeypatch, "GenuineIntel", 6, 0x8F)
    scenario = {"window": INTEL, "pmus": ["uncore_imc"], "counters": 8}
    run = pmu_run(None, scenario)
    expected = {
        "ipc": 1.5,
        "branch.miss_rate": 10.0,
        "cache.l1.miss_rate": 5.0,
        "cache.l2.miss_rate": 25.0,
        "cache.l3.miss_rate": 20.0,
        "simd.utilization": 75.0,
        # scalar + 2 * 128-bit doubles + 4 * 4_flops + 8 * 8_flops + 16 * 512-bit singles
        "flops": 100_000 + 200_000 + 400_000 + 640_000 + 320_000,
    }
    assert {metric: run.reading(metric).value for metric in expected} == pytest.approx(expected)
    assert run.verdict("branch-miss-rate").verdict == "fail"
    assert run.verdict("l3-miss-rate").verdict in ("fail", "not-applicable")


@pytest.mark.thorough
def test_where_an_event_is_refused_the_next_best_formula_is_used(pmu_run, monkeypatch):
    machine_of(monkeypatch, "GenuineIntel", 6, 0x8F)
    run = pmu_run(None, {"window": INTEL, "unknown": ["mem_load_retired.l2_miss"], "counters": 8})
    assert run.reading("cache.l2.miss_rate").value == pytest.approx(10.0)  # l2_rqsts.miss / .references
    assert run.counter("mem_load_retired.l2_miss").state == "not-supported"


def test_a_perf_that_no_region_can_switch_counts_no_region(pmu_run):
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "deaf": True})
    assert "cannot be switched on and off by a region" in spoken(run.document.passes[0].reason)
    assert run.document.counters == ()


@pytest.mark.thorough
def test_when_perf_is_refused_every_reading_says_why(pmu_run):
    run = pmu_run("amd_zen4", {**WITH_MEMORY, "mute": True})
    counters = next(p for p in run.document.passes if p.tool == "perf")
    assert counters.state == "failed"
    assert "does not let this user count" in spoken(counters.reason)
    assert "perf_event_paranoid" in counters.fix
    assert run.verdict("ipc").verdict == "unknown"


@pytest.mark.thorough
def test_what_is_run_inside_one_entry_of_a_benchmark_is_divided_by_its_iterations(pmu_run):
    script = "import time, profkit\nprofkit.benchmark(lambda: time.sleep(0.002), name='nap')"
    run = pmu_run("amd_zen4", WITH_MEMORY, script, passes="timing,counters")
    records = list((run.folder / "artifacts").glob("count-1.region.*.json"))
    (done,) = [json.loads(r.read_text())["regions"][0]["iterations"] for r in records]
    assert done > 10
    assert run.reading("instructions").value == pytest.approx(2_500_000 / done)


# ---------------------------------------------------------------- counted and simulated side by side

COUNTING = "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); done"


@pytest.mark.thorough
@pytest.mark.valgrind
def test_at_full_depth_the_simulation_stands_beside_and_what_was_measured_is_preferred(pmu_run):
    scenario = {**WITH_MEMORY, "states": {"l2_cache_req_stat.ic_dc_miss_in_l2": "not counted"}}
    argv = ("sh", "-c", COUNTING)
    run = pmu_run("amd_zen4", scenario, argv=argv, depth="full", passes="timing,counters")
    l1 = {r.quality: r.value for r in run.readings("cache.l1.miss_rate")}
    assert set(l1) == {"measured", "simulated"}
    assert l1["measured"] == pytest.approx(3.0)
    assert run.verdict("l1-miss-rate").value == pytest.approx(3.0)
    assert run.verdict("l1-miss-rate").quality == "measured"
    assert run.verdict("l2-miss-rate").quality == "simulated"  # the only one that has a value
    assert run.verdict("ipc").value == pytest.approx(2.5)
    intensity = {r.quality: r.value for r in run.readings("arithmetic_intensity") if r.value is not None}
    assert intensity["measured"] == pytest.approx(3_000_000 / (64 * 8_000))
    cache = next(s for s in run.document.summaries if s.concern == "cache")
    assert {r.metric: r.quality for r in cache.readings}["cache.l1.miss_rate"] == "measured"
