"""Charts made of characters, for a terminal and for Markdown: letters for series, dots of Braille for all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from profkit.core.formatting import shorten
from profkit.reporting.charts.axes import Scale, Tick
from profkit.reporting.charts.marks import Chart, Line, Points, Rule, places

ROWS = 10
GAP = 3  # characters between two charts
LEAST = 12  # characters of a chart: where there is less room for each, they stand below each other
SEVERAL = "*"
# The bits of the eight dots of a Braille character (Unicode 10.0, block 2800): four rows of two columns.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def text_plot(charts: Sequence[Chart], width: int) -> list[str]:
    """Charts of one unit side by side, or below each other where they do not fit; [] where nothing is drawn.

    Letters in one place are a `*`, but series stand side by side where places are few. `▲` marks a change, `┊` a line
    down.
    """
    charts = [chart for chart in charts if _is_drawn(chart)]
    if not charts:
        return []
    axis = charts[0].y
    up = [y for chart in charts for y in places(chart.marks)[1]]
    y = axis.scale(up, ROWS - 1, 0)
    ticks, unit = axis.marked(y)
    names = {round(y(tick.value)): _with_unit(tick.label, unit) for tick in reversed(ticks)}
    margin = max(map(len, names.values()), default=0)
    room = (width - margin - 2 - GAP * (len(charts) - 1)) // len(charts)
    if room < LEAST and len(charts) > 1:
        return [line for chart in charts for line in (*text_plot([chart], width), "")][:-1]
    panels = [list(_panel(chart, y, _wide(chart, max(LEAST, room)))) for chart in charts]
    sides = [f"{names.get(row, ''):>{margin}} {'┤' if row in names else '│'}" for row in range(ROWS)]
    sides += [" " * (margin + 2)] * 3
    joined = (" " * GAP).join
    rows = zip(sides, zip(*panels, strict=True), strict=True)
    lines = [f"{side}{joined(row)}".rstrip() for side, row in rows]
    while lines[0].endswith("│"):
        del lines[0]  # room that nothing needs
    return [*([] if charts[0].caption else [shorten(axis.title, width)]), *filter(None, lines)]


def _with_unit(label: str, unit: str) -> str:
    """`10 ms`, `10 TFLOP/s`: a prefix stands before the unit."""
    return f"{label}{'' if ' ' in label else ' '}{unit}" if unit else label


def _wide(chart: Chart, room: int) -> int:
    """Where places have names of their own, no wider than these need."""
    return (
        room
        if chart.x.ticks is None or chart.kind == "trend"
        else min(room, max(LEAST, 8 * len(chart.x.ticks)))
    )


def _is_drawn(chart: Chart) -> bool:
    """Whether there is more than one value to show."""
    return len({x for mark in chart.marks if isinstance(mark, Points | Line) for x in places([mark])[0]}) > 1


def _panel(chart: Chart, y: Scale, room: int) -> Iterator[str]:
    """The rows of one chart, what its changes are marked with, and two lines below: values across, and their title."""
    letters = (mark for mark in chart.marks if isinstance(mark, Points) and mark.letter)
    series = sorted(letters, key=lambda one: one.number)
    across = places(chart.marks)[0]
    side = len(series) // 2  # cells left free for the letters beside a place
    x = chart.x.scale(across, side, room - 1 - side, room=False)
    dots: dict[tuple[int, int], int] = {}
    cells: dict[tuple[int, int], str] = {}
    under = [" "] * room
    most = max((len(mark.points) for mark in chart.marks if isinstance(mark, Points)), default=0)
    for mark in chart.marks:
        if isinstance(mark, Line) and len(mark.points) <= most and not series:
            continue  # its points are drawn
        if isinstance(mark, Rule):
            _rule(mark, x, y, cells, under, room)
        elif not isinstance(mark, Points) or not mark.letter:
            for at, value in _trace(mark, x):
                _dot(dots, at, y(value))
        if isinstance(mark, Points) and not mark.letter:
            cells.update({(round(y(p.y)), round(x(p.x))): "●" for p in mark.points if p.low is not None})
    for number, mark in enumerate(series):
        aside = number - (len(series) - 1) // 2
        for point in mark.points:
            place = (round(y(point.y)), min(room - 1, max(0, round(x(point.x)) + aside)))
            there = cells.get(place, " ")
            cells[place] = mark.letter if there in (" ", "─", "┊", mark.letter) else SEVERAL
    for row in range(ROWS):
        yield "".join(_cell(cells, dots, (row, column)) for column in range(room))
    yield "".join(under)
    ticks, unit = chart.x.marked(x)
    yield _labels(ticks, x, room)
    yield shorten(f"{chart.x.title} ({unit})" if unit else chart.x.title, room).ljust(room)


def _cell(cells: dict[tuple[int, int], str], dots: dict[tuple[int, int], int], place: tuple[int, int]) -> str:
    """A letter, else dots, else what is drawn across or down."""
    sign = cells.get(place, " ")
    return chr(0x2800 + dots[place]) if place in dots and sign in " ─┊" else sign


def _rule(
    mark: Rule, x: Scale, y: Scale, cells: dict[tuple[int, int], str], under: list[str], room: int
) -> None:
    if mark.y is not None and y.holds(mark.y):
        cells.update({(round(y(mark.y)), column): "─" for column in range(room)})
    if mark.x is not None and mark.style == "change":
        under[round(x(mark.x))] = "▲"
    elif mark.x is not None and x.holds(mark.x):
        cells.update({(row, round(x(mark.x))): "┊" for row in range(ROWS)})


def _trace(mark: object, x: Scale) -> Iterator[tuple[float, float]]:
    """Places of dots, as (cells across, value): points, their intervals, and lines from one point to the next."""
    if isinstance(mark, Points):
        for point in mark.points:
            yield x(point.x), point.y
            if point.low is not None and point.high is not None:
                yield from ((x(point.x), point.low + (point.high - point.low) * n / 40) for n in range(41))
    elif isinstance(mark, Line):
        for (x1, y1), (x2, y2) in zip(mark.points, mark.points[1:], strict=False):
            steps = max(1, 2 * round(abs(x(x2) - x(x1))))
            share = [(x(x1) + (x(x2) - x(x1)) * n / steps, n / steps) for n in range(steps + 1)]
            between = (y2 / y1) if y1 > 0 and y2 > 0 else 0.0
            yield from ((at, y1 * between**n if between else y1 + (y2 - y1) * n) for at, n in share)


def _dot(dots: dict[tuple[int, int], int], at: float, row: float) -> None:
    if not (isfinite(at) and isfinite(row)):
        return
    down, across = round(min(ROWS - 0.25, max(0.0, row + 0.375)) * 4), round(at * 2 + 0.5)
    place = (min(ROWS - 1, down // 4), across // 2)
    dots[place] = dots.get(place, 0) | _DOTS[down % 4][across % 2]


def _labels(ticks: Sequence[Tick], x: Scale, room: int) -> str:
    """Values below the axis, as many as stand apart; both ends first."""
    below = [" "] * room
    for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:
        begin = max(0, min(room - len(tick.label), round(x(tick.value)) - len(tick.label) // 2))
        end = begin + len(tick.label)
        if x.holds(tick.value) and set(below[max(0, begin - 1) : end + 1]) == {" "}:
            below[begin:end] = tick.label
    return "".join(below)
