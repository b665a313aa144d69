"""A row of commits: how probable it is that each made a change, and above that how much slower the tested ones were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.reporting.charts.axes import Box, Scale, Tick, box_for, linear, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import FONT, LINE, focusable, frame, line, rect, tag, text, width
from profkit.reporting.view import Block

HEIGHT = 330.0
_MIDDLE = 175.0  # where the upper half ends


@dataclass(frozen=True)
class CommitTest:
    """A test of the commit at `place` of the row (1 is the first one) against the good end, as percents."""

    place: int
    change: float
    low: float
    high: float
    hover: str


@dataclass(frozen=True)
class CommitChance:
    """The probability (0..1) that the commit at `place` of the row made the change; `name` stands above its bar."""

    place: int
    probability: float
    hover: str
    name: str = ""


@dataclass(frozen=True)
class CommitRow(Block):
    """The `commits` of a search in their order. `whole` is the change between both ends in percent."""

    title: str
    description: str
    commits: int
    whole: float
    tests: tuple[CommitTest, ...]
    chances: tuple[CommitChance, ...]

    def plain(self) -> Sequence[Block]:
        """Nothing: the tests stand in a table, and the likeliest commits in a sentence."""
        return ()


def commit_row(chart: CommitRow) -> str | None:
    """The row as SVG; None of no tests."""
    if not chart.tests:
        return None
    values = [value for test in chart.tests for value in (test.change, test.low, test.high)]
    reach = max(2 * abs(chart.whole), max(abs(test.change) for test in chart.tests))
    values = [max(-reach, min(reach, value)) for value in (0.0, chart.whole, *values)]
    marks, _ = ticks(linear(values, 1.0, 0.0), "%", 5)
    shares = tuple(Tick(float(value), str(value)) for value in (0, 50, 100))
    left = max(box_for(marks, HEIGHT).left, box_for(shares, HEIGHT).left)
    right = box_for(marks, HEIGHT).right
    upper = Box(left, LINE + 6, right, _MIDDLE - 14)
    lower = Box(left, _MIDDLE + 2 * LINE + 6, right, HEIGHT - 2 * LINE - 8)
    step = (right - left) / chart.commits

    def middle(place: int) -> float:
        return left + (place - 0.5) * step

    y = linear(values, upper.bottom, upper.top)
    drawn = y_axis(upper, y, marks, "slower than GOOD (%), with the interval of each test")
    drawn.append(line(left, y(0.0), right, y(0.0), "level"))
    drawn.append(line(left, y(chart.whole), right, y(chart.whole), "level"))
    for name, value in (("GOOD", 0.0), ("BAD", chart.whole)):
        drawn.append(text((left + 3, y(value) - 3), name, "note"))
    drawn_at: set[float] = set()
    for test in chart.tests:
        x = middle(test.place)
        while x in drawn_at:  # a commit that was tested more than once
            x += 6
        drawn_at.add(x)
        body = line(x, y(test.low), x, y(test.high), "line l1")
        body += tag("circle", cx=x, cy=y(test.change), r=2.8, class_="dot")
        drawn.append(focusable(body, test.hover))
    down = Scale(0.0, 100.0, lower.bottom, lower.top)
    drawn.append(text((2, lower.top - LINE), "probability that the commit made the change (%)", "t"))
    for tick in shares:
        drawn.append(line(left, down(tick.value), right, down(tick.value), "grid"))
        drawn.append(text((left - 5, down(tick.value) + FONT * 0.35), tick.label, "e"))
    thick = max(0.8, min(26.0, 0.8 * step))
    for chance in chart.chances:
        x, top = middle(chance.place), down(100 * chance.probability)
        body = rect(x - thick / 2, top, thick, lower.bottom - top, "s1")
        drawn.append(focusable(body, chance.hover))
        if chance.name:
            half = width(chance.name) / 2
            at = min(max(x, left + half), right - half)
            drawn.append(text((at, top - 4), chance.name, "m"))
    across = Scale(0.5, chart.commits + 0.5, left, right)
    whole, _ = ticks(Scale(1.0, max(2.0, float(chart.commits)), 0.0, 1.0), "", 12)
    places = [
        Tick(tick.value, tick.label) for tick in whole if tick.value == int(tick.value) and tick.value >= 1
    ]
    drawn += x_axis(lower, across, places, "commits after GOOD, the oldest first")
    return frame("commits", HEIGHT, chart.title, chart.description, drawn)
