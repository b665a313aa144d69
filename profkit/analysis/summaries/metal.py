"""What a Metal run or report says, by concern, and its passes as one trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.metal_counters import counter_readings
from profkit.analysis.summaries.metal_readings import INTERVALS, metal_trace_readings
from profkit.analysis.summaries.readings import absent_reading, best_reading
from profkit.core.types import RUN, Fact, MetalAbsent, MetalTrace, PassName, Reading, RunDocument, Summary

# What a recording that was not made for times may still add where that one lacks it.
_ADDED = ("performance", "thermal", "device")
_COUNTER = "counter"  # in the name of the table that tells them


def merge_metal_traces(known: MetalTrace | None, later: MetalTrace | None) -> MetalTrace | None:
    """What both say: `known` of an earlier pass with what only `told` has.

    Times and work stay those of the earlier pass, since the later is another execution. What is absent is what neither
    has; of the counters the pass that was made for them says why.
    """
    if known is None or later is None:
        return known if later is None else later
    counters = known.counters or later.counters
    added = {name: getattr(later, name) for name in _ADDED if not getattr(known, name)}
    return replace(known, **added, counters=counters, absent=_absent(known, later, bool(counters)))


def _absent(known: MetalTrace, later: MetalTrace, counters: bool) -> tuple[MetalAbsent, ...]:
    here = {"performance": later.performance, "thermal": later.thermal}
    names = [word for word, value in here.items() if value]
    absent = [
        missing for missing in known.absent if not any(word in missing.what for word in (_COUNTER, *names))
    ]
    if not counters:
        of_counters = [missing for missing in later.absent if _COUNTER in missing.what]
        absent += of_counters or [missing for missing in known.absent if _COUNTER in missing.what]
    return tuple(absent)


OCCUPANCY = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")
BANDWIDTH = (
    *("bandwidth.gpu", "bandwidth.gpu.share", "bandwidth.gpu.read", "bandwidth.gpu.write"),
    *("flops.gpu.rate", "flops.gpu.share", "arithmetic_intensity"),
)
_STATE, _MEMORY = ("gpu.slowed",), ("memory.device_peak", "memory.device_recommended")
# Of a run without a trace these say why; what a trace alone tells, and nobody misses without one, says nothing.
_WITHOUT: tuple[tuple[str, PassName, tuple[str, ...]], ...] = (
    ("gpu", "trace", ("gpu.utilization", "gpu.utilization.device", "time.gpu", "gpu.longest")),
    ("occupancy", "counters", ("gpu.occupancy",)),
    ("bandwidth", "counters", ("bandwidth.gpu", "bandwidth.gpu.share")),
    ("state", "trace", _STATE),
)
UNUSED = Fact("unused-gpu")
USE = 'Does it use the GPU? In torch: .to("mps") for model and data; a short one needs longer work'


def enrich_metal(document: RunDocument) -> RunDocument:
    """The document with all that its Metal trace says; what an earlier, smaller trace said is replaced."""
    if document.metal is None:
        return document
    fresh = _metal_readings(document, document.metal)
    names = {reading.metric for reading in fresh}
    unchanged = [r for r in document.readings if r.scope != RUN or r.metric not in names]
    return replace(document, readings=(*unchanged, *fresh))


def _metal_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    metal = replace(metal, absent=tuple(_absent_in_run(document, absent) for absent in metal.absent))
    return (
        *metal_trace_readings(metal, document.trace),
        *counter_readings(document, metal),
    )


def _absent_in_run(document: RunDocument, absent: MetalAbsent) -> MetalAbsent:
    """The reason as it is for a run, which launched the program itself and knows what it was asked to count."""
    if document.plan is None:
        return absent
    if absent.what == INTERVALS and absent.reason.code == "no-rows":
        return MetalAbsent(INTERVALS, UNUSED, USE)
    if absent.reason.code == "no-counter-set" and "counters" not in {
        planned.name for planned in document.plan.passes
    }:
        left_out = absent_reading(document, "gpu.occupancy", "counters", RUN)
        return replace(absent, reason=left_out.reason or absent.reason, fix=left_out.fix)
    return absent


def summarize_metal(document: RunDocument) -> list[Summary]:
    """Time, occupancy, bandwidth and state of the GPU; of a run without a trace why they are not known."""
    metal = document.metal
    if metal is None:
        if document.plan is None and not document.passes:
            return []
        return [
            Summary(concern, tuple(absent_reading(document, name, source, RUN) for name in names))
            for concern, source, names in _WITHOUT
        ]
    fresh = _metal_readings(document, metal)
    readings = [best_reading(document.readings, reading.metric, (RUN,)) or reading for reading in fresh]

    def of(names: Sequence[str]) -> tuple[Reading, ...]:
        return tuple(reading for reading in readings if reading.metric in names)

    elsewhere = (*OCCUPANCY, *BANDWIDTH, *_STATE, *_MEMORY)
    return [
        Summary("gpu", tuple(reading for reading in readings if reading.metric not in elsewhere)),
        Summary("occupancy", of(OCCUPANCY)),
        Summary("bandwidth", of(BANDWIDTH)),
        Summary("state", of(_STATE)),
    ]
