"""The tables of an export of xctrace, row by row, in memory that does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO

from profkit.errors import UnreadableReport
from profkit.tools.xctrace.careful import Careful, Cells
from profkit.tools.xctrace.cells import Cell
from profkit.tools.xctrace.header import Header
from profkit.tools.xctrace.table import Column as Column
from profkit.tools.xctrace.table import Row
from profkit.tools.xctrace.table import Table as Table
from profkit.tools.xctrace.toc import Run
from profkit.tools.xctrace.values import Value


def tables(path: Path, runs: Sequence[Run] = ()) -> Generator[Table, None, None]:
    """The tables of one exported XML, each to be read before the next is asked for; what is not read is skipped.

    `runs` are those of the recording's table of contents: with them a table has its `attributes`. An export without
    tables (xctrace writes one, and exits with 0, where nothing matched) gives none.
    Raises UnreadableReport for what is no export of xctrace; `Table.rows` raises it for what is damaged further on.
    """
    try:
        with path.open("rb") as file:
            yield from _tables(file, runs)
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}", error.fix) from error
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error


def _tables(file: IO[bytes], runs: Sequence[Run]) -> Iterator[Table]:
    items = Careful(file).items()
    item = next(items, None)
    before: Header | None = None
    while item is not None:
        if not isinstance(item, Header):
            item = next(items, None)  # a row that nobody asked for
            continue
        header = item
        if header.schema is None and before is not None:
            header.schema, header.columns = before.schema, before.columns
        if header.schema is None:
            raise UnreadableReport("not an export of a table by xctrace: it has no schema")
        before = header
        ended: list[Header | Cells | None] = []
        yield _table(header, items, ended, runs)
        item = ended[0] if ended else next(items, None)


def _table(
    header: Header, items: Iterator[Header | Cells], ended: list[Header | Cells | None], runs: Sequence[Run]
) -> Table:
    columns = tuple(header.columns)

    def open_rows(wanted: Sequence[str]) -> Iterator[Row]:
        pickers = [_picker(columns, name) for name in wanted]
        for item in items:
            if isinstance(item, Header):
                ended.append(item)
                return
            if len(item) != len(columns):
                raise UnreadableReport(
                    f"damaged: a row with {len(item)} cells in a table of {len(columns)} columns"
                )
            yield tuple([pick(item) for pick in pickers])
        ended.append(None)

    run, position = header.place
    entry = next((r.table(header.schema or "", position) for r in runs if run in (None, r.number)), {})
    return Table(header.schema or "", columns, open_rows, run, position, entry)


def _picker(columns: Sequence[Column], wanted: str) -> Callable[[Cells], Value | tuple[Value, ...]]:
    mnemonic, _, what = wanted.rpartition("/") if wanted.endswith(("/@fmt", "/*")) else (wanted, "", "")
    at = next((n for n, column in enumerate(columns) if column.mnemonic == mnemonic), None)
    if at is None:
        return lambda _: None

    def pick(cells: Cells) -> Value | tuple[Value, ...]:
        cell: Cell | None = cells[at]
        if cell is None:
            return None
        if what == "@fmt":
            return cell.fmt
        if what == "*":
            return tuple([None if part is None else part.value for part in cell.parts])
        return cell.value

    return pick
