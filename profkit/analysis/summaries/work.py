"""What one iteration does and takes, and the peaks of this machine that it is held against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.pick import TOOL, best, main_scopes, need, unavailable
from profkit.analysis.summaries.time import scope_of
from profkit.core.types import RUN, Peaks, Reading, RunDocument, Scope, Source

Roof = Literal["memory", "compute"]

# A workload on one thread never keeps more than 100 % of one core busy; a tenth is left for helper threads.
ONE_THREAD = 110.0


# Peaks are the best of some runs and known to a few per cent; a share beyond this is a doubt about what it is made of.
BEYOND = 105.0
BEYOND_WHOLE = "more than the whole cannot be"
BUSY_PEAK = "the peak was measured while the machine was busy: measure again when it is quiet"
STREAMING = (
    "simulated traffic is too high where stores stream past the caches (memcpy and np.copyto of large arrays),"
    " since each simulated write reads its line first"
)
NARROW = "the arithmetic is narrower than the float32 of the peak (float16, bfloat16, int8)"


def doubted(share: Reading, *causes: str) -> Reading:
    """A share of a peak; well above 100 % it is no fact but an estimate, and what may be the cause stands with it."""
    if share.value is None or share.value <= BEYOND:
        return share
    reason = f"{BEYOND_WHOLE}: {', or '.join(causes)}"
    return replace(share, quality="estimated", reason=reason)


def traffic_doubts(dram: Reading) -> tuple[str, ...]:
    """Why a rate to memory may come out above the peak: by how the traffic was come by."""
    return (STREAMING, BUSY_PEAK) if dram.quality != "measured" else (BUSY_PEAK,)


@dataclass(frozen=True)
class Work:
    """What one iteration does and takes, each as a reading that may be unavailable.

    `seconds` is the median time; `dram` (B) and `flops` (FLOP) are per iteration; `busy` is CPU time over
    wall time in %, None where unknown.
    """

    scope: Scope
    seconds: Reading
    dram: Reading
    flops: Reading
    declared_flops: float | None = None
    declared_bytes: float | None = None
    busy: float | None = None


@dataclass(frozen=True)
class Roofs:
    """The two peaks that a workload of that many threads is held against. Units as in Peaks."""

    bandwidth: Reading
    flops: Reading
    threads: int
    why: str


def roofs(peaks: Peaks | None, busy: float | None, scope: Scope) -> Roofs:
    """The peaks for as many threads as the workload kept busy; those of all where that is not known.

    `busy` is CPU time over wall time in per cent: 100 is one core all the time.
    """
    one = busy is not None and busy <= ONE_THREAD
    threads = 1 if one or peaks is None else peaks.threads
    known = f"{busy / 100:.1f} cores kept busy" if busy is not None else "how many it used is not known"
    why = f"one thread ({known})" if one else f"all {threads} threads ({known})"

    def told(name: str, value: float | None) -> Reading:
        unit = metric(name).unit
        if peaks is None or value is None:
            return unavailable(name, scope, "the peaks of this machine were not measured")
        return Reading(name, value, unit, "measured", scope, Source(TOOL, formula=peaks.method))

    if peaks is None:
        return Roofs(told("bandwidth.dram", None), told("flops.rate", None), threads, why)
    bandwidth, flops = peaks.bandwidth_one, peaks.flops_f32_one
    if (
        not one
    ):  # on a busy machine all threads may have measured less than one, which was reached all the same
        bandwidth = max((p for p in (bandwidth, peaks.bandwidth_all) if p is not None), default=None)
        flops = max((p for p in (flops, peaks.flops_f32_all) if p is not None), default=None)
    return Roofs(told("bandwidth.dram", bandwidth), told("flops.rate", flops), threads, why)


def roof(intensity: Reading | None, limit: Roofs) -> Roof | None:
    """Which roof is lower at this intensity; None where intensity or a peak is unknown."""
    bandwidth, flops = limit.bandwidth.value, limit.flops.value
    if intensity is None or intensity.value is None or not bandwidth or flops is None:
        return None
    return "memory" if intensity.value < flops / bandwidth else "compute"


def work_of(document: RunDocument) -> tuple[Work, Roofs]:
    """What one iteration of the first timing does and takes, and the peaks that it is held against.

    Counts are per iteration already: who counted a region divided by its iterations.
    """
    timing = document.timings[0] if document.timings else None
    scope = scope_of(timing) if timing is not None else main_scopes(document)[0]
    busy = best(document.readings, "cpu.utilization", main_scopes(document))
    work = Work(
        scope,
        need(document, "time.median", "timing"),
        _of_one_region(document, need(document, "dram.bytes")),
        _of_one_region(document, need(document, "flops")),
        timing.flops if timing is not None else None,
        timing.bytes if timing is not None else None,
        busy.value if busy is not None else None,
    )
    return work, roofs(document.peaks, work.busy, scope)


def _of_one_region(document: RunDocument, count: Reading) -> Reading:
    """A count that may be held against the first timing: one over several regions belongs to none of them."""
    names = dict.fromkeys(timing.name for timing in document.timings if timing.kind != "process")
    if count.value is None or count.scope != RUN or len(names) < 2:
        return count
    reason = f"it was counted over several regions together ({', '.join(names)}), and the time is of one"
    return unavailable(count.metric, count.scope, reason, "mark the one region that counts", count.source)
