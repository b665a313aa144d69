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
    MetalTrace,
    MetalWork,
    RunDocument,
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
        encoders=encoders,
        buffers=1001,
        counters=(
            MetalCounter("GPU Read Bandwidth", "B/s", 21e9, 0.0, 51e9, 600, 31e9),
            MetalCounter("ALU Utilization", "%", 31.0, 0.0, 88.0, 600, 42.5),
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
        counters=tuple(
            MetalCounter(name, unit, 5.0, 1.0, 9.0, 4) for name in HOSTILE for unit in ("%", "B/s", name)
        ),
        absent=tuple(MetalAbsent(name, message(name), name) for name in HOSTILE),
    )
    return document(made)
