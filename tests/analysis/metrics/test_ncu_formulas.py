"""Nsight Compute's counters as readings: on kernels whose truth is known, and where a 0 or a gap means more."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.types import Counter, Kernel, Reading
from profkit.profilers.ncu.rep import read_ncu_rep
from tests.conftest import ROOT
from tests.spoken import message, spoken

TRUTHS = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"
N = 64 * 2**20  # floats in the arrays of truths.cu
THREADS = 132 * 8 * 256  # of its arithmetic kernels
KERNEL = Kernel("k", (1, 1, 1), (32, 1, 1))
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def readings(counters, of=KERNEL.scope) -> dict[str, Reading]:
    found = derive(counters, formula_table("ncu"), "ncu", "a/report.ncu-rep")
    return {reading.metric: reading for reading in found if reading.scope == of}


def given(values: dict[str, float], unit: str = "") -> list[Counter]:
    return [Counter(name, value, "measured", unit, scope=KERNEL.scope) for name, value in values.items()]


@pytest.fixture(scope="module")
def truths() -> dict[str, dict[str, Reading]]:
    report = read_ncu_rep(TRUTHS)
    table: dict[str, dict[str, Reading]] = {}
    for reading in derive(report.counters, formula_table("ncu"), "ncu", "a"):
        name = str(reading.scope.name).removeprefix("void ").partition("(")[0].partition("<")[0]
        table.setdefault(name, {})[reading.metric] = reading
    return table


# ------------------------------------------------------------ what was recorded, against theory


@pytest.mark.parametrize(
    ("kernel", "metric", "value", "within"),
    [
        ("stream_copy", "dram.read", 4 * N, 0.01),
        ("stream_copy", "memory.sectors_per_request.load", 16, 0),
        ("stream_copy", "memory.coalescing", 100, 0),
        ("stream_copy", "bandwidth.dram.peak", 4.81e12, 0.01),
        ("strided_read", "memory.sectors_per_request.load", 32, 0),
        ("strided_read", "memory.coalescing", 100 * (4 + 4) / (32 + 4), 0.001),  # loads waste, stores do not
        ("strided_read", "memory.sectors.excess", 28 * N / 32, 0.001),
        ("divergent", "warp.execution_efficiency", 100 * (1 + 3 * 0.013) / 4, 0.01),
        ("fma32", "flops.f32", THREADS * 20_000 * 4 * 2, 0.001),
        ("fma64", "flops.f64", THREADS * 10_000 * 4 * 2, 0.001),
        ("fma16", "flops.f16", THREADS * 20_000 * 4 * 4, 0.001),
        ("fma32", "flops.peak.f32", 132 * 128 * 2 * 1.98e9, 0.01),
        ("fma64", "flops.peak.f64", 132 * 64 * 2 * 1.98e9, 0.01),
        ("fma32", "flops.share.f32", 91, 0.01),
        ("fma64", "flops.share.f64", 99, 0.01),
        ("fma64", "pipe.fp64.utilization", 99, 0.01),
        ("fma16", "pipe.fp16.utilization", 98.6, 0.01),
        ("spilling", "memory.spill.loads", 4096 * 8 * 64, 0.001),
        ("spilling", "memory.spill.stores", 4096 * 8 * 16, 0.001),  # four floats at a time
        ("chase", "occupancy.theoretical", 50, 0),
        ("chase", "launch.blocks", 1, 0),
        ("tiny", "launch.threads", 64, 0),
        ("transpose", "launch.shared", 32 * 33 * 4, 0),
        ("transpose", "replay.passes", 38, 0),
    ],
)
def test_a_kernel_of_known_truth_has_the_readings_of_theory(truths, kernel, metric, value, within):
    reading = truths[kernel][metric]
    assert reading.value == pytest.approx(value, rel=within or 1e-9)
    assert reading.quality == "measured"


def test_exact_bank_conflicts_come_before_the_hardwares_raw_count(truths):
    """A padded transpose has none; the hardware counts 148,350 there."""
    reading = truths["transpose"]["shared.bank_conflicts"]
    assert (reading.value, reading.quality) == (0, "measured")
    assert reading.source.counter == "derived__memory_l1_wavefronts_shared_excessive"


def test_l2_is_as_busy_as_its_busiest_part_and_never_busier_than_ncu_itself_says_of_the_memory(truths):
    """lts__throughput reads 92 % for the copy, with activity of its own that is not the kernel's."""
    assert truths["l2_loop"]["bandwidth.l2.share"].value == pytest.approx(87, abs=0.1)
    for kernel, told in truths.items():
        assert told["bandwidth.l2.share"].value <= told["memory.throughput"].value + 1e-9, kernel
        busiest = max(told[f"bandwidth.{part}.share"].value for part in ("dram", "l2", "l1"))
        assert busiest == pytest.approx(told["memory.throughput"].value, rel=0.001), kernel


def test_bytes_per_second_over_their_peak_are_the_throughput_that_ncu_tells(truths):
    for kernel, told in truths.items():
        share = 100 * told["bandwidth.dram"].value / told["bandwidth.dram.peak"].value
        assert told["bandwidth.dram.share"].value == pytest.approx(share, rel=1e-9), kernel


def test_every_kernel_has_every_reading_that_is_not_optional_with_a_value_or_a_reason(truths):
    table = formula_table("ncu")
    for told in truths.values():
        assert set(table.formulas) - table.optional <= set(told)
        assert all(spoken(reading.reason) for reading in told.values() if reading.value is None)


def test_sampled_stalls_are_estimates_of_the_counted_ones():
    report = read_ncu_rep(TRUTHS)
    sampled = [c for c in report.counters if "average_warps_issue_stalled" not in c.name]
    counts = {(r.scope, r.metric): r for r in derive(report.counters, formula_table("ncu"), "ncu")}
    issuing = {c.scope: c.value for c in sampled if c.name == "smsp__pcsamp_warps_issue_stalled_selected"}
    compared = 0
    for reading in derive(sampled, formula_table("ncu"), "ncu"):
        if reading.metric in ("stall.long_scoreboard", "stall.wait", "stall.barrier") and reading.value:
            exact = counts[reading.scope, reading.metric].value
            assert reading.quality == "estimated"
            if exact > 0.3 and issuing[reading.scope] >= 100:
                assert reading.value == pytest.approx(exact, rel=0.35), (reading.scope.name, reading.metric)
                compared += 1
    assert compared > 8  # the others were met too seldom by the sampler


# ------------------------------------------------------------ one name for another


@pytest.mark.parametrize(
    ("metric", "counters", "value"),
    [
        ("bandwidth.dram.share", {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 62}, 62),
        (
            "bandwidth.dram.share",
            {
                "dram__bytes.sum.per_second": 500e9,
                "dram__bytes.sum.peak_sustained": 1000,
                "dram__cycles_elapsed.avg.per_second": 1e9,
            },
            50,
        ),
        ("dram.bytes", {"dram__bytes_read.sum": 3, "dram__bytes_write.sum": 4}, 7),
        ("dram.bytes", {"dram__bytes_op_read.sum": 3, "dram__bytes_op_write.sum": 4}, 7),
        ("dram.read", {"dram__sectors_op_read.sum": 2}, 64),
        (
            "occupancy.achieved",
            {
                "sm__warps_active.avg.per_cycle_active": 24,
                "device__attribute_max_warps_per_multiprocessor": 48,
            },
            50,
        ),
        ("tensor.utilization", {"sm__inst_executed_pipe_tensor.sum.pct_of_peak_sustained_active": 33}, 33),
        (
            "tensor.utilization",
            {
                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 10,
                "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_active": 70,
            },
            70,
        ),
        ("pipe.fp16.utilization", {"sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active": 5}, 5),
        ("warp.execution_efficiency", {"smsp__thread_inst_executed_per_inst_executed.ratio": 24}, 75),
        ("warp.execution_efficiency", {"smsp__thread_inst_executed_per_inst_executed.pct": 75}, 75),
        ("memory.spill.loads", {"l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum": 9}, 9),
        ("flops.f16", {SASS.format("hadd"): 1, SASS.format("hmul"): 10, SASS.format("hfma"): 100}, 422),
        ("flops.f64", {SASS.format("dadd"): 1, SASS.format("dmul"): 10, SASS.format("dfma"): 100}, 211),
        (
            "flops.tensor",
            {"sm__ops_path_tensor_src_fp16.sum": 5, "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 6},
            11,
        ),
        (
            "flops.tensor",
            {
                "sm__ops_path_tensor_src_fp16_dst_fp16.sum": 1,
                "sm__ops_path_tensor_src_fp16_dst_fp32.sum": 2,
                "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 4,
            },
            7,
        ),
        ("cache.l2.miss_rate", {"lts__t_sector_hit_rate.pct": 80}, 20),
        ("issue.active", {"smsp__issue_active.avg.per_cycle_active": 0.25}, 25),
        (
            "stall.no_instruction",
            {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio": 2},
            2,
        ),
    ],
)
def test_what_one_chip_or_set_calls_so_and_another_otherwise_is_one_reading(metric, counters, value):
    assert readings(given(counters))[metric].value == pytest.approx(value)


def test_the_time_of_a_launch_is_told_in_seconds():
    assert readings(given({"gpu__time_duration.sum": 22880}, "ns"))["time.kernel"].value == pytest.approx(
        22.88e-6
    )


# ------------------------------------------------------------ what a 0 means


UNIFORM = "smsp__sass_average_branch_targets_threads_uniform.pct"
DIVERGENT = "smsp__sass_branch_targets_threads_divergent.sum"


@pytest.mark.parametrize(
    ("metric", "counters", "reason"),
    [
        ("branch.efficiency", {UNIFORM: 0, DIVERGENT: 0}, "the kernel has no branches"),
        ("branch.efficiency", {UNIFORM: 0}, "which ncu also writes where there are no branches"),
        (
            "branch.efficiency",
            {"smsp__sass_branch_targets_threads_uniform.sum": 0, "smsp__sass_branch_targets.sum": 0},
            "the kernel has no branches",
        ),
        (
            "memory.coalescing",
            {"memory_l2_theoretical_sectors_global": 0, "memory_l2_theoretical_sectors_global_ideal": 0},
            "no loads and stores of global memory",
        ),
        (
            "memory.sectors_per_request.load",
            {
                "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 0,
                "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 0,
            },
            "no loads of global memory",
        ),
        (
            "shared.bank_conflicts.share",
            {
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 0,
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 0,
            },
            "does not access shared memory",
        ),
        (
            "cache.l1.miss_rate",
            {"l1tex__t_sector_hit_rate.pct": 0, "l1tex__t_bytes.sum": 0},
            "nothing was looked up",
        ),
        (
            "cache.l1.miss_rate",
            {"l1tex__t_sector_hit_rate.pct": 0},
            "which ncu also writes where nothing was looked up",
        ),
        (
            "nvlink.received",
            {"nvlrx__bytes.sum": 0, "nvlink__count_logical": 0},
            "no NVLink to another",
        ),
        (
            "cluster.occupancy",
            {"launch__occupancy_cluster_pct": 0, "launch__cluster_size": 0},
            "without clusters",
        ),
    ],
)
def test_a_zero_of_what_never_happened_is_no_value(metric, counters, reason):
    told = readings(given(counters))[metric]
    assert told.value is None
    assert reason in spoken(told.reason)


@pytest.mark.parametrize(
    ("metric", "counters", "value"),
    [
        ("branch.efficiency", {UNIFORM: 0, DIVERGENT: 5}, 0),
        ("branch.efficiency", {UNIFORM: 99.9}, 99.9),
        ("cache.l1.miss_rate", {"l1tex__t_sector_hit_rate.pct": 0, "l1tex__t_bytes.sum": 64}, 100),
        ("nvlink.received", {"nvlrx__bytes.sum": 0, "nvlink__count_logical": 4}, 0),
    ],
)
def test_a_zero_of_what_did_happen_is_a_value(metric, counters, value):
    assert readings(given(counters))[metric].value == value


# ------------------------------------------------------------ doubt


def accesses(
    loads: tuple[float, float, float], stores: tuple[float, float, float] = (0, 0, 0)
) -> list[Counter]:
    """Requests, sectors and bytes of global loads and stores, as the instructions are patched to tell them."""
    named = {}
    for op, (requests, sectors, used) in {"ld": loads, "st": stores}.items():
        named[f"smsp__sass_inst_executed_op_global_{op}.sum"] = requests
        named[f"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{op}.sum"] = sectors
        named[f"smsp__sass_data_bytes_mem_global_op_{op}.sum"] = used
    return given(named)


@pytest.mark.parametrize(
    ("what", "counters", "share"),  # as an H200 counted them, of 131,072 warps each
    [
        ("floats side by side", accesses((131072, 524288, 16777216), (131072, 524288, 16777216)), 100),
        ("bytes side by side", accesses((131072, 131072, 4194304)), 100),
        ("16 bytes a lane", accesses((131072, 2097152, 67108864)), 100),
        ("every second float", accesses((131072, 1048576, 16777216)), 50),
        ("every eighth float", accesses((131072, 4194304, 16777216)), 12.5),
        ("one of three doubles", accesses((393216, 9437184, 100663296)), 100 / 3),
        ("one float for all lanes", accesses((131072, 131072, 524288)), 100),
        (
            "one float for all, and a stream",
            accesses((131072, 131072, 524288), (131072, 524288, 16777216)),
            100,
        ),
        ("shifted by one float", accesses((131072, 655360, 16777216)), 80),
        ("every second lane", accesses((131072, 524288, 8388608)), 50),
    ],
)
def test_coalescing_without_the_exact_sectors_is_a_lower_bound_and_right_for_one_kind_of_access(
    what, counters, share
):
    told = readings(counters)["memory.coalescing"]
    assert told.value == pytest.approx(share), what
    assert (told.quality, spoken(told.reason).partition(";")[0]) == ("estimated", "a lower bound")


RAW = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 128_901}


def test_raw_bank_conflicts_are_an_estimate_and_say_so():
    told = readings(given({**RAW, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 25_935_480}))
    assert told["shared.bank_conflicts"].value == 128_901
    assert told["shared.bank_conflicts"].quality == told["shared.bank_conflicts.share"].quality == "estimated"
    assert "not only the excess of the instructions" in spoken(told["shared.bank_conflicts"].reason)
    assert told["shared.bank_conflicts.share"].value == pytest.approx(0.497, abs=0.001)
    assert "shared.bank_conflicts.excess" not in told


def test_arithmetic_without_the_tensor_cores_says_so():
    counters = {SASS.format(f"{t}{op}"): 1 for t in "fdh" for op in ("add", "mul", "fma")}
    told = readings(given(counters))["flops"]
    assert told.value == 2 * 4 + 8
    assert spoken(told.reason) == "of the CUDA cores, without the tensor cores"


def test_a_report_of_the_older_full_set_has_a_roofline_without_half_precision():
    """As NVIDIA's sample sobelFloat has it: 1.513 of 13.50 TFLOP/s at 11.3 FLOP per byte."""
    clock, cycles = "smsp__cycles_elapsed.avg.per_second", 1.3e9
    counters = {
        SASS.format(f"{t}{op}") + ".per_cycle_elapsed": 0 for t in "fd" for op in ("add", "mul", "fma")
    }
    counters[SASS.format("fadd") + ".per_cycle_elapsed"] = 1.513e12 / cycles
    counters |= {clock: cycles, "dram__bytes.sum.per_second": 133.8e9}
    told = readings(given(counters))
    assert told["flops.rate"].value == told["flops.rate.f32"].value == pytest.approx(1.513e12)
    assert told["arithmetic_intensity"].value == pytest.approx(11.3, abs=0.01)
    assert "without half precision" in spoken(told["arithmetic_intensity"].reason)


def test_a_clock_alone_is_no_arithmetic_rate():
    told = readings(given({"sm__cycles_elapsed.avg.per_second": 1.9e9, "gpu__time_duration.sum": 1e6}))
    assert not [name for name in told if name.startswith("flops")]


@pytest.mark.parametrize(
    ("value", "state", "reason", "words"),
    [(None, "not-counted", "NaN", ": NaN"), (140.0, "measured", None, "impossible")],
)
def test_what_cannot_be_is_unavailable_and_never_zero(value, state, reason, words):
    name = "sm__warps_active.avg.pct_of_peak_sustained_active"
    told = readings([Counter(name, value, state, scope=KERNEL.scope, reason=message(reason))])[
        "occupancy.achieved"
    ]
    assert (told.value, told.quality) == (None, "unavailable")
    assert words in spoken(told.reason)


def test_a_kernel_of_which_nothing_was_counted_says_of_each_target_that_it_was_not():
    told = readings(given({"launch__grid_size": 4}))
    for metric in (
        "occupancy.achieved",
        "bandwidth.dram.share",
        "shared.bank_conflicts",
        "memory.coalescing",
    ):
        assert told[metric].value is None
        assert "collected" in spoken(told[metric].reason)


def test_the_recorded_gemm_of_an_h200_reads_as_it_was_published(reports: Path):
    report = read_ncu_rep(reports / "cuda" / "h200.gated_mlp.full.ncu-rep")
    told = {
        (str(r.scope.name).partition("_")[0], r.metric): r
        for r in derive(report.counters, formula_table("ncu"), "ncu")
    }
    for metric, value in {
        "occupancy.achieved": 14.6,
        "occupancy.theoretical": 18.75,
        "bandwidth.dram.share": 27.97,
        "warp.execution_efficiency": 99.98,
        "tensor.utilization": 94.97,
        "shared.bank_conflicts": 0,
    }.items():
        assert told["nvjet", metric].value == pytest.approx(value, abs=0.1), metric
    assert told["silu", "bandwidth.dram.share"].value == pytest.approx(77.25, abs=0.1)
    assert spoken(told["silu", "branch.efficiency"].reason) == "the kernel has no branches"
