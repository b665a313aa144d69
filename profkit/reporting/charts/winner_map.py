"""Who is fastest at each place of a grid: a letter and a number in each cell, its colour and how strong it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.reporting.charts.svg import FONT, LINE, WIDTH, frame, hover, rect, tag, text, width

STEPS = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0)  # leads from which on a cell is shaded more
GAP = 1.0
HEAD = "Fastest at batch x sequence, by dimension"


@dataclass(frozen=True)
class Cell:
    """A place of the grid: the winner's letter and colour (from 0; None where nobody is alone), and all numbers.

    `lead` is the next one's time over the winner's.
    """

    letter: str
    place: int | None
    lead: float | None
    told: str


def winner_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[int, int], Cell],
    title: str,
    told: str,
) -> str:
    """The grid as SVG, `cells` by (row, column); what is not there was not compared.

    The first cell is reached by the keyboard, and the page's script goes on from it by arrow keys. `told` is the
    text alternative.
    """
    label = max((width(name) for name in rows), default=0.0) + 6
    wide = (WIDTH - label - 2) / max(1, len(columns))
    high = LINE + 3
    numbers = wide - GAP >= width("C 9.99")
    drawn = [text((2, FONT), HEAD, "t")]
    top = 2 * LINE + 8
    used = -1.0
    for column, name in enumerate(columns):
        middle = label + wide * (column + 0.5)
        if middle - width(name) / 2 > used:
            drawn.append(text((middle, top - 5), name, "m"))
            used = middle + width(name) / 2 + 3
    first = True
    for row, name in enumerate(rows):
        y = top + row * high
        drawn.append(text((label - 6, y + high / 2 + FONT * 0.35), name, "e"))
        for column in range(len(columns)):
            cell = cells.get((row, column))
            x = label + wide * column
            if cell is None:
                drawn.append(rect(x, y, wide - GAP, high - GAP, "none"))
                continue
            drawn.append(_cell(cell, (x, y, wide - GAP, high - GAP), (row, column), numbers, first))
            first = False
    return frame("winners", top + len(rows) * high + 4, title, told, drawn)


def shade(lead: float | None) -> int:
    """How strong the colour of a lead is: 0 to the number of steps."""
    return sum(lead >= step for step in STEPS) if lead is not None else 0


def _cell(
    cell: Cell, area: tuple[float, float, float, float], at: tuple[int, int], numbers: bool, first: bool
) -> str:
    x, y, wide, high = area
    kind = "alike" if cell.place is None else f"w{cell.place % 8 + 1} h{shade(cell.lead)}"
    words = cell.letter
    if numbers and cell.place is not None and cell.lead is not None:
        words += (
            f" {cell.lead:.2f}"
            if cell.lead < 9.995
            else f" {cell.lead:.0f}"
            if cell.lead < 999.5
            else " >999"
        )
    body = hover(cell.told) + rect(x, y, wide, high, kind)
    body += text((x + wide / 2, y + high / 2 + FONT * 0.35), words, "m")
    return tag("g", body, tabindex="0" if first else "-1", role="img", data_at=f"{at[0]},{at[1]}")
