"""A panel along one of its axes: times at one place of the others, and speed-ups over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from profkit.analysis.ranking.ranking import BASELINE, Panel, geometric_mean
from profkit.core.types import CaseResult, GridPoint

Axis = Literal["batch", "sequence", "dimension"]
AXES: tuple[Axis, ...] = ("batch", "sequence", "dimension")


@dataclass(frozen=True)
class Stop:
    """One value of the axis. `low` and `high` are the ends of a time's interval, or the least and largest speed-up."""

    at: int
    value: float
    low: float
    high: float
    count: int  # shapes behind it


@dataclass(frozen=True)
class Line:
    """One implementation along the axis; it leaves out where it was not measured."""

    implementation: str
    stops: tuple[Stop, ...]


@dataclass(frozen=True)
class Along:
    """The panel along `axis`: times (s) where the other axes are as `held` says, and speed-ups over all values."""

    axis: Axis
    held: tuple[tuple[Axis, int], ...]
    times: tuple[Line, ...]
    speedups: tuple[Line, ...]


def along(panel: Panel, axis: Axis, baseline: str = BASELINE) -> Along | None:
    """The panel along an axis; None where that has one value only.

    The times are those at the largest of the other axes, where the operation and not its launch is seen. A speed-up is
    the geometric mean of the baseline's time over the own one, over all shapes where both were measured.
    """
    values = sorted({_value(point, axis) for point in panel.points})
    if len(values) < 2:
        return None
    others = [one for one in AXES if one != axis]
    held = tuple((one, max(_value(point, one) for point in panel.points)) for one in others)
    timed = [result for result in panel.results if result.median]
    base = {result.point: result.median for result in timed if result.implementation == baseline}
    times, speedups = [], []
    for name in panel.implementations:
        own = [result for result in timed if result.implementation == name]
        there = [r for r in own if all(_value(r.point, one) == value for one, value in held)]
        times.append(Line(name, tuple(_time(r, axis) for r in _sorted(there, axis))))
        if name != baseline:
            speedups.append(Line(name, tuple(_speedups(own, base, axis, values))))
    return Along(axis, held, _known(times), _known(speedups))


def _value(point: GridPoint, axis: Axis) -> int:
    return {"batch": point.batch, "sequence": point.sequence, "dimension": point.dimension}[axis]


def _sorted(results: Iterable[CaseResult], axis: Axis) -> list[CaseResult]:
    return sorted(results, key=lambda result: _value(result.point, axis))


def _time(result: CaseResult, axis: Axis) -> Stop:
    median, half = result.median or 0.0, result.half_width or 0.0
    return Stop(_value(result.point, axis), median, median * max(0.01, 1 - half), median * (1 + half), 1)


def _speedups(
    own: Sequence[CaseResult], base: dict[GridPoint, float | None], axis: Axis, values: Sequence[int]
) -> Iterable[Stop]:
    for value in values:
        ratios = [
            before / result.median
            for result in own
            if _value(result.point, axis) == value and result.median and (before := base.get(result.point))
        ]
        mean = geometric_mean(ratios)
        if mean is not None:
            yield Stop(value, mean, min(ratios), max(ratios), len(ratios))


def _known(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(line for line in lines if line.stops)
