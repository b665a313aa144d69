"""Documents with kernels for tests: readings by metric, with the real numbers of known reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profkit.analysis.metrics.catalogue import metric
from profkit.core.types import (
    GpuTrace,
    Kernel,
    KernelTime,
    Quality,
    Reading,
    RunDocument,
    Scope,
    Source,
    Verdict,
    VerdictWord,
)
from tests import documents
from tests.spoken import message

Values = Mapping[str, float | None]


def kernel(name: str, grid: tuple[int, ...] = (4096, 1, 1), block: tuple[int, ...] = (256, 1, 1)) -> Kernel:
    """A launch configuration."""
    return Kernel(name, grid, block)


def readings_of(scope: Scope, values: Values, *, quality: Quality = "measured") -> tuple[Reading, ...]:
    """One reading per metric; None makes it unavailable."""
    return tuple(
        Reading(
            name,
            value,
            metric(name).unit,
            quality if value is not None else "unavailable",
            scope,
            Source("ncu", artifact="counters.ncu-rep"),
            reason=message(None if value is not None else "NaN"),
        )
        for name, value in values.items()
    )


def document(
    kernels: Mapping[Kernel, tuple[float, Values]],
    *,
    span: float | None = None,
    busy: float | None = None,
) -> RunDocument:
    """A report: for each kernel its GPU time in seconds and its readings."""
    times = tuple(
        KernelTime(one, launches=1, total=seconds, median=seconds) for one, (seconds, _) in kernels.items()
    )
    told = tuple(r for one, (_, values) in kernels.items() for r in readings_of(one.scope, values))
    return replace(
        documents.empty(),
        backend="cuda",
        state="complete",
        readings=told,
        trace=GpuTrace("ncu", times, span=span, busy=busy),
    )


def words_of(verdicts: tuple[Verdict, ...], scope: Scope) -> dict[str, VerdictWord]:
    """Target -> word, of one scope."""
    return {v.target: v.verdict for v in verdicts if v.scope == scope}


# Nsight Compute's own samples on an RTX A4500, and an H200: what their reports hold.
SAMPLES: Mapping[str, Values] = {
    "transposeNoBankConflicts": {
        "occupancy.achieved": 95.64,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 88.69,
        "bandwidth.l2.share": 38.12,
        "bandwidth.l1.share": 36.03,
        "bandwidth.shared.share": 9.124,
        "memory.throughput": 88.69,
        "sm.throughput": 32.43,
        "issue.active": 10.18,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 4.536,
        "pipe.fp64.utilization": 0,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 4.536,
        "pipe.lsu.utilization": 32.66,
        "pipe.xu.utilization": 0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "shared.bank_conflicts.share": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "memory.sectors.excess": 0,
        "memory.sectors_per_request.load": 4,
        "memory.spill.loads": 0,
        "dram.bytes": 534_363_904,
        "launch.waves": 195,
        "launch.blocks": 65536,
    },
    "transposeCoalesced": {
        "occupancy.achieved": 93.89,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 61.92,
        "bandwidth.l2.share": 26.61,
        "bandwidth.l1.share": 90.48,
        "bandwidth.shared.share": 84.6,
        "memory.throughput": 90.23,
        "sm.throughput": 22.6,
        "issue.active": 7.088,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 2.833,
        "pipe.fp64.utilization": 0,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 3.777,
        "pipe.lsu.utilization": 22.66,
        "pipe.xu.utilization": 0,
        "shared.bank_conflicts": 65_011_712,
        "shared.bank_conflicts.excess": 65_011_712,
        "shared.bank_conflicts.share": 93.94,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "memory.sectors.excess": 0,
        "memory.sectors_per_request.load": 4,
        "memory.spill.loads": 0,
        "dram.bytes": 534_398_464,
        "launch.waves": 195,
        "launch.blocks": 65536,
    },
    "addConstDouble": {
        "occupancy.achieved": 73.53,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 90.58,
        "bandwidth.l2.share": 40.75,
        "bandwidth.l1.share": 35.06,
        "bandwidth.shared.share": 1.938,
        "memory.throughput": 90.58,
        "sm.throughput": 31.02,
        "issue.active": 7.113,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 2.496,
        "pipe.fp64.utilization": 31.94,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 2.995,
        "pipe.lsu.utilization": 11.98,
        "pipe.xu.utilization": 0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "memory.sectors.excess": 0,
        "memory.sectors_per_request.load": 8,
        "memory.spill.loads": 0,
        "dram.bytes": 47_948_160,
        "launch.waves": 36.57,
        "launch.blocks": 12288,
    },
    "addConstDouble3": {
        "occupancy.achieved": 76.44,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 88.35,
        "bandwidth.l2.share": 56.77,
        "bandwidth.l1.share": 74.1,
        "bandwidth.shared.share": 0.6295,
        "memory.throughput": 88.35,
        "sm.throughput": 30.22,
        "issue.active": 3.346,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 0.8221,
        "pipe.fp64.utilization": 31.57,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 0.9865,
        "pipe.lsu.utilization": 9.207,
        "pipe.xu.utilization": 0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 33.33,
        "memory.sectors.excess": 3_145_728,
        "memory.sectors_per_request.load": 24,
        "memory.spill.loads": 0,
        "dram.bytes": 48_092_800,
        "launch.waves": 12.19,
        "launch.blocks": 4096,
    },
    "sobelFloat": {
        "occupancy.achieved": 83.84,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 22.19,
        "bandwidth.l2.share": 21.2,
        "bandwidth.l1.share": 49.87,
        "bandwidth.shared.share": 3.898,
        "memory.throughput": 46.36,
        "sm.throughput": 77.67,
        "issue.active": 84.05,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 33.25,
        "pipe.fp64.utilization": 0,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 57.65,
        "pipe.lsu.utilization": 46.59,
        "pipe.xu.utilization": 46.12,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 99.63,
        "memory.coalescing": 18.98,
        "memory.sectors.excess": 1_274_368,
        "memory.sectors_per_request.load": 5.309,
        "memory.spill.loads": 0,
        "dram.bytes": 4_265_088,
        "launch.waves": 12.19,
        "launch.blocks": 4096,
    },
    "sobelDouble": {
        "occupancy.achieved": 95.5,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 1.11,
        "bandwidth.l2.share": 1.095,
        "bandwidth.l1.share": 2.001,
        "bandwidth.shared.share": 0.1776,
        "memory.throughput": 1.973,
        "sm.throughput": 85.25,
        "issue.active": 4.086,
        "tensor.utilization": 0,
        "pipe.fp32.utilization": 0.8879,
        "pipe.fp64.utilization": 86.44,
        "pipe.fp16.utilization": 0,
        "pipe.alu.utilization": 2.026,
        "pipe.lsu.utilization": 2.001,
        "pipe.xu.utilization": 0.5402,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 99.67,
        "memory.coalescing": 18.98,
        "memory.sectors.excess": 1_274_368,
        "memory.sectors_per_request.load": 5.309,
        "memory.spill.loads": 0,
        "dram.bytes": 4_231_808,
        "launch.waves": 12.19,
        "launch.blocks": 4096,
    },
    "silu_kernel_non_strided": {  # GH200
        "occupancy.achieved": 74.3,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 84.0,
        "memory.throughput": 84.0,
        "sm.throughput": 30.0,
        "shared.bank_conflicts": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "launch.waves": 10,
    },
    "nvjet_sm90_hsh_256x128_64x4": {  # H200, --set full
        "occupancy.achieved": 14.64,
        "occupancy.theoretical": 18.75,
        "occupancy.limit.registers": 1,
        "occupancy.limit.shared": 1,
        "occupancy.limit.warps": 5,
        "bandwidth.dram.share": 27.97,
        "memory.throughput": 69.95,
        "bandwidth.l1.share": 73.4,
        "bandwidth.l2.share": 55.7,
        "sm.throughput": 90.46,
        "tensor.utilization": 94.97,
        "issue.active": 11.96,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 99.98,
        "memory.coalescing": 100,
        "launch.waves": 1.0,
        "launch.blocks": 132,
        "launch.multiprocessors": 132,
    },
    "nvjet, only the gate's counters": {  # the same kernel, T0 of the reference
        "occupancy.achieved": 14.64,
        "occupancy.theoretical": 18.75,
        "bandwidth.dram.share": 27.0,
        "shared.bank_conflicts": 129_494,
        "warp.execution_efficiency": 99.98,
        "launch.waves": 1.0,
    },
    "nvjet, raw conflicts": {
        "occupancy.achieved": 14.64,
        "bandwidth.dram.share": 27.0,
        "tensor.utilization": 94.97,
        "issue.active": 11.96,
        "shared.bank_conflicts": 128_901,
        "shared.bank_conflicts.share": 0.497,  # of 25 935 480 passes
        "warp.execution_efficiency": 99.98,
    },
}
