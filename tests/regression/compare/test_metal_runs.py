"""Two runs on an Apple GPU: what may be compared, which encoders changed, and when its state says enough by itself."""

from __future__ import annotations

from profkit.core.types import (
    RUN,
    Gpu,
    GpuTrace,
    Kernel,
    KernelTime,
    MetalTrace,
    Reading,
    RunDocument,
    Source,
    Workload,
)
from profkit.regression.compare import compare


def run(slow: float = 1.0) -> RunDocument:
    """Two encoders in 10 entries of a marked region; `slow` is how much longer the first takes."""
    encoders = tuple(
        KernelTime(Kernel(name, (), ()), 100, seconds)
        for name, seconds in (("sgemm_tiled", 0.08 * slow), ("softmax rows", 0.02))
    )
    total = sum(one.total for one in encoders)
    source = Source("xctrace", "metal-gpu-intervals")
    return RunDocument(
        "mlp",
        "mps",
        "complete",
        Workload(("python", "mlp.py"), "mlp", "/w", "python"),
        "2026-11-20T10:00:00Z",
        tools={"xctrace": "26.0 (17A5295f)"},
        gpus=(Gpu("Apple M1", cores=8),),
        trace=GpuTrace("xctrace", encoders, 1.0, total, 200, starved=0.8, marked=True),
        metal=MetalTrace(1.0, 0.2, total),
        facts={"template": "Metal System Trace", "system": "macOS 26.3.1 (25D2128)"},
        readings=(
            Reading("time.gpu", total, "s", "measured", RUN, source),
            Reading("buffer.count", 100.0, "count", "measured", RUN, source),
        ),
    )


def test_the_encoder_that_became_slower_is_named() -> None:
    found = compare(run(), run(slow=1.5))
    assert found.outcome == "regressed"
    assert [(k.name, k.word) for k in found.kernels] == [("sgemm_tiled", "slower"), ("softmax rows", "same")]
