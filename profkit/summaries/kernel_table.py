"""Tables with a row for each kernel: columns that no kernel has a value for are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profkit.model import Table
from profkit.summaries.kernels import KernelRow
from profkit.words import percent, plural, quantity

TOP = 10  # kernels in a table: more than anybody works on at once; the rest stands in run.json
NOTHING = "-"

Cell = Callable[[KernelRow], str | None]


@dataclass(frozen=True)
class Column:
    """A title, and what stands below it for a kernel; None where that is not known.

    A column that is not worth a table `alone` is shown only beside others.
    """

    title: str
    cell: Cell
    alone: bool = True


def of(title: str, metric: str) -> Column:
    """A column with the values of one metric."""

    def cell(row: KernelRow) -> str | None:
        reading = row.readings.get(metric)
        if reading is None or reading.value is None:
            return None
        doubtful = "?" if reading.doubt else ""
        return quantity(reading.value, reading.unit) + doubtful

    return Column(title, cell)


def kernel_table(title: str, rows: Sequence[KernelRow], columns: Sequence[Column]) -> Table | None:
    """One row for each kernel that has a value in some column; None where none has."""
    shown = list(rows[:TOP])
    cells = [[column.cell(row) for column in columns] for row in shown]
    kept = [number for number in range(len(columns)) if any(line[number] for line in cells)]
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
