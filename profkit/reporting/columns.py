"""Columns over rows of one kind, as a table of texts and as one that sorts. Empty ones are not shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from profkit.core.formatting import format_quantity
from profkit.reporting.view import Block, DataTable, TableColumn, Text, plain_text

Row = TypeVar("Row")
CellValue: TypeAlias = float | str | None
_MAX_ROWS = 4000  # rows of a page: more make it slow to open, and are in the JSON document


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column. `unit` is "text" for words, "kernel" for C++ names, "n" for numbers as they are; None is an empty cell.

    `text` is a cell as words, where that is not the value with its unit. `wide`: a screen of 80 columns has no room.
    `wraps`: its cells may take several lines, so that the table stays in one piece.
    """

    title: str
    value: Callable[[Row], CellValue | Text]
    unit: str = "text"
    meaning: str = ""
    hidden_when_empty: bool = True
    wide: bool = False
    wraps: bool = False
    text: Callable[[Row], Text] | None = None

    @property
    def numeric(self) -> bool:
        """Return whether its cells are numbers."""
        return self.unit not in ("text", "kernel")

    def cell(self, row: Row) -> Text:
        """Return the cell as people read it; `-` for a number that is not known."""
        value = self.text(row) if self.text is not None else self.value(row)
        if value is None:
            return "-" if self.numeric else ""
        return cell_text(value, self.unit) if isinstance(value, int | float) else value


def data_table(
    columns: Sequence[Column[Any]],
    rows: Sequence[Any],
    *,
    screen: bool = False,
    title: str = "",
    note: Text = "",
    brief: int | None = None,
    left: int = 0,
) -> DataTable:
    """Return a table of texts; for a `screen` of 80 columns without the wide ones."""
    cells = [(c, [c.cell(row) for row in rows]) for c in columns if not (screen and c.wide)]
    known = [
        (c, own)
        for c, own in cells
        if not c.hidden_when_empty or any(plain_text(text) not in ("", "-") for text in own)
    ]
    heads = tuple(
        TableColumn(c.title, numeric=c.numeric, kernel=c.unit == "kernel", wraps=c.wraps, meaning=c.meaning)
        for c, _ in known
    )
    return DataTable(heads, tuple(zip(*(own for _, own in known), strict=True)), title, note, brief, left)


@dataclass(frozen=True)
class SortableTable(Block):
    """Thousands of rows that sort and filter in a page. `values` are what the cells of each column are sorted by.

    `names` of the rows are found by the filter too; `reference` is the same for a format without scripts. `seconds` are
    those of all rows, also of those that are too many for the table.
    """

    table: DataTable
    values: tuple[tuple[CellValue, ...], ...]
    names: tuple[str, ...]
    hint: str = "part of a name"
    reference: tuple[Block, ...] = ()
    seconds: tuple[float, ...] = ()

    @property
    def others(self) -> str:
        """Return how many rows are not in the table, and how much of the time they have."""
        left, whole = self.table.left, sum(self.seconds)
        if not left:
            return ""
        share = 100 * sum(self.seconds[len(self.table.rows) :]) / whole if whole > 0 else 0.0
        together = f", {format_quantity(share, '%')} of the time together," if share else ""
        return f"{left:,} more{together} stand in the JSON document: profkit report RUN --format json"

    def plain(self) -> Sequence[Block]:
        """Return what its maker gave for formats without scripts."""
        return self.reference


def sortable_table(
    title: str,
    columns: Sequence[Column[Any]],
    rows: Sequence[Any],
    names: Sequence[str],
    *,
    note: Text = "",
    hint: str = "part of a name",
    reference: tuple[Block, ...] = (),
    most: int = _MAX_ROWS,
    seconds: Sequence[float] = (),
) -> SortableTable:
    """Return a table that sorts and filters, of the first `most` rows; `names` are found by the filter too."""
    first = rows[:most]
    values = [(c, tuple(_value(c.value(row)) for row in first)) for c in columns]
    known = [
        (c, own)
        for c, own in values
        if not c.hidden_when_empty or any(value not in (None, "") for value in own)
    ]
    made = data_table([c for c, _ in known], first, title=title, note=note, left=len(rows) - len(first))
    return SortableTable(
        made, tuple(own for _, own in known), tuple(names[: len(first)]), hint, reference, tuple(seconds)
    )


def _value(value: CellValue | Text) -> CellValue:
    return value if value is None or isinstance(value, int | float) else plain_text(value)


def cell_text(value: CellValue, unit: str) -> str:
    """Return the value of a cell as people read it; nothing if there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if unit == "n" else format_quantity(float(value), unit)
