"""Where the GPU's time goes: how much of it the devices worked, what they waited for, launches, copies."""

from __future__ import annotations

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import RUN, Fact, GpuToolLines, GpuTrace, Reading, Source

TRACE_METRICS = (
    "gpu.utilization",
    "gpu.mfu",
    "time.gpu",
    "time.gpu.idle",
    "gpu.starved",
    "gpu.copying",
    "launch.latency",
    "launch.count",
    "transfer.bytes",
    "transfer.seconds",
)
NO_TIMELINE, NO_KERNEL, NOT_IN_TRACE = Fact("no-timeline"), Fact("no-kernel"), Fact("not-in-trace")


def trace_readings(trace: GpuTrace, lines: GpuToolLines) -> tuple[Reading, ...]:
    """What a trace tells of the whole run: how busy, how long, how starved; launches and transfers.

    gpu.utilization (%), time.gpu, time.gpu.idle (s), gpu.starved (% of the idle time), gpu.copying (%),
    launch.latency (s), launch.count, transfer.bytes (B), transfer.seconds (s).
    """
    span, busy = trace.span, trace.busy

    def reading(
        name: str, value: float | None, formula: str, reason: Fact = NOT_IN_TRACE, fix: str | None = None
    ) -> Reading:
        source = Source(trace.tool, formula=formula)
        if value is None:
            return unavailable_reading(name, RUN, reason, fix, source)
        return Reading(name, value, metric(name).unit, "measured", RUN, source)

    timeless = span is None and busy is None
    no_span, fix = (NO_TIMELINE, f"trace it: {lines.trace}") if timeless else (NOT_IN_TRACE, None)
    if not trace.kernels and timeless:
        no_span, fix = NO_KERNEL, None
    idle = max(0.0, span - busy) if span is not None and busy is not None else None
    used = 100 * min(1.0, busy / span) if span and busy is not None else None
    if has_only_copies(trace):
        used, no_span = None, NO_KERNEL  # the span is that of the copies: that they fill it says nothing
    known = trace.copying is not None and trace.span and trace.kernels
    copying = 100 * min(1.0, (trace.copying or 0.0) / (trace.span or 1.0)) if known else None
    waited = f"100 * share of the idle time in which nothing was launched ({trace.tool})"
    readings = [
        reading("gpu.utilization", used, "100 * union of kernels and copies / span", no_span, fix),
        reading("time.gpu", sum(k.total for k in trace.kernels), "sum of all kernels' times"),
        reading("time.gpu.idle", idle, "span - union of kernels and copies", no_span, fix),
        reading(
            "gpu.starved", 100 * trace.starved if trace.starved is not None else None, waited, no_span, fix
        ),
        *(
            [reading("gpu.copying", copying, "100 * (busy - union of kernels) / span")]
            if copying is not None
            else ()
        ),
        reading(
            "launch.latency", trace.launch_latency, "median from launch call to its kernel", no_span, fix
        ),
    ]
    if timeless:
        return tuple(readings)
    copies = [copy for copy in trace.transfers if "memset" not in copy.kind]
    sizes = sum(copy.bytes for copy in copies)
    moved = float(sizes) if sizes or not copies else None
    return (
        *readings,
        reading("launch.count", float(trace.launches), "kernels launched"),
        reading("transfer.bytes", moved, "bytes of all copies"),
        reading(
            "transfer.seconds",
            sum(copy.seconds for copy in copies),
            "time of all copies, overlaps and all",
        ),
    )


def has_only_copies(trace: GpuTrace) -> bool:
    """Whether copies and memsets are all that a trace has of the device; a graph traced as a whole is more."""
    moved = sum(copy.seconds for copy in trace.transfers)
    return not trace.kernels and trace.busy is not None and 0 < trace.busy <= moved * 1.000001


def lacks_timeline(trace: GpuTrace) -> bool:
    """Whether this is what a report of counters or of sums has instead of a trace: kernels one by one."""
    return trace.span is None and trace.busy is None and bool(trace.kernels)
