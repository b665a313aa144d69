"""Runs on an Apple GPU, made to be shown as pages."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import (
    Gpu,
    GpuTrace,
    Kernel,
    KernelTime,
    MetalAbsent,
    MetalCounter,
    MetalProcess,
    MetalState,
    MetalTrace,
    MetalWork,
    RunDocument,
    Spread,
    Workload,
)
from tests.page_documents import HOSTILE
from tests.spoken import message

SPAN, WINDOW, DEVICE, PROCESS = 0.5782, 0.212, 0.02302, 0.00826
LABELS = ("Compute Command 0", "sgemm_tiled", "softmax rows", "[0] copy (blit)")


def trace(labels: tuple[str, ...] = LABELS) -> MetalTrace:
    """A short recording of a process that hardly used the GPU, with counters of one chip."""
    each = [PROCESS / 2**n for n in range(1, len(labels) + 1)]
    encoders = tuple(
        MetalWork(name, 500 >> n % 8, seconds, seconds / 300, seconds / 50)
        for n, (name, seconds) in enumerate(zip(labels, each, strict=True))
    )
    return MetalTrace(
        span=SPAN,
        device_busy=DEVICE,
        process_busy=PROCESS,
        others=DEVICE - PROCESS,
        window=WINDOW,
        unsubmitted=0.15,
        blocked=0.01,
        longest_gap=0.009,
        processes=(
            MetalProcess("Firefox GPU Helper", 63961, 0.011, 800),
            MetalProcess("probe_host", 17804, PROCESS, 1001, target=True),
            MetalProcess("WindowServer", None, 0.004, 90),
        ),
        encoders=encoders,
        command_buffers=Spread(1001, 8.2e-6, 1.1e-5, 5e-5),
        completion=Spread(1001, 1.8e-4, 2.2e-4, 1.2e-3),
        latency=Spread(1001, 4e-5, 9e-5, 2e-3),
        queue_depth=1.2,
        queue_most=4,
        performance=(MetalState("Minimum", 0.4, 0.008), MetalState("Maximum", 0.1782, 0.0002)),
        thermal=(MetalState("Nominal", SPAN),),
        counters=(
            MetalCounter("GPU Read Bandwidth", "B/s", 21e9, 0.0, 51e9, 600, 0.4, 31e9),
            MetalCounter("ALU Utilization", "%", 31.0, 0.0, 88.0, 600, 0.4, 42.5),
        ),
        absent=(MetalAbsent("metal-gpu-counter-intervals", message("Counter Set: (null)")),),
    )


def document(metal: MetalTrace | None = None) -> RunDocument:
    """A report of a Metal System Trace: the encoders are in `trace` too, as kernels without a shape."""
    made = metal if metal is not None else trace()
    kernels = tuple(
        KernelTime(Kernel(one.name, (), ()), one.count, one.seconds, one.median, None, one.longest)
        for one in made.encoders
    )
    device = GpuTrace("xctrace", kernels, SPAN, PROCESS, sum(one.launches for one in kernels))
    return RunDocument(
        "baseline",
        "mps",
        "complete",
        Workload(("probe_host", "--iters", "1000"), "probe_host", ""),
        "2026-03-30T18:55:31Z",
        gpus=(Gpu("Apple M1", chip="M1", cores=8, bandwidth=68.3e9),),
        trace=device,
        metal=made,
        facts={"template": "Metal System Trace"},
    )


def hostile() -> RunDocument:
    """Every text of the trace is one of HOSTILE."""
    base = trace(HOSTILE)
    made = replace(
        base,
        processes=tuple(MetalProcess(name, n, 0.001, 3, n == 0) for n, name in enumerate(HOSTILE)),
        performance=tuple(MetalState(name, 0.1) for name in HOSTILE),
        thermal=tuple(MetalState(name, 0.1) for name in HOSTILE),
        counters=tuple(
            MetalCounter(name, unit, 5.0, 1.0, 9.0, 4) for name in HOSTILE for unit in ("%", "B/s", name)
        ),
        absent=tuple(MetalAbsent(name, message(name), name) for name in HOSTILE),
        induced=HOSTILE[0],
    )
    return document(made)
