"""All concerns of a Metal run or report: what follows from its trace and counters, and a summary of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.metal_chip import specified
from profkit.analysis.summaries.metal_counted import counter_readings
from profkit.analysis.summaries.metal_gpu import summarize_metal_gpu
from profkit.analysis.summaries.metal_limits import (
    ARITHMETIC,
    BANDWIDTH,
    OCCUPANCY,
    summarize_metal_bandwidth,
    summarize_metal_occupancy,
)
from profkit.analysis.summaries.metal_readings import trace_readings
from profkit.analysis.summaries.metal_state import summarize_metal_state
from profkit.analysis.summaries.metal_told import INTERVALS
from profkit.analysis.summaries.metal_work import summarize_encoders, summarize_shaders
from profkit.analysis.summaries.pick import absent, best
from profkit.analysis.summaries.tables import remarks
from profkit.core.types import RUN, Reading, RunDocument, Summary

ELSEWHERE = (
    *OCCUPANCY,
    *BANDWIDTH,
    *ARITHMETIC,
    "gpu.slowed",
    "memory.device_peak",
    "memory.device_recommended",
)
# Of a run without a trace these say why; what a trace alone tells, and nobody misses without one, says nothing.
WITHOUT = ("gpu.utilization", "gpu.utilization.device", "time.gpu", "gpu.longest", "gpu.slowed")
UNUSED = "nothing of the program was seen on the GPU"
NO_COUNTER_SET = "it was recorded with Counter Set: "
USE = 'Does it use the GPU? In torch: .to("mps") for model and data; a short one needs longer work'
WITHOUT_COUNTERS = ("gpu.occupancy", "bandwidth.gpu", "bandwidth.gpu.share")


def enrich_metal(document: RunDocument) -> RunDocument:
    """The document with all that its Metal trace says; what an earlier, smaller trace said is replaced."""
    metal = document.metal
    if metal is None:
        return document
    fresh = (*trace_readings(metal, document.trace, document.moments), *counter_readings(document, metal))
    if document.plan is not None:
        fresh = tuple(_uncounted(document, _of_run(reading)) for reading in fresh)
    names = {reading.metric for reading in fresh}
    kept = [r for r in document.readings if r.scope != RUN or r.metric not in names]
    return replace(document, readings=(*kept, *fresh))


def _of_run(reading: Reading) -> Reading:
    """Of a run that launched the program itself no attaching is to blame for a table without rows."""
    if reading.value is None and (reading.reason or "").startswith(f"{INTERVALS} has no rows"):
        return replace(reading, reason=UNUSED, fix=USE)
    return reading


def _uncounted(document: RunDocument, reading: Reading) -> Reading:
    """Of a run that was not asked to count no setting of the trace is to blame, but what was asked."""
    planned = {one.name for one in document.plan.passes} if document.plan is not None else set()
    reason = reading.reason or ""
    if reading.value is not None or "counters" in planned or not reason.startswith(NO_COUNTER_SET):
        return reading
    left_out = absent(document, reading.metric, "counters", RUN)
    _, _, also = reason.partition(", and ")  # that the work does not say what it moves, either
    return replace(
        reading, reason=f"{also}, and {left_out.reason}" if also else left_out.reason, fix=left_out.fix
    )


def summarize_metal_run(document: RunDocument) -> list[Summary]:
    """The GPU first, then encoders, shaders, occupancy, bandwidth and state; of a run also why one is not known."""
    metal = document.metal
    if metal is None:
        return _untraced(document)
    fresh = (*trace_readings(metal, document.trace, document.moments), *counter_readings(document, metal))
    told = [best(document.readings, reading.metric, (RUN,)) or reading for reading in fresh]
    slowed = next(r for r in told if r.metric == "gpu.slowed")
    found: list[Summary | None] = [
        summarize_metal_gpu(metal, [r for r in told if r.metric not in ELSEWHERE]),
        summarize_encoders(metal),
        summarize_shaders(metal),
        summarize_metal_occupancy(metal, told),
        summarize_metal_bandwidth(specified(document, metal), told),
        summarize_metal_state(metal, slowed),
    ]
    return [summary for summary in found if summary is not None]


def _untraced(document: RunDocument) -> list[Summary]:
    """Why nothing is known of the GPU, for a run of which that was to be expected."""
    if document.plan is None and not document.passes:
        return []

    def missing(concern: str, what: str, readings: Sequence[Reading]) -> Summary:
        line = f"{what} not known: {readings[0].reason}."
        return Summary(concern, line, tuple(readings), (), remarks(readings))

    of_trace = [absent(document, name, "trace", RUN) for name in WITHOUT]
    counted = [absent(document, name, "counters", RUN) for name in WITHOUT_COUNTERS]
    return [
        missing("gpu", "Where the GPU's time goes is", of_trace[:-1]),
        missing("occupancy", "Threadgroup occupancy is", counted[:1]),
        missing("bandwidth", "What the GPU moves is", counted[1:]),
        missing("state", "Whether heat or power slowed the GPU down is", of_trace[-1:]),
    ]
