import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.types import Counter, Scope
from tests.spoken import spoken

WIDTHS = (
    "scalar_double",
    "scalar_single",
    "128b_packed_double",
    "128b_packed_single",
    "256b_packed_double",
    "256b_packed_single",
    "512b_packed_double",
    "512b_packed_single",
)
REGION = Scope("region", "mlp")


def counted(name, value, share=1.0, **more):
    state = "measured" if share >= 1 else "multiplexed"
    return Counter(name, value, state, share=share, **more)


def one(metric, counters, chip=None, tool="perf", **more):
    found = [
        r for r in derive(counters, formula_table(tool, chip), tool, "a/b.csv", **more) if r.metric == metric
    ]
    return next(r for r in found if r.scope.id is None)


def simulated(**counts):
    return [Counter(name, value, "measured") for name, value in counts.items()]


# ------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("metric", "chip", "counts", "value"),
    [
        ("ipc", None, {"instructions": 300, "cycles": 100}, 3.0),
        ("ipc", None, {"inst_retired.any": 300, "cpu-cycles": 100}, 3.0),
        ("branch.miss_rate", None, {"branches": 200, "branch-misses": 10}, 5.0),
        ("branch.miss_rate", None, {"ex_ret_brn": 200, "ex_ret_brn_misp": 10}, 5.0),
        ("branch.miss_rate", "arm", {"br_retired": 200, "br_mis_pred_retired": 10}, 5.0),
        ("cache.l1.miss_rate", None, {"L1-dcache-loads": 50, "L1-dcache-load-misses": 1}, 2.0),
        (
            "cache.l1.miss_rate",
            "intel",
            {"mem_load_retired.l1_hit": 90, "mem_load_retired.l1_miss": 10},
            10.0,
        ),
        ("cache.l1.miss_rate", "amd", {"ls_dispatch.all": 100, "ls_any_fills_from_sys.all": 7}, 7.0),
        ("cache.l1.miss_rate", "arm", {"l1d_cache": 100, "l1d_cache_refill": 7}, 7.0),
        ("cache.l2.miss_rate", "intel", {"L2_REQUEST.ALL": 100, "L2_REQUEST.MISS": 25}, 25.0),
        (
            "cache.l2.miss_rate",
            "amd",
            {
                "l2_request_g1.all_no_prefetch": 100,
                "l2_pf_hit_l2": 20,
                "l2_pf_miss_l2_hit_l3": 15,
                "l2_pf_miss_l2_l3": 5,
                "l2_cache_req_stat.ic_dc_hit_in_l2": 92,
            },
            100 * (140 - 92 - 20) / 140,  # misses are the total less all hits
        ),
        ("cache.l2.miss_rate", "arm", {"l2d_cache": 100, "l2d_cache_refill": 25}, 25.0),
        ("cache.l3.miss_rate", "intel", {"mem_load_retired.l3_hit": 3, "mem_load_retired.l3_miss": 1}, 25.0),
        ("cache.l3.miss_rate", "intel", {"cache-misses": 1, "cache-references": 4}, 25.0),
        ("cache.l2.miss_rate", "amd", {"cache-misses": 1, "cache-references": 4}, 25.0),
        ("cache.l3.miss_rate", "amd", {"l3_misses": 1, "l3_accesses": 4}, 25.0),
        ("cache.l3.miss_rate", "arm", {"ll_cache_miss_rd": 1, "ll_cache_rd": 4}, 25.0),
        ("cache.l3.miss_rate", None, {"LLC-load-misses": 1, "LLC-loads": 4}, 25.0),
        (
            "simd.utilization",
            None,
            {"fp_arith_inst_retired.scalar": 10, "fp_arith_inst_retired.vector": 30},
            75.0,
        ),
        (
            "simd.utilization",
            "amd",
            {
                "fp_ops_retired_by_width.scalar_uops_retired": 10,
                "fp_ops_retired_by_width.pack_128_uops_retired": 10,
                "fp_ops_retired_by_width.pack_256_uops_retired": 15,
                "fp_ops_retired_by_width.pack_512_uops_retired": 5,
            },
            75.0,
        ),
        ("simd.utilization", "arm", {"ase_spec": 30, "vfp_spec": 10}, 75.0),
        (
            "flops",
            "intel",
            {f"fp_arith_inst_retired.{width}": 1 for width in WIDTHS},
            1 + 1 + 2 + 4 + 4 + 8 + 8 + 16,
        ),
        ("dram.bytes", "amd", {"umc_cas_cmd.rd": 3, "umc_cas_cmd.wr": 1}, 256),
    ],
)
def test_a_metric_is_computed_from_raw_counts(metric, chip, counts, value):
    reading = one(metric, [counted(name, count) for name, count in counts.items()], chip)
    assert reading.quality == "measured"
    assert reading.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("metric", "counts", "value"),
    [
        ("cache.l1.miss_rate", {"Dr": 300, "Dw": 100, "D1mr": 30, "D1mw": 10}, 10.0),
        ("cache.l1i.miss_rate", {"Ir": 1000, "I1mr": 5}, 0.5),
        (
            "cache.l2.miss_rate",
            {"I1mr": 10, "D1mr": 80, "D1mw": 10, "I2mr": 1, "D2mr": 8, "D2mw": 1},
            10.0,
        ),
        ("cache.l3.miss_rate", {"I2mr": 1, "D2mr": 8, "D2mw": 1, "I3mr": 0, "D3mr": 2, "D3mw": 0}, 20.0),
        ("branch.miss_rate", {"Bc": 90, "Bcm": 4, "Bi": 10, "Bim": 1}, 100 * 4 / 90),
        # an interpreter's loop, whose indirect jumps a processor predicts and the simulation does not
        (
            "branch.miss_rate",
            {"Bc": 15_911_457, "Bcm": 286_013, "Bi": 4_509_097, "Bim": 1_802_687},
            pytest.approx(1.8, rel=0.01),
        ),
        ("simd.utilization", {"SIMDfp": 3, "FPinstr": 4}, 75.0),
        ("dram.bytes", {"I3mr": 1, "D3mr": 2, "D3mw": 3, "line_bytes": 128}, 768),
        ("dram.bytes", {"I3mr": 1, "D3mr": 2, "D3mw": 3, "D3wb": 4, "line_bytes": 64}, 640),
        ("dram.bytes", {"ILmr": 1, "DLmr": 2, "DLmw": 3}, 384),
        ("arithmetic_intensity", {"FLOP": 768, "I3mr": 1, "D3mr": 2, "D3mw": 3, "line_bytes": 64}, 2.0),
        ("cache.last.miss_rate", {"I1mr": 0, "D1mr": 8, "D1mw": 2, "ILmr": 0, "DLmr": 1, "DLmw": 1}, 20.0),
    ],
)
def test_a_simulated_metric_is_labelled_so(metric, counts, value):
    reading = one(metric, simulated(**counts), tool="valgrind")
    assert reading.value == pytest.approx(value)
    assert reading.quality == "simulated"


def test_write_backs_are_in_the_bytes_only_where_they_were_simulated_and_the_reading_says_which():
    without = one("dram.bytes", simulated(I3mr=1, D3mr=2, D3mw=3, line_bytes=64), tool="valgrind")
    assert "without write-backs" in spoken(without.reason)
    with_them = one("dram.bytes", simulated(I3mr=1, D3mr=2, D3mw=3, D3wb=1, line_bytes=64), tool="valgrind")
    assert "written back" in spoken(with_them.reason)


def test_a_simulation_has_no_ipc_and_says_why():
    reading = one("ipc", simulated(Ir=100), tool="valgrind")
    assert reading.value is None
    assert "no cycles" in spoken(reading.reason)


@pytest.mark.parametrize(
    ("unit", "value", "seconds"),
    [("msec", 12.5, 0.0125), ("ns", 5e8, 0.5), ("", 2, 2), ("sec", 2, 2), ("usec", 5, 5e-6)],
)
def test_times_arrive_in_seconds_whatever_unit_the_tool_prints(unit, value, seconds):
    assert one("time.cpu", [counted("task-clock", value, unit=unit)]).value == pytest.approx(seconds)


def test_bytes_arrive_in_bytes_though_perf_prints_mebibytes():
    counters = [counted("cas_count_read", 1.5, unit="MiB"), counted("cas_count_write", 0.5, unit="MiB")]
    assert one("dram.bytes", counters, "intel").value == 2 * 1024**2


def test_bandwidth_is_bytes_over_the_wall_time_of_the_same_report():
    counters = [
        counted("cas_count_read", 100, unit="MiB"),
        counted("cas_count_write", 0, unit="MiB"),
        counted("duration_time", 500_000_000, unit="ns"),
    ]
    assert one("bandwidth.dram", counters, "intel").value == 200 * 1024**2


# ------------------------------------------------------------ states


@pytest.mark.parametrize(
    ("counter", "words"),
    [
        (Counter("cycles", None, "not-supported"), "cycles is not supported"),
        (Counter("cycles", None, "not-counted"), "cycles is not counted"),
        (Counter("cycles", None, "hard-zero"), "cycles always reads 0 here"),
    ],
)
def test_an_unusable_counter_is_named_with_its_state(counter, words):
    reading = one("ipc", [counted("instructions", 5), counter])
    assert reading.quality == "unavailable"
    assert reading.value is None
    assert words in spoken(reading.reason)


def test_an_absent_counter_is_named_as_not_collected():
    assert spoken(one("ipc", [counted("instructions", 5)]).reason) == "not collected: cycles"


def test_without_any_counter_every_metric_is_unavailable_with_a_reason():
    readings = derive([], formula_table("perf"), "perf")
    assert readings
    assert all(r.value is None and spoken(r.reason) for r in readings)


def test_nothing_to_divide_by_is_unavailable_and_not_zero():
    reading = one("branch.miss_rate", [counted("branches", 0), counted("branch-misses", 0)])
    assert reading.value is None
    assert "branches is 0" in spoken(reading.reason)


def test_no_misses_among_many_accesses_is_a_true_zero():
    reading = one("cache.l3.miss_rate", [counted("LLC-loads", 10), counted("LLC-load-misses", 0)])
    assert (reading.value, reading.quality) == (0.0, "measured")


@pytest.mark.parametrize(
    ("metric", "counts", "words"),
    [
        (
            "branch.miss_rate",
            {"branches": 100, "branch-misses": 127.47},
            "impossible: 127.5 % is more than 100.0 %",
        ),
        ("ipc", {"instructions": 1700, "cycles": 100}, "impossible: 17.00 is more than 16.00"),
        ("cache.l1.miss_rate", {"L1-dcache-loads": 10, "L1-dcache-load-misses": 11}, "impossible: 110.0 %"),
    ],
)
def test_what_cannot_be_is_never_told_as_a_fact(metric, counts, words):
    reading = one(metric, [counted(name, count) for name, count in counts.items()])
    assert reading.value is None
    assert spoken(reading.reason).startswith(words)


def test_what_passes_its_bound_by_a_hair_is_at_its_bound():
    """The misses of L2 and L3 are of two simulations: 17,613 lines of L3 for 17,598 that reach it were 100.1 %."""
    reading = one("branch.miss_rate", [counted("branches", 17_598), counted("branch-misses", 17_613)])
    assert (reading.value, reading.quality) == (100.0, "measured")


def test_a_reading_is_as_multiplexed_as_its_rarest_counter():
    reading = one("ipc", [counted("instructions", 5, 0.7), counted("cycles", 5, 0.64)])
    assert (reading.quality, reading.share) == ("multiplexed", 0.64)
    assert "64 %" in spoken(reading.reason)


def test_a_counter_that_ran_99_percent_of_the_time_counts_as_always_on():
    reading = one("ipc", [counted("instructions", 5), counted("cycles", 5, 0.995)])
    assert (reading.quality, reading.share) == ("measured", 0.995)


def test_a_formula_that_was_always_on_beats_a_better_one_that_was_multiplexed():
    counters = [
        counted("mem_load_retired.l1_hit", 9, 0.3),
        counted("mem_load_retired.l1_miss", 1, 0.3),
        counted("L1-dcache-loads", 100),
        counted("L1-dcache-load-misses", 5),
    ]
    reading = one("cache.l1.miss_rate", counters, "intel")
    assert (reading.value, reading.quality) == (5.0, "measured")


def test_of_two_good_formulas_the_first_in_the_file_is_taken():
    counters = [
        counted("mem_load_retired.l1_hit", 9),
        counted("mem_load_retired.l1_miss", 1),
        counted("L1-dcache-loads", 100),
        counted("L1-dcache-load-misses", 5),
    ]
    assert one("cache.l1.miss_rate", counters, "intel").value == 10.0


# ------------------------------------------------------------ groups


PAIR = [counted("LLC-loads", 100), counted("LLC-load-misses", 5)]


@pytest.mark.parametrize(
    ("groups", "drift", "quality", "words"),
    [
        ((), None, "measured", None),
        ([["LLC-loads", "LLC-load-misses", "cycles"]], 0.5, "measured", None),
        ([["LLC-loads"], ["LLC-load-misses"]], 0.001, "measured", "come from different runs"),
        ([["LLC-loads"], ["LLC-load-misses"]], 0.03, "estimated", "unstable"),
    ],
)
def test_a_metric_from_several_runs_says_so_and_is_an_estimate_where_they_drifted(
    groups, drift, quality, words
):
    reading = one("cache.l3.miss_rate", PAIR, groups=groups, drift=drift)
    assert reading.quality == quality
    assert words is None or words in spoken(reading.reason)


# ------------------------------------------------------------ scopes


def test_every_reading_can_be_traced_to_its_file_counters_and_formula():
    source = one("ipc", [counted("instructions", 4), counted("cycles", 2)]).source
    assert source.tool == "perf"
    assert source.artifact == "a/b.csv"
    assert source.counter == "instructions, cycles"
    assert source.formula == "instructions / cycles"


def test_counters_of_a_region_give_readings_of_that_region():
    readings = derive([counted("instructions", 4, scope=REGION)], formula_table("perf"), "perf")
    assert {r.scope for r in readings} == {REGION}
    assert any(r.metric == "ipc" and r.value is None for r in readings)


def test_of_a_function_only_what_has_a_value_is_told():
    scope = Scope("function", "gemm")
    counters = [Counter("Ir", 10, "measured", scope=scope), Counter("I1mr", 1, "measured", scope=scope)]
    readings = derive(counters, formula_table("valgrind"), "valgrind")
    assert {r.metric for r in readings} == {"instructions", "cache.l1i.miss_rate", "cache.l1i.mpki"}


HYBRID = [
    counted("task-clock", 100, unit="msec"),
    counted("cycles", 100, pmu="cpu_core"),
    counted("instructions", 70, pmu="cpu_core"),
    counted("branches", 10, pmu="cpu_core"),
    counted("branch-misses", 1, pmu="cpu_core"),
    counted("cycles", 900, pmu="cpu_atom"),
    counted("instructions", 450, pmu="cpu_atom"),
    counted("branches", 10, pmu="cpu_atom"),
    Counter("branch-misses", None, "not-counted", pmu="cpu_atom"),
]


def test_a_hybrid_part_is_told_by_the_cores_that_did_most_cycles_and_no_sum_of_both():
    readings = [r for r in derive(HYBRID, formula_table("perf"), "perf") if r.metric == "ipc"]
    assert [(r.scope.id, r.value) for r in readings] == [(None, 0.5)]
    assert "of cpu_atom, which counted 90 % of the cycles" in spoken(one("ipc", HYBRID).reason)


def test_a_ratio_never_mixes_two_kinds_of_core():
    # branch-misses of the performance cores over branches of both would be a number, and wrong
    assert one("branch.miss_rate", HYBRID).value is None
    assert "branch-misses is not counted" in spoken(one("branch.miss_rate", HYBRID).reason)


def test_the_kernels_own_counters_stay_the_runs_on_a_hybrid_part():
    readings = [r for r in derive(HYBRID, formula_table("perf"), "perf") if r.metric == "time.cpu"]
    assert [(r.scope.id, r.value) for r in readings] == [(None, 0.1)]


states = st.sampled_from(["measured", "multiplexed", "not-supported", "not-counted", "hard-zero"])
names = st.sampled_from(
    [
        "cycles",
        "instructions",
        "branches",
        "branch-misses",
        "LLC-loads",
        "LLC-load-misses",
        "task-clock",
        "Ir",
    ]
)


@st.composite
def any_counter(draw):
    state = draw(states)
    usable = state in ("measured", "multiplexed")
    return Counter(
        draw(names),
        draw(st.floats(0, 1e300)) if usable else None,
        state,
        draw(st.sampled_from(["", "msec", "ns", "MiB"])),
        draw(st.one_of(st.none(), st.floats(0, 1))) if usable else None,
        draw(st.sampled_from([Scope("run"), REGION, Scope("function", "f")])),
        draw(st.sampled_from([None, None, "cpu_core", "cpu_atom"])),
    )


@given(st.lists(any_counter(), max_size=12), st.sampled_from(["perf", "valgrind"]))
def test_whatever_the_counters_say_a_reading_has_a_value_or_a_reason(counters, tool):
    for reading in derive(counters, formula_table(tool), tool):
        assert (reading.value is None) == (reading.quality == "unavailable")
        assert reading.value is not None or spoken(reading.reason)
