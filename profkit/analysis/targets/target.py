"""A target as plain data: a threshold, where it speaks, when it applies, and what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from profkit.analysis.summaries.kernels import FULL, longest_stalls, occupancy_limiters
from profkit.analysis.summaries.readings import best_reading
from profkit.core.types import (
    RUN,
    Bound,
    Fact,
    KernelBottleneck,
    Operator,
    Quality,
    Reading,
    Scope,
    ScopeKind,
    Threshold,
)

RooflineSide = Literal["memory", "compute"]
Limiter = Literal["registers", "shared", "warps", "blocks", "barriers"]
OPERATORS: dict[str, Operator] = {"below": "<", "above": ">", "at_most": "<=", "at_least": ">="}


@dataclass(frozen=True)
class Condition:
    """Holds where `metric` (times `times` as share, or over `over`) is in bounds, or the lower ceiling is `roof`.

    `otherwise` is the code of a fact (`reporting/facts.yaml`): what is so where it does not hold.

    With `where` it is asked of kernels of these classes only, and holds for all others; then without a metric the
    bounds are on how busy the kernel's busiest unit is, and with neither it does not hold in these classes. With
    `without` it is only asked where that metric is not known.
    """

    metric: str | None = None
    times: str | None = None
    over: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    roof: RooflineSide | None = None
    of_run: bool = False  # looked at for the whole run, also where a function is judged
    where: tuple[Bound, ...] = ()
    # With `where`: holds where the kernel's busiest unit is one of these; with bounds, only these are asked for them.
    busiest: tuple[Bound, ...] = ()
    without: str | None = None
    known: bool = False  # with `where`: where the class is not known it holds, instead of leaving it open
    limiter: Limiter | None = None  # holds where this is among what limits the kernel's theoretical occupancy
    stall: str | None = None  # holds where this is what warps wait for most
    otherwise: str = ""
    fix: str = ""  # of what is doubted or guarded: what to try where it does not hold


@dataclass(frozen=True)
class Advice:
    """One line of what to try, everywhere or only where `when` holds or the reading is of that quality."""

    text: str
    when: Condition | None = None
    quality: Quality | None = None


@dataclass(frozen=True)
class Target:
    """A threshold of one metric in the metric's unit; None is the one that the run asked for.

    `says` is the code of the fact that tells the value, `value` left out; empty: the metric's title and the value.

    Where a condition of `applies` does not hold the target is not applicable; one of `excused` is only
    looked at after a miss. `missed`: is a miss a fault of the workload, or a doubt about the measurement.
    """

    name: str
    metric: str
    operator: Operator
    threshold: float | None
    unit: str
    scopes: tuple[ScopeKind, ...] = ("run", "region")
    says: str = ""
    applies: tuple[Condition, ...] = ()
    excused: tuple[Condition, ...] = ()
    advice: tuple[Advice, ...] = ()
    missed: Literal["fail", "unknown"] = "fail"
    unknown: str = ""  # what to try where there is no value and the reading itself has no fix
    timed: bool = False  # the value is something over the median time, and as well known as that
    tolerated: tuple[Condition, ...] = ()  # only looked at after a miss: where one holds it is none
    # Only looked at after a miss: where one does not hold, or cannot be told, the verdict is unknown.
    doubted: tuple[Condition, ...] = ()
    # Only looked at where there is no value: where one holds there is nothing to judge.
    moot: tuple[Condition, ...] = ()
    # Looked at before the threshold: where one does not hold, the value says nothing of the workload, and is unknown.
    guard: tuple[Condition, ...] = ()
    # of kernels: asked of the user's own alone; how a library writes its own is its affair
    own_code: bool = False
    always: bool = False  # of kernels: spoken of, as unknown, also where no report has the metric at all
    # A value above it says something about the measurement, not about the workload
    credible: float | None = None


def threshold_of(target: Target) -> Threshold:
    """The target's own threshold, where it does not leave that to the run."""
    return Threshold(target.operator, target.threshold or 0.0, target.unit)


def is_met(value: float, operator: Operator, threshold: float) -> bool:
    """Whether the unrounded value meets the threshold."""
    if operator == "<":
        return value < threshold
    if operator == "<=":
        return value <= threshold
    return value > threshold if operator == ">" else value >= threshold


# NVIDIA's rule for the theoretical occupancy: above it resources keep no warps away (TheoreticalOccupancy.py).
LIMITING = 80.0  # %


def top_stall(values: Mapping[str, float]) -> tuple[str, float] | None:
    """What warps wait for most, and its share (0..1) of all waiting; being chosen is no waiting."""
    stalls = [stall for stall in longest_stalls(values) if stall[0] != "selected"]
    return (stalls[0][0], stalls[0][1] / sum(value for _, value in stalls)) if stalls else None


def explain_miss(metric: str, values: Mapping[str, float]) -> list[Fact]:
    """What limits the kernel's occupancy, or what its warps wait for; empty where nothing is known of it."""
    theory, names = values.get("occupancy.theoretical"), occupancy_limiters(values)
    if metric == "occupancy.achieved" and theory is not None and theory < FULL and names:
        blocks = values[f"occupancy.limit.{names[0]}"]
        return [Fact.of("occupancy-limited", value=theory, blocks=blocks, limiters=" ".join(names))]
    stall = top_stall(values) if metric in ("bandwidth.dram.share", "throughput.busiest") else None
    return [Fact.of("warps-wait", stall=stall[0], share=stall[1])] if stall is not None else []


LookedAt: TypeAlias = "tuple[float, str]"  # a value and its unit


@dataclass(frozen=True)
class TargetContext:
    """What the judge knows besides the readings.

    `roof` is the lower ceiling of the roofline, `precision` the asked half-width of the interval in %, `hottest`
    the functions to judge, hottest first, `hottest_share` the share (0..1) of the first one (of the time where
    `hottest_sampled`, else of what was simulated), `kernel` what limits the kernel that is judged.
    """

    roof: RooflineSide | None = None
    precision: float | None = None
    hottest: tuple[Scope, ...] = ()
    hottest_share: float = 0.0
    hottest_sampled: bool = False
    kernel: KernelBottleneck | None = None


def evaluate_condition(
    condition: Condition, scope: Scope, readings: Sequence[Reading], context: TargetContext
) -> tuple[bool | None, LookedAt | None]:
    """Whether the condition holds (None: cannot be told), and what was looked at."""
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
            reading = best_reading(known, name, around)
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


def _limiter_or_stall_holds(condition: Condition, scope: Scope, readings: Sequence[Reading]) -> bool | None:
    """Whether the limiter of the occupancy, or what warps wait for, is the one that is asked for."""
    known = (r for r in readings if r.scope == scope and r.doubt is None)
    values = {r.metric: r.value for r in known if r.value is not None}
    if condition.limiter is not None:
        if values.get("occupancy.theoretical", 0.0) >= LIMITING:
            return False  # every warp, or nearly, fits: what allows the fewest blocks is in nobody's way
        names = occupancy_limiters(values)
        return condition.limiter in names if names else None
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
