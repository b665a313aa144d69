"""Checks of a target: when its value does not describe the workload, and when a missed threshold is no fault.

The checks run in the order in which the target's file lists them, and the first that fires gives the verdict. Two
words in the list mark where the value itself is checked: `known` (there is a value) and `threshold` (it is met).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from profkit.analysis.summaries.kernels import longest_stalls, occupancy_limiters
from profkit.analysis.summaries.readings import best_reading
from profkit.core.types import RUN, Bound, KernelBottleneck, Operator, Reading, Scope, VerdictWord

RooflineSide = Literal["memory", "compute"]
Limiter = Literal["registers", "shared", "warps", "blocks", "barriers"]
LookedAt: TypeAlias = "tuple[float, str]"  # a value and its unit

# NVIDIA's rule for the theoretical occupancy: above it resources keep no warps away (TheoreticalOccupancy.py).
LIMITING = 80.0  # %


@dataclass(frozen=True)
class Condition:
    """A condition, which holds if every part that is given holds.

    `bound` is what limits the kernel, `busiest` its busiest unit, `limiter` what limits its theoretical occupancy,
    `stall` what its warps wait for most, and `roof` the lower ceiling of the roofline. `side_by_side`: kernels of
    several streams run at the same time.
    `test` is compared with `metric` (multiplied by `times` as a share, or divided by `over`); without a metric,
    with how busy the kernel's busiest unit is, in %.
    """

    metric: str | None = None
    times: str | None = None
    over: str | None = None
    test: tuple[Operator, float] | None = None
    of_run: bool = False  # the metric of the whole run, even if a function is judged
    bound: tuple[Bound, ...] = ()
    busiest: tuple[Bound, ...] = ()
    limiter: Limiter | None = None
    stall: str | None = None
    roof: RooflineSide | Literal["unknown"] | None = None
    side_by_side: bool = False


@dataclass(frozen=True)
class TargetCheck:
    """One check of a target: it fires if `condition` holds; with `negated`, if the condition is not known to hold.

    `because` is the code of the fact (`reporting/sentences/`) that says why, `fix` what to try. The check is skipped
    if the metric `without` has a value. If the kernel's class is not known, a miss becomes unknown, unless the check is
    `optional`.
    """

    condition: Condition
    then: VerdictWord
    because: str
    negated: bool = False
    fix: str = ""
    without: str | None = None
    optional: bool = False


CheckStep: TypeAlias = "TargetCheck | Literal['known', 'threshold']"


@dataclass(frozen=True)
class TargetContext:
    """What the judge knows besides the readings.

    `roof` is the lower ceiling of the roofline, `precision` the asked half-width of the interval in %, `hottest`
    the functions to judge, hottest first, `hottest_share` the share (0..1) of the first one (of the time where
    `hottest_sampled`, else of what was simulated), `kernel` what limits the kernel that is judged, `side_by_side`
    whether kernels of several streams run at the same time, `owners` who wrote the code of most misses, by metric,
    where that is not the program's own.
    """

    roof: RooflineSide | None = None
    precision: float | None = None
    hottest: tuple[Scope, ...] = ()
    hottest_share: float = 0.0
    hottest_sampled: bool = False
    kernel: KernelBottleneck | None = None
    side_by_side: bool = False
    owners: Mapping[str, str] = field(default_factory=dict)


def is_met(value: float, operator: Operator, threshold: float) -> bool:
    """Return whether the unrounded value meets the threshold."""
    if operator == "<":
        return value < threshold
    if operator == "<=":
        return value <= threshold
    return value > threshold if operator == ">" else value >= threshold


def evaluate_condition(
    condition: Condition, scope: Scope, readings: Sequence[Reading], context: TargetContext
) -> tuple[bool | None, LookedAt | None]:
    """Return whether the condition holds (None: not known), and the value that was tested."""
    parts = [
        _roof_holds(condition, context),
        _kernel_holds(condition, context.kernel),
        _limiter_or_stall_holds(condition, scope, readings),
        context.side_by_side or not condition.side_by_side,
    ]
    looked_at = None
    if condition.metric is not None and False not in parts:
        looked_at = _value_of(condition, scope, readings)
        parts.append(_test_holds(condition, looked_at))
    return (False if False in parts else None if None in parts else True), looked_at


def scopes_around(scope: Scope, readings: Sequence[Reading]) -> list[Scope]:
    """Return the scopes whose readings a condition may use: the function or kernel; of a region also the run."""
    if scope.kind in ("function", "kernel"):
        return [scope]
    wider = [r.scope for r in readings if r.scope.kind in ("region", "run") and r.scope.id is None]
    return list(dict.fromkeys([scope, *wider]))


def top_stall(values: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the longest stall of the warps, and its share (0..1) of all stalls; `selected` is not a stall."""
    stalls = [stall for stall in longest_stalls(values) if stall[0] != "selected"]
    return (stalls[0][0], stalls[0][1] / sum(value for _, value in stalls)) if stalls else None


def _value_of(condition: Condition, scope: Scope, readings: Sequence[Reading]) -> LookedAt | None:
    """Return the value that the condition tests; None if one of its metrics has no value."""
    around = scopes_around(RUN if condition.of_run else scope, readings)
    known = [r for r in readings if r.value is not None and r.doubt is None]
    values: list[tuple[float, str]] = []
    for name in (condition.metric, condition.times, condition.over):
        if name is not None:
            reading = best_reading(known, name, around)
            if reading is None or reading.value is None:
                return None
            values.append((reading.value, reading.unit))
    first, unit = values[0]
    if condition.times is not None:
        return first * values[1][0] / 100, "%"
    if condition.over is not None:
        return (first / values[1][0], "") if values[1][0] else None
    return first, unit


def _test_holds(condition: Condition, looked_at: LookedAt | None) -> bool | None:
    if looked_at is None:
        return None
    return condition.test is None or is_met(looked_at[0], *condition.test)


def _roof_holds(condition: Condition, context: TargetContext) -> bool | None:
    if condition.roof is None:
        return True
    if condition.roof == "unknown":
        return context.roof is None
    return None if context.roof is None else context.roof == condition.roof


def _kernel_holds(condition: Condition, kernel: KernelBottleneck | None) -> bool | None:
    """Return whether the condition holds by the kernel's class and its busiest unit."""
    if not condition.bound:
        return True
    if kernel is None or kernel.bound == "unknown":
        return None
    if kernel.bound not in condition.bound:
        return False
    if condition.busiest and (kernel.busiest or "unknown") not in condition.busiest:
        return False
    if condition.metric is not None or condition.test is None:
        return True
    return None if kernel.nearest is None else is_met(kernel.nearest, *condition.test)


def _limiter_or_stall_holds(condition: Condition, scope: Scope, readings: Sequence[Reading]) -> bool | None:
    """Return whether the occupancy's limiter, or the longest stall, is the one that the condition names."""
    if condition.limiter is None and condition.stall is None:
        return True
    known = (r for r in readings if r.scope == scope and r.doubt is None)
    values = {r.metric: r.value for r in known if r.value is not None}
    if condition.limiter is not None:
        if values.get("occupancy.theoretical", 0.0) >= LIMITING:
            return (
                False  # nearly every warp fits, so the resource that allows the fewest blocks costs nothing
            )
        names = occupancy_limiters(values)
        return condition.limiter in names if names else None
    stall = top_stall(values)
    return None if stall is None else stall[0] == condition.stall
