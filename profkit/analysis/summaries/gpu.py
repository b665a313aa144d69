"""All concerns of a GPU's run or report: what follows from its trace and counters, and a summary of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.classes import busiest_readings, classify
from profkit.analysis.summaries.consistency import checked
from profkit.analysis.summaries.execution import stalls, summarize_execution, summarize_stalls
from profkit.analysis.summaries.gpu_arithmetic import summarize_arithmetic
from profkit.analysis.summaries.gpu_cost import summarize_cost
from profkit.analysis.summaries.gpu_kernels import summarize_kernels, summarize_wholes
from profkit.analysis.summaries.gpu_memory import (
    summarize_access,
    summarize_gpu_bandwidth,
    summarize_gpu_cache,
)
from profkit.analysis.summaries.gpu_time import TRACE_METRICS, summarize_gpu, trace_readings, without_timeline
from profkit.analysis.summaries.gpu_unknown import summarize_unknown
from profkit.analysis.summaries.kernel_roofline import kernel_roofline
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows, range_rows
from profkit.analysis.summaries.occupancy import summarize_occupancy
from profkit.analysis.summaries.pick import absent, merged
from profkit.analysis.summaries.tables import remarks
from profkit.core.types import RUN, Reading, RunDocument, Summary

# What only counters tell, by the concern it belongs to: without them the run says why.
_COUNTED = {
    "occupancy": ("occupancy.achieved",),
    "bandwidth": ("bandwidth.dram", "bandwidth.dram.share"),
    "access": ("memory.coalescing", "shared.bank_conflicts"),
    "execution": ("warp.execution_efficiency",),
}


def enrich_gpu(document: RunDocument) -> RunDocument:
    """The document with what its trace and its counters imply: doubts, the roofline and the class of each kernel."""
    if document.trace is not None:
        document = replace(document, readings=merged(document.readings, trace_readings(document.trace)))
    document = checked(document)
    fresh = [reading for row in kernel_rows(document) for reading in kernel_roofline(row)]
    document = replace(document, readings=merged(document.readings, fresh))
    classes = classify(document)
    return replace(document, kernels=classes, readings=merged(document.readings, busiest_readings(classes)))


def summarize_gpu_run(document: RunDocument) -> list[Summary]:
    """Kernels and timeline first, then each concern that something was counted for, what is not known, the cost."""
    rows = kernel_rows(document)
    is_run = document.plan is not None or bool(document.passes)

    def missing(concern: str) -> list[Reading]:
        """Why nothing was counted, for a run of which that was to be expected."""
        if not is_run:
            return []
        names = [n for n in _COUNTED[concern] if not any(n in row.readings for row in rows)]
        return [absent(document, name, "counters", RUN) for name in names]

    found: list[Summary | None] = [
        summarize_kernels(rows, chosen=is_run) if rows else None,
        summarize_wholes(range_rows(document)),
        _gpu(document, rows, is_run=is_run),
        summarize_occupancy(rows, missing("occupancy")),
        summarize_gpu_bandwidth(rows, missing("bandwidth")),
        summarize_gpu_cache(rows, document.facts),
        summarize_access(rows, missing("access")),
        summarize_execution(rows, missing("execution")),
        summarize_arithmetic(rows),
        summarize_stalls(rows) if any(stalls(row) for row in rows) else None,
        summarize_unknown(document, rows),
        summarize_cost(document, rows),
    ]
    return [
        s for s in found if s is not None and (s.tables or s.readings or s.concern in ("unknown", "cost"))
    ]


def _gpu(document: RunDocument, rows: Sequence[KernelRow], *, is_run: bool) -> Summary | None:
    if document.trace is not None and not without_timeline(document.trace):
        readings = [r for r in document.readings if r.metric in TRACE_METRICS and r.scope == RUN]
        return summarize_gpu(document.trace, readings, rows)
    if document.trace is not None and (document.trace.transfers or document.trace.api):
        return summarize_gpu(
            document.trace, (), rows
        )  # sums of nsys stats: copies and calls, and no timeline
    if not is_run:
        return None
    readings = [absent(document, name, "trace", RUN) for name in ("gpu.utilization", "time.gpu")]
    headline = f"Where the GPU's time goes is not known: {readings[0].reason}."
    return Summary("gpu", headline, tuple(readings), (), remarks(readings))
