"""Who is fastest at each place of a grid: a letter and a number in each cell, its colour and how strong it is."""

from __future__ import annotations

from profkit.reporting.chart_blocks import WinnerCell, WinnerMap, lead_text
from profkit.reporting.charts.svg import FONT, LINE, WIDTH, frame, hover, rect, tag, text, width

STEPS = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0)  # leads from which on a cell is shaded more
GAP = 1.0


def winner_map(chart: WinnerMap) -> str:
    """The grid as SVG. The first cell is reached by Tab; from it the page's script goes on by arrow keys."""
    rows, columns = chart.rows, chart.columns
    label = max((width(name) for name in rows), default=0.0) + 6
    wide = (WIDTH - label - 2) / max(1, len(columns))
    high = LINE + 3
    numbers = wide - GAP >= width("C 9.99")
    drawn = [text((2, FONT), chart.title, "t")]
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
            cell = chart.cells.get((row, column))
            x = label + wide * column
            if cell is None:
                drawn.append(rect(x, y, wide - GAP, high - GAP, "none"))
                continue
            drawn.append(_cell(cell, (x, y, wide - GAP, high - GAP), (row, column), numbers, first))
            first = False
    name = f"{chart.title}: {chart.of}" if chart.of else chart.title
    return frame("winners", top + len(rows) * high + 4, name, chart.description, drawn)


def shade(lead: float | None) -> int:
    """How strong the colour of a lead is: 0 to the number of steps."""
    return sum(lead >= step for step in STEPS) if lead is not None else 0


def _cell(
    cell: WinnerCell, area: tuple[float, float, float, float], at: tuple[int, int], numbers: bool, first: bool
) -> str:
    x, y, wide, high = area
    kind = "alike" if cell.number is None else f"w{cell.number % 8 + 1} h{shade(cell.lead)}"
    words = (
        f"{cell.letter} {lead_text(cell.lead)}".rstrip()
        if numbers and cell.number is not None
        else cell.letter
    )
    body = hover(cell.hover) + rect(x, y, wide, high, kind)
    body += text((x + wide / 2, y + high / 2 + FONT * 0.35), words, "m")
    return tag("g", body, tabindex="0" if first else "-1", role="img", data_at=f"{at[0]},{at[1]}")
