"""Charts as blocks of a view: pages draw all of them, a screen plots series over time with characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import shorten
from profkit.reporting.charts.marks import AxisRule, Chart, Line, Points, Scale, Tick, places
from profkit.reporting.view import Block, Paragraph

ROWS = 10
_PLOT = 76  # characters of a plot where the width of the screen is not known


@dataclass(frozen=True)
class FlameGraph(Block):
    """Stacks that were sampled, callers above what they call; only a page has it."""

    flame: Flame


@dataclass(frozen=True)
class Charts(Block):
    """Charts side by side with a note below. `repeats`: other blocks of the view hold the same numbers."""

    charts: tuple[Block, ...]
    note: str = ""
    repeats: bool = False

    def plain(self) -> Sequence[Block]:
        """Plots as wide as a page of text."""
        return self.as_text(_PLOT)

    def as_text(self, width: int) -> list[Block]:
        """Plots of at most `width` characters."""
        charts = () if self.repeats else self.charts
        drawn = [text_plot(chart, width) for chart in charts if isinstance(chart, Chart)]
        return [Paragraph("\n".join(lines), pre=True) for lines in drawn if lines]


# ---------------------------------------------------------------- with characters


def text_plot(chart: Chart, width: int) -> list[str]:
    """The chart as lines of at most `width` characters; [] of several series, or of no more than one value.

    `●` is a value, `▲` marks a change, `┊` a line down.
    """
    across, up = places(chart.marks)
    points = [mark for mark in chart.marks if isinstance(mark, Points)]
    if any(mark.letter for mark in points) or len({p.x for mark in points for p in mark.points}) < 2:
        return []
    y = chart.y.scale(up, ROWS - 1, 0)
    names = {round(y(tick.value)): tick.label for tick in reversed(chart.y.marked(y))}
    margin = max(map(len, names.values()), default=0)
    room = max(12, width - margin - 2)
    x = chart.x.scale(across, 0, room - 1, room=False)
    cells = {place: sign for mark in chart.marks for place, sign in _cells(mark, x, y, room)}
    lines = [shorten(chart.y.title, width)]
    for row in range(ROWS):
        body = "".join(cells.get((row, column), " ") for column in range(room))
        lines.append(f"{names.get(row, ''):>{margin}} {'┤' if row in names else '│'}{body}".rstrip())
    under = "".join(cells.get((ROWS, column), " ") for column in range(room))
    below = (under, _labels(chart.x.marked(x), x, room), shorten(chart.x.title, room))
    return [*lines, *(" " * (margin + 2) + line.rstrip() for line in below if line.strip())]


def _cells(mark: object, x: Scale, y: Scale, room: int) -> Iterator[tuple[tuple[int, int], str]]:
    """What a mark puts where, as ((row, column), sign); signs of changes stand below the last row."""
    if isinstance(mark, AxisRule):
        rows = (ROWS,) if mark.style == "change" else range(ROWS)
        yield from (((row, round(x(mark.x))), "▲" if mark.style == "change" else "┊") for row in rows)
    elif isinstance(mark, Line):
        for (x1, y1), (x2, y2) in zip(mark.points, mark.points[1:], strict=False):
            first, steps = x(x1), max(1, round(abs(x(x2) - x(x1))))
            for n in range(steps + 1):
                share = n / steps
                yield (round(y(y1 + (y2 - y1) * share)), round(first + (x(x2) - first) * share)), "·"
    elif isinstance(mark, Points):
        yield from (((round(y(p.y)), min(room - 1, round(x(p.x)))), "●") for p in mark.points)


def _labels(ticks: Sequence[Tick], x: Scale, room: int) -> str:
    """Values below the axis, as many as stand apart; both ends first."""
    below = [" "] * room
    for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:
        begin = max(0, min(room - len(tick.label), round(x(tick.value)) - len(tick.label) // 2))
        end = begin + len(tick.label)
        if x.holds(tick.value) and set(below[max(0, begin - 1) : end + 1]) == {" "}:
            below[begin:end] = tick.label
    return "".join(below)
