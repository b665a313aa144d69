"""Reads the tables of an export of xctrace, row by row.

An export is `<trace-query-result><node xpath=".."><schema
name=".."><col>..</col></schema><row>..</row></node>`. Each cell is named by the engineering type of its
column; a `<sentinel/>` has no value. A value that occurs for the first time has an `id`, one more than the
last; later it is a `ref` to that. A small piece of the file is parsed at a time; the wanted columns of its
whole rows are taken, and the elements dropped. The values of the ids of wanted columns are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from profkit.core.codec import without_collector
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.files import HEAD_BYTES, reading
from profkit.profilers.xctrace.toc import (
    EXPORT_AGAIN,
    PARTS,
    CellDecoder,
    Value,
    check_prolog,
    damage_error,
    unknown_id,
)

# bytes parsed at a time: elements of 64 KiB fall out of the processor's cache, at 20 % of speed
CHUNK = 1 << 14
MAX_PENDING = 4 << 20  # bytes without a whole row; a stack of a thousand frames has 200 kB
MAX_COLUMNS = 4096
MAX_VALUES = 1 << 24  # of one kind: a table of 2 GB has some 6 million
_COLUMN = ("mnemonic", "engineering-type")
ROOT = "trace-query-result"
_RUN = re.compile(r"/run\[(?:@number=[\"'])?(\d{1,9})[\"']?\]")

Row: TypeAlias = "tuple[Value, ...]"


@dataclass(frozen=True)
class ExportColumn:
    """One column: `mnemonic` names it, `type` is the engineering type (the tag of its cells)."""

    mnemonic: str
    type: str


@dataclass(frozen=True)
class ExportTable:
    """One table of an export, read as far as its schema. `run` counts from 1; None where it is not known."""

    schema: str
    columns: tuple[ExportColumn, ...]
    open_rows: Callable[[Sequence[str]], Iterator[Row]] = field(repr=False, compare=False)
    run: int | None = None
    path: Path | None = None

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """Yield the rows as tuples, in the order of `wanted`; to be taken once, before the next table.

        `wanted` are mnemonics. `label/@fmt` is the text that Instruments shows for the column `label` ("1.25 GB/s").
        A column that is not there, and a cell without a value, are None. Numbers are whole where the column's type
        says so (times in ns, ids, sizes in bytes), float for percent and decimals, text elsewhere; processes, threads
        and stacks are objects, equal ones the same. Raises UnreadableReport where the export is cut off, damaged or
        hostile.
        """
        return self.open_rows(wanted)


def read_tables(path: Path) -> Generator[ExportTable, None, None]:
    """Yield the tables of one exported XML, each to be read before the next; what is not read is skipped.

    An export without tables (xctrace writes one, and exits with 0, where nothing matched) yields none. Raises
    UnreadableReport for what is no export of xctrace, cut off, damaged or hostile.
    """
    with reading(path, EXPORT_AGAIN, named=False), open_regular(path) as file:
        document = _Document(file)
        for node in document.nodes():
            schema = document.schema(node)
            if schema is None:
                continue
            reader = _RowReader(path, document, node, schema[1])
            run = _RUN.search(node.get("xpath", ""))
            yield ExportTable(*schema, reader.rows, int(run[1]) if run else None, path)


class _Document:
    """An export that is parsed piece by piece. Elements are dropped once they were taken."""

    def __init__(self, file: IO[bytes]) -> None:
        check_prolog(file.read(HEAD_BYTES), ROOT)
        file.seek(0)
        self._file = file
        self._ended = False
        self._pending = 0  # bytes since rows were taken
        self._builder = TreeBuilder()
        self._top = self._builder.start("document", {})  # what is parsed becomes a part of this
        self._parser = XMLParser(target=self._builder)

    def _parse_more(self) -> None:
        """Parse the next piece. Raises UnreadableReport where it is cut off, damaged or hostile."""
        chunk = self._file.read(max(CHUNK, self._pending))
        self._ended = not chunk
        try:
            if self._ended:
                self._parser.close()
            else:
                self._parser.feed(chunk)
        except ParseError as error:
            raise damage_error(error, at_end=self._ended) from error
        self._pending += len(chunk)
        if self._pending > MAX_PENDING:
            raise UnreadableReport(
                f"not an export of xctrace: one piece of it is over {MAX_PENDING >> 20} MB"
            )

    def nodes(self) -> Iterator[Element]:
        """Yield the nodes, each to be left before the next."""
        while not len(self._top):
            self._parse_more()
        root = self._top[0]
        while True:
            while not len(root) and not self._ended:
                self._parse_more()
            if not len(root):
                return
            if root[0].tag == "node":
                yield root[0]
            while self.take(root[0]):
                pass
            del root[0]

    def _is_whole(self, node: Element) -> bool:
        """Return whether the end of the node was seen."""
        root = self._top[0]
        return self._ended or not len(root) or root[-1] is not node

    def schema(self, node: Element) -> tuple[str, tuple[ExportColumn, ...]] | None:
        """Return name and columns of the node's table; None for a node without a schema."""
        while node.find("row") is None and not self._is_whole(node):
            self._parse_more()
        schema = node.find("schema")
        if schema is None:
            return None
        columns = schema.findall("col")
        if len(columns) > MAX_COLUMNS:
            raise UnreadableReport(f"not an export of xctrace: a table with more than {MAX_COLUMNS} columns")
        texts = [[(column.findtext(tag) or "").strip() for tag in _COLUMN] for column in columns]
        return schema.get("name", ""), tuple(ExportColumn(*text) for text in texts)

    def take(self, node: Element) -> list[Element]:
        """Return the next whole rows of a node; none where there are no more."""
        while True:
            whole = self._is_whole(node)
            elements = node[:] if whole else node[:-1]  # the last one may not be whole
            del node[: len(elements)]
            rows = [element for element in elements if element.tag == "row"]
            if rows:
                self._pending = 0
            if rows or whole:
                return rows
            self._parse_more()


class _RowReader:
    """Reads the rows of one node, and remembers the values of its ids.

    Of an element two things may be wanted: "" its value, "@fmt" what Instruments shows for it.
    """

    def __init__(
        self, path: Path, document: _Document, node: Element, columns: tuple[ExportColumn, ...]
    ) -> None:
        self._path, self._document, self._node, self._columns = path, document, node, columns
        self._last = 0  # the last id that was said
        # by kind; without an id there is no value
        self._values: dict[str, dict[str | None, object]] = {kind: {None: None} for kind in ("", "@fmt")}
        decoder = CellDecoder(self._values[""])
        self._take: dict[str, Callable[[Element], object]] = {
            "": decoder.value,
            "@fmt": lambda element: element.get("fmt"),
        }

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """Yield the wanted columns of all rows. Raises UnreadableReport."""
        columns = self._find_columns(wanted)
        kinds = self._kinds(columns)
        batch: list[Row] | None = None
        with reading(self._path, EXPORT_AGAIN, named=False):
            while batch is None or batch:
                with without_collector():  # it looks at every new element, for a fifth of the time
                    batch = self._next_batch(columns, kinds)
                yield from batch

    def _find_columns(self, wanted: Sequence[str]) -> list[tuple[int | None, str]]:
        """Return for each wanted name the place of its column (None: there is none), and "" or "@fmt"."""
        places = {column.mnemonic: n for n, column in reversed(list(enumerate(self._columns)))}
        parts = (name.partition("/") for name in wanted)
        return [(places.get(mnemonic), kind) for mnemonic, _, kind in parts]

    def _kinds(self, columns: Sequence[tuple[int | None, str]]) -> dict[str, set[str]]:
        """Return by tag, which is a column's type, what is to be remembered of its elements."""
        kinds: dict[str, set[str]] = {}
        for place, kind in columns:
            if place is not None:
                tag = self._columns[place].type
                for name in (tag, *(_parts_within(tag) if kind == "" else ())):
                    kinds.setdefault(name, set()).add(kind)
        return kinds

    def _next_batch(
        self, wanted: Sequence[tuple[int | None, str]], kinds: Mapping[str, set[str]]
    ) -> list[Row]:
        rows, width = self._document.take(self._node), len(self._columns)
        for row in rows:
            if len(row) != width:
                raise UnreadableReport(f"damaged: a row with {len(row)} cells in a table of {width} columns")
            self._learn(row, kinds)
        if not rows:
            return []
        cells = list(zip(*rows, strict=True))
        nothing = (None,) * len(rows)
        columns = [nothing if place is None else self._column(kind, cells[place]) for place, kind in wanted]
        return list(zip(*columns, strict=True))

    def _learn(self, row: Element, kinds: Mapping[str, set[str]]) -> None:
        """Remember the values of a row. Raises UnreadableReport for an id that is repeated or out of order."""
        for element in row.iter():
            number = element.get("id")
            if number is None:
                continue
            place = int(number) if number.isdecimal() and len(number) < 19 else -1
            if place <= self._last:
                raise UnreadableReport(f"damaged: id {number[:40]} is repeated, or out of order")
            self._last = place
            for kind in kinds.get(element.tag, ()):
                values = self._values[kind]
                values[number] = self._take[kind](element)
                if len(values) > MAX_VALUES:
                    raise UnreadableReport(f"no table of xctrace has more than {MAX_VALUES:,} values")

    def _column(self, kind: str, cells: Sequence[Element]) -> list[object]:
        values = self._values[kind]
        keys = [cell.get("ref") or cell.get("id") for cell in cells]
        if None in keys and any(k is None and c.tag != "sentinel" for k, c in zip(keys, cells, strict=True)):
            raise UnreadableReport("damaged: a cell without an id")
        try:
            return [values[key] for key in keys]
        except KeyError:
            lost = next(n for n, key in enumerate(keys) if key not in values)
            raise unknown_id(str(keys[lost]), cells[lost].tag) from None


def _parts_within(tag: str) -> list[str]:
    """Return the tags of a structure's parts, and of the parts of these."""
    return [name for part in PARTS.get(tag, ()) for name in (part, *_parts_within(part))]
