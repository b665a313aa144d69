"""Columns over rows of one kind, as a table of texts and as one that sorts. Empty ones are not shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from profkit.reporting.chart_blocks import CellValue, SortableColumn, SortableTable, cell_text
from profkit.reporting.view import DataTable, TableColumn, Text, plain_text

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column. `unit` is "text" for words, "n" for numbers as they are; None and no words are an empty cell.

    `text` is a cell as words, where that is not the value with its unit. `wide`: a screen of 80 columns has no room.
    """

    title: str
    value: Callable[[Row], CellValue | Text]
    unit: str = "text"
    meaning: str = ""
    hidden_when_empty: bool = True
    wide: bool = False
    text: Callable[[Row], Text] | None = None

    @property
    def numeric(self) -> bool:
        """Whether its cells are numbers."""
        return self.unit != "text"

    def cell(self, row: Row) -> Text:
        """The cell as people read it; `-` for a number that is not known."""
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
    """A table of texts; for a `screen` of 80 columns without the wide ones."""
    cells = [(c, [c.cell(row) for row in rows]) for c in columns if not (screen and c.wide)]
    known = [
        (c, own)
        for c, own in cells
        if not c.hidden_when_empty or any(plain_text(text) not in ("", "-") for text in own)
    ]
    heads = tuple(TableColumn(c.title, numeric=c.numeric, meaning=c.meaning) for c, _ in known)
    return DataTable(heads, tuple(zip(*(own for _, own in known), strict=True)), title, note, brief, left)


def sortable_table(
    title: str, columns: Sequence[Column[Any]], rows: Sequence[Any], names: Sequence[str], **more: Any
) -> SortableTable:
    """A table that sorts and filters; `names` are found by the filter too, `more` are fields of the table."""
    values = [(c, tuple(map(_value, map(c.value, rows)))) for c in columns]
    known = [
        (c, own) for c, own in values if not c.hidden_when_empty or any(v not in (None, "") for v in own)
    ]
    made = tuple(SortableColumn(c.title, c.unit, own, c.meaning) for c, own in known)
    return SortableTable(title, made, tuple(names), **more)


def _value(value: CellValue | Text) -> CellValue:
    return value if value is None or isinstance(value, int | float) else plain_text(value)
