"""Plots made of characters, for a terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from profkit.core.formatting import shorten

ROWS = 8  # of a plot at most
STEPS = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)  # from one row to the next, as a factor
ROOFLINE_ROWS = 12
SEVERAL = "*"
GAP = 3  # characters between two plots


@dataclass(frozen=True)
class Plot:
    """Values by column for each letter; None where there is none. `name` stands below the columns' own names."""

    name: str
    columns: tuple[str, ...]
    marks: Mapping[str, tuple[float | None, ...]]


def letter_plots(
    plots: Sequence[Plot], label: Callable[[float], str], *, level: bool = False, width: int = 80
) -> list[str]:
    """The plots on one logarithmic scale, as many side by side as `width` characters hold; [] of no value.

    Each row is as many times the one below it, and `label` writes what it stands for: a letter is in the nearest row.
    Letters in one place stand in the order of their values, the largest first. `level`: 1 has a row, drawn through.
    """
    values = [v for plot in plots for row in plot.marks.values() for v in row if v and math.isfinite(v)]
    if not values:
        return []
    base, step = (1.0, _step([*values, 1.0], 1.0)) if level else (min(values), _step(values, min(values)))
    at = [_row(value, base, step) for value in [*values, *([1.0] if level else [])]]
    rows = range(max(at), min(at) - 1, -1)
    names = [label(base * step**row) for row in rows]
    margin = max(map(len, names))
    lines: list[str] = []
    for group in _groups(plots, base, step, max(8, width - margin - 2)):
        used = {row for piece in group for row, _ in piece.cells} | ({0} if level else set())
        for row, name in zip(rows, names, strict=True):
            if not min(used) <= row <= max(used):
                continue
            line = "-" if level and row == 0 else " "
            cells = (" " * GAP).join(piece.line(row, line) for piece in group)
            lines.append(f"{name:>{margin}} │{cells}".rstrip())
        pad = " " * (margin + 2)
        lines.append(pad + (" " * GAP).join(piece.below for piece in group).rstrip())
        lines.append(pad + (" " * GAP).join(piece.name.ljust(piece.width) for piece in group).rstrip())
    return lines


def roofline_plot(
    clouds: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    bandwidth: float,
    flops: float,
    label: Callable[[float], str],
    *,
    width: int = 80,
) -> list[str]:
    """FLOP/s over FLOP per byte, both logarithmic, below the ceilings (bytes/s and FLOP/s), at most `width` wide.

    Each cloud is a letter and its dots, as (FLOP per byte, FLOP/s). Clouds stand side by side, since many dots share a
    place; where letters meet all the same, `*` does.
    """
    dots = [dot for _, cloud in clouds for dot in cloud]
    if not dots:
        return []
    ridge = flops / bandwidth
    high = max(flops, *(y for _, y in dots))
    rows = ROOFLINE_ROWS - 1
    per_row = max(1.2, (high / min(y for _, y in dots)) ** (1 / rows))
    decade = 1 if per_row < 4 else 2 if per_row < 40 else 4
    sides: dict[int, str] = {}
    for power in range(
        math.floor(math.log10(high / per_row**rows)), math.floor(math.log10(high)) + 1, decade
    ):
        row = round(math.log(high / 10.0**power, per_row))
        if 0 < row <= rows:
            sides[row] = label(10.0**power)
    sides[0] = label(high)
    margin = max(map(len, sides.values()))
    cells = max(16, width - margin - 2)
    left, right = min(x for x, _ in dots) / 1.5, max(2 * ridge, 1.5 * max(x for x, _ in dots))
    per_cell = math.log(right / left) / (cells - 1)
    drawn = [[" "] * cells for _ in range(rows + 1)]
    for column in range(cells):
        ceiling = min(flops, bandwidth * left * math.exp(per_cell * column))
        row = round(math.log(high / ceiling, per_row))
        if row <= rows:
            drawn[row][column] = "─"
    for place, (letter, cloud) in enumerate(clouds):
        aside = place - (len(clouds) - 1) // 2 if len(clouds) < 8 else 0
        for x, y in cloud:
            column = min(cells - 1, max(0, round(math.log(x / left) / per_cell) + aside))
            row = min(rows, max(0, round(math.log(high / y, per_row))))
            there = drawn[row][column]
            drawn[row][column] = letter if there in (" ", "─", letter) else SEVERAL
    lines = [f"{sides.get(n, ''):>{margin}} │{''.join(row)}".rstrip() for n, row in enumerate(drawn)]
    return [*lines, " " * (margin + 2) + _powers(left, per_cell, cells)]


def _powers(left: float, per_cell: float, cells: int) -> str:
    """The powers of ten below an axis that begins at `left`."""
    below = [" "] * (cells + 8)
    last = -2
    for power in range(
        math.ceil(math.log10(left)), math.floor(math.log10(left) + per_cell * cells / 2.3) + 1
    ):
        at = round(math.log(10.0**power / left) / per_cell)
        label = f"{10.0**power:g}"
        if last + 1 < at and at + len(label) <= cells:
            below[at : at + len(label)] = label
            last = at + len(label)
    return "".join(below).rstrip()


@dataclass(frozen=True)
class _Piece:
    """Some columns of a plot, placed: by row the letters of each column."""

    name: str
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], str]
    wide: int  # characters of a column

    @property
    def width(self) -> int:
        return max(self.wide * len(self.columns), len(self.name))

    @property
    def below(self) -> str:
        return "".join(name.rjust(self.wide) for name in self.columns).ljust(self.width)

    def line(self, row: int, fill: str) -> str:
        texts = (self.cells.get((row, n), "").rjust(self.wide, fill) for n in range(len(self.columns)))
        return "".join(texts).ljust(self.width, fill)


def _groups(plots: Sequence[Plot], base: float, step: float, room: int) -> list[list[_Piece]]:
    """The plots in pieces that fit, as many side by side as do."""
    groups: list[list[_Piece]] = []
    used = 0
    for plot in plots:
        for piece in _pieces(plot, base, step, room):
            if groups and used + GAP + piece.width <= room:
                groups[-1].append(piece)
                used += GAP + piece.width
            else:
                groups.append([piece])
                used = piece.width
    return groups


def _pieces(plot: Plot, base: float, step: float, room: int) -> list[_Piece]:
    found: dict[tuple[int, int], list[tuple[float, str]]] = {}
    for letter, values in plot.marks.items():
        for column, value in enumerate(values):
            if value and math.isfinite(value):
                found.setdefault((_row(value, base, step), column), []).append((-value, letter))
    cells = {place: "".join(letter for _, letter in sorted(marks)) for place, marks in found.items()}
    wide = max(map(len, (*plot.columns, *cells.values()))) + 1
    fits = max(1, room // wide)
    pieces = []
    for first in range(0, len(plot.columns), fits):
        columns = plot.columns[first : first + fits]
        own = {(row, column - first): text for (row, column), text in cells.items()}
        pieces.append(_Piece(shorten(plot.name, room), columns, own, wide))
    return pieces


def _row(value: float, base: float, step: float) -> int:
    return round(math.log(value / base) / math.log(step))


def _step(values: Sequence[float], base: float) -> float:
    """The least factor by which all values are within the rows that there may be."""
    for step in STEPS:
        if _row(max(values), base, step) - _row(min(values), base, step) < ROWS:
            return step
    return float(math.ceil((max(values) / min(values)) ** (1 / (ROWS - 2))))


# The bits of the eight dots of a Braille character (Unicode 10.0, block 2800): four rows of two columns.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


def plot(
    values: Sequence[float | None],
    label: Callable[[float], str],
    *,
    width: int = 64,
    height: int = 8,
    bars: Sequence[int] = (),
    marks: Sequence[int] = (),
) -> list[str]:
    """Lines of at most `width` characters: the values from left to right, and below them what is marked.

    `bars` are indices before which a segment begins (`┊`), `marks` those of change points (`▲`). A value of None leaves
    its place empty. More values than dots share a column, which then shows all of them from the least to the most.
    The largest and the least value stand to the left, as `label` writes them; no axis begins at zero.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return []
    low, high = min(known), max(known)
    names = [label(high), label(low)]
    margin = max(map(len, names))
    cells = max(4, width - margin - 2)
    columns = _columns(len(values), cells)
    rows = [[_BLANK] * cells for _ in range(height)]
    scale = (
        1.0 if math.isfinite(high - low) else 0.5
    )  # values that nobody measured may be further apart than a float
    reach = high * scale - low * scale
    for index, value in enumerate(values):
        if value is None or not math.isfinite(value):
            continue
        level = 0.5 if reach == 0 else (value * scale - low * scale) / reach
        dot = round((1 - level) * (height * 4 - 1))
        column = columns[index]
        rows[dot // 4][column // 2] |= _DOTS[dot % 4][column % 2]
    lines = ["".join(map(chr, row)) for row in rows]
    for bar in bars:
        at = columns[bar] // 2
        lines = [
            line[:at] + ("┊" if line[at] == chr(_BLANK) else line[at]) + line[at + 1 :] for line in lines
        ]
    lines = [line.replace(chr(_BLANK), " ") for line in lines]
    sides = [names[0], *[""] * (height - 2), names[1]] if height > 1 else [names[0]]
    lines = [
        f"{side:>{margin}} {'┤' if side else '│'}{line}".rstrip()
        for side, line in zip(sides, lines, strict=True)
    ]
    if marks:
        under = [" "] * cells
        for mark in marks:
            under[columns[mark] // 2] = "▲"
        lines.append(" " * (margin + 2) + "".join(under).rstrip())
    return lines


def _columns(count: int, cells: int) -> list[int]:
    """The column of dots of every value: side by side while there is room, else spread over all of them."""
    dots = cells * 2
    if count <= 1:
        return [0] * count
    if count <= dots:
        step = max(1, min(4, dots // count))
        return [index * step for index in range(count)]
    return [index * (dots - 1) // (count - 1) for index in range(count)]


def interval_plot(
    intervals: Sequence[tuple[int, float, float, float]],
    ends: tuple[float, float],
    levels: Sequence[float],
    label: Callable[[float], str],
    *,
    across: str = "",
    width: int = 64,
    height: int = 9,
) -> list[str]:
    """Lines of at most `width` characters: intervals (place, value, low, high) from left to right, in their order.

    Rows go from the first of `ends` to the second; what lies beyond ends at the edge. `levels` are drawn through, the
    first as a line, the others dotted. Of more intervals than columns every so many are shown, always the last.
    `across` says what the places count.
    """
    bottom, top = ends
    if not intervals or not bottom < top:
        return []

    def row_of(value: float) -> int:
        return round((top - min(top, max(bottom, value))) / (top - bottom) * (height - 1))

    names: dict[int, str] = {}
    for value in (*levels[:1], top, bottom, *levels[1:]):
        names.setdefault(row_of(value), label(value))
    margin = max(map(len, names.values()))
    cells = max(4, width - margin - 3 - len(across))
    stride = -(-len(intervals) // max(1, cells // 2))
    shown = list(intervals[::-1][::stride])[::-1]
    step = max(2, min(4, cells // len(shown)))
    used = (len(shown) - 1) * step + 1
    rows = [[" "] * used for _ in range(height)]
    for number, level in reversed(list(enumerate(levels))):
        rows[row_of(level)] = [("─" if number == 0 else "┈")] * used
    for place, (_, value, low, high) in enumerate(shown):
        for row in range(row_of(high), row_of(low) + 1):
            rows[row][place * step] = "│"
        rows[row_of(value)][place * step] = "●"
    lines = [
        f"{names.get(number, ''):>{margin}} {'┤' if number in names else '│'}{''.join(row)}".rstrip()
        for number, row in enumerate(rows)
    ]
    first, last = str(shown[0][0]), str(shown[-1][0])
    gap = used - len(first) - len(last)
    below = first + " " * gap + last if gap > 0 else last.rjust(used)
    return [*lines, f"{' ' * (margin + 2)}{below} {across}".rstrip()]
