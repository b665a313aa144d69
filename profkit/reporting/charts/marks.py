"""A chart as data: marks on two axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.reporting.charts.axes import Axis
from profkit.reporting.view import Block, Footnote

FEW = 60  # points of a mark up to which each is an element of its own: 365 of them would be 30 kB


@dataclass(frozen=True)
class Line:
    """A line through points. `style` are classes of charts.css, here and below."""

    points: tuple[tuple[float, float], ...]
    style: str = "line"
    hover: str = ""
    source: Footnote | None = None


@dataclass(frozen=True)
class Area:
    """An area between two edges, as (x, low, high) from left to right."""

    edges: tuple[tuple[float, float, float], ...]
    style: str = "area"
    hover: str = ""


@dataclass(frozen=True)
class Rectangle:
    """A bar from one corner to the other."""

    x: tuple[float, float]
    y: tuple[float, float]
    style: str = "s1"
    hover: str = ""


@dataclass(frozen=True)
class Rule:
    """A line across the whole chart at `y`, or down it at `x`, with a name at its end."""

    x: float | None = None
    y: float | None = None
    style: str = "level"
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Point:
    """A value at a place; `low` and `high` are an interval that is drawn, `label` stands beside it.

    `row` is that of the sortable table with the point's numbers, where thousands have no words of their own.
    """

    x: float
    y: float
    hover: str = ""
    low: float | None = None
    high: float | None = None
    label: str = ""
    style: str = "dot"
    size: float = 2.4
    source: Footnote | None = None
    row: int | None = None


@dataclass(frozen=True)
class Points:
    """Points of one name. With a `letter` they are a series: a colour by its `number`, a shape, a line through them."""

    points: tuple[Point, ...]
    name: str = ""
    letter: str = ""
    number: int = 0
    joined: bool = False
    hover: str = ""

    @property
    def many(self) -> bool:
        """Whether one path draws all of them, and a script tells the nearest."""
        return len(self.points) > FEW or any(point.row is not None for point in self.points)


AnyMark: TypeAlias = Line | Area | Rectangle | Rule | Points


def places(marks: Sequence[AnyMark]) -> tuple[list[float], list[float]]:
    """All values of the marks, across and up."""
    across: list[float | None] = []
    up: list[float | None] = []
    for mark in marks:
        match mark:
            case Line():
                across += [x for x, _ in mark.points]
                up += [y for _, y in mark.points]
            case Area():
                across += [x for x, _, _ in mark.edges]
                up += [y for _, low, high in mark.edges for y in (low, high)]
            case Rectangle():
                across += mark.x
                up += mark.y
            case Rule():
                across.append(mark.x)
                up.append(mark.y)
            case Points():
                across += [point.x for point in mark.points]
                up += [y for point in mark.points for y in (point.y, point.low, point.high)]
    return [x for x in across if x is not None], [y for y in up if y is not None]


@dataclass(frozen=True)
class Legend:
    """A line below a chart: a coloured square, a name, a value at the right, and small print."""

    name: str
    value: str = ""
    style: str = ""  # of the square; without one there is none
    small: str = ""
    hover: str = ""
    source: Footnote | None = None


@dataclass(frozen=True)
class Chart(Block):
    """Marks on two axes. It stands in `Charts`, which are drawn with characters too.

    `kind` is a short word for styles, `of` what it is about for those who hear its name. `caption` is a sentence above
    it where it is drawn with characters. `columns` are those of the sortable table whose numbers hover over points with
    a row.
    """

    kind: str
    title: str
    description: str
    x: Axis
    y: Axis
    marks: tuple[AnyMark, ...]
    of: str = ""
    height: float = 190.0
    legend: tuple[Legend, ...] = ()
    note: str = ""
    caption: str = ""
    columns: tuple[str, ...] = ()
