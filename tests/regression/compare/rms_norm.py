"""Two reports of a norm over the rows of a matrix on an H100: as it was first written, and with loads of 16 bytes."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import Gpu, GpuTrace, Kernel, KernelTime, RunDocument, Workload
from profkit.profiling.summarize import judge_document
from tests import documents
from tests.kernel_documents import Values, readings_of

MATRIX = "rms_norm_matrix_kernel(float *, float *, float *, int, int, float)"
FLOAT4 = "rms_norm_matrix_kernel_float4(float *, float *, float *, int, int, float)"

_BOTH: Values = {
    "occupancy.theoretical": 100.0, "shared.bank_conflicts": 0.0, "memory.spill.loads": 0.0,
    "memory.spill.stores": 0.0, "launch.blocks": 8192.0, "launch.waves": 8.9825, "launch.multiprocessors": 114.0,
    "stall.selected": 1.0,
}  # fmt: skip
_MATRIX: Values = {
    "time.kernel": 526.592e-6, "instructions": 67.232e6, "dram.bytes": 720.08e6, "bandwidth.dram.share": 67.11,
    "bandwidth.l2.share": 36.221, "bandwidth.l1.share": 18.225, "bandwidth.shared.share": 2.8492,
    "occupancy.achieved": 93.686, "warp.execution_efficiency": 99.633, "issue.active": 25.83,
    "memory.coalescing": 100.0, "memory.sectors_per_request.load": 4.0, "memory.sectors_per_request.store": 4.0,
    "memory.throughput": 67.11, "pipe.fp32.utilization": 15.783, "pipe.lsu.utilization": 15.6,
    "sm.throughput": 25.403, "stall.barrier": 1.5145, "stall.long_scoreboard": 48.748, "stall.wait": 3.5144,
    "stall.short_scoreboard": 1.2945, "launch.registers": 23.0, "throughput.busiest": 67.11,
}  # fmt: skip
_FLOAT4: Values = {
    "time.kernel": 407.6e-6, "instructions": 44.36e6, "dram.bytes": 741.36e6, "bandwidth.dram.share": 89.306,
    "bandwidth.l2.share": 47.614, "bandwidth.l1.share": 35.909, "bandwidth.shared.share": 3.7376,
    "occupancy.achieved": 91.644, "warp.execution_efficiency": 99.444, "issue.active": 22.326,
    "memory.coalescing": 57.143, "memory.sectors_per_request.load": 16.0, "memory.sectors_per_request.store": 16.0,
    "memory.throughput": 89.306, "pipe.fp32.utilization": 10.146, "pipe.lsu.utilization": 10.956,
    "sm.throughput": 21.902, "stall.barrier": 4.0605, "stall.long_scoreboard": 55.215, "stall.wait": 2.5495,
    "stall.short_scoreboard": 1.3135, "launch.registers": 32.0, "throughput.busiest": 89.306,
}  # fmt: skip


def matrix(name: str = MATRIX) -> RunDocument:
    """The first version: three launches, one element for each load."""
    return _report(name, 3, 1.579712e-3, {**_BOTH, **_MATRIX})


def float4(name: str = FLOAT4) -> RunDocument:
    """The second: four launches. It loads the weights of a row with four scalar loads."""
    return _report(name, 4, 1.630112e-3, {**_BOTH, **_FLOAT4})


def _report(name: str, launches: int, seconds: float, values: Values) -> RunDocument:
    kernel = Kernel(name, (8192, 1, 1), (256, 1, 1))
    time = KernelTime(kernel, launches, seconds, median=values["time.kernel"])
    document = replace(
        documents.empty(),
        name="rms_norm_matrix",
        backend="cuda",
        state="complete",
        workload=Workload(("./rms_norm_matrix", "--profile"), "rms_norm_matrix", "."),
        tools={"ncu": "2025.1"},
        gpus=(Gpu("NVIDIA H100 PCIe", capability="9.0", multiprocessors=114),),
        readings=readings_of(kernel.scope, values),
        trace=GpuTrace("ncu", (time,), launches=launches),
    )
    return judge_document(document, ())
