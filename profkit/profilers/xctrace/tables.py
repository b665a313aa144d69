"""The tables of an export of xctrace, row by row, in memory that does not grow with the file.

An export is `<trace-query-result><node xpath=".."><schema name=".."><col>..</col></schema><row>..</row></node>`. Each
cell is called by the engineering type of its column; a `<sentinel/>` has no value. What is said for the first time has
an `id`, what is said again is a `ref` to that. A small piece of the file is parsed at a time; the wanted columns of its
whole rows are taken, and the elements dropped. A value that was forgotten is found again in the file by its id.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import lt
from pathlib import Path
from pyexpat import ExpatError
from typing import IO, TYPE_CHECKING, TypeAlias
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser, fromstring

from profkit.core.codec import without_collector
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.xctrace.cells import MOST_DEPTH, CellDecoder, Value
from profkit.profilers.xctrace.toc import DamagedExport, TraceRun, damage_error, name_file, new_parser

if TYPE_CHECKING:
    from pyexpat import XMLParserType

CHUNK = (
    1 << 14
)  # bytes parsed at a time: elements of 64 KiB fall out of the processor's cache, and cost 20 % of speed
MOST_PENDING = 4 << 20  # bytes without a whole row; a stack of a thousand frames has 200 kB
MOST_COLUMNS = 4096
KEPT = 100_000  # values of one kind that are remembered; twice as many at most
BLOCK = 1 << 16  # bytes of the file for which one id is noted
_COLUMN = ("mnemonic", "name", "engineering-type")
ROOT, ANY, SENTINEL = "trace-query-result", "any", "sentinel"

_PLACE = re.compile(r"/run\[(?:@number=[\"'])?(\d{1,9})[\"']?\].*?/table\[(\d{1,9})\]")
_ID = re.compile(rb' id="(\d{1,18})"')
_OPENING = re.compile(rb'<([A-Za-z_][\w.-]*)(?:\s+[A-Za-z_][\w.:-]*="[^"<]*")*\s*(/?)>')


Row: TypeAlias = "tuple[Value | tuple[Value, ...], ...]"


@dataclass(frozen=True)
class ExportColumn:
    """One column: `mnemonic` names it, `name` is its heading, `type` the engineering type (the tag of its cells)."""

    mnemonic: str
    name: str
    type: str


@dataclass(frozen=True)
class ExportTable:
    """One table of an export, read as far as its schema.

    `run` and `position` say where it stood in the recording (both count from 1, None where not known); `attributes`
    are those of its entry in the table of contents ("target-pid", "pmc-events"), empty where that is not at hand.
    """

    schema: str
    columns: tuple[ExportColumn, ...]
    open_rows: Callable[[Sequence[str]], Iterator[Row]] = field(repr=False, compare=False)
    run: int | None = None
    position: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """The rows as tuples, in the order of `wanted`; to be taken once, before the next table is asked for.

        `wanted` are mnemonics. `label/@fmt` is the text that Instruments shows for the column `label`
        ("1.25 GB/s"); `label/*` is the tuple of the values in it. A column that is not there, and a cell without
        a value, are None. Numbers are whole where the column's type says so (times in ns, ids, sizes in bytes), float
        for percent and decimals, text elsewhere; processes, threads and stacks are objects, equal ones the same.
        Raises UnreadableReport where the export is cut off, damaged or hostile.
        """
        return self.open_rows(wanted)


def read_tables(path: Path, runs: Sequence[TraceRun] = ()) -> Generator[ExportTable, None, None]:
    """The tables of one exported XML, each to be read before the next is asked for; what is not read is skipped.

    `runs` are those of the recording's table of contents: with them a table has its `attributes`. An export without
    tables (xctrace writes one, and exits with 0, where nothing matched) gives none. A later node without a schema has
    that of the one before it. Raises UnreadableReport for what is no export of xctrace, cut off, damaged or hostile.
    """
    with name_file(path), open_regular(path) as file, open_regular(path) as again:
        document = _Document(file, again)
        before: tuple[str, tuple[ExportColumn, ...]] | None = None
        for node in document.nodes():
            schema = document.schema(node) or before
            if schema is None:
                if document.has_rows(node):
                    raise UnreadableReport("not an export of a table by xctrace: it has no schema")
                continue
            reader = _RowReader(path, document, node, schema[1], strict=schema is before)
            before = schema
            place = _PLACE.search(node.get("xpath", ""))
            run, position = (int(place[1]), int(place[2])) if place else (None, None)
            entry = next((r.table(schema[0], position) for r in runs if run in (None, r.number)), {})
            yield ExportTable(*schema, reader.rows, run, position, entry, path)


class _Document:
    """An export that is parsed piece by piece. What was taken of its elements is dropped."""

    def __init__(self, file: IO[bytes], again: IO[bytes]) -> None:
        self.ids = _Ids(again)
        self.rows = 0  # that were taken, or passed over
        self.ended = False
        self._file = file
        self._place = 0  # bytes read so far
        self._pending = 0  # bytes since rows were taken
        self._builder = TreeBuilder()
        self._top = self._builder.start("document", {})  # what is parsed becomes a part of this
        self._parser = XMLParser(target=self._builder)
        self._prolog: XMLParserType | None = (
            new_parser()
        )  # looks for a DOCTYPE, which may only come before the root
        self._prolog.StartElementHandler = self._leave_prolog

    def _leave_prolog(self, tag: str, _: object) -> None:
        if self._prolog is not None and tag != ROOT:
            raise UnreadableReport(f"not an export of a table by xctrace: it begins with <{tag[:40]}>")
        self._prolog = None

    def parse_more(self) -> None:
        """Parse the next piece. Raises UnreadableReport where it is cut off, damaged or hostile."""
        chunk = self._file.read(max(CHUNK, self._pending))
        self.ended = not chunk
        if self._prolog is not None:
            with suppress(ExpatError):  # the other parser will meet it, too
                self._prolog.Parse(chunk, self.ended)
        try:
            if self.ended:
                self._parser.close()
            else:
                self._parser.feed(chunk)
        except ParseError as error:
            raise damage_error(error, self.rows + self._rows_in_memory(), at_end=self.ended) from error
        self.ids.note(chunk, self._place)
        self._place += len(chunk)
        self._pending += len(chunk)
        if self._pending > MOST_PENDING:
            raise UnreadableReport(
                f"not an export of xctrace: one piece of it is over {MOST_PENDING >> 20} MB"
            )

    def _rows_in_memory(self) -> int:
        """Whole rows that were parsed and not taken; the last one may be open."""
        rows = [row for root in self._top for node in root for row in node if row.tag == "row"]
        mark = self._builder.start("mark", {})
        return len(rows) - (1 if rows and any(element is mark for element in rows[-1].iter()) else 0)

    def nodes(self) -> Iterator[Element]:
        """The nodes, each to be left before the next is asked for."""
        while not len(self._top):
            self.parse_more()
        root = self._top[0]
        while True:
            while not len(root) and not self.ended:
                self.parse_more()
            if not len(root):
                return
            if root[0].tag == "node":
                self.ids.forget()
                yield root[0]
            while self.take(root[0]):
                pass
            del root[0]

    def is_whole(self, node: Element) -> bool:
        """Whether the end of the node was seen."""
        root = self._top[0]
        return self.ended or not len(root) or root[-1] is not node

    def has_rows(self, node: Element) -> bool:
        """Whether there is a row in the node: it is parsed as far as that takes."""
        while node.find("row") is None:
            if self.is_whole(node):
                return False
            self.parse_more()
        return True

    def schema(self, node: Element) -> tuple[str, tuple[ExportColumn, ...]] | None:
        """Name and columns of the node's table; None where it tells none."""
        self.has_rows(node)
        schema = node.find("schema")
        if schema is None:
            return None
        columns = schema.findall("col")
        if len(columns) > MOST_COLUMNS:
            raise UnreadableReport(f"not an export of xctrace: a table with more than {MOST_COLUMNS} columns")

        texts = [[(column.findtext(tag) or "").strip() for tag in _COLUMN] for column in columns]
        return schema.get("name", ""), tuple(ExportColumn(*text) for text in texts)

    def take(self, node: Element) -> list[Element]:
        """The next whole rows of a node; none where there are no more."""
        while True:
            whole = self.is_whole(node)
            elements = node[:] if whole else node[:-1]  # the last one may not be whole
            del node[: len(elements)]
            rows = [element for element in elements if element.tag == "row"]
            if rows:
                self.rows += len(rows)
                self._pending = 0
            if rows or whole:
                return rows
            self.parse_more()


class _Ids:
    """What the ids of an export mean: remembered for a while, then found again in the file.

    `kind` is what is wanted of an element: "" its value, "@fmt" what Instruments shows for it, "*" the values in it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._young: dict[str, dict[str | None, object]] = {}  # by kind; without an id there is no value
        self._old: dict[str, dict[str | None, object]] = {}
        self._last = -1  # the last id that was said
        self._in_order = True
        self._forgot = False
        self._blocks: list[tuple[int, int]] = []  # the first id of a block, and where it stands
        self._end = 0
        self._looking: set[str] = set()
        decoder = CellDecoder(lambda number, tag: self._find("", number, tag), self._keep)  # type: ignore[arg-type, return-value]
        self._take: dict[str, Callable[[Element], object]] = {
            "": decoder.value,
            "@fmt": lambda element: element.get("fmt"),
            "*": lambda element: tuple(map(decoder.part, element)),
        }
        self.forget()

    def forget(self) -> None:
        """Forget all values: another table begins, and may begin to count again."""
        self._young = {kind: {None: None} for kind in ("", "@fmt", "*")}
        self._old = {kind: {} for kind in self._young}
        self._last = -1

    def note(self, chunk: bytes, place: int) -> None:
        """A piece of the file that stands at `place`."""
        self._end = place + len(chunk)
        if self._blocks and place < self._blocks[-1][1] + BLOCK:
            return
        match = _ID.search(chunk)
        if match is not None:
            number = int(match[1])
            self._in_order &= not self._blocks or number > self._blocks[-1][0]
            self._blocks.append((number, place + match.start()))

    def learn(self, rows: Element, wanted: Mapping[str, Sequence[str]]) -> None:
        """Remember what these rows say: by tag what is wanted of its elements; "" stands for every other tag."""
        if any(len(values) > KEPT for values in self._young.values()) and self._in_order:
            self._old, self._young = self._young, {kind: {None: None} for kind in self._young}
            self._forgot = True
        fresh = [element for element in rows.iter() if element.get("id")]
        self._check_order([element.get("id", "") for element in fresh])
        takers = {
            tag: [(self._take[kind], self._young[kind]) for kind in kinds] for tag, kinds in wanted.items()
        }
        of_every_tag = takers.get("", [])
        for element in fresh:
            for take, values in takers.get(element.tag, of_every_tag):
                values[element.get("id")] = take(element)

    def _check_order(self, numbers: Sequence[str]) -> None:
        """Raise DamagedExport where an id does not follow upon those before it and may mean something else."""
        order = [int(number) if number.isdecimal() and len(number) < 19 else -1 for number in numbers]
        if all(map(lt, (self._last, *order), order)):
            self._last = order[-1] if order else self._last
            return
        self._in_order = False
        said = set().union(*self._young.values())
        for number in numbers:
            if self._forgot or number in said:
                raise DamagedExport(f"damaged: id {number[:40]} is said again, or out of order")
            said.add(number)

    def _keep(self, number: str, value: Value) -> None:
        self._young[""][number] = value

    def column(self, kind: str, cells: Sequence[Element]) -> Sequence[object]:
        """What is wanted of each of these cells."""
        values = self._young[kind]
        keys = [cell.get("ref") or cell.get("id") for cell in cells]
        try:
            if None not in keys or all(
                c.tag == SENTINEL for c, key in zip(cells, keys, strict=True) if key is None
            ):
                return [values[key] for key in keys]
        except KeyError:
            pass
        return [self._cell(kind, key, cell) for key, cell in zip(keys, cells, strict=True)]

    def _cell(self, kind: str, key: str | None, cell: Element) -> object:
        if key is not None and key in self._young[kind]:
            return self._young[kind][key]
        if (reference := cell.get("ref")) is not None:
            return self._find(kind, reference, cell.tag)
        return None if cell.tag == SENTINEL else self._take[kind](cell)

    def _find(self, kind: str, number: str, tag: str) -> object:
        """What an id means. Raises DamagedExport where it was not said before."""
        if number in self._young[kind]:
            return self._young[kind][number]
        if number in self._old[kind]:
            value = self._old[kind][number]
        else:
            if number in self._looking or len(self._looking) > MOST_DEPTH:
                raise _unknown_id_error(number, tag)
            self._looking.add(number)
            value = self._take[kind](self._element(number, tag))
            self._looking.discard(number)
        self._young[kind][number] = value
        return value

    def _element(self, number: str, tag: str) -> Element:
        """The element with that id, from the file."""
        if number.isascii() and number.isdecimal() and len(number) < 19:
            at = bisect_right(self._blocks, (int(number), self._end)) - 1
            if self._in_order and at >= 0:
                begin = self._blocks[at][1]
                end = self._blocks[at + 1][1] if at + 1 < len(self._blocks) else self._end
                element = self._search(number, max(0, begin - 256), end - begin + BLOCK)
            else:
                element = self._search(number, 0, self._end)
            if element is not None:
                return element
        raise _unknown_id_error(number, tag)

    def _search(self, number: str, begin: int, size: int) -> Element | None:
        """The last element with that id in `size` bytes of the file, from `begin` on."""
        self._file.seek(begin)
        data = self._file.read(size)
        at = len(data)
        while (at := data.rfind(b' id="%s"' % number.encode(), 0, at)) >= 0:
            begin = data.rfind(b"<", 0, at)
            opening = _OPENING.match(data, max(0, begin))
            if opening is None or opening.end() <= at:
                continue  # it stands in a text
            if opening[2]:
                return fromstring(opening[0])
            end_tag, end = b"</%s>" % opening[1], opening.end()
            while (end := data.find(end_tag, end) + len(end_tag)) >= len(end_tag):
                try:
                    return fromstring(data[begin:end])
                except ParseError:  # there is an element of that name in it
                    continue
        return None


def _unknown_id_error(number: str, tag: str) -> DamagedExport:
    return DamagedExport(f"damaged: <{tag[:40]}> refers to id {number[:40]}, which was not said before")


class _RowReader:
    """The rows of one node. `strict`: its schema is that of another one, so its cells must be of the columns' types."""

    def __init__(
        self,
        path: Path,
        document: _Document,
        node: Element,
        columns: tuple[ExportColumn, ...],
        *,
        strict: bool,
    ) -> None:
        self._path, self._document, self._node = path, document, node
        self._columns, self._strict = columns, strict

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """The wanted columns of all rows. Raises UnreadableReport."""
        asked = self._find_columns(wanted)
        kinds = self._kinds(asked)
        batch: list[Row] | None = None
        with name_file(self._path):
            while batch is None or batch:
                with without_collector():  # it looks at every new element, for a fifth of the time
                    batch = self._next_batch(asked, kinds)
                yield from batch

    def _next_batch(
        self, asked: Sequence[tuple[int | None, str]], kinds: Mapping[str, list[str]]
    ) -> list[Row]:
        rows, ids, width = self._document.take(self._node), self._document.ids, len(self._columns)
        for row in rows:
            if len(row) != width:
                raise UnreadableReport(f"damaged: a row with {len(row)} cells in a table of {width} columns")
        if self._strict:
            self._check(rows)
        elements = Element("rows")
        elements.extend(rows)
        ids.learn(elements, kinds)
        cells = list(zip(*rows, strict=True))
        if not rows:
            return []
        nothing = (None,) * len(rows)
        columns = [nothing if place is None else ids.column(kind, cells[place]) for place, kind in asked]
        return list(zip(*columns, strict=True))

    def _find_columns(self, wanted: Sequence[str]) -> list[tuple[int | None, str]]:
        """For each wanted name the place of its column (None: there is none), and what of it: "", "@fmt" or "*"."""
        places = {column.mnemonic: n for n, column in reversed(list(enumerate(self._columns)))}
        asked = []
        for name in wanted:
            mnemonic, kind = name, ""
            if name.endswith(("/@fmt", "/*")):
                mnemonic, _, kind = name.rpartition("/")
            asked.append((places.get(mnemonic), kind))
        return asked

    def _kinds(self, asked: Sequence[tuple[int | None, str]]) -> dict[str, list[str]]:
        """By tag what is to be remembered of its elements; the tag "" is every tag."""
        kinds: dict[str, list[str]] = {}
        for place, kind in asked:
            if place is None:
                continue
            tag = self._columns[place].type
            for name in (tag, "") if tag == ANY or kind == "*" else (tag,):
                if kind not in kinds.setdefault(name, []):
                    kinds[name].append(kind)
        if "" in kinds:
            return {"": sorted({"", *(kind for some in kinds.values() for kind in some)})}
        return kinds

    def _check(self, rows: Sequence[Element]) -> None:
        for row in rows:
            for cell, column in zip(row, self._columns, strict=True):
                if cell.tag not in (column.type, SENTINEL) and column.type != ANY:
                    raise UnreadableReport(
                        f"a table without a schema, and not as the one before: <{cell.tag[:40]}>"
                    )
