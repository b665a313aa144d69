"""One bar that is a whole, cut into its parts, with each part named below it."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import percent
from profkit.reporting.chart_blocks import Piece
from profkit.reporting.charts.bars import LEFT, RIGHT
from profkit.reporting.charts.svg import WIDTH, Number, focusable, frame, linked, no_footnote, rect, text
from profkit.reporting.charts.text import FONT, LINE, fitted, width

COLOURS = 6  # of which parts are told apart; numbers tell them apart where there is no colour
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
        drawn.append(focusable(mark, piece.told, number(piece.source)))
        x += wide
    for place, piece in enumerate(shown, 1):
        drawn += _legend(place, piece, below, number(piece.source))
        below += LINE
    return frame(f"stacked {kind}", below + 4, title, description, drawn)


def _legend(place: int, piece: Piece, y: float, source: int) -> list[str]:
    share = f"{percent(100 * piece.share)} %"
    colour = "s0" if piece.idle else f"s{(place - 1) % COLOURS + 1}"
    name = fitted(f"{place}  {piece.label}", RIGHT - 18 - width(share) - 8)
    return [
        rect(LEFT, y + 2, 11, 11, colour),
        text((LEFT + 16, y + FONT), name, None, piece.told),
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
        f"others ({len(rest)})", share, "; ".join(piece.told for piece in rest), source=rest[0].source
    )
    return [*(piece for piece in kept if piece in first), small, *idle]
