"""All concerns of a GPU's run or report: what follows from its trace and counters, and a summary of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profkit.analysis.metrics import metric
from profkit.analysis.metrics.formula import consistency_checks
from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.analysis.summaries.gpu_kernels import (
    longest_stalls,
    summarize_execution,
    summarize_kernels,
    summarize_occupancy,
    summarize_ranges,
    summarize_stalls,
)
from profkit.analysis.summaries.gpu_memory import (
    summarize_access,
    summarize_arithmetic,
    summarize_gpu_bandwidth,
    summarize_gpu_cache,
)
from profkit.analysis.summaries.gpu_time import (
    NO_TIMELINE,
    TRACE_METRICS,
    lacks_timeline,
    summarize_gpu,
    trace_readings,
)
from profkit.analysis.summaries.kernels import (
    KernelRow,
    KernelTableColumn,
    kernel_rows,
    kernel_table,
    metric_column,
    range_rows,
)
from profkit.analysis.summaries.readings import absence_notes, absent_reading, add_readings, make_summary
from profkit.analysis.summaries.roofline_points import kernel_roofline
from profkit.analysis.timeline.tensor_peaks import mfu_readings
from profkit.core.formatting import format_figures, format_quantity, plural
from profkit.core.types import RUN, GpuToolLines, Reading, RunDocument, Scope, Source, Summary


def check_consistency(document: RunDocument) -> RunDocument:
    """The document with its kernels' readings marked (`doubt`) where they contradict each other, and notes on it.

    Checked is within one kernel and one artifact: comparing reports is another matter. Doing it twice changes nothing.
    """
    doubt_by_kernel: dict[tuple[Scope, str | None], dict[str, str]] = {}
    contradictions: dict[str, list[str]] = {}
    counts = _kernel_counts(document)
    for (scope, artifact, tool), readings in _readings_by_kernel(document.readings).items():
        # What another artifact counted again is of another execution, so counters come in only where there is one.
        values = {**counts.get(scope, {}), **{r.metric: r.value for r in readings if r.value is not None}}
        for check in consistency_checks(tool):
            sides = check.sides(values)
            if sides is None:
                continue
            left, right = _side_text(sides[0]), _side_text(sides[1])
            why = f"{check.says} do not agree ({left} {_relation_text(check.relation)} {right})"
            doubted = doubt_by_kernel.setdefault((scope, artifact), {})
            for name in check.doubts:
                doubted.setdefault(name, why)
            contradictions.setdefault(check.says, []).append(scope.name or "?")

    def checked(reading: Reading) -> Reading:
        if reading.scope.kind != "kernel" or reading.value is None:
            return reading
        doubt = doubt_by_kernel.get((reading.scope, reading.source.artifact), {}).get(reading.metric)
        return reading if reading.doubt == doubt else replace(reading, doubt=doubt)

    notes = dict.fromkeys((*document.notes, *_contradiction_notes(contradictions)))
    return replace(document, readings=tuple(map(checked, document.readings)), notes=tuple(notes))


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


def _side_text(value: float) -> str:
    return format_figures(value) if abs(value) < 1e6 else f"{value:.3g}"


def _relation_text(relation: str) -> str:
    return "against" if relation == "==" else "is more than"


def _contradiction_notes(contradictions: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"The report contradicts itself: {says} do not agree in {plural(len(set(names)), 'kernel')} "
        f"({', '.join(dict.fromkeys(names[:3]))}{', ...' if len(set(names)) > 3 else ''}); "
        "these readings decide nothing"
        for says, names in contradictions.items()
    ]


# 32 lanes of 16 bytes, the widest access there is, are 512 bytes: 16 sectors of 32. More are certainly not needed.
MOST_NEEDED = 16.0
# 32 lanes of 4 bytes are 4 sectors. Requests of no more than that may well be of lanes that share addresses, and bytes
# over sectors counts those as waste: 12.5 % where a whole warp reads one float, which one sector serves.
PLAIN = 4.0
LOW = 80.0  # %, the target's threshold

_Kernel = tuple[Scope, "str | None"]


def weigh_coalescing(document: RunDocument) -> tuple[Reading, ...]:
    """The document's readings, those of coalescing held against the sectors per request of the same artifact.

    Where none was told, an upper bound takes its place if more sectors moved than any load can need: sectors per
    request alone tell no more, since 8 are right for 8-byte types and twice too many for 4-byte ones. A low one that
    was not counted against the fewest sectors that each access needs is doubted where few sectors moved per request.
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
    if reading.value is None and loads is not None and loads > MOST_NEEDED:
        return Reading(
            reading.metric,
            100 * MOST_NEEDED / loads,
            reading.unit,
            "estimated",
            reading.scope,
            Source(
                reading.source.tool,
                reading.source.counter,
                reading.source.artifact,
                "100 * 16 / sectors per request",
            ),
            reason=f"at most: {format_figures(loads)} sectors per request of loads, and no request can need "
            f"more than 16",
        )
    if reading.value is None or reading.value >= LOW or "memory.sectors.excess" in values:
        return reading
    each = max(loads or 0.0, stores or 0.0)
    if not 0 < each <= PLAIN:
        return reading
    few = (
        f"{format_figures(each)} sectors per request are few, and lanes that share addresses look like waste"
    )
    return replace(reading, doubt=f"{few}; source counters show it exactly (--depth full)")


ON_DEVICE = ("trace", "counters", "explain")


def summarize_cost(document: RunDocument, rows: Sequence[KernelRow]) -> Summary | None:
    """Replay passes as planned and as they were, and the wall time of what was measured; None for neither."""
    planned = _planned_replays(document)
    counted = _measured_replays(document, rows)

    def expected(row: KernelRow) -> str | None:
        return str(planned[row.scope]) if row.scope in planned else None

    def measured(row: KernelRow) -> str | None:
        return f"{counted[row.scope]:.0f}"

    shown = [row for row in rows if row.scope in counted]
    columns = (
        KernelTableColumn("planned", expected),
        KernelTableColumn("replay passes", measured),
        metric_column("replayed for", "time.replayed"),
    )
    table = kernel_table("Replays", shown, columns)
    sentences = []
    if counted:
        total = sum(counted.values())
        sentences.append(
            f"{plural(len(counted), 'launch configuration')} counted in"
            f" {plural(round(total), 'replay pass', 'replay passes')}"
        )
    spent = [p for p in document.passes if p.name in ON_DEVICE and p.state == "finished"]
    for result in spent:
        runs = f" ({result.cost:.1f} plain runs)" if result.cost is not None else ""
        sentences.append(f"{result.name} took {format_quantity(result.seconds, 's')}{runs}")
    if not sentences:
        return None
    text = "; ".join(sentences)
    return make_summary("cost", f"{text[0].upper()}{text[1:]}.", (), [table])


def _planned_replays(document: RunDocument) -> dict[Scope, int]:
    """Expected replay passes of each kernel, over all passes that were carried out."""
    finished = {result.name for result in document.passes if result.state == "finished"}
    replays: dict[Scope, int] = {}
    for each in document.plan.passes if document.plan is not None else ():
        for plan in each.kernels if each.name in finished else ():
            if plan.replays is not None:
                replays[plan.kernel.scope] = replays.get(plan.kernel.scope, 0) + plan.replays
    return replays


def _measured_replays(document: RunDocument, rows: Sequence[KernelRow]) -> dict[Scope, float]:
    """How often each kernel was replayed in all: each pass that counted it has a counter of its own for that."""
    known = {row.scope: reading for row in rows if (reading := row.readings.get("replay.passes")) is not None}
    names = {reading.source.counter for reading in known.values()}
    sums: dict[tuple[str | None, Scope], float] = {}
    for counter in document.counters:
        if counter.name in names and counter.value is not None:
            key = counter.name, counter.scope
            sums[key] = sums.get(key, 0) + counter.value
    return {
        scope: sums.get((reading.source.counter, reading.scope), reading.value)
        for scope, reading in known.items()
        if reading.value is not None
    }


NOT_COLLECTED = "not collected"
# What most kernels and devices do not have, and nobody misses: no word where there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")
NAMED = 12  # metrics named in one line


def summarize_unknown(
    document: RunDocument, rows: Sequence[KernelRow], lines: GpuToolLines
) -> Summary | None:
    """Unavailable readings of kernels grouped by reason, then the doubtful ones; None where there are none."""
    grouped: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    contradicted: dict[str, list[str]] = {}
    not_measurable: dict[str, list[str]] = {}
    collect = "--depth full" if document.plan is not None else lines.count_all
    counted = [row for row in rows if row.readings]
    with_value = {
        name for row in counted for name, reading in row.readings.items() if reading.value is not None
    }
    for row in counted:
        for name, reading in row.readings.items():
            if reading.value is None and reading.code == "nothing-to-measure":
                if name in with_value or name.startswith(_RARE):
                    continue  # where another kernel has it, the table shows which
                not_measurable.setdefault(f"{metric(name).title} ({reading.reason})", []).append(row.brief)
            elif reading.value is None:
                reason, fix = reading.reason or "", reading.fix
                if reading.code in ("not-collected", "deeper"):
                    reason, fix = NOT_COLLECTED, fix or collect
                grouped.setdefault((reason, fix), {}).setdefault(name, []).append(row.brief)
            elif reading.doubt is not None:
                contradicted.setdefault(f"{metric(name).title}: {reading.doubt}", []).append(row.brief)
    notes = [_reason_line(*why, metrics, len(counted)) for why, metrics in grouped.items()]
    notes += [
        f"Contradicted: {text} (in {_kernels_text(labels, len(counted))})."
        for text, labels in contradicted.items()
    ]
    if not_measurable:
        notes.append(f"Nothing to measure: {'; '.join(not_measurable)}.")
    if not counted and rows and document.plan is None:
        notes.append(
            "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel: a trace has times and no counters"
            f" ({lines.count})."
        )
    if document.plan is None and document.trace is not None and lacks_timeline(document.trace):
        notes.append(f"How busy the GPU was: {NO_TIMELINE} (trace it: {lines.trace}).")
    if not notes:
        return None
    names = {name for metrics in grouped.values() for name in metrics}
    counts = [plural(len(names), "metric")] if names else []
    counts += [plural(len(contradicted), "contradicted reading")] if contradicted else []
    headline = f"{' and '.join(counts)} of the kernels." if counts else "What this report cannot tell."
    return Summary("unknown", headline[0].upper() + headline[1:], (), (), tuple(notes))


def _reason_line(reason: str, fix: str | None, kernels_by_metric: dict[str, list[str]], counted: int) -> str:
    titles = list(dict.fromkeys(metric(name).title for name in kernels_by_metric))
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    labels = list(dict.fromkeys(label for kernels in kernels_by_metric.values() for label in kernels))
    where = f" (in {_kernels_text(labels, counted)})" if len(labels) < counted else ""
    return f"{', '.join(titles[:NAMED])}{more}: {reason}{where}" + (f" ({fix})" if fix else "") + "."


def _kernels_text(labels: Sequence[str], counted: int) -> str:
    if len(labels) <= 2:
        return " and ".join(labels)
    return f"{len(labels)} of {counted} kernels"


# What only counters tell, by the concern it belongs to: without them the run says why.
_COUNTED = {
    "occupancy": ("occupancy.achieved",),
    "bandwidth": ("bandwidth.dram", "bandwidth.dram.share"),
    "access": ("memory.coalescing", "shared.bank_conflicts"),
    "execution": ("warp.execution_efficiency",),
}


def enrich_gpu(document: RunDocument, lines: GpuToolLines) -> RunDocument:
    """The document with what its trace and its counters imply: doubts, the roofline and the class of each kernel."""
    if document.trace is not None:
        timeline = trace_readings(document.trace, lines)
        document = add_readings(document, (*timeline, *mfu_readings(document.trace, document.gpus)))
    document = check_consistency(document)
    document = add_readings(document, [r for row in kernel_rows(document) for r in kernel_roofline(row)])
    bottlenecks = classify_bottlenecks(document)
    return add_readings(replace(document, kernels=bottlenecks), busiest_readings(bottlenecks))


def summarize_gpu_run(document: RunDocument, lines: GpuToolLines) -> list[Summary]:
    """Kernels and timeline first, then each concern that something was counted for, what is not known, the cost."""
    rows = kernel_rows(document)
    is_run = document.plan is not None or bool(document.passes)

    def missing(concern: str) -> list[Reading]:
        """Why nothing was counted, for a run of which that was to be expected."""
        if not is_run:
            return []
        names = [n for n in _COUNTED[concern] if not any(n in row.readings for row in rows)]
        return [absent_reading(document, name, "counters", RUN) for name in names]

    summaries: list[Summary | None] = [
        summarize_kernels(rows, count_other="" if is_run else lines.count_other) if rows else None,
        summarize_ranges(range_rows(document)),
        _gpu_summary(document, rows, is_run=is_run),
        summarize_occupancy(rows, missing("occupancy")),
        summarize_gpu_bandwidth(rows, missing("bandwidth")),
        summarize_gpu_cache(rows, document.facts),
        summarize_access(rows, missing("access")),
        summarize_execution(rows, missing("execution")),
        summarize_arithmetic(rows),
        summarize_stalls(rows) if any(longest_stalls(row) for row in rows) else None,
        summarize_unknown(document, rows, lines),
        summarize_cost(document, rows),
    ]
    return [
        s for s in summaries if s is not None and (s.tables or s.readings or s.concern in ("unknown", "cost"))
    ]


def _gpu_summary(document: RunDocument, rows: Sequence[KernelRow], *, is_run: bool) -> Summary | None:
    if document.trace is not None and not lacks_timeline(document.trace):
        readings = [r for r in document.readings if r.metric in TRACE_METRICS and r.scope == RUN]
        return summarize_gpu(document.trace, readings, rows)
    if document.trace is not None and (document.trace.transfers or document.trace.api):
        return summarize_gpu(
            document.trace, (), rows
        )  # sums of nsys stats: copies and calls, and no timeline
    if not is_run:
        return None
    readings = [absent_reading(document, name, "trace", RUN) for name in ("gpu.utilization", "time.gpu")]
    headline = f"Where the GPU's time goes is not known: {readings[0].reason}."
    return Summary("gpu", headline, tuple(readings), (), absence_notes(readings))
