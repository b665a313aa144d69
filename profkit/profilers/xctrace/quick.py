"""An export read a megabyte at a time: expat looks whether all of it is in order, expressions take out what is wanted.

Expat without handlers reads XML three times as fast as with them. So it is only asked whether the text is well-formed;
the rows, which xctrace writes in one fixed way, are found by a regular expression made for the table. Whatever does not
fit raises Irregular: then the file is read by `careful`, with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pyexpat import ExpatError
from typing import IO

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.careful import ROOT, broken, new_parser
from profkit.profilers.xctrace.cells import Cell
from profkit.profilers.xctrace.definitions import Definitions, Irregular
from profkit.profilers.xctrace.fast_columns import Found, Stores, Wanted, part, split_wanted
from profkit.profilers.xctrace.header import Header
from profkit.profilers.xctrace.row_pattern import ANY, Kind, RowPattern, kind_of, row_pattern
from profkit.profilers.xctrace.table import Column, Row

CHUNK = 1 << 20
MOST_ROW = 1 << 25  # bytes; a stack of a thousand frames has 200 kB
_ROW_OR_END = re.compile(rb"<row[\s/>]|</node\s*>")
_ENCODING = re.compile(rb"""<\?xml[^>]*encoding\s*=\s*["']([^"']*)""")
_END = b"</node>"
_UTF8 = (b"utf-8", b"utf8", b"us-ascii", b"ascii")


class Quick:
    """One export; ask for a `header`, then for its rows, in turn. `rows` counts those that were whole."""

    def __init__(self, file: IO[bytes], again: IO[bytes]) -> None:
        self.rows = 0
        self._file = file
        self._definitions = Definitions(again)
        self._parser = new_parser()
        self._data = b""  # read, and not yet given to expat
        self._place = 0  # where it stands in the file
        self._ended = False
        self._depth = 0
        self._header: Header | None = None
        self._in_rows = False
        self._begin()

    def _begin(self) -> None:
        self._fill()
        encoding = _ENCODING.match(self._data[:512])
        if b"\0" in self._data[:4096] or (encoding is not None and encoding[1].lower() not in _UTF8):
            raise Irregular

    def header(self) -> Header | None:
        """The head of the next node; None where there is none. What is left of the rows before is passed over."""
        if self._in_rows:
            for _ in self.batches((), ()):
                pass
        self._handle(on=True)
        while True:
            if self._data.startswith(_END):
                self._feed(len(_END))
            match = _ROW_OR_END.search(self._data)
            head = self._data[: match.start()] if match is not None else self._data
            if b"<!" in head or head.count(b"<?") > (self._place == 0):
                raise Irregular
            if match is not None:
                if match[0] not in (_END, b"<row>"):
                    raise Irregular  # a row with attributes
                self._feed(match.start())
                header = self._header
                if header is None:
                    raise Irregular  # a row outside of a node
                if match[0] == _END and header.schema is None:
                    continue  # nothing in it
                self._handle(on=False)
                self._in_rows = True
                return header
            if self._ended:
                self._feed(len(self._data), final=True)
                return None
            if len(self._data) > MOST_ROW:
                raise Irregular
            self._fill()

    def batches(
        self, columns: Sequence[Column], wanted: Sequence[str], *, strict: bool = False
    ) -> Iterator[list[Row]]:
        """The rows of this node, as many at a time as a megabyte holds."""
        take = _Taker(columns, wanted, self._definitions, strict=strict) if wanted else None
        while True:
            if _may_hide(self._data):
                raise Irregular
            end = self._data.find(_END)
            cut = end if end >= 0 else self._data.rfind(b"</row>") + 6
            if end >= 0 or cut > 5:
                piece, place = self._data[:cut], self._place
                self._feed(cut)
                self._definitions.note(piece, place)
                rows = piece.count(b"<row")
                batch = take.rows(piece, rows) if take is not None and rows else None
                self.rows += rows
                if batch is not None:
                    yield batch
            if end >= 0:
                self._in_rows = False
                return
            if self._ended:
                self._feed(len(self._data), final=True)  # without </node>, so this says what is wrong
                raise Irregular
            if len(self._data) > MOST_ROW:
                raise UnreadableReport(f"not an export of xctrace: a row of more than {MOST_ROW >> 20} MB")
            self._fill()

    def _fill(self) -> None:
        more = self._file.read(max(CHUNK, len(self._data)))
        self._ended = not more
        self._data += more

    def _feed(self, size: int, *, final: bool = False) -> None:
        piece = self._data[:size]
        try:
            self._parser.Parse(piece, final)
        except ExpatError as error:
            whole = piece[: max(0, self._parser.ErrorByteIndex - self._place)].count(b"</row>")
            raise broken(error, self.rows + whole, at_end=final) from error
        self._data = self._data[size:]
        self._place += size

    def _handle(self, *, on: bool) -> None:
        self._parser.StartElementHandler = self._start if on else None
        self._parser.EndElementHandler = self._end if on else None
        self._parser.CharacterDataHandler = self._text if on else None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and tag != ROOT:
            raise UnreadableReport(f"not an export of a table by xctrace: it begins with <{tag[:40]}>")
        if self._depth == 2:
            self._header = Header(attributes.get("xpath", "")) if tag == "node" else None
        elif self._header is not None:
            self._header.start(tag, attributes)
        if self._depth > 16:
            raise Irregular

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            self._header = None
        elif self._header is not None:
            self._header.end(tag)

    def _text(self, text: str) -> None:
        if self._header is not None:
            self._header.text(text)


def _may_hide(data: bytes) -> bool:
    """Whether there is a comment, a CDATA section or an instruction, in which rows may stand that are none."""
    return (b"!" in data and b"<!" in data) or (
        b"?" in data and b"<?" in data
    )  # one sign is looked for much faster


class _Taker:
    """Takes the wanted columns out of pieces of a table."""

    def __init__(
        self, columns: Sequence[Column], wanted: Sequence[str], definitions: Definitions, *, strict: bool
    ) -> None:
        self._columns, self._strict = columns, strict
        self._definitions = definitions
        self._asked = split_wanted(columns, wanted)
        whats: dict[int, list[str]] = {}
        for place, what in self._asked:
            if place is not None and what not in whats.setdefault(place, []):
                whats[place].append(what)
        kinds: dict[int, Kind] = {}
        for place, what_of_it in whats.items():
            kind = kind_of(columns[place], parts="*" in what_of_it)
            kinds[place] = "text" if kind == "number" and "@fmt" in what_of_it else kind
        found = row_pattern(columns, kinds)
        if found is None:
            raise Irregular
        self._pattern: RowPattern = found
        parts = any("*" in what_of_it for what_of_it in whats.values())
        tags = {columns[place].type for place in kinds}
        stores = {tag: Stores(tag, definitions, parts=parts) for tag in tags}
        self._wanted = {
            place: Wanted(stores[columns[place].type], kind, whats[place]) for place, kind in kinds.items()
        }

    def rows(self, piece: bytes, count: int) -> list[Row]:
        """The rows of a piece that has so many."""
        found = self._pattern.pattern.findall(piece)
        if len(found) == count:
            return self._made(found)
        return self._one_by_one(piece)

    def _made(self, found: Sequence[Sequence[bytes]]) -> list[Row]:
        if not found:
            return []
        columns: list[Found] = list(zip(*found, strict=True)) if self._wanted else []
        groups = {place: [columns[at] for at in places] for place, places in self._pattern.groups.items()}
        for place, wanted in self._wanted.items():
            wanted.say(groups[place])
        taken = {place: wanted.take(groups[place]) for place, wanted in self._wanted.items()}
        nothing: Sequence[object] = [None] * len(found)
        asked = [nothing if place is None else taken[place][what] for place, what in self._asked]
        return list(zip(*asked, strict=True))

    def _one_by_one(self, piece: bytes) -> list[Row]:
        """A piece in which some row is not as others are: those that fit as above, the others element by element."""
        fitting: list[Sequence[bytes]] = []
        others: dict[int, Row] = {}
        pieces = piece.split(b"</row>")
        if pieces.pop().strip():
            raise Irregular
        for number, one in enumerate(pieces):
            row = one.lstrip() + b"</row>"
            match = self._pattern.pattern.fullmatch(row)
            if match is not None:
                fitting.append(match.groups(b""))
            else:
                others[number] = self._slowly(row)
        made = iter(self._made(fitting))
        return [others[number] if number in others else next(made) for number in range(len(pieces))]

    def _slowly(self, row: bytes) -> Row:
        cells: list[Cell | None] = []
        if not row.startswith(b"<row>") or row.count(b"<row") > 1:
            raise Irregular
        try:
            self._definitions.parse(row, cells.append)
        except ExpatError as error:
            raise Irregular from error
        if len(cells) != 1 or cells[0] is None:
            raise Irregular
        return pick(cells[0].parts, self._asked, self._columns, strict=self._strict)


def pick(
    cells: Sequence[Cell | None],
    asked: Sequence[tuple[int | None, str]],
    columns: Sequence[Column],
    *,
    strict: bool,
) -> Row:
    """What is asked for of one row.

    Raises UnreadableReport where it has not as many cells as the table has columns, or where `strict` wants them to
    be of the columns' types and they are not.
    """
    if len(cells) != len(columns):
        raise UnreadableReport(f"damaged: a row with {len(cells)} cells in a table of {len(columns)} columns")
    if strict:
        for cell, column in zip(cells, columns, strict=True):
            if cell is not None and cell.tag != column.type and column.type != ANY:
                raise UnreadableReport(
                    f"a table without a schema, whose cells are not those of the one before it: <{cell.tag[:40]}> "
                    f"in the column {column.mnemonic[:40]}",
                    "export one table at a time",
                )
    return tuple([None if place is None else part(cells[place], what) for place, what in asked])  # type: ignore[misc]
