"""The most that keeping a target could win, as a share of the kernel's time (0..1): an upper bound, never a promise.

Amdahl's law makes of it the share of a run: gain = share of the GPU time * this * the GPU's busy share of the time.
"""

from __future__ import annotations

from collections.abc import Mapping

from profkit.analysis.targets.target import Gain
from profkit.core.types import KernelClass

SECTOR = 32  # bytes


def most_won(gain: Gain, values: Mapping[str, float], kernel: KernelClass | None) -> float | None:
    """The bound for one kernel by its readings (metric -> value); None where it cannot be told.

    bandwidth: moving the same bytes at the peak takes the share p of the time, so 1 - p.
    occupancy: NVIDIA's rules: 1 - achieved / theoretical where resources allow 80 % or more (AchievedOccupancy.py),
        else 1 - achieved (TheoreticalOccupancy.py); no more than the headroom.
    conflicts: the share of the shared memory's passes that are conflicts; no more than DRAM and pipes leave.
    lanes: instructions issued for lanes that did nothing, 1 - efficiency.
    sectors: the share of sectors that nobody asked for. Where DRAM moves no more than what was asked for (caches
        absorbed the rest), also no more than 1 - p of DRAM.
    device: the part of the device that its blocks leave empty, 1 - waves (where waves are not told, the
        multiprocessors without a block: NVIDIA's launch rule); no more than the headroom.
    headroom: 1 - how busy the busiest unit is.
    idle: the time in which the GPU did nothing. copying: that in which it only copied.
    """
    found = _bound(gain, values, kernel)
    return None if found is None else min(1.0, max(0.0, found))


def _bound(gain: Gain, values: Mapping[str, float], kernel: KernelClass | None) -> float | None:
    headroom = _left(kernel.nearest if kernel is not None else None)
    dram = _left(values.get("bandwidth.dram.share"))
    if gain == "bandwidth":
        return dram
    if gain == "headroom":
        return headroom
    if gain == "lanes":
        return _left(values.get("warp.execution_efficiency"))
    if gain == "idle":
        if "gpu.window" in values and "gpu.entries" not in values:
            return None  # of an unmarked process on an Apple GPU: its window is not the run
        return _left(values.get("gpu.utilization"))
    if gain == "copying":
        return _times(values.get("gpu.copying"), 0.01)
    if gain == "device":
        blocks, room = values.get("launch.blocks"), values.get("launch.multiprocessors")
        empty = _left(_times(values.get("launch.waves"), 100))
        if empty is None and blocks is not None and room:
            empty = 1 - min(1.0, blocks / room)
        return _least(empty, headroom)
    if gain == "occupancy":
        achieved, theory = values.get("occupancy.achieved"), values.get("occupancy.theoretical")
        if achieved is None:
            return None
        most = theory if theory is not None and theory >= 80 else 100.0
        return _least(1 - achieved / most, headroom)
    if gain == "conflicts":
        # The unit that is busy with conflicts is no bound for itself: DRAM and the pipes are.
        own = kernel is not None and kernel.busiest in ("shared", "l1")
        return _least(_times(values.get("shared.bank_conflicts.share"), 0.01), dram if own else headroom)
    if gain == "sectors":
        return _sectors(values, dram)
    return None


def _sectors(values: Mapping[str, float], dram: float | None) -> float | None:
    kept = values.get("memory.coalescing")
    if kept is None:
        return None
    wasted = 1 - kept / 100
    excess, moved = values.get("memory.sectors.excess"), values.get("dram.bytes")
    if excess and wasted > 0 and moved is not None and dram is not None:
        asked = SECTOR * (excess / wasted - excess)
        if moved <= 1.25 * asked:
            return min(wasted, dram)
    return wasted


def _left(share: float | None) -> float | None:
    return None if share is None else 1 - share / 100


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _least(*bounds: float | None) -> float | None:
    told = [bound for bound in bounds if bound is not None]
    return min(told) if told and bounds[0] is not None else None
