"""Views of a sweep's grid: who is fastest at each shape, and series along one axis."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from profkit.analysis.ranking.ranking import ComparisonGroup, winners
from profkit.core.types import CaseResult, GridPoint


@dataclass(frozen=True)
class ShapeResult:
    """One shape where two or more were timed.

    `winners` are alone, or several whose intervals overlap. `lead` is the time of the first behind them over the
    fastest one, at least 1; None where nobody is behind them. `timed` are all with a time, the fastest first.
    """

    point: GridPoint
    winners: tuple[str, ...]
    lead: float | None
    timed: tuple[CaseResult, ...]

    @property
    def alone(self) -> str | None:
        """The one that is faster than all others; None where several are alike."""
        return self.winners[0] if len(self.winners) == 1 else None


def results_by_shape(group: ComparisonGroup) -> dict[GridPoint, ShapeResult]:
    """Every shape of the group where two or more were timed."""
    timed: dict[GridPoint, list[CaseResult]] = defaultdict(list)
    for result in group.results:
        if result.median:
            timed[result.point].append(result)
    shapes = {}
    for point, names in winners(group).items():
        order = sorted(timed[point], key=lambda result: result.median or 0.0)
        behind = [result for result in order if result.implementation not in names]
        lead = (behind[0].median or 0.0) / order[0].median if behind and order[0].median else None
        shapes[point] = ShapeResult(point, names, lead, tuple(order))
    return shapes


Axis = Literal["batch", "sequence", "dimension"]
AXES: tuple[Axis, ...] = ("batch", "sequence", "dimension")


@dataclass(frozen=True)
class SeriesPoint:
    """The time at one value of the axis; `low` and `high` are the ends of its interval."""

    at: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SeriesLine:
    """One implementation along the axis; it leaves out where it was not measured."""

    implementation: str
    points: tuple[SeriesPoint, ...]


@dataclass(frozen=True)
class AxisSeries:
    """The group along `axis`: times (s) where the other axes are as `fixed` says."""

    axis: Axis
    fixed: tuple[tuple[Axis, int], ...]
    times: tuple[SeriesLine, ...]


def series_along(group: ComparisonGroup, axis: Axis) -> AxisSeries | None:
    """The group along an axis; None where that has one value only.

    The times are those at the largest of the other axes, where the operation and not its launch is seen.
    """
    if len({_axis_value(point, axis) for point in group.points}) < 2:
        return None
    fixed = tuple(
        (other, max(_axis_value(point, other) for point in group.points)) for other in AXES if other != axis
    )
    times = []
    for name in group.implementations:
        own = [
            result
            for result in group.results
            if result.median
            and result.implementation == name
            and all(_axis_value(result.point, other) == value for other, value in fixed)
        ]
        own.sort(key=lambda result: _axis_value(result.point, axis))
        if own:
            times.append(SeriesLine(name, tuple(_time_point(result, axis) for result in own)))
    return AxisSeries(axis, fixed, tuple(times))


def _axis_value(point: GridPoint, axis: Axis) -> int:
    return {"batch": point.batch, "sequence": point.sequence, "dimension": point.dimension}[axis]


def _time_point(result: CaseResult, axis: Axis) -> SeriesPoint:
    median, half = result.median or 0.0, result.half_width or 0.0
    return SeriesPoint(
        _axis_value(result.point, axis), median, median * max(0.01, 1 - half), median * (1 + half)
    )
