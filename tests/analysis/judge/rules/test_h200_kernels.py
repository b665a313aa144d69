"""Four kernels as ncu counted them on an H200: what is missed in each, and what only seems to be.

NVIDIA H200, driver 580.159, ncu 2025.3, Triton 3.6 and CUDA 13.0, November 2026.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.summaries.bottlenecks import classify_bottlenecks
from profkit.core.types import Counter, Hotspot, Insight, KernelInstruction, Profile, RunDocument
from tests import kernel_documents
from tests.analysis.judge.rules.test_gpu_rules import H100
from tests.kernel_documents import Values

COLUMN_STATS: Values = {
    "arithmetic_intensity": 0.3712,
    "balance.l2": 99.34,
    "balance.multiprocessors": 92.3,
    "bandwidth.dram": 1415000000000.0,
    "bandwidth.dram.peak": 4812000000000.0,
    "bandwidth.dram.share": 29.4,
    "bandwidth.l1": 4713000000000.0,
    "bandwidth.l1.share": 56.96,
    "bandwidth.l2": 5160000000000.0,
    "bandwidth.l2.share": 41.34,
    "bandwidth.shared.share": 0.04393,
    "branch.divergent": 0.0,
    "branch.efficiency": 100.0,
    "cache.l1.miss_rate": 100.0,
    "cache.l2.miss_rate": 39.5,
    "dram.bytes": 1279000000.0,
    "dram.read": 1276000000.0,
    "dram.written": 2406000.0,
    "flops": 474600000.0,
    "flops.f16": 67630000.0,
    "flops.f32": 407000000.0,
    "flops.f64": 0.0,
    "flops.rate": 520800000000.0,
    "flops.rate.f16": 74210000000.0,
    "flops.rate.f32": 446500000000.0,
    "flops.rate.f64": 0.0,
    "flops.share.f16": 0.05554,
    "flops.share.f32": 0.6685,
    "flops.share.f64": 0.0,
    "flops.tensor": 0.0,
    "instructions": 44050000.0,
    "ipc": 0.2027,
    "issue.active": 5.101,
    "l2.busiest_slice": 99.47,
    "launch.blocks": 1024.0,
    "launch.multiprocessors": 132.0,
    "launch.registers": 40.0,
    "launch.shared": 16.0,
    "launch.threads": 131100.0,
    "launch.waves": 0.6465,
    "memory.coalescing": 12.5,
    "memory.sectors.excess": 117400000.0,
    "memory.sectors_per_request.load": 32.0,
    "memory.sectors_per_request.store": 1.0,
    "memory.spill.loads": 0.0,
    "memory.spill.stores": 0.0,
    "occupancy.achieved": 48.22,
    "occupancy.theoretical": 75.0,
    "pipe.alu.utilization": 4.975,
    "pipe.fp16.utilization": 0.0,
    "pipe.fp32.utilization": 1.83,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 1.974,
    "pipe.xu.utilization": 0.01131,
    "shared.bank_conflicts": 0.0,
    "shared.bank_conflicts.excess": 0.0,
    "shared.bank_conflicts.share": 0.0,
    "stall.barrier": 0.3195,
    "stall.branch_resolving": 0.04144,
    "stall.dispatch_stall": 0.0,
    "stall.drain": 0.0361,
    "stall.imc_miss": 0.009358,
    "stall.lg_throttle": 12.42,
    "stall.long_scoreboard": 126.2,
    "stall.math_pipe_throttle": 0.0361,
    "stall.membar": 0.0,
    "stall.mio_throttle": 0.04412,
    "stall.misc": 0.0,
    "stall.no_instruction": 0.06684,
    "stall.not_selected": 0.1043,
    "stall.selected": 1.0,
    "stall.short_scoreboard": 0.7126,
    "stall.sleeping": 0.0,
    "stall.tex_throttle": 0.0,
    "stall.wait": 0.5882,
    "tensor.utilization": 0.1222,
    "throughput.busiest": 56.96,
    "time.kernel": 0.0009114,
}

DECODE_ATTENTION: Values = {
    "arithmetic_intensity": 1.299,
    "balance.l2": 90.3,
    "balance.multiprocessors": 12.06,
    "bandwidth.dram": 178200000000.0,
    "bandwidth.dram.peak": 4812000000000.0,
    "bandwidth.dram.share": 3.703,
    "bandwidth.l1": 177700000000.0,
    "bandwidth.l1.share": 3.287,
    "bandwidth.l2": 267000000000.0,
    "bandwidth.l2.share": 2.591,
    "bandwidth.shared.share": 2.738,
    "branch.divergent": 0.0,
    "branch.efficiency": 100.0,
    "cache.l1.miss_rate": 100.0,
    "cache.l2.miss_rate": 98.87,
    "dram.bytes": 539400000.0,
    "dram.read": 537000000.0,
    "dram.written": 2414000.0,
    "flops": 700500000.0,
    "flops.f16": 8192.0,
    "flops.f32": 700500000.0,
    "flops.f64": 0.0,
    "flops.rate": 231800000000.0,
    "flops.rate.f16": 2711000.0,
    "flops.rate.f32": 231800000000.0,
    "flops.rate.f64": 0.0,
    "flops.share.f16": 2.027e-06,
    "flops.share.f32": 0.3466,
    "flops.share.f64": 0.0,
    "flops.tensor": 0.0,
    "instructions": 42610000.0,
    "ipc": 0.4476,
    "issue.active": 11.19,
    "l2.busiest_slice": 81.08,
    "launch.blocks": 16.0,
    "launch.multiprocessors": 132.0,
    "launch.registers": 72.0,
    "launch.shared": 2048.0,
    "launch.threads": 2048.0,
    "launch.waves": 0.01732,
    "memory.coalescing": 100.0,
    "memory.sectors.excess": 0.0,
    "memory.sectors_per_request.load": 16.0,
    "memory.sectors_per_request.store": 2.0,
    "memory.spill.loads": 64.0,
    "memory.spill.stores": 64.0,
    "occupancy.achieved": 6.25,
    "occupancy.theoretical": 43.75,
    "pipe.alu.utilization": 8.642,
    "pipe.fp16.utilization": 0.0,
    "pipe.fp32.utilization": 4.647,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 7.158,
    "pipe.xu.utilization": 1.239,
    "shared.bank_conflicts": 15730000.0,
    "shared.bank_conflicts.excess": 15730000.0,
    "shared.bank_conflicts.share": 89.21,
    "stall.barrier": 0.5004,
    "stall.branch_resolving": 0.004148,
    "stall.dispatch_stall": 0.06863,
    "stall.drain": 0.0,
    "stall.imc_miss": 0.0,
    "stall.lg_throttle": 0.0,
    "stall.long_scoreboard": 4.346,
    "stall.math_pipe_throttle": 0.002451,
    "stall.membar": 0.0,
    "stall.mio_throttle": 0.0001885,
    "stall.misc": 0.0,
    "stall.no_instruction": 0.0198,
    "stall.not_selected": 0.0,
    "stall.selected": 1.0,
    "stall.short_scoreboard": 1.79,
    "stall.sleeping": 0.0,
    "stall.tex_throttle": 0.0,
    "stall.wait": 1.034,
    "tensor.utilization": 3.361e-05,
    "throughput.busiest": 3.703,
    "time.kernel": 0.003022,
}

DARK_HISTOGRAM: Values = {
    "arithmetic_intensity": 0.0,
    "balance.l2": 17.21,
    "balance.multiprocessors": 94.53,
    "bandwidth.dram": 4073000000.0,
    "bandwidth.dram.peak": 4812000000000.0,
    "bandwidth.dram.share": 0.08464,
    "bandwidth.l1": 88180000000.0,
    "bandwidth.l1.share": 0.3861,
    "bandwidth.l2": 132700000000.0,
    "bandwidth.l2.share": 0.8603,
    "bandwidth.shared.share": 0.0007722,
    "branch.divergent": 0.0,
    "branch.efficiency": 100.0,
    "cache.l1.miss_rate": 100.0,
    "cache.l2.miss_rate": 4.536,
    "dram.bytes": 17050000.0,
    "dram.read": 16790000.0,
    "dram.written": 262100.0,
    "flops": 0.0,
    "flops.f16": 0.0,
    "flops.f32": 0.0,
    "flops.f64": 0.0,
    "flops.rate": 0.0,
    "flops.rate.f16": 0.0,
    "flops.rate.f32": 0.0,
    "flops.rate.f64": 0.0,
    "flops.share.f16": 0.0,
    "flops.share.f32": 0.0,
    "flops.share.f64": 0.0,
    "flops.tensor": 0.0,
    "instructions": 2921000.0,
    "ipc": 0.002825,
    "issue.active": 0.07128,
    "l2.busiest_slice": 99.96,
    "launch.blocks": 1056.0,
    "launch.multiprocessors": 132.0,
    "launch.registers": 20.0,
    "launch.shared": 0.0,
    "launch.threads": 270300.0,
    "launch.waves": 1.0,
    "memory.coalescing": 30.44,
    "memory.sectors.excess": 5990000.0,
    "memory.sectors_per_request.load": 4.0,
    "memory.spill.loads": 0.0,
    "memory.spill.stores": 0.0,
    "occupancy.achieved": 89.59,
    "occupancy.theoretical": 100.0,
    "pipe.alu.utilization": 0.0642,
    "pipe.fp16.utilization": 0.0,
    "pipe.fp32.utilization": 0.02954,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 0.06421,
    "pipe.xu.utilization": 0.0,
    "shared.bank_conflicts": 0.0,
    "shared.bank_conflicts.excess": 0.0,
    "shared.bank_conflicts.share": 0.0,
    "stall.barrier": 0.0,
    "stall.branch_resolving": 0.2647,
    "stall.dispatch_stall": 0.08824,
    "stall.drain": 381.1,
    "stall.imc_miss": 0.5882,
    "stall.lg_throttle": 10660.0,
    "stall.long_scoreboard": 3800.0,
    "stall.math_pipe_throttle": 0.02941,
    "stall.membar": 0.0,
    "stall.mio_throttle": 0.0,
    "stall.misc": 0.05882,
    "stall.no_instruction": 0.4412,
    "stall.not_selected": 1.559,
    "stall.selected": 1.0,
    "stall.short_scoreboard": 0.02941,
    "stall.sleeping": 0.0,
    "stall.tex_throttle": 0.0,
    "stall.wait": 1.265,
    "tensor.utilization": 0.0,
    "throughput.busiest": 0.8603,
    "time.kernel": 0.004186,
}

MLP_KERNELS: Values = {
    "arithmetic_intensity": 0.5404,
    "balance.l2": 98.28,
    "balance.multiprocessors": 96.89,
    "bandwidth.dram": 121800000000.0,
    "bandwidth.dram.peak": 4812000000000.0,
    "bandwidth.dram.share": 2.532,
    "bandwidth.l1": 1219000000000.0,
    "bandwidth.l1.share": 83.05,
    "bandwidth.l2": 1177000000000.0,
    "bandwidth.l2.share": 10.25,
    "bandwidth.shared.share": 82.53,
    "branch.divergent": 0.0,
    "branch.efficiency": 100.0,
    "cache.l1.miss_rate": 99.82,
    "cache.l2.miss_rate": 15.87,
    "dram.bytes": 434600000.0,
    "dram.read": 371500000.0,
    "dram.written": 63130000.0,
    "flops": 234900000.0,
    "flops.f16": 0.0,
    "flops.f32": 234900000.0,
    "flops.f64": 0.0,
    "flops.rate": 65500000000.0,
    "flops.rate.f16": 0.0,
    "flops.rate.f32": 65500000000.0,
    "flops.rate.f64": 0.0,
    "flops.share.f16": 0.0,
    "flops.share.f32": 0.1085,
    "flops.share.f64": 0.0,
    "flops.tensor": 0.0,
    "instructions": 273500000.0,
    "ipc": 0.3367,
    "issue.active": 8.419,
    "l2.busiest_slice": 86.23,
    "launch.blocks": 2048.0,
    "launch.multiprocessors": 132.0,
    "launch.registers": 209.0,
    "launch.shared": 98300.0,
    "launch.threads": 524300.0,
    "launch.waves": 15.52,
    "memory.coalescing": 100.0,
    "memory.sectors.excess": 0.0,
    "memory.sectors_per_request.load": 1.0,
    "memory.sectors_per_request.store": 16.0,
    "memory.spill.loads": 0.0,
    "memory.spill.stores": 0.0,
    "occupancy.achieved": 12.49,
    "occupancy.theoretical": 12.5,
    "pipe.alu.utilization": 7.49,
    "pipe.fp16.utilization": 0.0,
    "pipe.fp32.utilization": 0.9501,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 11.9,
    "pipe.xu.utilization": 0.5406,
    "shared.bank_conflicts": 503300000.0,
    "shared.bank_conflicts.excess": 503300000.0,
    "shared.bank_conflicts.share": 72.95,
    "stall.barrier": 3.387,
    "stall.branch_resolving": 0.01175,
    "stall.dispatch_stall": 0.1572,
    "stall.drain": 0.05014,
    "stall.imc_miss": 0.000534,
    "stall.lg_throttle": 0.01839,
    "stall.long_scoreboard": 2.825,
    "stall.math_pipe_throttle": 0.06741,
    "stall.membar": 0.0,
    "stall.mio_throttle": 6.442,
    "stall.misc": 0.0,
    "stall.no_instruction": 0.01163,
    "stall.not_selected": 0.2248,
    "stall.selected": 1.0,
    "stall.short_scoreboard": 8.305,
    "stall.sleeping": 0.0,
    "stall.tex_throttle": 0.0,
    "stall.wait": 1.022,
    "tensor.utilization": 16.52,
    "throughput.busiest": 83.05,
    "time.kernel": 0.003586,
}


def counted(values: Values, name: str, file: str = "") -> RunDocument:
    """A report of one kernel, launched at its definition where `file` is known."""
    one = kernel_documents.kernel(name)
    document = replace(kernel_documents.document({one: (1e-3, values)}), gpus=(H100,))
    instructions = (KernelInstruction(one.scope, 16, None, file, 13, 0.5, 0.0, 0.0),) if file else ()
    return replace(document, kernels=classify_bottlenecks(document), instructions=instructions)


def found(document: RunDocument) -> dict[str, Insight]:
    return {one.rule: one for one in find_insights(document)}


def test_columns_that_are_read_across_rows_are_found_in_a_grid_of_less_than_a_wave_too() -> None:
    document = counted(COLUMN_STATS, "column_stats_kernel", "/w/standardize.py")
    assert document.kernels[0].bound == "launch"
    one = found(document)["wasted-sectors"]
    assert "its warps wait for memory" in one.evidence
    assert "innermost dimension" in one.change


def test_bank_conflicts_are_not_what_a_grid_of_16_blocks_misses() -> None:
    document = counted(DECODE_ATTENTION, "decode_kernel", "/w/attention.py")
    assert document.kernels[0].bound == "launch"
    assert "bank-conflicts" not in found(document)


@pytest.mark.parametrize(("instruction", "told"), [("RED", False), ("ATOMG.ADD", False), ("LDG", True)])
def test_sectors_of_atomic_operations_follow_the_data_and_are_not_told_as_a_wrong_order(
    instruction: str, told: bool
) -> None:
    document = counted(DARK_HISTOGRAM, "count_levels(const uchar4 *, unsigned long, unsigned int *)")
    scope = document.kernels[0].scope
    wasteful = tuple(
        KernelInstruction(scope, 16 * at, instruction, None, None, 0.1, 0.25, 0.0) for at in range(4)
    )
    assert ("wasted-sectors" in found(replace(document, instructions=wasteful))) == told


def widened(name: str) -> Profile:
    spot = Hotspot(name, 1.0, None, 1, "/w/kernels.py", 28, "bf16")
    return Profile("products of widened operands", "count", 1.0, (spot,), "widened-products")


def test_a_product_of_widened_operands_is_told_instead_of_the_bank_conflicts_that_it_makes() -> None:
    document = counted(MLP_KERNELS, "linear_gelu_kernel", "/w/kernels.py")
    assert "bank-conflicts" in found(document)  # as if nothing were known of its source
    rules = found(replace(document, profiles=(widened("linear_gelu_kernel"),)))
    assert "bank-conflicts" not in rules
    assert (rules["widened-product"].where.line, "tl.dot" in rules["widened-product"].change) == (28, True)
    assert "bf16" in rules["widened-product"].title


def test_a_widened_product_of_a_kernel_that_hardly_multiplies_or_is_another_is_not_told() -> None:
    document = counted(COLUMN_STATS, "column_stats_kernel", "/w/kernels.py")
    assert "widened-product" not in found(replace(document, profiles=(widened("column_stats_kernel"),)))
    document = counted(MLP_KERNELS, "linear_gelu_kernel", "/w/kernels.py")
    assert "widened-product" not in found(replace(document, profiles=(widened("other_kernel"),)))


# A product of int8 weights, made float32 for `tl.dot(x, w, acc, input_precision="ieee")`, of a grid of 1.6 waves.
FMA_PRODUCT: Values = {
    "bandwidth.dram.share": 0.1934,
    "bandwidth.l1.share": 93.93,
    "bandwidth.l2.share": 2.83,
    "bandwidth.shared.share": 93.72,
    "instructions": 324751360.0,
    "issue.active": 23.71,
    "launch.blocks": 1024.0,
    "launch.multiprocessors": 132.0,
    "launch.waves": 1.552,
    "memory.coalescing": 100.0,
    "memory.spill.loads": 0.0,
    "occupancy.achieved": 26.91,
    "occupancy.theoretical": 31.25,
    "pipe.alu.utilization": 1.232,
    "pipe.fp16.utilization": 0.6125,
    "pipe.fp32.utilization": 20.23,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 8.843,
    "pipe.xu.utilization": 2.464,
    "shared.bank_conflicts": 256819200.0,
    "shared.bank_conflicts.excess": 256819200.0,
    "shared.bank_conflicts.share": 75.79,
    "tensor.utilization": 0.002393,
    "warp.execution_efficiency": 100.0,
}
FFMA = 8589934592.0  # by all threads


def multiplied(
    ffma: float = FFMA, file: str = "/w/w8.py", profiles: tuple[Profile, ...] = (), **changed: float
) -> dict[str, Insight]:
    document = counted({**FMA_PRODUCT, **changed}, "w8_kernel", file)
    name = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    counter = Counter(name, ffma, "measured", scope=document.kernels[0].scope)
    return found(replace(document, counters=(counter,), profiles=profiles))


def test_a_product_without_tensor_cores_is_told_instead_of_the_bank_conflicts_that_it_makes() -> None:
    rules = multiplied()
    assert "bank-conflicts" not in rules
    told = rules["fma-product"]
    assert "83 % of its instructions are multiply-adds" in told.evidence
    assert "float16" in told.change
    assert told.gain is not None
    assert told.gain.at_most == pytest.approx(1 - 1 / 7.4)  # TF32 instead of FP32


def test_a_product_that_asks_for_all_digits_is_told_at_its_line() -> None:
    spot = Hotspot("w8_kernel", 1.0, None, 1, "/w/w8.py", 34, "fp16", counters={"exact": 1.0})
    asked = Profile("products of widened operands", "count", 1.0, (spot,), "widened-products")
    rules = multiplied(profiles=(asked,))
    assert (rules["fma-product"].where.line, "bank-conflicts" in rules) == (34, False)
    assert "although memory holds fp16" in rules["fma-product"].evidence
    assert "widened-product" not in rules
    # Of operands of 16 bits the tensor cores multiply all the same, whatever a product asks for.
    busy = multiplied(profiles=(asked,), **{"tensor.utilization": 30.0})
    assert "fma-product" not in busy
    assert "widened-product" not in busy


@pytest.mark.parametrize(
    "rules",
    [
        multiplied(ffma=0.4 * FFMA),  # something else is most of its work
        multiplied(**{"tensor.utilization": 40.0}),
        multiplied(file=""),  # of CUDA C++: multiply-adds there are no product, as far as anybody knows
    ],
)
def test_bank_conflicts_of_other_kernels_are_told(rules: dict[str, Insight]) -> None:
    assert "fma-product" not in rules
    assert "bank-conflicts" in rules


def test_a_polynomial_in_registers_is_no_product() -> None:
    changed = {"bandwidth.shared.share": 0.0, "shared.bank_conflicts.share": 0.0}
    assert "fma-product" not in multiplied(**changed)
