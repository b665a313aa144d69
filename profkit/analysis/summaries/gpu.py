"""What follows from a GPU's trace and counters: its time, contradictions, coalescing, the class of each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from profkit.analysis.kernel_names import narrower, short_name
from profkit.analysis.kernel_names.owner import is_tuning_kernel, tuning_kernels
from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.metrics.formula import consistency_checks
from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.analysis.summaries.kernels import BRIEF, kernel_rows
from profkit.analysis.summaries.readings import absent_reading, add_readings, unavailable_reading
from profkit.analysis.summaries.roofline import kernel_roofline
from profkit.analysis.timeline.products import mfu_readings
from profkit.core.types import RUN, Fact, GpuToolLines, GpuTrace, Reading, RunDocument, Scope, Source, Summary


def check_consistency(document: RunDocument) -> RunDocument:
    """Return the document with its readings marked (`doubt`) where they contradict each other.

    Checked is within one kernel, function, region or run, and one artifact: comparing reports is another matter. Doing
    it twice changes nothing.
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
        if reading.value is None or reading.doubt is not None:
            return reading
        doubt = doubt_by_kernel.get((reading.scope, reading.source.artifact), {}).get(reading.metric)
        return reading if doubt is None else replace(reading, doubt=doubt)

    return replace(document, readings=tuple(map(checked, document.readings)))


def _readings_by_kernel(readings: Sequence[Reading]) -> Mapping[tuple[Scope, str | None, str], list[Reading]]:
    by_kernel: dict[tuple[Scope, str | None, str], list[Reading]] = {}
    for reading in readings:
        if reading.source.tool != "profkit":
            key = (reading.scope, reading.source.artifact, reading.source.tool)
            by_kernel.setdefault(key, []).append(reading)
    return by_kernel


def _kernel_counts(document: RunDocument) -> Mapping[Scope, Mapping[str, float]]:
    """Return the kernels' counters, where the readings of each kernel are of one artifact only."""
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


def weigh_coalescing(document: RunDocument) -> tuple[Reading, ...]:
    """Return the document's readings, those of coalescing checked against the sectors per request of the same artifact.

    A low one that was not counted against the fewest sectors that each access needs is doubted where few sectors moved
    per request.
    """
    kernels: dict[tuple[Scope, str | None], dict[str, float]] = {}
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
    """Return the document with what its trace and its counters imply: doubts, the roofline and the class of each
    kernel.
    """
    document = leave_out_tuning(document)
    if document.trace is not None:
        timeline = trace_readings(document.trace, lines)
        document = add_readings(document, (*timeline, *mfu_readings(document.trace, document.gpus)))
    document = check_consistency(document)
    document = replace(document, readings=weigh_coalescing(document))
    document = add_readings(document, [r for row in kernel_rows(document) for r in kernel_roofline(row)])
    bottlenecks = classify_bottlenecks(document)
    others = (reading for reading in document.readings if reading.metric != "throughput.busiest")
    return replace(document, kernels=bottlenecks, readings=(*others, *busiest_readings(bottlenecks)))


def leave_out_tuning(document: RunDocument) -> RunDocument:
    """Return the document without the kernels that only chose or timed others, and a note of what was left out.

    They are no work of the program, so the time in which they ran is none of its time either.
    """
    trace = document.trace
    left_out = {kernel.scope: kernel for kernel in tuning_kernels(trace)} if trace is not None else {}
    counted = {reading.scope for reading in document.readings if reading.scope.kind == "kernel"}
    scopes = left_out.keys() | {scope for scope in counted if is_tuning_kernel(scope.name or "")}
    if not scopes:
        return document
    out = (
        [time for time in (*trace.kernels, *trace.setup) if time.kernel.scope in scopes]
        if trace is not None
        else []
    )
    names = dict.fromkeys(narrower(short_name(scope.name or "?"), BRIEF) for scope in sorted(scopes, key=str))
    note = Fact.of(
        "tuning-left-out",
        names=", ".join(names),
        count=sum(time.launches + time.setup_launches for time in out) or len(scopes),
        seconds=sum(time.total for time in out),
    )
    return replace(
        document,
        trace=_without(trace, scopes) if trace is not None else None,
        readings=tuple(reading for reading in document.readings if reading.scope not in scopes),
        counters=tuple(counter for counter in document.counters if counter.scope not in scopes),
        instructions=tuple(
            instruction for instruction in document.instructions if instruction.kernel not in scopes
        ),
        rules=tuple(rule for rule in document.rules if rule.kernel not in scopes),
        notes=tuple(dict.fromkeys((*document.notes, note))),
    )


def _without(trace: GpuTrace, scopes: AbstractSet[Scope]) -> GpuTrace | None:
    """Return the trace without these kernels and their time; None where counters had nothing else."""
    kept = [at for at, time in enumerate(trace.kernels) if time.kernel.scope not in scopes]
    out = [time for time in trace.kernels if time.kernel.scope in scopes]
    if not kept and lacks_timeline(trace):
        return None
    places = {at: place for place, at in enumerate(kept)}
    seconds = sum(time.total for time in out)
    return replace(
        trace,
        kernels=tuple(trace.kernels[at] for at in kept),
        setup=tuple(time for time in trace.setup if time.kernel.scope not in scopes),
        order=tuple(places[at] for at in trace.order if at in places),
        launches=max(0, trace.launches - sum(time.launches for time in out)),
        busy=max(0.0, trace.busy - seconds) if trace.busy is not None else None,
        span=max(0.0, trace.span - seconds) if trace.span is not None else None,
    )


# What only counters have, by the concern it belongs to: without them the run gives the reason.
_COUNTED = {
    "occupancy": ("occupancy.achieved",),
    "bandwidth": ("bandwidth.dram", "bandwidth.dram.share"),
    "access": ("memory.coalescing", "shared.bank_conflicts"),
    "execution": ("warp.execution_efficiency",),
}


def summarize_gpu(document: RunDocument) -> list[Summary]:
    """Return the readings of the trace for the whole run, and for a run why nothing was traced or counted."""
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
    """Return the readings of a trace for the whole run: how busy, how long, how starved; launches and transfers.

    gpu.utilization (%), time.gpu, time.gpu.idle (s), gpu.starved (% of the idle time), gpu.copying (%),
    launch.latency (s), launch.count, transfer.bytes (B), transfer.seconds (s).
    """
    span, busy = trace.span, trace.busy
    timeless = span is None and busy is None
    why, fix = (NO_TIMELINE, f"trace it: {lines.trace}") if timeless else (NOT_IN_TRACE, None)
    if not trace.kernels and timeless:
        why, fix = NO_KERNEL, None
    idle = max(0.0, span - busy) if span is not None and busy is not None else None
    used = 100 * min(1.0, busy / span) if span and busy is not None else None
    if has_only_copies(trace):
        used, why = None, NO_KERNEL  # the span is that of the copies: that they fill it says nothing
    starved = 100 * trace.starved if trace.starved is not None else None
    rows: list[tuple[str, float | None, str]] = [
        ("gpu.utilization", used, "100 * union of kernels and copies / span"),
        ("time.gpu", sum(k.total for k in trace.kernels), "sum of all kernels' times"),
        ("time.gpu.idle", idle, "span - union of kernels and copies"),
        (
            "gpu.starved",
            starved,
            f"100 * share of the idle time in which nothing was launched ({trace.tool})",
        ),
        ("launch.latency", trace.launch_latency, "median from launch call to its kernel"),
    ]
    if trace.copying is not None and span and trace.kernels:
        copying = 100 * min(1.0, trace.copying / span)
        rows.append(("gpu.copying", copying, "100 * (busy - union of kernels) / span"))
    if not timeless:
        copies = [copy for copy in trace.transfers if "memset" not in copy.kind]
        sizes = sum(copy.bytes for copy in copies)
        spent = sum(copy.seconds for copy in copies)
        rows += [
            ("launch.count", float(trace.launches), "kernels launched"),
            ("transfer.bytes", float(sizes) if sizes or not copies else None, "bytes of all copies"),
            ("transfer.seconds", spent, "time of all copies, overlaps and all"),
        ]
    return tuple(
        unavailable_reading(name, RUN, why, fix, Source(trace.tool, formula=formula))
        if value is None
        else Reading(name, value, metric(name).unit, "measured", RUN, Source(trace.tool, formula=formula))
        for name, value, formula in rows
    )


def has_only_copies(trace: GpuTrace) -> bool:
    """Return whether copies and memsets are all that a trace has of the device; a graph traced as a whole is more."""
    moved = sum(copy.seconds for copy in trace.transfers)
    return not trace.kernels and trace.busy is not None and 0 < trace.busy <= moved * 1.000001


def lacks_timeline(trace: GpuTrace) -> bool:
    """Return whether this is what a report of counters or of sums has instead of a trace: kernels one by one."""
    return trace.span is None and trace.busy is None and bool(trace.kernels)
