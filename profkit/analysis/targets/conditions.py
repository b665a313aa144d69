"""Whether a condition of a target holds, and what explains a miss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.analysis.targets.target import Condition, RooflineSide
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
