"""The tables of an export of xctrace, row by row, in memory that does not grow with the file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.careful import EXPORT_AGAIN, Careful, Cells
from profkit.profilers.xctrace.definitions import Irregular
from profkit.profilers.xctrace.fast_columns import split_wanted
from profkit.profilers.xctrace.faulty import DamagedExport
from profkit.profilers.xctrace.header import Header
from profkit.profilers.xctrace.quick import Quick, pick
from profkit.profilers.xctrace.table import Column as Column
from profkit.profilers.xctrace.table import Row
from profkit.profilers.xctrace.table import Table as Table
from profkit.profilers.xctrace.toc import Run


def tables(path: Path, runs: Sequence[Run] = ()) -> Generator[Table, None, None]:
    """The tables of one exported XML, each to be read before the next is asked for; what is not read is skipped.

    `runs` are those of the recording's table of contents: with them a table has its `attributes`. An export without
    tables (xctrace writes one, and exits with 0, where nothing matched) gives none.
    Raises UnreadableReport for what is no export of xctrace; `Table.rows` raises it for what is damaged further on.
    """
    yield from _tables(path, runs, _Quickly)


def tables_carefully(path: Path, runs: Sequence[Run] = ()) -> Generator[Table, None, None]:
    """The same, element by element: slow, in memory that grows, and right for whatever XML it is."""
    yield from _tables(path, runs, _Carefully)


def _tables(
    path: Path, runs: Sequence[Run], how: Callable[[Path], _Quickly | _Carefully]
) -> Generator[Table, None, None]:
    with _named(path):
        way = how(path)
    with way:
        before: Header | None = None
        while True:
            with _named(path):
                header = way.header()
            if header is None:
                return
            if header.schema is None and before is not None:
                header.schema, header.columns, header.borrowed = before.schema, before.columns, True
            if header.schema is None:
                raise UnreadableReport(
                    f"{path}: not an export of a table by xctrace: it has no schema", EXPORT_AGAIN
                )
            before = header
            yield _table(path, header, way, runs)


def _table(path: Path, header: Header, way: _Quickly | _Carefully, runs: Sequence[Run]) -> Table:
    columns = tuple(header.columns)

    def open_rows(wanted: Sequence[str]) -> Iterator[Row]:
        with _named(path):
            yield from way.rows(columns, wanted, strict=header.borrowed)

    run, position = header.place
    entry = next((r.table(header.schema or "", position) for r in runs if run in (None, r.number)), {})
    return Table(header.schema or "", columns, open_rows, run, position, entry)


class _named:  # noqa: N801 (a context, not a thing)
    """Puts the name of the file before what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, DamagedExport):
            raise error.of(self._path, EXPORT_AGAIN) from error
        if isinstance(error, UnreadableReport):
            raise UnreadableReport(f"{self._path}: {error.message}", error.fix or EXPORT_AGAIN) from error
        if isinstance(error, OSError):
            raise UnreadableReport(
                f"{self._path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(self._path))}"
            ) from error


class _Carefully:
    """Headers and rows of a file by `careful`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._items = Careful(self._file).items()
        self._next: Header | None = None

    def __enter__(self) -> _Carefully:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def header(self) -> Header | None:
        """The next node's; rows that nobody took are passed over."""
        if self._next is not None:
            header, self._next = self._next, None
            return header
        return next((item for item in self._items if isinstance(item, Header)), None)

    def rows(self, columns: Sequence[Column], wanted: Sequence[str], *, strict: bool) -> Iterator[Row]:
        """The rows of this node; `strict`: its cells must be of the columns' types."""
        asked = split_wanted(columns, wanted)
        for cells in self._cells():
            yield pick(cells, asked, columns, strict=strict)

    def _cells(self) -> Iterator[Cells]:
        for item in self._items:
            if isinstance(item, Header):
                self._next = item
                return
            yield item


class _Quickly:
    """The same by `quick`, and by `careful` from where that cannot go on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._again = path.open("rb"), path.open("rb")
        self._slow: _Carefully | None = None
        self._headers = 0
        try:
            self._quick = Quick(self._file, self._again)
        except Irregular:
            self._slow = _Carefully(path)

    def __enter__(self) -> _Quickly:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._again.close()
        if self._slow is not None:
            self._slow.__exit__()

    def header(self) -> Header | None:
        """The next node's; rows that nobody took are passed over."""
        if self._slow is None:
            try:
                header = self._quick.header()
                self._headers += 1
                return header
            except Irregular:
                self._slow = self._skipped(self._headers)
        return self._slow.header()

    def rows(self, columns: Sequence[Column], wanted: Sequence[str], *, strict: bool) -> Iterator[Row]:
        """The rows of this node; `strict`: its cells must be of the columns' types."""
        if self._slow is not None:
            yield from self._slow.rows(columns, wanted, strict=strict)
            return
        given = 0
        try:
            for batch in self._quick.batches(columns, wanted, strict=strict):
                yield from batch
                given += len(batch)
            return
        except Irregular:
            self._slow = self._skipped(self._headers)
        yield from islice(self._slow.rows(columns, wanted, strict=strict), given, None)

    def _skipped(self, headers: int) -> _Carefully:
        slow = _Carefully(self._path)
        for _ in range(headers):
            slow.header()
        return slow
