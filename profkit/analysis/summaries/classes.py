"""What limits each kernel: a unit of the device, latency, or that it is too small; or that it cannot be told.

After the "speed of light" rule of NVIDIA's Nsight Compute: a unit above 80 % of its peak is what limits; above 60 %
it is the nearest limit; with all below 60 % it is latency, or a grid that does not fill the device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.analysis.summaries.units import BUSY, SATURATED, Units, filled, share, units_of
from profkit.core.formatting import quantity
from profkit.core.types import Bound, KernelClass, KernelTime, Reading, RunDocument, Scope, Source

# A launch takes about 2 µs of the device and 3 to 4 µs of the host (NVIDIA's blog on CUDA graphs measured 3.8 µs per
# kernel of 2.9 µs back to back): a shorter kernel cannot keep the device fed.
LAUNCH_SECONDS = 3e-6
# Below this, where not every unit was counted: nothing that was left out is likely to be twice as busy as all others.
QUIET = 40.0
# A collective moves data between GPUs and waits for the slowest: few blocks are right, and no unit here limits it.
_COLLECTIVE = re.compile(r"nccl|nvshmem", re.IGNORECASE)
COVERED = 0.95  # of the GPU time: what was not counted is named this far
UNCOUNTED = 20  # and no more of them than that


def classify(document: RunDocument) -> tuple[KernelClass, ...]:
    """What limits every counted kernel, and the largest of those that were only timed; largest share first.

    Doubted readings are not used. The scope of a class is that of the kernel's readings, where it has any.
    """
    rows = kernel_rows(replace(document, kernels=()))
    multiprocessors = next((g.multiprocessors for g in document.gpus if g.multiprocessors), None)
    call = document.trace.launch_call if document.trace is not None else None
    found: list[KernelClass] = []
    seen, uncounted = 0.0, 0
    for row in rows:
        counted = bool(row.readings)
        if counted or (seen < COVERED and uncounted < UNCOUNTED):
            values = _values(row)
            if multiprocessors is not None:
                values.setdefault("launch.multiprocessors", float(multiprocessors))
            made = _class(values, row.time, call)
            if _COLLECTIVE.search(row.scope.name or ""):
                why = "it moves data between GPUs: its time is that of the links, and of the slowest GPU"
                made = replace(made, bound="unknown", reason=why)
            found.append(replace(made, scope=_scope(row), share=row.share))
            uncounted += not counted
        seen += row.share or 0.0
    return tuple(found)


def busiest_readings(classes: tuple[KernelClass, ...]) -> tuple[Reading, ...]:
    """How near the busiest unit of each kernel that has a class is to its peak, as a reading."""
    source = Source("profkit", formula="the highest utilization of any unit that was counted")
    return tuple(
        Reading("throughput.busiest", one.nearest, "%", "measured", one.scope, source, one.reason)
        for one in classes
        if one.nearest is not None and one.bound != "unknown"
    )


def _scope(row: KernelRow) -> Scope:
    return next((reading.scope for reading in row.readings.values()), row.scope)


def _values(row: KernelRow) -> dict[str, float]:
    """What is known of the kernel: its undoubted readings, and the shape it was launched in."""
    values = {n: r.value for n, r in row.readings.items() if r.value is not None and r.doubt is None}
    if row.time is not None:
        kernel = row.time.kernel
        blocks = 1.0
        for side in kernel.grid:
            blocks *= side
        if blocks > 0:  # 0 is what a tracer writes that was not told the grid
            values.setdefault("launch.blocks", blocks)
        if row.time.median is not None:
            values.setdefault("time.kernel", row.time.median)
    return values


def _class(values: Mapping[str, float], time: KernelTime | None, call: float | None) -> KernelClass:
    """The class without scope and share."""
    units = units_of(values)
    top = units.top
    if top is not None and top.busy >= BUSY:
        return _limited(units)
    small = _small(values, time, call, units)
    if small is not None:
        return _made("launch", small, units)
    if top is None:
        return _made("unknown", "none of the counters that tell it was collected", units)
    if units.memory_known and units.compute_known:
        return _made("latency", f"no unit is above {BUSY:.0f} % of its peak: {_pair(units)}", units)
    if units.compute_known and top.busy < QUIET and any(u.bound == "dram" for u in units.ranked):
        return _made("latency", f"none of the units that were counted is busy: {_pair(units)}", units)
    return _made("unknown", f"{_pair(units)}; {_missing(units)}", units)


def _limited(units: Units) -> KernelClass:
    top = units.ranked[0]
    if top.bound is None:
        return _made("unknown", _pair(units), units)
    # Nothing can hide behind a saturated unit. Behind one that is only busy it can: half-rate pipes are full at half of
    # the issue slots, those for FP64 and special functions long before.
    sure = units.compute_seen if top.bound in ("dram", "l2", "l1", "shared") else units.compute_known
    if top.busy < SATURATED and not sure:
        return _made("unknown", f"{_pair(units)}; {_missing(units)}", units)
    return _made(top.bound, _pair(units), units)


def _small(
    values: Mapping[str, float], time: KernelTime | None, call: float | None, units: Units
) -> str | None:
    """Why the kernel is too small for the device; None where it is not, or where a unit may be busy all the same."""
    blocks, multiprocessors = values.get("launch.blocks"), values.get("launch.multiprocessors")
    # No unit of the multiprocessors can then be 60 % busy for the device, whatever the blocks do.
    if blocks is not None and multiprocessors is not None and 100 * filled(values) < BUSY:
        count = "1 block" if blocks == 1 else f"{blocks:.0f} blocks"
        return f"{count} for {multiprocessors:.0f} multiprocessors" + _beside(units)
    seconds = values.get("time.kernel")
    if seconds is not None and not (time is not None and time.graph):
        limit = min(
            max(call or 0.0, LAUNCH_SECONDS), 2 * LAUNCH_SECONDS
        )  # a tracer makes launches look slower
        if seconds < limit:
            return f"{quantity(seconds, 's')} is less than it takes to launch it" + _beside(units)
    waves = values.get("launch.waves")
    if waves is not None and waves < 1 and units.memory_known and units.compute_known:
        return f"its blocks fill {100 * waves:.0f} % of the device once" + _beside(units)
    return None


def _beside(units: Units) -> str:
    return f"; {units.ranked[0].words}" if units.ranked else ""


def _pair(units: Units) -> str:
    """The busiest unit, and the next one that is another: the evidence in words."""
    top = units.ranked[0]
    following = next((u for u in units.ranked[1:] if u.bound != top.bound), None)
    if following is None:
        return top.words
    # A pipe is named before the issue slots that feed it, also where these are a little busier.
    order = "the next" if following.busy <= top.busy else "what feeds it"
    return f"{top.words}; {order}, {following.title}, at {share(following.busy)}"


def _missing(units: Units) -> str:
    if not units.compute_known:
        return "what its pipes did was not collected"
    return "what L1 and L2 did was not collected"


def _made(bound: Bound, reason: str, units: Units) -> KernelClass:
    top = units.top
    nearest, busiest = (top.busy, top.bound) if top is not None else (None, None)
    return KernelClass(Scope("kernel"), None, bound, reason, nearest, busiest)
