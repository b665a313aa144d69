"""Bars below each other, and one bar that is a whole, cut into its parts."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_percent
from profkit.reporting.chart_blocks import Bar, Piece
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
    no_footnote,
    rect,
    text,
    width,
    wrapped,
)

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
    value = fitted(bar.text, (1 - LEAST_SHARE) * WIDTH)
    name = fitted(bar.label, RIGHT - LEFT - width(value) - 10)
    drawn = [
        text((LEFT, y + FONT), name, None, bar.hover if name != bar.label else None),
        linked(text((RIGHT, y + FONT), value, "e", bar.text if value != bar.text else None), source),
        rect(LEFT, y + LINE + 2, RIGHT - LEFT, THICK, "track"),
    ]
    room = RIGHT - LEFT
    if bar.outer is not None:
        drawn.append(rect(LEFT, y + LINE + 2, room * _part(bar.outer, full), THICK, "soft", bar.hover))
    if bar.value is not None:
        kind = "s1 doubtful" if bar.doubtful else "s1"
        drawn.append(rect(LEFT, y + LINE + 2, room * _part(bar.value, full), THICK, kind, bar.hover))
        if bar.value > full * 1.0001:
            drawn.append(text((RIGHT - 2, y + LINE + 2 + THICK), "›", "e over"))
    for mark in bar.marks:
        x = LEFT + room * _part(mark.value, full)
        drawn.append(line(x, y + LINE - 1, x, y + LINE + 5 + THICK, mark.kind, mark.hover))
    return drawn


def _part(value: float, full: float) -> float:
    return min(1.0, max(0.0, value / full))


COLOURS = 6  # that distinguish parts; numbers do so where there is no colour
WHOLE_THICK = 26.0


def stacked_bar(
    kind: str, title: str, description: str, pieces: Sequence[Piece], number: Number = no_footnote
) -> str:
    """The pieces in their order, at most six and the rest together; shares above a whole are scaled down to one."""
    shown = _gathered(pieces)
    whole = max(1.0, sum(piece.share for piece in shown))
    drawn = [text((LEFT, FONT), fitted(title, WIDTH - 4), "t")]
    x, y = LEFT, LINE + 6
    below = y + WHOLE_THICK + 6
    for place, piece in enumerate(shown, 1):
        wide = (RIGHT - LEFT) * piece.share / whole
        colour = "s0" if piece.idle else f"s{(place - 1) % COLOURS + 1} cut"
        mark = rect(x, y, wide, WHOLE_THICK, colour)
        if wide > width(str(place)) + 6:
            mark += text(
                (x + wide / 2, y + WHOLE_THICK / 2 + 0.35 * FONT), str(place), "m" if piece.idle else "m on"
            )
        drawn.append(focusable(mark, piece.hover, number(piece.source)))
        x += wide
    for place, piece in enumerate(shown, 1):
        drawn += _legend(place, piece, below, number(piece.source))
        below += LINE
    return frame(f"stacked {kind}", below + 4, title, description, drawn)


def _legend(place: int, piece: Piece, y: float, source: int) -> list[str]:
    share = f"{format_percent(100 * piece.share)} %"
    colour = "s0" if piece.idle else f"s{(place - 1) % COLOURS + 1}"
    name = fitted(f"{place}  {piece.label}", RIGHT - 18 - width(share) - 8)
    return [
        rect(LEFT, y + 2, 11, 11, colour),
        text((LEFT + 16, y + FONT), name, None, piece.hover),
        linked(text((RIGHT, y + FONT), share, "e"), source, tabindex="-1"),
    ]


def _gathered(pieces: Sequence[Piece]) -> list[Piece]:
    """At most six: what is small goes together, and what is idle stays by itself."""
    kept = [piece for piece in pieces if piece.share > 0]
    if len(kept) <= COLOURS:
        return kept
    busy = sorted((p for p in kept if not p.idle), key=lambda piece: -piece.share)
    idle = [piece for piece in kept if piece.idle]
    room = COLOURS - 1 - len(idle)
    first, rest = busy[:room], busy[room:]
    share = sum(piece.share for piece in rest)
    small = Piece(
        f"others ({len(rest)})", share, "; ".join(piece.hover for piece in rest), source=rest[0].source
    )
    return [*(piece for piece in kept if piece in first), small, *idle]
