"""Whether a condition of a target holds, what explains a miss, and the most that keeping a target could win."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.analysis.targets.target import Condition, Gain, RooflineSide
from profkit.core.types import QUALITY_ORDER, RUN, Fact, KernelBottleneck, Reading, Scope

LIMITERS = ("registers", "shared", "warps", "blocks", "barriers")
# NVIDIA's rule for achieved occupancy: more than that below the theoretical one is worth a word of its own.
BELOW_THEORY = 10.0  # points
# And for the theoretical one: above it, resources are not what keeps warps away (TheoreticalOccupancy.py).
LIMITING = 80.0  # %
FEW_WAVES = 10  # beyond it a last, partly filled wave is less than 10 % of the time


def limiters(values: Mapping[str, float]) -> tuple[str, ...]:
    """Which resources allow the fewest blocks per multiprocessor; ties are all named (TheoreticalOccupancy.py)."""
    limits = {n: v for n in LIMITERS if (v := values.get(f"occupancy.limit.{n}")) is not None and v > 0}
    least = min(limits.values(), default=0.0)
    return tuple(name for name, value in limits.items() if value == least)


def top_stall(values: Mapping[str, float]) -> tuple[str, float] | None:
    """What warps wait for most, and its share (0..1) of all waiting; being chosen is no waiting."""
    stalls = {
        name.removeprefix("stall."): value
        for name, value in values.items()
        if name.startswith("stall.") and name != "stall.selected" and value > 0
    }
    if not stalls:
        return None
    name = max(stalls, key=lambda reason: stalls[reason])
    return name, stalls[name] / sum(stalls.values())


def explain_miss(metric: str, values: Mapping[str, float]) -> list[Fact]:
    """What limits the kernel in this respect; empty where nothing is known of it."""
    if metric == "occupancy.achieved":
        return _explain_occupancy(values)
    if metric == "shared.bank_conflicts" and "shared.bank_conflicts.share" in values:
        return [Fact.of("share-of-passes", value=values["shared.bank_conflicts.share"])]
    if metric == "memory.coalescing":
        return _explain_sectors(values)
    stall = top_stall(values) if metric in ("bandwidth.dram.share", "throughput.busiest") else None
    return [Fact.of("warps-wait", stall=stall[0], share=stall[1])] if stall is not None else []


def _explain_occupancy(values: Mapping[str, float]) -> list[Fact]:
    theory, achieved = values.get("occupancy.theoretical"), values.get("occupancy.achieved")
    if theory is None:
        return []
    facts = []
    if theory < 99.5 and (names := limiters(values)):
        blocks = values[f"occupancy.limit.{names[0]}"]
        facts.append(Fact.of("occupancy-limited", value=theory, blocks=blocks, limiters=" ".join(names)))
    elif theory < 99.5:
        facts.append(Fact.of("occupancy-at-most", value=theory))
    if achieved is not None and theory - achieved > BELOW_THEORY:
        waves = values.get("launch.waves")
        code = "below-theory-short" if waves is not None and waves > FEW_WAVES else "below-theory"
        facts.append(Fact.of(code, points=theory - achieved, waves=waves or 0.0))
    return facts


def _explain_sectors(values: Mapping[str, float]) -> list[Fact]:
    facts = []
    if (excess := values.get("memory.sectors.excess")) is not None:
        facts.append(Fact.of("excess-sectors", sectors=excess))
    for way in ("load", "store"):
        if (sectors := values.get(f"memory.sectors_per_request.{way}")) is not None:
            facts.append(Fact.of(f"sectors-per-{way}", sectors=sectors))
    return facts


SECTOR = 32  # bytes


def largest_gain(gain: Gain, values: Mapping[str, float], kernel: KernelBottleneck | None) -> float | None:
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
    bound = _gain_bound(gain, values, kernel)
    return None if bound is None else min(1.0, max(0.0, bound))


def _gain_bound(gain: Gain, values: Mapping[str, float], kernel: KernelBottleneck | None) -> float | None:
    headroom = _remaining_share(kernel.nearest if kernel is not None else None)
    dram = _remaining_share(values.get("bandwidth.dram.share"))
    if gain == "bandwidth":
        return dram
    if gain == "headroom":
        return headroom
    if gain == "lanes":
        return _remaining_share(values.get("warp.execution_efficiency"))
    if gain == "idle":
        if "gpu.window" in values and "gpu.entries" not in values:
            return None  # of an unmarked process on an Apple GPU: its window is not the run
        return _remaining_share(values.get("gpu.utilization"))
    if gain == "copying":
        return _times(values.get("gpu.copying"), 0.01)
    if gain == "device":
        blocks, multiprocessors = values.get("launch.blocks"), values.get("launch.multiprocessors")
        empty = _remaining_share(_times(values.get("launch.waves"), 100))
        if empty is None and blocks is not None and multiprocessors:
            empty = 1 - min(1.0, blocks / multiprocessors)
        return _smallest_bound(empty, headroom)
    if gain == "occupancy":
        achieved, theory = values.get("occupancy.achieved"), values.get("occupancy.theoretical")
        if achieved is None:
            return None
        most = theory if theory is not None and theory >= 80 else 100.0
        return _smallest_bound(1 - achieved / most, headroom)
    if gain == "conflicts":
        # The unit that is busy with conflicts is no bound for itself: DRAM and the pipes are.
        own = kernel is not None and kernel.busiest in ("shared", "l1")
        return _smallest_bound(
            _times(values.get("shared.bank_conflicts.share"), 0.01), dram if own else headroom
        )
    if gain == "sectors":
        return _wasted_sectors(values, dram)
    return None


def _wasted_sectors(values: Mapping[str, float], dram: float | None) -> float | None:
    needed = values.get("memory.coalescing")
    if needed is None:
        return None
    wasted = 1 - needed / 100
    excess, moved = values.get("memory.sectors.excess"), values.get("dram.bytes")
    if excess and wasted > 0 and moved is not None and dram is not None:
        asked = SECTOR * (excess / wasted - excess)
        if moved <= 1.25 * asked:
            return min(wasted, dram)
    return wasted


def _remaining_share(share: float | None) -> float | None:
    return None if share is None else 1 - share / 100


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _smallest_bound(*bounds: float | None) -> float | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known and bounds[0] is not None else None


LookedAt: TypeAlias = "tuple[float, str]"  # a value and its unit


@dataclass(frozen=True)
class TargetContext:
    """What the judge knows besides the readings.

    `roof` is the lower ceiling of the roofline, `precision` the asked half-width of the interval in %, `hottest`
    the functions to judge, hottest first, `kernel` what limits the kernel that is judged.
    """

    roof: RooflineSide | None = None
    precision: float | None = None
    hottest: tuple[Scope, ...] = ()
    kernel: KernelBottleneck | None = None


def surest_reading(readings: Iterable[Reading], name: str, scopes: Sequence[Scope]) -> Reading | None:
    """The best known reading of the metric `name` in the first of `scopes` that has one."""
    candidates = [r for r in readings if r.metric == name and r.scope in scopes]
    return min(
        candidates,
        key=lambda r: (scopes.index(r.scope), r.doubt is not None, QUALITY_ORDER[r.quality]),
        default=None,
    )


def applicable_conditions(
    conditions: Sequence[Condition], scope: Scope, readings: Sequence[Reading]
) -> tuple[Condition, ...]:
    """Those that are to be asked: not where the metric is told that one is only asked `without`."""
    if all(condition.without is None for condition in conditions):  # a sweep has thousands of scopes
        return tuple(conditions)
    metrics = {r.metric for r in _known_readings(readings, scope)}
    return tuple(
        condition for condition in conditions if condition.without is None or condition.without not in metrics
    )


def evaluate_condition(
    condition: Condition, scope: Scope, readings: Sequence[Reading], context: TargetContext
) -> tuple[bool | None, LookedAt | None]:
    """Whether the condition holds (None: cannot be told), and what was looked at."""
    if (
        condition.unless is not None
        and evaluate_condition(condition.unless, scope, readings, context)[0] is True
    ):
        return True, None
    if condition.roof is not None:
        return (None if context.roof is None else context.roof == condition.roof), None
    if condition.limiter is not None or condition.stall is not None:
        return _limiter_or_stall_holds(condition, scope, readings), None
    if condition.where:
        decided = _bottleneck_holds(condition, context.kernel)
        unknown = context.kernel is None or context.kernel.bound == "unknown"
        if decided is not None or condition.metric is None or unknown:
            return decided, None
    around = scopes_around(RUN if condition.of_run else scope, readings)
    values: list[Reading] = []
    for name in (condition.metric, condition.times, condition.over):
        if name is not None:
            known = [r for r in readings if r.value is not None and r.doubt is None]
            reading = surest_reading(known, name, around)
            if reading is None:
                return None, None
            values.append(reading)
    first, second = values[0].value or 0.0, (values[1].value or 0.0) if len(values) > 1 else 0.0
    if condition.times is not None:
        value, unit = first * second / 100, "%"
    elif condition.over is not None:
        if second == 0:
            return None, None
        value, unit = first / second, ""
    else:
        value, unit = first, values[0].unit
    low = condition.at_least is None or value >= condition.at_least
    high = condition.at_most is None or value <= condition.at_most
    return low and high, (value, unit)


def scopes_around(scope: Scope, readings: Sequence[Reading]) -> list[Scope]:
    """Where to look for what a condition needs: a function or kernel only at itself, a region also at the run."""
    if scope.kind in ("function", "kernel"):
        return [scope]
    wider = [r.scope for r in readings if r.scope.kind in ("region", "run") and r.scope.id is None]
    return list(dict.fromkeys([scope, *wider]))


def _known_readings(readings: Sequence[Reading], scope: Scope) -> list[Reading]:
    return [r for r in readings if r.scope == scope and r.value is not None and r.doubt is None]


def _limiter_or_stall_holds(condition: Condition, scope: Scope, readings: Sequence[Reading]) -> bool | None:
    """Whether the limiter of the occupancy, or what warps wait for, is the one that is asked for."""
    values = {r.metric: r.value for r in _known_readings(readings, scope) if r.value is not None}
    if condition.limiter is not None:
        if values.get("occupancy.theoretical", 0.0) >= LIMITING:
            return False  # every warp, or nearly, fits: what allows the fewest blocks is in nobody's way
        return condition.limiter in limiters(values) if limiters(values) else None
    stall = top_stall(values)
    return None if stall is None else stall[0] == condition.stall


def _bottleneck_holds(condition: Condition, kernel: KernelBottleneck | None) -> bool | None:
    """Whether it holds by the kernel's class; None where that is not known, or a metric has to decide."""
    if kernel is None or kernel.bound == "unknown":
        return True if condition.known else None
    if kernel.bound not in condition.where:
        return True
    bounded = condition.at_least is not None or condition.at_most is not None
    if condition.busiest:
        among = (kernel.busiest or "unknown") in condition.busiest
        if not bounded or not among:
            return among or bounded
    if condition.metric is not None:
        return None
    if not bounded:
        return False
    if kernel.nearest is None:
        return None
    low = condition.at_least is None or kernel.nearest >= condition.at_least
    return low and (condition.at_most is None or kernel.nearest <= condition.at_most)
