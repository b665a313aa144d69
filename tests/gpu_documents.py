"""Documents of a GPU made by hand: a trace alone, counters alone, and a whole run with both."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import (
    ApiCall,
    Fact,
    Gpu,
    GpuRange,
    GpuTrace,
    Kernel,
    KernelPlan,
    KernelTime,
    PassPlan,
    PassResult,
    Plan,
    Reading,
    RunDocument,
    SampleSet,
    Source,
    Step,
    Timing,
    Transfer,
    Workload,
)
from tests.spoken import message

H200 = Gpu(
    "NVIDIA H200",
    capability="9.0",
    chip="GH100",
    multiprocessors=132,
    memory_bytes=150_000_000_000,
    bandwidth=4.81e12,
    driver="580.159",
)
GEMM = Kernel("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", (2, 66, 1), (384, 1, 1), registers=168)
ADD = Kernel(
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>,"
    " std::array<char *, (unsigned long)3>>(int, T2, T3)",
    (16384, 1, 1),
    (128, 1, 1),
)
SMALL = replace(ADD, grid=(8, 1, 1))
# The same as ADD in the words of another tool.
ADD_NCU = replace(
    ADD,
    name="void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
    " std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
)


def trace(tool: str = "nsys") -> GpuTrace:
    """10 ms of a region: 9 ms busy, most of the rest starved."""
    return GpuTrace(
        tool,
        (
            KernelTime(GEMM, 40, 7.0e-3, median=175e-6),
            KernelTime(ADD, 20, 1.2e-3, median=60e-6),
            KernelTime(SMALL, 20, 0.1e-3, median=5e-6),
        ),
        span=10e-3,
        busy=9e-3,
        launches=80,
        transfers=(
            Transfer("host to device", 10, 160 << 20, 3e-3),
            Transfer("memset", 2, 1024, 4e-6),
        ),
        ranges=(GpuRange("mlp", "profkit", 1, 10e-3, 80, 8.3e-3),),
        api=(ApiCall("cudaLaunchKernel", 80, 0.4e-3),),
        launch_latency=6e-6,
        launch_call=3.5e-6,
        starved=0.8,
        largest_gap=0.2e-3,
        marked=True,
    )


def counted() -> GpuTrace:
    """What a report of counters has of the same: one launch of each, and no timeline."""
    return GpuTrace("ncu", (KernelTime(GEMM, 1, 180e-6), KernelTime(ADD_NCU, 1, 60e-6)))


def told(
    kernel: Kernel,
    metric: str,
    value: float | None,
    unit: str = "%",
    reason: str | None = None,
    code: str | None = "not-collected",
) -> Reading:
    """A reading of a kernel by ncu; a value of None makes it unavailable."""
    source = Source("ncu", f"{metric}.counter", "counters.ncu-rep", f"{metric}.counter")
    if value is None:
        why = Fact.of(code, counters="x") if code is not None else message(reason)
        if reason is not None and code == "not-collected":
            why = Fact.of(code, counters=reason.rpartition("it needs ")[2])
        return Reading(metric, None, unit, "unavailable", kernel.scope, source, why)
    return Reading(metric, value, unit, "measured", kernel.scope, source)


def readings(add: Kernel = ADD_NCU) -> tuple[Reading, ...]:
    """A GEMM on saturated tensor cores, and a streaming kernel that wastes most of its sectors."""
    return (
        told(GEMM, "occupancy.achieved", 14.6),
        told(GEMM, "occupancy.theoretical", 18.75),
        told(GEMM, "occupancy.limit.registers", 1.0, "blocks/multiprocessor"),
        told(GEMM, "occupancy.limit.shared", 1.0, "blocks/multiprocessor"),
        told(GEMM, "occupancy.limit.warps", 5.0, "blocks/multiprocessor"),
        told(GEMM, "bandwidth.dram", 1.3e12, "B/s"),
        told(GEMM, "bandwidth.dram.share", 27.0),
        told(GEMM, "bandwidth.dram.peak", 4.81e12, "B/s"),
        told(GEMM, "tensor.utilization", 95.0),
        told(GEMM, "shared.bank_conflicts", 129_000.0, "count"),
        told(GEMM, "warp.execution_efficiency", 99.98),
        told(GEMM, "memory.coalescing", None, reason="not collected: it needs a and b"),
        told(GEMM, "replay.passes", 3.0, "count"),
        told(GEMM, "stall.long_scoreboard", 6.0, "warps"),
        told(GEMM, "stall.barrier", 3.0, "warps"),
        told(GEMM, "stall.wait", 1.0, "warps"),
        told(add, "occupancy.achieved", 82.8),
        told(add, "occupancy.theoretical", 100.0),
        told(add, "occupancy.limit.warps", 16.0, "blocks/multiprocessor"),
        told(add, "bandwidth.dram", 4.0e12, "B/s"),
        told(add, "bandwidth.dram.share", 81.0),
        told(add, "bandwidth.dram.peak", 4.81e12, "B/s"),
        told(add, "tensor.utilization", 0.0),
        told(add, "shared.bank_conflicts", 0.0, "count"),
        told(add, "warp.execution_efficiency", 100.0),
        told(add, "memory.coalescing", 33.0),
        told(add, "branch.efficiency", None, reason="the kernel has no branches", code="no-branches"),
        told(add, "flops.rate", 5.0e12, "FLOP/s"),
        told(add, "flops.rate.f32", 5.0e12, "FLOP/s"),
        told(add, "flops.f32", 1.0e8, "FLOP"),
        told(add, "flops.peak.f32", 6.0e13, "FLOP/s"),
        told(add, "arithmetic_intensity", 1.25, "FLOP/B"),
        told(add, "replay.passes", 3.0, "count"),
    )


def report(**changes: object) -> RunDocument:
    """Somebody's report without anything in it."""
    empty = RunDocument(
        "a report", "cuda", "complete", Workload((), "a report", ""), "2026-11-20T05:47:00+00:00"
    )
    return replace(empty, **changes)  # type: ignore[arg-type]


def of_trace() -> RunDocument:
    """A report of nsys alone."""
    return report(trace=trace(), gpus=(H200,), facts={"driver": "580.159"})


def of_counters() -> RunDocument:
    """A report of ncu alone."""
    facts = {"clocks": "not locked", "cache control": "all", "replay": "kernel", "command": "python x.py"}
    return report(trace=counted(), gpus=(H200,), readings=readings(), facts=facts, tools={"ncu": "2025.3.1"})


def plan() -> Plan:
    """Timing, trace and counters."""
    kernels = (KernelPlan(GEMM, 0.84, 2), KernelPlan(ADD, 0.14, 2))
    return Plan(
        "cuda",
        "standard",
        (
            PassPlan("timing", None, (Step("timing-1", ("python", "x.py")),), cost=2.0),
            PassPlan("trace", "nsys", (Step("trace", ("nsys",)),), cost=1.8),
            PassPlan(
                "counters",
                "ncu",
                (Step("counters", ("ncu",)),),
                tuple(f"metric_{n}" for n in range(40)),
                cost=1.5,
                kernels=kernels,
            ),
        ),
    )


def run() -> RunDocument:
    """A whole run: timed, traced and counted."""
    samples = SampleSet(
        tuple(133e-6 * (1 + 0.002 * (n % 5)) for n in range(60)),
        clock="cuda-synchronized",
        clocks=(1.98e9, 1.965e9),
        throttled=3,
        throttle_reasons=("power cap",),
    )
    return replace(
        of_counters(),
        name="gated_mlp",
        workload=Workload(("python", "x.py"), "gated_mlp", "work"),
        plan=plan(),
        trace=trace(),
        timings=(Timing("mlp", "benchmark", (samples,), 0.01),),
        passes=(
            PassResult("timing", None, "finished", seconds=9.0, cost=2.1),
            PassResult("trace", "nsys", "finished", seconds=8.0, cost=1.9),
            PassResult("counters", "ncu", "finished", seconds=6.7, cost=1.6),
        ),
    )


def without_counters() -> RunDocument:
    """The same where ncu may not count."""
    whole = run()
    fix = "sudo modprobe nvidia NVreg_RestrictProfilingToAdminUsers=0"
    refused = PassResult(
        "counters", "ncu", "skipped", message("the driver lets only administrators count"), fix
    )
    return replace(whole, readings=(), passes=(*whole.passes[:2], refused))
