"""Whether a condition of a target holds, by the readings and by what limits the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profkit.analysis.targets.limits import LIMITING, limiters, top_stall
from profkit.analysis.targets.target import Condition, Roof
from profkit.core.formatting import figures, percent, quantity
from profkit.core.types import QUALITY_ORDER, RUN, KernelClass, Reading, Scope


@dataclass(frozen=True)
class Context:
    """What the judge knows besides the readings.

    `roof` is the lower one of the roofline, `precision` the asked half-width of the interval in %, `hottest`
    the functions to judge, hottest first, `kernel` what limits the kernel that is judged.
    """

    roof: Roof | None = None
    precision: float | None = None
    hottest: tuple[Scope, ...] = ()
    kernel: KernelClass | None = None


def best(readings: Iterable[Reading], name: str, scopes: Sequence[Scope]) -> Reading | None:
    """The best known reading of the metric `name` in the first of `scopes` that has one."""
    found = [r for r in readings if r.metric == name and r.scope in scopes]
    return min(
        found,
        key=lambda r: (scopes.index(r.scope), r.doubt is not None, QUALITY_ORDER[r.quality]),
        default=None,
    )


def asked(
    conditions: Sequence[Condition], scope: Scope, readings: Sequence[Reading]
) -> tuple[Condition, ...]:
    """Those that are to be asked: not where the metric is told that one is only asked `without`."""
    if all(one.without is None for one in conditions):  # a sweep has thousands of scopes
        return tuple(conditions)
    told = {r.metric for r in _told(readings, scope)}
    return tuple(one for one in conditions if one.without is None or one.without not in told)


def look(
    condition: Condition, scope: Scope, readings: Sequence[Reading], context: Context
) -> tuple[bool | None, str]:
    """Whether the condition holds (None: cannot be told), and the value that was looked at, in words."""
    if condition.unless is not None and look(condition.unless, scope, readings, context)[0] is True:
        return True, ""
    if condition.roof is not None:
        return (None if context.roof is None else context.roof == condition.roof), ""
    if condition.limiter is not None or condition.stall is not None:
        return _behind(condition, scope, readings), ""
    if condition.where:
        decided = _in_class(condition, context.kernel)
        unknown = context.kernel is None or context.kernel.bound == "unknown"
        if decided is not None or condition.metric is None or unknown:
            return decided, ""
    around = places(RUN if condition.of_run else scope, readings)
    values: list[Reading] = []
    for name in (condition.metric, condition.times, condition.over):
        if name is not None:
            told = [r for r in readings if r.value is not None and r.doubt is None]
            found = best(told, name, around)
            if found is None:
                return None, "-"
            values.append(found)
    first, second = values[0].value or 0.0, (values[1].value or 0.0) if len(values) > 1 else 0.0
    if condition.times is not None:
        value, words = first * second / 100, f"{percent(first * second / 100)} %"
    elif condition.over is not None:
        if second == 0:
            return None, "-"
        value, words = first / second, figures(first / second)
    else:
        value, words = first, quantity(first, values[0].unit)
    low = condition.at_least is None or value >= condition.at_least
    high = condition.at_most is None or value <= condition.at_most
    return low and high, words


def places(scope: Scope, readings: Sequence[Reading]) -> list[Scope]:
    """Where to look for what a condition needs: a function or kernel only at itself, a region also at the run."""
    if scope.kind in ("function", "kernel"):
        return [scope]
    others = [r.scope for r in readings if r.scope.kind in ("region", "run") and r.scope.id is None]
    return list(dict.fromkeys([scope, *others]))


def _told(readings: Sequence[Reading], scope: Scope) -> list[Reading]:
    return [r for r in readings if r.scope == scope and r.value is not None and r.doubt is None]


def _behind(condition: Condition, scope: Scope, readings: Sequence[Reading]) -> bool | None:
    """Whether the limiter of the occupancy, or what warps wait for, is the one that is asked for."""
    values = {r.metric: r.value for r in _told(readings, scope) if r.value is not None}
    if condition.limiter is not None:
        if values.get("occupancy.theoretical", 0.0) >= LIMITING:
            return False  # every warp, or nearly, fits: what allows the fewest blocks is in nobody's way
        return condition.limiter in limiters(values) if limiters(values) else None
    found = top_stall(values)
    return None if found is None else found[0] == condition.stall


def _in_class(condition: Condition, kernel: KernelClass | None) -> bool | None:
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
