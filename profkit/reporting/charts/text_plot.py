"""Charts made of characters, for a terminal and for Markdown: letters for series, dots for all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from profkit.core.formatting import shorten
from profkit.reporting.charts.marks import AxisRule, Chart, Line, Points, Scale, Tick, places

ROWS = 10
_SEVERAL = "*"
_BEHIND = (" ", "─", "┊", "·")  # what a mark may cover
_Cells = dict[tuple[int, int], str]


def text_plot(chart: Chart, width: int) -> list[str]:
    """The chart as lines of at most `width` characters; [] where there is no more than one value to show.

    Letters in one place are a `*`, but series stand side by side where places are few. `▲` marks a change, `┊` a line
    down.
    """
    across, up = places(chart.marks)
    if len({x for mark in chart.marks if isinstance(mark, Points | Line) for x in places([mark])[0]}) < 2:
        return []
    y = chart.y.scale(up, ROWS - 1, 0)
    names = {round(y(tick.value)): tick.label for tick in reversed(chart.y.marked(y))}
    margin = max(map(len, names.values()), default=0)
    room = max(12, width - margin - 2)
    if chart.x.ticks is not None and chart.kind != "trend":  # no wider than the names of the places need
        room = min(room, max(12, 8 * len(chart.x.ticks)))
    letters = [mark for mark in chart.marks if isinstance(mark, Points) and mark.letter]
    side = len(letters) // 2  # cells left free for the letters beside a place
    x = chart.x.scale(across, side, room - 1 - side, room=False)
    cells, under = _drawn(chart, x, y, room)
    lines = [shorten(chart.y.title, width)]
    for row in range(ROWS):
        body = "".join(cells.get((row, column), " ") for column in range(room))
        lines.append(f"{names.get(row, ''):>{margin}} {'┤' if row in names else '│'}{body}".rstrip())
    below = (under, _labels(chart.x.marked(x), x, room), shorten(chart.x.title, room))
    return [*lines, *(" " * (margin + 2) + line.rstrip() for line in below if line.strip())]


def _drawn(chart: Chart, x: Scale, y: Scale, room: int) -> tuple[_Cells, str]:
    """What stands in each cell, as (row, column), and the signs of changes below them."""
    cells: _Cells = {}
    under = [" "] * room
    for mark in chart.marks:
        if isinstance(mark, AxisRule) and mark.y is not None and y.holds(mark.y):
            cells.update({(round(y(mark.y)), column): "─" for column in range(room)})
        elif isinstance(mark, AxisRule) and mark.x is not None and mark.style == "change":
            under[round(x(mark.x))] = "▲"
        elif isinstance(mark, AxisRule) and mark.x is not None and x.holds(mark.x):
            cells.update({(row, round(x(mark.x))): "┊" for row in range(ROWS)})
        elif isinstance(mark, Line):
            cells.update(
                {(round(y(value)), round(at)): "·" for at, value in _along(mark, x) if isfinite(value)}
            )
    series = sorted(
        (m for m in chart.marks if isinstance(m, Points)), key=lambda m: (m.letter != "", m.number)
    )
    count = sum(bool(mark.letter) for mark in series)
    for number, mark in enumerate(series, count - len(series)):
        aside = number - (count - 1) // 2 if mark.letter else 0
        for point in mark.points:
            column = min(room - 1, max(0, round(x(point.x)) + aside))
            if point.low is not None and point.high is not None and not mark.letter:
                rows = range(round(y(point.high)), round(y(point.low)) + 1)
                cells.update({(row, column): "┊" for row in rows})
            place, sign = (round(y(point.y)), column), mark.letter or "●"
            cells[place] = sign if cells.get(place, " ") in (*_BEHIND, sign) else _SEVERAL
    return cells, "".join(under)


def _along(mark: Line, x: Scale) -> Iterator[tuple[float, float]]:
    """Places on a line, as (cells across, value): straight on the scale that its ends suggest."""
    for (x1, y1), (x2, y2) in zip(mark.points, mark.points[1:], strict=False):
        steps = max(1, round(abs(x(x2) - x(x1))))
        for n in range(steps + 1):
            share = n / steps
            value = y1 * (y2 / y1) ** share if y1 > 0 and y2 > 0 else y1 + (y2 - y1) * share
            yield x(x1) + (x(x2) - x(x1)) * share, value


def _labels(ticks: Sequence[Tick], x: Scale, room: int) -> str:
    """Values below the axis, as many as stand apart; both ends first."""
    below = [" "] * room
    for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:
        begin = max(0, min(room - len(tick.label), round(x(tick.value)) - len(tick.label) // 2))
        end = begin + len(tick.label)
        if x.holds(tick.value) and set(below[max(0, begin - 1) : end + 1]) == {" "}:
            below[begin:end] = tick.label
    return "".join(below)
