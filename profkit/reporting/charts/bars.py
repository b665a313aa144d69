"""Bars below each other, and one bar that is a whole, cut into its parts."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_percent
from profkit.reporting.chart_blocks import Bar, Bars, Piece, StackedBar
from profkit.reporting.charts.draw import legend_rows, small_print
from profkit.reporting.charts.marks import Legend
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    Number,
    fitted,
    focusable,
    frame,
    line,
    linked,
    rect,
    text,
    width,
)

_ROW = LINE + 18  # a line of text, the bar, and air
_THICK = 9.0
_LEFT, _ROOM = 2.0, WIDTH - 4
_LEAST_SHARE = 0.45  # of the width that a name keeps, however long the value is in words
COLOURS = 6  # that distinguish parts; numbers do so where there is no colour
_WHOLE = 26.0  # how high a stacked bar is


def draw_bars(chart: Bars, number: Number) -> str:
    """Bars from 0 to `most` (the largest of all, where it is None). What is longer ends in an arrow at the edge."""
    ends = [end for bar in chart.bars for end in (bar.value, bar.outer, *(m.value for m in bar.marks)) if end]
    full = (max(ends, default=0.0) if chart.most is None else chart.most) or 1.0
    drawn = [text((_LEFT, FONT), fitted(chart.title, _ROOM), "t")]
    y = LINE + 8
    for bar in chart.bars:
        drawn += _bar(bar, y, full if full > 0 else 1.0, number(bar.source))
        y += _ROW
        if bar.note:
            drawn.append(text((_LEFT, y + FONT - 3), fitted(bar.note, _ROOM), "note"))
            y += LINE
    small, y = small_print(chart.legend, y)
    return frame(f"bars {chart.kind}", y + 4, chart.title, chart.description, [*drawn, *small])


def _bar(bar: Bar, y: float, full: float, source: int) -> list[str]:
    def part(value: float) -> float:
        return _ROOM * min(1.0, max(0.0, value / full))

    value = fitted(bar.text, (1 - _LEAST_SHARE) * WIDTH)
    name = fitted(bar.label, _ROOM - width(value) - 10)
    top = y + LINE + 2
    drawn = [
        text((_LEFT, y + FONT), name, None, bar.hover if name != bar.label else None),
        linked(text((_LEFT + _ROOM, y + FONT), value, "e", bar.text if value != bar.text else None), source),
        rect(_LEFT, top, _ROOM, _THICK, "track"),
    ]
    if bar.outer is not None:
        drawn.append(rect(_LEFT, top, part(bar.outer), _THICK, "soft", bar.hover))
    if bar.value is not None:
        kind = "s1 doubtful" if bar.doubtful else "s1"
        drawn.append(rect(_LEFT, top, part(bar.value), _THICK, kind, bar.hover))
        if bar.value > full * 1.0001:
            drawn.append(text((_LEFT + _ROOM - 2, top + _THICK), "›", "e over"))
    for mark in bar.marks:
        x = _LEFT + part(mark.value)
        drawn.append(line(x, top - 3, x, top + _THICK + 3, mark.kind, mark.hover))
    return drawn


def draw_stacked(chart: StackedBar, number: Number) -> str:
    """The pieces in their order, at most six and the rest together; shares above a whole are scaled down to one."""
    shown = _gathered(chart.pieces)
    whole = max(1.0, sum(piece.share for piece in shown))
    drawn = [text((_LEFT, FONT), fitted(chart.title, _ROOM), "t")]
    x, y = _LEFT, LINE + 6
    rows = []
    for place, piece in enumerate(shown, 1):
        wide, colour = _ROOM * piece.share / whole, "s0" if piece.idle else f"s{(place - 1) % COLOURS + 1}"
        mark = rect(x, y, wide, _WHOLE, colour if piece.idle else f"{colour} cut")
        if wide > width(str(place)) + 6:
            at = (x + wide / 2, y + _WHOLE / 2 + 0.35 * FONT)
            mark += text(at, str(place), "m" if piece.idle else "m on")
        drawn.append(focusable(mark, piece.hover, number(piece.source)))
        share = f"{format_percent(100 * piece.share)} %"
        rows.append(Legend(f"{place}  {piece.label}", share, colour, hover=piece.hover, source=piece.source))
        x += wide
    legend, end = legend_rows(rows, y + _WHOLE + 6, number)
    return frame(f"stacked {chart.kind}", end + 4, chart.title, chart.description, [*drawn, *legend])


def _gathered(pieces: Sequence[Piece]) -> list[Piece]:
    """At most six: what is small goes together, and what is idle stays by itself."""
    kept = [piece for piece in pieces if piece.share > 0]
    if len(kept) <= COLOURS:
        return kept
    busy = sorted((p for p in kept if not p.idle), key=lambda piece: -piece.share)
    idle = [piece for piece in kept if piece.idle]
    room = COLOURS - 1 - len(idle)
    first, rest = busy[:room], busy[room:]
    words = "; ".join(piece.hover for piece in rest)
    share = sum(piece.share for piece in rest)
    small = Piece(f"others ({len(rest)})", share, words, source=rest[0].source)
    return [*(piece for piece in kept if piece in first), small, *idle]
