"""What one iteration does and takes, and the peaks of this machine that it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.metrics import metric
from profkit.model import Peaks, Reading, Scope, Source
from profkit.summaries.pick import TOOL, unavailable

Roof = Literal["memory", "compute"]

# A workload on one thread never keeps more than 100 % of one core busy; a tenth is left for helper threads.
ONE_THREAD = 110.0


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
    """The peaks for as many threads as the workload kept busy; those of all where that is not known."""
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
