"""How busy each unit of a device was while one kernel ran, in % of that unit's peak: which of them limits it.

The percentages of the multiprocessors' units are over the cycles in which these worked, those of the memory over the
whole time. NVIDIA's two "speed of light" figures are the highest of many such counters, over the whole time: they
stand in for what was not counted apart, and correct what only looks busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profkit.core.types import Bound

# NVIDIA's own rule (SpeedOfLight.py of Nsight Compute: no_bound_threshold, latency_bound_threshold,
# balanced_threshold, waves_threshold).
SATURATED = 80.0  # %: a unit this busy limits the kernel, whatever else there is
BUSY = 60.0  # %: below it for compute and memory alike, latency is what limits
SEEN = 50.0  # %: with fewer issue slots in use no pipe of half the rate can be full
BALANCED = 10.0  # points: nearer than that, two units cannot be ranked

ISSUES_PER_CYCLE = 4  # of a multiprocessor: four schedulers on every chip since Volta


@dataclass(frozen=True)
class Unit:
    """One unit and how busy it was, in % of its peak. `bound` is None where the report does not say which it is."""

    bound: Bound | None
    title: str
    busy: float
    rank: float | None = None  # by which it is ordered, where that is not how busy it is

    @property
    def words(self) -> str:
        """`DRAM at 91 % of its peak`."""
        return f"{self.title} at {share(self.busy)} of its peak"


def share(value: float) -> str:
    """A utilization for a sentence: `91 %`, `0.4 %`."""
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %" if value >= 0.05 else "less than 0.1 %"


# In the order in which equally busy ones are named: what stands further from the processor first.
_MEMORY: tuple[tuple[Bound, str, str], ...] = (
    ("dram", "bandwidth.dram.share", "DRAM"),
    ("l2", "bandwidth.l2.share", "L2"),
)
_PIPES: tuple[tuple[Bound, str, str], ...] = (
    ("tensor", "tensor.utilization", "tensor pipe"),
    ("fp64", "pipe.fp64.utilization", "FP64 pipe"),
    ("fp32", "pipe.fp32.utilization", "FP32 pipe"),
    ("fp16", "pipe.fp16.utilization", "FP16 pipe"),
    ("integer", "pipe.alu.utilization", "ALU pipe (integer, logic, comparisons)"),
    ("xu", "pipe.xu.utilization", "XU pipe (special functions, conversions)"),
)


@dataclass(frozen=True)
class Units:
    """All that is known of one kernel's units, busiest first, and of which side enough is known to rule it out."""

    ranked: tuple[Unit, ...]
    memory_known: bool
    compute_known: bool  # every unit of the multiprocessors, or the highest of them
    compute_seen: bool  # at least that tensor cores and issue slots are less than half used

    @property
    def top(self) -> Unit | None:
        """The busiest unit."""
        return self.ranked[0] if self.ranked else None


def units_of(values: Mapping[str, float]) -> Units:
    """The units by the readings of one kernel (metric -> value; what is not known is not in it)."""
    memory_roof, compute_roof = values.get("memory.throughput"), values.get("sm.throughput")
    memory = [Unit(bound, title, values[name]) for bound, name, title in _MEMORY if name in values]
    # The multiprocessors' figures are over those that worked: one block that loads in a loop keeps "its" L1 82 % busy,
    # and the device's at 0.6 %. So they count for the part of the device that has a block.
    part = filled(values)
    memory += [Unit(u.bound, u.title, u.busy * part) for u in _l1(values)]
    compute = [Unit(bound, title, values[name] * part) for bound, name, title in _PIPES if name in values]
    compute = [_named_by_type(unit, values) for unit in compute]
    if memory_roof is not None:
        # L2's own figure has parts that are no limit: 88 % where the copy is at 77 % of DRAM and nothing is higher.
        memory = [Unit(u.bound, u.title, min(u.busy, memory_roof)) for u in memory]
        memory += _unnamed_memory(memory, memory_roof)
    issue = _issue(values, part)
    if compute_roof is not None:
        known = max((u.busy for u in (*compute, *([issue] if issue else ()))), default=0.0)
        if compute_roof > known + BALANCED or (not compute and issue is None):
            compute.append(
                Unit("compute", "the multiprocessors' busiest unit (not told which)", compute_roof)
            )
    pipe = max((u.busy for u in compute), default=0.0)
    if issue is not None and (issue.busy >= pipe + BALANCED or pipe < BUSY <= issue.busy):
        compute.insert(0, issue)  # else the pipe is what the instructions are for
    elif issue is not None:
        compute.append(Unit(issue.bound, issue.title, issue.busy, min(issue.busy, pipe)))
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


def _bounds(units: list[Unit]) -> set[Bound | None]:
    return {unit.bound for unit in units}


def _l1(values: Mapping[str, float]) -> list[Unit]:
    """L1 and shared memory are one unit; a tenth of its shared passes spent on conflicts is NVIDIA's own alarm."""
    conflicts = values.get("shared.bank_conflicts.share", 0.0) >= 10
    bound: Bound = "shared" if conflicts else "l1"
    title = "L1 and shared memory" if conflicts else "L1"
    found = []
    if "bandwidth.l1.share" in values:
        found.append(Unit(bound, title, values["bandwidth.l1.share"]))
    if "bandwidth.shared.share" in values:
        found.append(Unit("shared", "shared memory", values["bandwidth.shared.share"]))
    if "pipe.lsu.utilization" in values:
        found.append(Unit(bound, "LSU pipe (loads and stores)", values["pipe.lsu.utilization"]))
    return found


def _unnamed_memory(memory: list[Unit], roof: float) -> list[Unit]:
    """The highest figure of the memory where none of the units that were told comes near it."""
    if roof <= max((unit.busy for unit in memory), default=0.0) + BALANCED:
        return []
    nearer = [unit for unit in memory if unit.bound != "dram"]
    if not nearer:
        return [Unit(None, "the memory's busiest unit (not told which)", roof)]
    busiest = max(nearer, key=lambda unit: unit.busy)
    return [Unit(busiest.bound, f"the memory's busiest unit (most likely of {busiest.title})", roof)]


def _named_by_type(unit: Unit, values: Mapping[str, float]) -> Unit:
    """Half precision runs on the FP32 pipe of some chips (GA100, GH100): then its operations say what it did."""
    half, single = values.get("flops.f16", 0.0), values.get("flops.f32", 0.0)
    if unit.bound == "fp32" and half > single:
        return Unit("fp16", "FP32 pipe, with FP16 arithmetic,", unit.busy)
    return unit


def filled(values: Mapping[str, float]) -> float:
    """The part of the multiprocessors that has a block at all, 0..1."""
    blocks, room = values.get("launch.blocks"), values.get("launch.multiprocessors")
    return 1.0 if blocks is None or not room else min(1.0, blocks / room)


def _issue(values: Mapping[str, float], part: float) -> Unit | None:
    busy = values.get("issue.active")
    if busy is None and "ipc" in values:
        busy = min(100.0, 100 * values["ipc"] / ISSUES_PER_CYCLE)
    return Unit("issue", "instruction issue", busy * part) if busy is not None else None
