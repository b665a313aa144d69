"""One bar that is a whole, cut into its parts, with each part named below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.core.formatting import percent
from profkit.reporting.charts.svg import WIDTH, focusable, frame, linked, rect, text
from profkit.reporting.charts.text import FONT, LINE, fitted, width

COLOURS = 6  # of which parts are told apart; numbers tell them apart where there is no colour
THICK = 26.0
LEFT, RIGHT = 2.0, WIDTH - 2


@dataclass(frozen=True)
class Piece:
    """A part of the whole: its share (0..1), and what hovers over it. `idle` ones are drawn as an empty frame."""

    label: str
    share: float
    told: str
    idle: bool = False
    source: int = 0  # the footnote that its share leads to; 0 is none


def stacked_bar(kind: str, title: str, description: str, pieces: Sequence[Piece]) -> str:
    """The pieces in their order, at most six and the rest together; shares above a whole are scaled down to one."""
    shown = _gathered(pieces)
    whole = max(1.0, sum(piece.share for piece in shown))
    drawn = [text((LEFT, FONT), fitted(title, WIDTH - 4), "t")]
    x, y = LEFT, LINE + 6
    below = y + THICK + 6
    for number, piece in enumerate(shown, 1):
        wide = (RIGHT - LEFT) * piece.share / whole
        colour = "s0" if piece.idle else f"s{(number - 1) % COLOURS + 1} cut"
        mark = rect(x, y, wide, THICK, colour)
        if wide > width(str(number)) + 6:
            mark += text(
                (x + wide / 2, y + THICK / 2 + 0.35 * FONT), str(number), "m" if piece.idle else "m on"
            )
        drawn.append(focusable(mark, piece.told, piece.source))
        x += wide
    for number, piece in enumerate(shown, 1):
        drawn += _legend(number, piece, below)
        below += LINE
    return frame(f"stacked {kind}", below + 4, title, description, drawn)


def _legend(number: int, piece: Piece, y: float) -> list[str]:
    share = f"{percent(100 * piece.share)} %"
    colour = "s0" if piece.idle else f"s{(number - 1) % COLOURS + 1}"
    name = fitted(f"{number}  {piece.label}", RIGHT - 18 - width(share) - 8)
    return [
        rect(LEFT, y + 2, 11, 11, colour),
        text((LEFT + 16, y + FONT), name, None, piece.told),
        linked(text((RIGHT, y + FONT), share, "e"), piece.source, tabindex="-1"),
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
