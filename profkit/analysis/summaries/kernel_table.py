"""Tables with a row for each kernel: columns that no kernel has a value for are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import figures, percent, plural, quantity
from profkit.core.types import Table

TOP = 10  # kernels in a table: more than anybody works on at once; the rest stands in run.json
NOTHING = "-"

Cell = Callable[[KernelRow], str | None]


@dataclass(frozen=True)
class Column:
    """A title, and what stands below it for a kernel; None where that is not known.

    A column that is not worth a table `alone` is shown only beside others; one of a `rare` metric only where some
    kernel has more than 0 of it.
    """

    title: str
    cell: Cell
    alone: bool = True
    rare: str | None = None


def of(title: str, metric: str, *, bare: bool = False, rare: bool = False) -> Column:
    """A column with the values of one metric, `bare` without their unit, and left out where all are 0 (`rare`)."""

    def cell(row: KernelRow) -> str | None:
        reading = row.readings.get(metric)
        if reading is None or reading.value is None:
            return None
        doubtful = "?" if reading.doubt else ""
        value = reading.value
        text = (
            quantity(value, reading.unit)
            if not bare
            else f"{value:.0f}"
            if value == int(value)
            else figures(value)
        )
        return text + doubtful

    return Column(title, cell, rare=metric if rare else None)


def kernel_table(title: str, rows: Sequence[KernelRow], columns: Sequence[Column]) -> Table | None:
    """One row for each kernel that has a value in some column; None where none has."""
    shown = list(rows[:TOP])
    cells = [[column.cell(row) for column in columns] for row in shown]
    kept = [
        number
        for number, column in enumerate(columns)
        if any(line[number] for line in cells)
        and (column.rare is None or any(row.value(column.rare) for row in shown))
    ]
    body = tuple(
        (row.label, *(line[number] or NOTHING for number in kept))
        for row, line in zip(shown, cells, strict=True)
        if any(line)
    )
    if not any(columns[number].alone for number in kept):
        return None
    return Table(title, ("kernel", *(columns[number].title for number in kept)), body, _rest(rows))


def _rest(rows: Sequence[KernelRow]) -> str | None:
    rest = rows[TOP:]
    if not rest:
        return None
    share = sum(row.share or 0.0 for row in rest)
    return f"and {plural(len(rest), 'further configuration')}, {percent(100 * share)} % of the GPU time"
