"""Bars, one below the other: each with its name, its value in words, a wider bar behind it, and marks across it.

The words stand above the bar and not beside it, so names have the whole width, on a telephone too.
"""

from __future__ import annotations

from collections.abc import Sequence

from profkit.reporting.chart_blocks import Bar
from profkit.reporting.charts.svg import WIDTH, Number, frame, line, linked, no_footnote, rect, text
from profkit.reporting.charts.text import FONT, LINE, fitted, width, wrapped

ROW = LINE + 18  # a line of text, the bar, and air
THICK = 9.0
LEFT, RIGHT = 2.0, WIDTH - 2
LEAST_SHARE = 0.45  # of the width that a name keeps, however long the value is in words


def bar_chart(
    kind: str,
    title: str,
    description: str,
    bars: Sequence[Bar],
    most: float | None = None,
    legend: str = "",
    number: Number = no_footnote,
) -> str:
    """Bars from 0 to `most` (the largest of all, where it is None). What is longer ends in an arrow at the edge."""
    ends = [
        end
        for bar in bars
        for end in (bar.value, bar.outer, *(m.value for m in bar.marks))
        if end is not None
    ]
    full = most if most is not None else max(ends, default=0.0)
    drawn = [text((LEFT, FONT), fitted(title, WIDTH - 4), "t")]
    y = LINE + 8
    for bar in bars:
        drawn += _bar(bar, y, full if full > 0 else 1.0, number(bar.source))
        y += ROW
        if bar.note:
            drawn.append(text((LEFT, y + FONT - 3), fitted(bar.note, WIDTH - 4), "note"))
            y += LINE
    for words in wrapped(legend, WIDTH - 4):
        drawn.append(text((LEFT, y + FONT), words, "note"))
        y += LINE
    return frame(f"bars {kind}", y + 4, title, description, drawn)


def _bar(bar: Bar, y: float, full: float, source: int) -> list[str]:
    value = fitted(bar.words, (1 - LEAST_SHARE) * WIDTH)
    name = fitted(bar.label, RIGHT - LEFT - width(value) - 10)
    drawn = [
        text((LEFT, y + FONT), name, None, bar.told if name != bar.label else None),
        linked(text((RIGHT, y + FONT), value, "e", bar.words if value != bar.words else None), source),
        rect(LEFT, y + LINE + 2, RIGHT - LEFT, THICK, "track"),
    ]
    room = RIGHT - LEFT
    if bar.outer is not None:
        drawn.append(rect(LEFT, y + LINE + 2, room * _part(bar.outer, full), THICK, "soft", bar.told))
    if bar.value is not None:
        kind = "s1 doubtful" if bar.doubtful else "s1"
        drawn.append(rect(LEFT, y + LINE + 2, room * _part(bar.value, full), THICK, kind, bar.told))
        if bar.value > full * 1.0001:
            drawn.append(text((RIGHT - 2, y + LINE + 2 + THICK), "›", "e over"))
    for mark in bar.marks:
        x = LEFT + room * _part(mark.value, full)
        drawn.append(line(x, y + LINE - 1, x, y + LINE + 5 + THICK, mark.kind, mark.told))
    return drawn


def _part(value: float, full: float) -> float:
    return min(1.0, max(0.0, value / full))
