"""What follows from a GPU's trace and counters: contradictions, coalescing, replays, the class of each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profkit.analysis.metrics.formula import consistency_checks
from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.analysis.summaries.gpu_time import TRACE_METRICS, lacks_timeline, trace_readings
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.readings import absent_reading, add_readings
from profkit.analysis.summaries.roofline import kernel_roofline
from profkit.analysis.timeline.products import mfu_readings
from profkit.core.types import RUN, Fact, GpuToolLines, Reading, RunDocument, Scope, Summary


def check_consistency(document: RunDocument) -> RunDocument:
    """The document with its kernels' readings marked (`doubt`) where they contradict each other.

    Checked is within one kernel and one artifact: comparing reports is another matter. Doing it twice changes nothing.
    """
    doubt_by_kernel: dict[tuple[Scope, str | None], dict[str, Fact]] = {}
    counts = _kernel_counts(document)
    for (scope, artifact, tool), readings in _readings_by_kernel(document.readings).items():
        # What another artifact counted again is of another execution, so counters come in only where there is one.
        values = {**counts.get(scope, {}), **{r.metric: r.value for r in readings if r.value is not None}}
        for check in consistency_checks(tool):
            sides = check.sides(values)
            if sides is None:
                continue
            code = "contradicted" if check.relation == "==" else "contradicted-order"
            why = Fact.of(code, what=check.says, left=sides[0], right=sides[1])
            doubted = doubt_by_kernel.setdefault((scope, artifact), {})
            for name in check.doubts:
                doubted.setdefault(name, why)

    def checked(reading: Reading) -> Reading:
        if reading.scope.kind != "kernel" or reading.value is None:
            return reading
        doubt = doubt_by_kernel.get((reading.scope, reading.source.artifact), {}).get(reading.metric)
        return reading if reading.doubt == doubt else replace(reading, doubt=doubt)

    return replace(document, readings=tuple(map(checked, document.readings)))


def _readings_by_kernel(readings: Sequence[Reading]) -> Mapping[tuple[Scope, str | None, str], list[Reading]]:
    by_kernel: dict[tuple[Scope, str | None, str], list[Reading]] = {}
    for reading in readings:
        if reading.scope.kind == "kernel" and reading.source.tool != "profkit":
            key = (reading.scope, reading.source.artifact, reading.source.tool)
            by_kernel.setdefault(key, []).append(reading)
    return by_kernel


def _kernel_counts(document: RunDocument) -> Mapping[Scope, Mapping[str, float]]:
    """The kernels' counters, where the readings of each kernel are of one artifact only."""
    artifacts: dict[Scope, set[str | None]] = {}
    for reading in document.readings:
        if reading.value is not None and reading.source.tool != "profkit":
            artifacts.setdefault(reading.scope, set()).add(reading.source.artifact)
    counts: dict[Scope, dict[str, float]] = {}
    for counter in document.counters:
        one_artifact = len(artifacts.get(counter.scope, ())) == 1
        if one_artifact and counter.scope.kind == "kernel" and counter.value is not None:
            counts.setdefault(counter.scope, {})[counter.name] = counter.value
    return counts


# 32 lanes of 4 bytes are 4 sectors. Requests of no more than that may well be of lanes that share addresses, and bytes
# over sectors counts those as waste: 12.5 % where a whole warp reads one float, which one sector serves.
PLAIN = 4.0
LOW = 80.0  # %, the target's threshold

_Kernel = tuple[Scope, "str | None"]


def weigh_coalescing(document: RunDocument) -> tuple[Reading, ...]:
    """The document's readings, those of coalescing held against the sectors per request of the same artifact.

    A low one that was not counted against the fewest sectors that each access needs is doubted where few sectors moved
    per request.
    """
    kernels: dict[_Kernel, dict[str, float]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel" and reading.value is not None and reading.doubt is None:
            key = (reading.scope, reading.source.artifact)
            kernels.setdefault(key, {})[reading.metric] = reading.value
    return tuple(
        _weigh(reading, kernels.get((reading.scope, reading.source.artifact), {}))
        if reading.metric == "memory.coalescing" and reading.scope.kind == "kernel"
        else reading
        for reading in document.readings
    )


def _weigh(reading: Reading, values: dict[str, float]) -> Reading:
    loads, stores = (values.get(f"memory.sectors_per_request.{way}") for way in ("load", "store"))
    if reading.value is None or reading.value >= LOW or "memory.sectors.excess" in values:
        return reading
    each = max(loads or 0.0, stores or 0.0)
    if not 0 < each <= PLAIN:
        return reading
    return replace(reading, doubt=Fact.of("few-sectors", sectors=each))


def enrich_gpu(document: RunDocument, lines: GpuToolLines) -> RunDocument:
    """The document with what its trace and its counters imply: doubts, the roofline and the class of each kernel."""
    if document.trace is not None:
        timeline = trace_readings(document.trace, lines)
        document = add_readings(document, (*timeline, *mfu_readings(document.trace, document.gpus)))
    document = check_consistency(document)
    document = add_readings(document, [r for row in kernel_rows(document) for r in kernel_roofline(row)])
    bottlenecks = classify_bottlenecks(document)
    return add_readings(replace(document, kernels=bottlenecks), busiest_readings(bottlenecks))


# What only counters tell, by the concern it belongs to: without them the run says why.
_COUNTED = {
    "occupancy": ("occupancy.achieved",),
    "bandwidth": ("bandwidth.dram", "bandwidth.dram.share"),
    "access": ("memory.coalescing", "shared.bank_conflicts"),
    "execution": ("warp.execution_efficiency",),
}


def summarize_gpu(document: RunDocument) -> list[Summary]:
    """What the trace tells of the whole run, and of a run why nothing was traced or counted."""
    trace = document.trace
    is_run = document.plan is not None or bool(document.passes)
    if trace is not None and not lacks_timeline(trace):
        of_trace = [r for r in document.readings if r.metric in TRACE_METRICS and r.scope == RUN]
    elif is_run and not (trace is not None and (trace.transfers or trace.api)):
        of_trace = [absent_reading(document, n, "trace", RUN) for n in ("gpu.utilization", "time.gpu")]
    else:
        of_trace = []
    summaries = [Summary("gpu", tuple(of_trace))]
    known = {reading.metric for reading in document.readings if reading.scope.kind == "kernel"}
    for concern, names in _COUNTED.items() if is_run else ():
        missing = [absent_reading(document, n, "counters", RUN) for n in names if n not in known]
        summaries.append(Summary(concern, tuple(missing)))
    return [summary for summary in summaries if summary.readings]
