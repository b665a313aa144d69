"""Documents with kernels for tests: readings by metric, with the real numbers of known reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profkit.metrics import metric
from profkit.model import (
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
            reason=None if value is not None else "NaN",
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
        "memory.throughput": 88.69,
        "sm.throughput": 20.0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "shared.bank_conflicts.share": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "launch.waves": 100,
    },
    "transposeCoalesced": {
        "occupancy.achieved": 93.89,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 61.92,
        "memory.throughput": 90.23,
        "bandwidth.l1.share": 92.0,
        "sm.throughput": 14.0,
        "shared.bank_conflicts": 65_011_712,
        "shared.bank_conflicts.excess": 65_011_712,
        "shared.bank_conflicts.share": 93.9,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "launch.waves": 100,
    },
    "addConstDouble": {
        "occupancy.achieved": 73.53,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 90.58,
        "memory.throughput": 90.58,
        "sm.throughput": 9.0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 100,
        "launch.waves": 60,
    },
    "addConstDouble3": {
        "occupancy.achieved": 76.44,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 88.35,
        "memory.throughput": 88.35,
        "sm.throughput": 9.0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 100,
        "memory.coalescing": 33.3,
        "memory.sectors.excess": 3_146_000,
        "memory.sectors_per_request.load": 24,
        "dram.bytes": 50.3e6,
        "launch.waves": 60,
    },
    "sobelFloat": {
        "occupancy.achieved": 83.84,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 22.19,
        "memory.throughput": 46.36,
        "sm.throughput": 75.0,
        "pipe.fp32.utilization": 40.0,
        "pipe.xu.utilization": 75.0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 99.6,
        "memory.coalescing": 70,
        "launch.waves": 60,
    },
    "sobelDouble": {
        "occupancy.achieved": 95.50,
        "occupancy.theoretical": 100,
        "bandwidth.dram.share": 1.11,
        "memory.throughput": 1.97,
        "sm.throughput": 98.0,
        "pipe.fp64.utilization": 98.0,
        "shared.bank_conflicts": 0,
        "shared.bank_conflicts.excess": 0,
        "warp.execution_efficiency": 99.7,
        "memory.coalescing": 70,
        "launch.waves": 60,
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
