"""A line of values as a plot of characters: dots of Braille, eight to a character."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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

    `bars` are indices before which an epoch begins (`┊`), `marks` those of change points (`▲`). A value of None leaves
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
    told = [
        f"{side:>{margin}} {'┤' if side else '│'}{line}".rstrip()
        for side, line in zip(sides, lines, strict=True)
    ]
    if marks:
        under = [" "] * cells
        for mark in marks:
            under[columns[mark] // 2] = "▲"
        told.append(" " * (margin + 2) + "".join(under).rstrip())
    return told


def _columns(count: int, cells: int) -> list[int]:
    """The column of dots of every value: side by side while there is room, else spread over all of them."""
    dots = cells * 2
    if count <= 1:
        return [0] * count
    if count <= dots:
        step = max(1, min(4, dots // count))
        return [index * step for index in range(count)]
    return [index * (dots - 1) // (count - 1) for index in range(count)]
