"""A sweep along one of its axes: the time of each implementation at each value, always over the same other points.

A mean over other shapes could not be compared, neither with that of another implementation nor with that at another
value: the largest shapes are the first that do not fit, and without them the largest value would look fast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import hypot
from typing import TypeAlias

from profkit.analysis.ranking import BASELINE, ComparisonGroup, least_time
from profkit.core.statistics import geometric_mean
from profkit.core.types import CaseResult, GridPoint, MeasuredCeilings

SIZES = ("batch", "sequence", "dimension")  # of which the values are numbers
AXES = (*SIZES, "dtype", "direction")


@dataclass(frozen=True)
class AxisMeans:
    """A group along an axis. Times are geometric means in s, one for each of the `values`.

    Each mean is over the same `compared` combinations of all else. `shapes` are in the group, of which `left_out` have
    no part in the means; `without` are values of which none has. `elsewhere` are implementations that have times in
    some operations, dtypes or directions alone. `least` is the time by the roofline, None where that is not known.
    """

    axis: str
    values: tuple[int | str, ...]
    times: Mapping[str, tuple[float, ...]]
    least: tuple[float, ...] | None
    compared: int
    shapes: int
    without: tuple[int | str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    # The half of each mean's 95 % interval, as a share of it; None where one of its times has none.
    half_widths: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    @property
    def left_out(self) -> int:
        """Return how many shapes have no part in the means."""
        return self.shapes - self.compared * len(self.values)

    def speedups(self, name: str) -> tuple[float, ...] | None:
        """Return the baseline's time over that of an implementation, at each value; None if there is no baseline."""
        if (base := self.times.get(BASELINE)) is None:
            return None
        return tuple(before / own for before, own in zip(base, self.times[name], strict=True))


def varied_axes(group: ComparisonGroup) -> tuple[str, ...]:
    """Return the axes of which the group has several values."""
    return tuple(axis for axis in AXES if len({getattr(point, axis) for point in group.points}) > 1)


def means_along(group: ComparisonGroup, axis: str, ceilings: MeasuredCeilings) -> AxisMeans:
    """Sum the group up along an axis. Without `values` where no shapes were timed everywhere at two values or more."""
    timed: dict[GridPoint, dict[str, CaseResult]] = defaultdict(dict)
    for result in group.results:
        if result.median:
            timed[result.point][result.implementation] = result
    names = [name for name in group.implementations if _is_everywhere(name, timed)]
    rest: dict[GridPoint, dict[int | str, GridPoint]] = defaultdict(dict)
    for point, results in timed.items():
        if set(names) <= set(results):
            rest[_without(point, axis)][getattr(point, axis)] = point
    values, whole = _largest_block(list(rest.values()))
    if len(values) < 2:
        return AxisMeans(axis, (), {}, None, 0, len(group.points))
    values_of_axis = dict.fromkeys(getattr(point, axis) for point in group.points)
    if axis in SIZES:
        values = tuple(sorted(values))
    times = {
        name: tuple(_mean([timed[points[value]][name].median for points in whole]) for value in values)
        for name in names
    }
    half_widths = {
        name: tuple(
            _half_width([timed[points[value]][name].half_width for points in whole]) for value in values
        )
        for name in names
    }
    least = [
        [least_time(next(iter(timed[points[value]].values())), ceilings) for points in whole]
        for value in values
    ]
    known = all(time for own in least for time in own)
    return AxisMeans(
        axis,
        values,
        times,
        tuple(map(_mean, least)) if known else None,
        len(whole),
        len(group.points),
        tuple(value for value in values_of_axis if value not in values),
        tuple(n for n in group.implementations if n not in names and any(n in own for own in timed.values())),
        half_widths,
    )


_Block: TypeAlias = "tuple[tuple[int | str, ...], list[dict[int | str, GridPoint]]]"


def _largest_block(combinations: list[dict[int | str, GridPoint]]) -> _Block:
    """Return the values, and the combinations that have all of them, which together are the most points.

    A value at which nearly nothing was timed everywhere is left out, rather than nearly all combinations.
    """
    counts = Counter(value for points in combinations for value in points)
    ordered = [value for value, _ in counts.most_common()]
    best: _Block = ((), [])
    for count in range(2, len(ordered) + 1):
        values = tuple(ordered[:count])
        whole = [points for points in combinations if set(values) <= set(points)]
        if count * len(whole) >= max(1, len(best[0]) * len(best[1])):
            best = values, whole
    return tuple(value for value in counts if value in best[0]), best[1]


def _without(point: GridPoint, axis: str) -> GridPoint:
    """Return what is the same along an axis."""
    return replace(point, **{axis: 0 if axis in SIZES else ""})  # type: ignore[arg-type]


def _is_everywhere(name: str, timed: Mapping[GridPoint, Mapping[str, CaseResult]]) -> bool:
    """Return whether it was timed in every operation, direction and dtype in which any was."""
    groups = {(point.operation, point.direction, point.dtype) for point in timed}
    own = {(p.operation, p.direction, p.dtype) for p, results in timed.items() if name in results}
    return bool(own) and own == groups


def _half_width(widths: list[float | None]) -> float | None:
    """Return the relative half-width of a geometric mean of times with independent errors.

    A small relative error of a time is an error of its logarithm. None where a half-width is not known.
    """
    known = [width for width in widths if width is not None and width >= 0]
    return hypot(*known) / len(widths) if widths and len(known) == len(widths) else None


def _mean(times: list[float | None]) -> float:
    return geometric_mean([time for time in times if time]) or 0.0
