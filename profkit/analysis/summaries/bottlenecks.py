"""What limits each kernel: a unit of the device, latency, or that it is too small; or that it is not known.

After the "speed of light" rule of NVIDIA's Nsight Compute: a unit above 80 % of its peak is what limits; above 60 %
it is the nearest limit; with all below 60 % it is latency, or a grid that does not fill the device.

The percentages of the multiprocessors' units are over the cycles in which these worked, those of the memory over the
whole time. NVIDIA's two "speed of light" figures are the highest of many such counters, over the whole time: they
stand in for what was not counted apart, and correct what only looks busy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.core.types import (
    TOGETHER,
    Bound,
    Fact,
    KernelBottleneck,
    KernelTime,
    Reading,
    RunDocument,
    Scope,
    Source,
    together,
)

# NVIDIA's own rule (SpeedOfLight.py of Nsight Compute: no_bound_threshold, latency_bound_threshold,
# balanced_threshold, waves_threshold).
SATURATED = 80.0  # %: a unit this busy limits the kernel, whatever else there is
BUSY = 60.0  # %: below it for compute and memory alike, latency is what limits
SEEN = 50.0  # %: with fewer issue slots in use no pipe of half the rate can be full
BALANCED = 10.0  # points: nearer than that, two units cannot be ranked

ISSUES_PER_CYCLE = 4  # of a multiprocessor: four schedulers on every chip since Volta


@dataclass(frozen=True)
class KernelUnit:
    """One unit and how busy it was, in % of its peak. `bound` is None where the report does not say which it is.

    `name` is one of the units of `reporting/sentences/words.py`.
    """

    bound: Bound | None
    name: str
    busy: float
    rank: float | None = None  # by which it is ordered, where that is not how busy it is


# In the order in which equally busy ones are named: what stands further from the processor first.
_MEMORY: tuple[tuple[Bound, str], ...] = (("dram", "bandwidth.dram.share"), ("l2", "bandwidth.l2.share"))
_PIPES: tuple[tuple[Bound, str], ...] = (
    ("tensor", "tensor.utilization"),
    ("fp64", "pipe.fp64.utilization"),
    ("fp32", "pipe.fp32.utilization"),
    ("fp16", "pipe.fp16.utilization"),
    ("integer", "pipe.alu.utilization"),
    ("xu", "pipe.xu.utilization"),
)


@dataclass(frozen=True)
class Units:
    """All that is known of one kernel's units, busiest first, and of which side enough is known to rule it out."""

    ranked: tuple[KernelUnit, ...]
    memory_known: bool
    compute_known: bool  # every unit of the multiprocessors, or the highest of them
    compute_seen: bool  # at least that tensor cores and issue slots are less than half used

    @property
    def top(self) -> KernelUnit | None:
        """Return the busiest unit."""
        return self.ranked[0] if self.ranked else None


def units_of(values: Mapping[str, float]) -> Units:
    """Return the units by the readings of one kernel (metric -> value; what is not known is not in it)."""
    memory_roof, compute_roof = values.get("memory.throughput"), values.get("sm.throughput")
    memory = [KernelUnit(bound, bound, values[name]) for bound, name in _MEMORY if name in values]
    # The multiprocessors' figures are over those that worked: one block that loads in a loop keeps "its" L1 82 % busy,
    # and the device's at 0.6 %. So they count for the part of the device that has a block.
    part = filled_share(values)
    memory += [KernelUnit(u.bound, u.name, u.busy * part) for u in _l1_units(values)]
    compute = [KernelUnit(bound, bound, values[name] * part) for bound, name in _PIPES if name in values]
    compute = [_named_by_type(unit, values) for unit in compute]
    if memory_roof is not None:
        # L2's own figure has parts that are no limit: 88 % where the copy is at 77 % of DRAM and nothing is higher.
        memory = [KernelUnit(u.bound, u.name, min(u.busy, memory_roof)) for u in memory]
        memory += _unnamed_memory(memory, memory_roof)
    issue = _issue_unit(values, part)
    if compute_roof is not None:
        known = max((u.busy for u in (*compute, *([issue] if issue else ()))), default=0.0)
        if compute_roof > known + BALANCED or (not compute and issue is None):
            compute.append(KernelUnit("compute", "compute", compute_roof))
    pipe = max((u.busy for u in compute), default=0.0)
    if issue is not None and (issue.busy >= pipe + BALANCED or pipe < BUSY <= issue.busy):
        compute.insert(0, issue)  # else the pipe is what the instructions are for
    elif issue is not None:
        compute.append(KernelUnit(issue.bound, issue.name, issue.busy, min(issue.busy, pipe)))
    parts = {"dram", "l2"} <= _bounds(memory) and len(_bounds(memory)) > 2
    full = {"tensor.utilization", "pipe.fp64.utilization", "pipe.fp32.utilization"} <= values.keys()
    return Units(
        tuple(sorted((*memory, *compute), key=lambda unit: -unit.busy if unit.rank is None else -unit.rank)),
        memory_known=memory_roof is not None or parts,
        compute_known=compute_roof is not None or (full and issue is not None),
        compute_seen=compute_roof is not None
        or (full and issue is not None)
        or ("tensor.utilization" in values and issue is not None and issue.busy < SEEN),
    )


def _bounds(units: list[KernelUnit]) -> set[Bound | None]:
    return {unit.bound for unit in units}


def _l1_units(values: Mapping[str, float]) -> list[KernelUnit]:
    """Return L1 and shared memory as one unit.

    A tenth of the shared passes spent on conflicts is NVIDIA's own threshold.
    """
    conflicts = values.get("shared.bank_conflicts.share", 0.0) >= 10
    bound: Bound = "shared" if conflicts else "l1"
    name = "l1-and-shared" if conflicts else "l1"
    units = []
    if "bandwidth.l1.share" in values:
        units.append(KernelUnit(bound, name, values["bandwidth.l1.share"]))
    if "bandwidth.shared.share" in values:
        units.append(KernelUnit("shared", "shared", values["bandwidth.shared.share"]))
    if "pipe.lsu.utilization" in values:
        units.append(KernelUnit(bound, "lsu", values["pipe.lsu.utilization"]))
    return units


def _unnamed_memory(memory: list[KernelUnit], roof: float) -> list[KernelUnit]:
    """Return the highest figure of the memory where none of the units with a reading comes near it."""
    if roof <= max((unit.busy for unit in memory), default=0.0) + BALANCED:
        return []
    nearer = [unit for unit in memory if unit.bound != "dram"]
    if not nearer:
        return [KernelUnit(None, "memory", roof)]
    busiest = max(nearer, key=lambda unit: unit.busy)
    return [KernelUnit(busiest.bound, f"memory-{busiest.bound}", roof)]


def _named_by_type(unit: KernelUnit, values: Mapping[str, float]) -> KernelUnit:
    """Name the unit by the type: half precision runs on the FP32 pipe of some chips (GA100, GH100)."""
    half, single = values.get("flops.f16", 0.0), values.get("flops.f32", 0.0)
    if unit.bound == "fp32" and half > single:
        return KernelUnit("fp16", "fp16-on-fp32", unit.busy)
    return unit


def filled_share(values: Mapping[str, float]) -> float:
    """Return the part of the multiprocessors that has a block at all, 0..1."""
    blocks, multiprocessors = values.get("launch.blocks"), values.get("launch.multiprocessors")
    return 1.0 if blocks is None or not multiprocessors else min(1.0, blocks / multiprocessors)


def _issue_unit(values: Mapping[str, float], part: float) -> KernelUnit | None:
    busy = values.get("issue.active")
    if busy is None and "ipc" in values:
        busy = min(100.0, 100 * values["ipc"] / ISSUES_PER_CYCLE)
    return KernelUnit("issue", "issue", busy * part) if busy is not None else None


# A launch takes about 2 µs of the device and 3 to 4 µs of the host (NVIDIA's blog on CUDA graphs measured 3.8 µs per
# kernel of 2.9 µs back to back): a shorter kernel cannot keep the device fed.
LAUNCH_SECONDS = 3e-6
# Below this, where not every unit was counted: nothing that was left out is likely to be twice as busy as all others.
QUIET = 40.0
# A collective moves data between GPUs and waits for the slowest: few blocks are right, and no unit here limits it.
_COLLECTIVE = re.compile(r"nccl|nvshmem", re.IGNORECASE)
COVERED = 0.95  # of the GPU time: what was not counted is named this far
UNCOUNTED = 20  # and no more of them than that


def classify_bottlenecks(document: RunDocument) -> tuple[KernelBottleneck, ...]:
    """Return what limits every counted kernel, and the largest of those that were only timed; largest share first.

    Doubted readings are not used. The scope of a class is that of the kernel's readings, where it has any.
    """
    rows = kernel_rows(replace(document, kernels=()))
    multiprocessors = next((g.multiprocessors for g in document.gpus if g.multiprocessors), None)
    call = document.trace.launch_call if document.trace is not None else None
    bottlenecks: list[KernelBottleneck] = []
    share, uncounted = 0.0, 0
    for row in rows:
        counted = bool(row.readings)
        if counted or (share < COVERED and uncounted < UNCOUNTED):
            values = _kernel_values(row)
            if multiprocessors is not None:
                values.setdefault("launch.multiprocessors", float(multiprocessors))
            bottleneck = _classify_kernel(values, row.time, call)
            if _COLLECTIVE.search(row.scope.name or ""):
                bottleneck = replace(bottleneck, bound="unknown", reason=Fact("collective"))
            scope = next((reading.scope for reading in row.readings.values()), row.scope)
            bottlenecks.append(replace(bottleneck, scope=scope, share=row.share))
            uncounted += not counted
        share += row.share or 0.0
    return tuple(bottlenecks)


def busiest_readings(classes: tuple[KernelBottleneck, ...]) -> tuple[Reading, ...]:
    """Return how near the busiest unit of each kernel that has a class is to its peak, as a reading."""
    source = Source("profkit", formula="the highest utilization of any unit that was counted")
    return tuple(
        Reading(
            "throughput.busiest",
            bottleneck.nearest,
            "%",
            "measured",
            bottleneck.scope,
            source,
            bottleneck.reason,
        )
        for bottleneck in classes
        if bottleneck.nearest is not None and bottleneck.bound != "unknown"
    )


def _kernel_values(row: KernelRow) -> dict[str, float]:
    """Return what is known of the kernel: its undoubted readings, and the shape it was launched in."""
    values = {n: r.value for n, r in row.readings.items() if r.value is not None and r.doubt is None}
    if row.time is not None:
        kernel = row.time.kernel
        blocks = float(prod(kernel.grid))
        if blocks > 0:  # 0 is what a tracer writes that does not know the grid
            values.setdefault("launch.blocks", blocks)
        if row.time.median is not None:
            values.setdefault("time.kernel", row.time.median)
    return values


def _classify_kernel(
    values: Mapping[str, float], time: KernelTime | None, call: float | None
) -> KernelBottleneck:
    """Return the class without scope and share."""
    units = units_of(values)
    top = units.top
    if top is not None and top.busy >= BUSY:
        return _busy_unit_bottleneck(units)
    small = _why_too_small(values, time, call, units)
    if small is not None:
        return _bottleneck("launch", small, units)
    if top is None:
        return _bottleneck("unknown", Fact("not-collected"), units)
    if units.memory_known and units.compute_known:
        return _bottleneck("latency", Fact.of("no-busy-unit", _evidence(units), limit=BUSY), units)
    if units.compute_known and top.busy < QUIET and any(u.bound == "dram" for u in units.ranked):
        return _bottleneck("latency", Fact.of("no-counted-unit-busy", _evidence(units)), units)
    return _bottleneck("unknown", _uncertain(units), units)


def _busy_unit_bottleneck(units: Units) -> KernelBottleneck:
    top = units.ranked[0]
    if top.bound is None:
        return _bottleneck("unknown", _evidence(units), units)
    # Nothing can hide behind a saturated unit. Behind one that is only busy it can: half-rate pipes are full at half of
    # the issue slots, those for FP64 and special functions long before.
    sure = units.compute_seen if top.bound in ("dram", "l2", "l1", "shared") else units.compute_known
    if top.busy < SATURATED and not sure:
        return _bottleneck("unknown", _uncertain(units), units)
    return _bottleneck(top.bound, _evidence(units), units)


def _why_too_small(
    values: Mapping[str, float], time: KernelTime | None, call: float | None, units: Units
) -> Fact | None:
    """Return why the kernel is too small for the device; None where it is not, or where a unit may be busy all the
    same.
    """
    blocks, multiprocessors = values.get("launch.blocks"), values.get("launch.multiprocessors")
    # No unit of the multiprocessors can then be 60 % busy for the device, whatever the blocks do.
    if blocks is not None and multiprocessors is not None and 100 * filled_share(values) < BUSY:
        return _with_busiest(Fact.of("few-blocks", blocks=blocks, multiprocessors=multiprocessors), units)
    seconds = values.get("time.kernel")
    if seconds is not None and not (time is not None and time.graph):
        # a tracer makes launches look slower
        limit = min(max(call or 0.0, LAUNCH_SECONDS), 2 * LAUNCH_SECONDS)
        if seconds < limit:
            return _with_busiest(Fact.of("shorter-than-launch", seconds=seconds), units)
    waves = values.get("launch.waves")
    if waves is not None and waves < 1 and units.memory_known and units.compute_known:
        return _with_busiest(Fact.of("part-of-a-wave", share=waves), units)
    return None


def _with_busiest(fact: Fact, units: Units) -> Fact:
    return together(fact, _unit_fact(units.ranked[0]) if units.ranked else None) or fact


def _unit_fact(unit: KernelUnit) -> Fact:
    return Fact.of("unit", unit=unit.name, busy=unit.busy)


def _evidence(units: Units) -> Fact:
    """Return the busiest unit, and the next one that is another."""
    top = units.ranked[0]
    following = next((u for u in units.ranked[1:] if u.bound != top.bound), None)
    if following is None:
        return _unit_fact(top)
    # A pipe is named before the issue slots that feed it, also where these are a little busier.
    code = "next-unit" if following.busy <= top.busy else "feeding-unit"
    return Fact(TOGETHER, parts=(_unit_fact(top), Fact.of(code, unit=following.name, busy=following.busy)))


def _uncertain(units: Units) -> Fact:
    missing = Fact("caches-not-collected" if units.compute_known else "pipes-not-collected")
    return Fact(TOGETHER, parts=(_evidence(units), missing))


def _bottleneck(bound: Bound, reason: Fact, units: Units) -> KernelBottleneck:
    top = units.top
    nearest, busiest = (top.busy, top.bound) if top is not None else (None, None)
    return KernelBottleneck(Scope("kernel"), None, bound, reason, nearest, busiest)
