"""An interval that closes over the pairs of runs, beside the change that does not count."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from profkit.core.types import Look
from profkit.reporting.chart_blocks import CharacterPlot
from profkit.reporting.charts.axes import Box, Scale, Tick, box_for, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import LINE, focusable, frame, line, rect, tag
from profkit.reporting.text_plots import interval_plot

HEIGHT = 190.0
_ROOM = 1.5  # floors that are shown on both sides at least


@dataclass(frozen=True)
class IntervalChart(CharacterPlot):
    """The looks of a paired comparison. `floor` is the relative change that counts, from 0 on."""

    looks: tuple[Look, ...]
    floor: float
    title: str = "change of the time"
    caption: str = ""

    @property
    def drawn(self) -> tuple[Look, ...]:
        """The looks whose numbers are finite."""
        return tuple(k for k in self.looks if all(map(isfinite, (k.ratio, k.low, k.high))))

    def lines(self, width: int) -> list[str]:
        """The intervals as bars of characters; nothing of fewer than two."""
        if len(self.drawn) < 2:
            return []
        intervals = [
            (look.pairs, _percent(look.ratio), _percent(look.low), _percent(look.high)) for look in self.drawn
        ]
        floor = 100 * self.floor
        levels = (0.0, floor, -floor) if floor else (0.0,)
        return interval_plot(intervals, self.ends(), levels, percent_text, across="pairs", width=width)

    def ends(self) -> tuple[float, float]:
        """The changes in % that are shown: the last interval and as much again, and the floor. Early ones go beyond."""
        looks, last = self.drawn, self.drawn[-1]
        reach = max(last.high - last.low, 2 * self.floor, 1e-6)
        low = max(min(look.low for look in looks), last.low - reach)
        high = min(max(look.high for look in looks), last.high + reach)
        room = _ROOM * self.floor
        return _percent(min(low, 1 - room)), _percent(max(high, 1 + room))


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def percent_text(value: float) -> str:
    """`+12.3 %`, `0`: a change in %."""
    return "0" if value == 0 else f"{value:+.1f} %"


def interval_chart(chart: IntervalChart) -> str | None:
    """The looks as SVG; None of fewer than two."""
    looks = chart.drawn
    if len(looks) < 2:
        return None
    low, high = chart.ends()
    marks, _ = ticks(Scale(low, high, 1.0, 0.0), "%", 6)
    inner = box_for(marks, HEIGHT, below=2 * LINE + 8)
    box = Box(inner.left, inner.top, inner.right, inner.bottom)
    y = Scale(low, high, box.bottom, box.top + 4)
    x = Scale(looks[0].pairs, max(looks[-1].pairs, looks[0].pairs + 1), box.left + 6, box.right - 6)
    floor = 100 * chart.floor
    drawn = [rect(box.left, y(floor), box.right - box.left, y(-floor) - y(floor), "band")]
    drawn += y_axis(box, y, marks, f"{chart.title} (%); shaded: what does not count")
    whole = [Tick(look.pairs, str(look.pairs)) for look in looks]
    drawn += x_axis(box, x, whole, "pairs of runs")
    drawn.append(line(box.left, y(0.0), box.right, y(0.0), "level"))
    for look in looks:
        across = x(look.pairs)
        body = line(across, y(_percent(look.low)), across, y(_percent(look.high)), "line l1")
        body += tag("circle", cx=across, cy=y(_percent(look.ratio)), r=2.4, class_="dot")
        drawn.append(focusable(body, f"after {look.pairs} pairs: {look_text(look)}"))
    last = looks[-1]
    words = f"After {looks[0].pairs} pairs {look_text(looks[0])}; after {last.pairs} pairs {look_text(last)}."
    return frame("intervals", HEIGHT, chart.title, words, drawn)


def look_text(look: Look) -> str:
    """`+12.3 % [+9.8, +14.9]`."""
    return f"{_percent(look.ratio):+.1f} % [{_percent(look.low):+.1f}, {_percent(look.high):+.1f}]"
