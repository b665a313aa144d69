"""Documents of an Apple GPU made by hand: a trace alone, one with counters, and a whole run."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import (
    Gpu,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelTime,
    MetalAbsent,
    MetalCounter,
    MetalTrace,
    MetalWork,
    PassPlan,
    PassResult,
    Plan,
    Profile,
    RunDocument,
    SampleSet,
    Step,
    Timing,
    Workload,
)
from tests.spoken import message

M4 = Gpu("Apple M4 Pro", chip="M4 Pro", cores=20, bandwidth=273e9, memory_bytes=24 << 30)
MATMUL = MetalWork("MPSMatrixMultiplication", 300, 0.9, 3e-3, 4e-3)
SILU = MetalWork("silu_mul", 300, 0.45, 1.5e-3, 1.6e-3)
REST = MetalWork("copy", 10, 0.05, 5e-3, 6e-3)
NO_COUNTERS = MetalAbsent(
    "metal-gpu-counter-intervals",
    message("the recording was set to no counter set (Counter Set: (null))"),
    "xctrace record --instrument 'Metal GPU Counters'",
)


def metal(**changes: object) -> MetalTrace:
    """2 s of a marked region: the process busy for 1.4 s, the device for 1.5 s, most of the rest host-bound."""
    told = MetalTrace(
        span=2.0,
        device_busy=1.5,
        process_busy=1.4,
        others=0.1,
        longest_gap=0.02,
        encoders=(MATMUL, SILU, REST),
        buffers=300,
        absent=(NO_COUNTERS,),
        marked=True,
        entries=300,
        window=2.0,
        unsubmitted=0.45,
        blocked=0.05,
    )
    return replace(told, **changes)  # type: ignore[arg-type]


def idle(**changes: object) -> MetalTrace:
    """The same where the process has the GPU for 0.4 s of its 2 s."""
    told: dict[str, object] = {"process_busy": 0.4, "device_busy": 0.5, "unsubmitted": 1.4, "blocked": 0.05}
    return metal(**(told | changes))


def counter(name: str, active: float | None, unit: str = "%", **changes: object) -> MetalCounter:
    """A counter of 1,000 samples; its mean over all is two thirds of that at work."""
    value = 30.0 if active is None else active
    told = MetalCounter(name, unit, 2 / 3 * value, 0.0, 1.1 * value, 1000, active=active)
    return replace(told, **changes)  # type: ignore[arg-type]


def counters(
    *,
    occupancy: float = 40.0,
    limiter: float = 50.0,
    alu: float = 30.0,
    read: float = 120e9,
    unit: str = "B/s",
) -> tuple[MetalCounter, ...]:
    """What a chip of today counts, as far as anything is made of it; a quarter of what is read is written."""
    return (
        counter("Compute Occupancy", occupancy),
        counter("Total Occupancy", occupancy + 2),
        counter("Top Performance Limiter", limiter),
        counter("ALU Utilization", alu),
        counter("GPU Read Bandwidth", read, unit),
        counter("GPU Write Bandwidth", read / 4, unit),
    )


def trace(told: MetalTrace) -> GpuTrace:
    """The same as every backend knows it: encoders by their labels."""
    kernels = tuple(
        KernelTime(Kernel(work.name, (), ()), work.count, work.seconds, work.median) for work in told.encoders
    )
    return GpuTrace(
        "xctrace",
        kernels,
        span=told.window,
        busy=told.process_busy,
        launches=sum(work.count for work in told.encoders),
        marked=told.marked,
    )


def report(told: MetalTrace | None = None, **changes: object) -> RunDocument:
    """Somebody's export of a trace."""
    told = metal() if told is None else told
    empty = RunDocument(
        "run.trace",
        "mps",
        "complete",
        Workload((), "run", ""),
        "2026-11-20T05:47:00+00:00",
        metal=told,
        trace=trace(told),
    )
    return replace(empty, **changes)  # type: ignore[arg-type]


def plan() -> Plan:
    """Timing, trace and counters."""
    passes = (
        PassPlan("timing", None, (Step("timing-1", ("python", "x.py")),), cost=2.0),
        PassPlan("trace", "xctrace", (Step("trace", ("xctrace",)),), cost=1.2),
        PassPlan("counters", "xctrace", (Step("counters", ("xctrace",)),), cost=1.2),
    )
    return Plan("mps", "standard", passes)


def timing(flops: float | None = None, bytes: float | None = None) -> Timing:
    """A benchmark of 6.7 ms."""
    samples = SampleSet(tuple(6.7e-3 * (1 + 0.002 * (n % 5)) for n in range(60)))
    return Timing("mlp", "benchmark", (samples,), 0.01, flops, bytes)


def run(told: MetalTrace | None = None, **changes: object) -> RunDocument:
    """A whole run: timed and traced, with Time Profiler's samples of the same recording."""
    spots = (Hotspot("encode", 0.4, library="libtorch.dylib"), Hotspot("loop", 0.1, library="python3.12"))
    whole = report(
        told,
        name="gated_mlp",
        workload=Workload(("python", "x.py"), "gated_mlp", "work"),
        plan=plan(),
        gpus=(M4,),
        timings=(timing(),),
        profiles=(Profile("Time Profiler by function", "s", 0.5, spots, "functions"),),
        passes=(
            PassResult("timing", None, "finished", seconds=9.0, cost=2.1),
            PassResult("trace", "xctrace", "finished", seconds=8.0, cost=1.2),
            PassResult("counters", "xctrace", "finished", seconds=8.0, cost=1.2),
        ),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]
