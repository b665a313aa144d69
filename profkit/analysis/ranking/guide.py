"""A sweep as the list of records that the comprehensive benchmarking guide describes, one per case.

Its keys stay as they are, each computed as its name says; what makes them believable stands behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profkit.core.types import CaseResult, MeasuredRoofs, SweepDocument

FILE = "benchmark_results.json"


def records(document: SweepDocument) -> list[dict[str, Any]]:
    """All cases, in the order of the sweep. What was not measured is null, with `state` and `reason`."""
    return [record(result, document) for result in document.results]


def record(result: CaseResult, document: SweepDocument) -> dict[str, Any]:
    """One case.

    time_ms: median time of a call in ms. memory_mb: most memory during a call in 10^6 bytes. inference_speed: calls per
    second, 1000 / time_ms. throughput_gbps: 10^9 bytes per second, of those that a call must move at least.
    gpu_efficiency: % of the measured roofline: the time that the call must take, by its bytes and FLOPs and what the
    device was measured to do, over the time that it took (Williams, Waterman and Patterson, "Roofline", 2009). On a
    device that is not a GPU it is that device's.
    """
    point, seconds = result.point, result.median
    share = efficiency(result, document.roofs)
    return {
        "operation": point.operation,
        "implementation": result.implementation,
        "batch_size": point.batch,
        "sequence_length": point.sequence,
        "tensor_dimension": point.dimension,
        "time_ms": seconds * 1e3 if seconds is not None else None,
        "memory_mb": result.memory / 1e6 if result.memory is not None else None,
        "inference_speed": 1 / seconds if seconds else None,
        "gpu_efficiency": 100 * share if share is not None else None,
        "throughput_gbps": throughput(result) / 1e9 if seconds else None,
        "dtype": point.dtype,
        "direction": point.direction,
        "state": result.state,
        "reason": result.reason,
        "interval_percent": 100 * result.half_width if result.half_width is not None else None,
        "samples": result.samples,
        "calls_per_sample": result.calls,
        "cache": result.cache,
        "clock": result.clock,
        "first_call_ms": result.first * 1e3 if result.first is not None else None,
        "error_of_tolerance": result.error,
        "sm_clock_mhz": sorted(result.clocks)[len(result.clocks) // 2] / 1e6 if result.clocks else None,
        "throttled": list(result.throttled),
        "profile": result.profile,
        "device": document.device,
        "versions": dict(document.versions),
    }


def throughput(result: CaseResult) -> float:
    """Bytes per second that the operation must move at least; 0.0 where it was not timed."""
    return (result.bytes or 0.0) / result.median if result.median else 0.0


def efficiency(result: CaseResult, roofs: MeasuredRoofs) -> float | None:
    """The least time by the roofline over the measured one: a share, above 1 where caches serve for memory."""
    if not result.median or not roofs.bandwidth or not roofs.flops:
        return None
    return max((result.bytes or 0.0) / roofs.bandwidth, (result.flops or 0.0) / roofs.flops) / result.median


def measured(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Those with a time."""
    return [result for result in results if result.median]
