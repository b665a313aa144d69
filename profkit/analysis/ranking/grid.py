"""Views of a sweep's grid: who is fastest at each shape, and series along one axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from profkit.analysis.ranking.ranking import BASELINE, ComparisonGroup, winners
from profkit.core.statistics import geometric_mean
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


@dataclass(frozen=True)
class SizeRow:
    """Shapes with the same number of batch x sequence: as many vectors, whatever they are cut from."""

    batch_x_sequence: int
    cells: tuple[tuple[str, ...] | None, ...]  # who wins at most of them, one cell for each dimension


def winners_by_size(group: ComparisonGroup, dimensions: Sequence[int]) -> tuple[SizeRow, ...]:
    """The winners in one row for each number of vectors: whoever is alone in more than half of the shapes of a cell.

    Nobody there is the names of two or more: they are alike, or take turns. None where nothing was compared.
    """
    cells: dict[tuple[int, int], list[ShapeResult]] = defaultdict(list)
    for point, place in results_by_shape(group).items():
        cells[point.batch * point.sequence, point.dimension].append(place)
    sizes = sorted({point.batch * point.sequence for point in group.points})
    return tuple(
        SizeRow(size, tuple(_most_frequent_winner(cells.get((size, d), ())) for d in dimensions))
        for size in sizes
    )


def _most_frequent_winner(shapes: Sequence[ShapeResult]) -> tuple[str, ...] | None:
    if not shapes:
        return None
    alone = [place.alone for place in shapes]
    first = next((name for name in alone if name is not None and 2 * alone.count(name) > len(alone)), None)
    return (
        (first,) if first is not None else tuple(dict.fromkeys(n for place in shapes for n in place.winners))
    )


Axis = Literal["batch", "sequence", "dimension"]
AXES: tuple[Axis, ...] = ("batch", "sequence", "dimension")


@dataclass(frozen=True)
class SeriesPoint:
    """One value of the axis. `low` and `high` are the ends of a time's interval, or the least and largest speed-up."""

    at: int
    value: float
    low: float
    high: float
    count: int  # shapes behind it


@dataclass(frozen=True)
class SeriesLine:
    """One implementation along the axis; it leaves out where it was not measured."""

    implementation: str
    points: tuple[SeriesPoint, ...]


@dataclass(frozen=True)
class AxisSeries:
    """The group along `axis`: times (s) where the other axes are as `fixed` says, and speed-ups over all values."""

    axis: Axis
    fixed: tuple[tuple[Axis, int], ...]
    times: tuple[SeriesLine, ...]
    speedups: tuple[SeriesLine, ...]


def series_along(group: ComparisonGroup, axis: Axis, baseline: str = BASELINE) -> AxisSeries | None:
    """The group along an axis; None where that has one value only.

    The times are those at the largest of the other axes, where the operation and not its launch is seen. A speed-up is
    the geometric mean of the baseline's time over the own one, over all shapes where both were measured.
    """
    values = sorted({_axis_value(point, axis) for point in group.points})
    if len(values) < 2:
        return None
    fixed_axes = [fixed_axis for fixed_axis in AXES if fixed_axis != axis]
    fixed = tuple(
        (fixed_axis, max(_axis_value(point, fixed_axis) for point in group.points))
        for fixed_axis in fixed_axes
    )
    timed = [result for result in group.results if result.median]
    base = {result.point: result.median for result in timed if result.implementation == baseline}
    times, speedups = [], []
    for name in group.implementations:
        own = [result for result in timed if result.implementation == name]
        there = [
            r for r in own if all(_axis_value(r.point, fixed_axis) == value for fixed_axis, value in fixed)
        ]
        times.append(SeriesLine(name, tuple(_time_point(r, axis) for r in _sort_along(there, axis))))
        if name != baseline:
            speedups.append(SeriesLine(name, tuple(_speedup_points(own, base, axis, values))))
    return AxisSeries(axis, fixed, _with_points(times), _with_points(speedups))


def _axis_value(point: GridPoint, axis: Axis) -> int:
    return {"batch": point.batch, "sequence": point.sequence, "dimension": point.dimension}[axis]


def _sort_along(results: Iterable[CaseResult], axis: Axis) -> list[CaseResult]:
    return sorted(results, key=lambda result: _axis_value(result.point, axis))


def _time_point(result: CaseResult, axis: Axis) -> SeriesPoint:
    median, half = result.median or 0.0, result.half_width or 0.0
    return SeriesPoint(
        _axis_value(result.point, axis), median, median * max(0.01, 1 - half), median * (1 + half), 1
    )


def _speedup_points(
    own: Sequence[CaseResult], base: dict[GridPoint, float | None], axis: Axis, values: Sequence[int]
) -> Iterable[SeriesPoint]:
    for value in values:
        ratios = [
            before / result.median
            for result in own
            if _axis_value(result.point, axis) == value
            and result.median
            and (before := base.get(result.point))
        ]
        mean = geometric_mean(ratios)
        if mean is not None:
            yield SeriesPoint(value, mean, min(ratios), max(ratios), len(ratios))


def _with_points(lines: Sequence[SeriesLine]) -> tuple[SeriesLine, ...]:
    return tuple(line for line in lines if line.points)
