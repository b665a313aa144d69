"""The account of a step as one bar: parts as wide as their time, filled as far as the hardware needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from profkit.reporting.view import Block, Paragraph, Span, Style, soft

PartLook: TypeAlias = Literal["limited", "idle", "unknown"]
_CELLS = 76  # characters of the bar: 80 columns with the indent of a section
_KNOWN = 0.1  # of the time: with less, a line of a terminal has no bar
_FILLS = "▁▂▃▄▅▆▇█"
_IDLE, _UNKNOWN, _EDGE = "·", "░", "│"


@dataclass(frozen=True)
class StepPart:
    """A part of a bar: `share` (0..1) of its length.

    `needed` (0..1) of its time would be left at the hardware's limits; `busy` (0..1) is how near the busiest unit is to
    its peak. Both count only where the part is `limited`: an idle part needs nothing, and of others it is not known.
    """

    share: float
    look: PartLook
    name: str  # what stands in it, and below that
    what: str
    hover: str
    needed: float = 0.0
    busy: float | None = None
    row: int | None = None  # of the table that it leads to, counted from 0


@dataclass(frozen=True)
class StepBar(Block):
    """The parts from left to right; `anchor` begins the ids of the rows that they lead to."""

    title: str
    parts: tuple[StepPart, ...]
    anchor: str

    @property
    def looks(self) -> frozenset[PartLook]:
        """Return the looks that occur: a key explains no other."""
        return frozenset(part.look for part in self.parts)

    def plain(self) -> Sequence[Block]:
        """Return the bar for 80 columns."""
        return self.lines(_CELLS)

    def lines(self, cells: int) -> Sequence[Block]:
        """Return one line of at most that many characters, and one that explains it.

        Nothing where hardly any limit or idle time is known: a bar without heights says no more than the shares in the
        table below it.
        """
        known = sum(part.share for part in self.parts if part.look != "unknown")
        if known < _KNOWN * sum(part.share for part in self.parts):
            return ()
        line = bar_line(self.parts, min(cells, _CELLS))
        return Paragraph(Span(line, Style.CODE)), Paragraph(soft(self._key()))

    def _key(self) -> str:
        meanings = {
            "limited": "height: the time needed at the hardware's limits",
            "idle": f"{_IDLE} idle",
            "unknown": f"{_UNKNOWN} not known",
        }
        return "; ".join(words for look, words in meanings.items() if look in self.looks)


def bar_line(parts: Sequence[StepPart], cells: int = _CELLS) -> str:
    """Return the parts side by side in so many characters, the first of each an edge where it has two or more.

    Edges are rounded where they stand, so that the parts add up to the line. The height tells the fill by eighths, at
    least one; idle time and what is not known have signs of their own, so that nothing depends on colours.

    >>> bar_line([StepPart(0.5, "limited", "", "", "", needed=1.0), StepPart(0.5, "idle", "", "", "")], 8)
    '│███│···'
    """
    whole = sum(part.share for part in parts)
    if whole <= 0:
        return ""
    ends = [round(cells * end / whole) for end in accumulate(part.share for part in parts)]
    drawn = []
    for part, begin, end in zip(parts, [0, *ends], ends, strict=False):
        length = end - begin
        sign = _sign(part)
        drawn.append(_EDGE + sign * (length - 1) if length > 1 else sign * length)
    return "".join(drawn)


def _sign(part: StepPart) -> str:
    if part.look == "limited":
        return _FILLS[max(0, min(len(_FILLS), round(part.needed * len(_FILLS))) - 1)]
    return _IDLE if part.look == "idle" else _UNKNOWN
