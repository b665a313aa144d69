"""An export read element by element: slow, and right for whatever XML it is. What `stream` falls back on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pyexpat import ExpatError, ParserCreate, errors
from typing import IO, TYPE_CHECKING, TypeAlias

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.builder import MOST_TEXT, CellBuilder
from profkit.profilers.xctrace.cells import Cell, Decoder
from profkit.profilers.xctrace.faulty import DamagedExport
from profkit.profilers.xctrace.header import Header

if TYPE_CHECKING:
    from pyexpat import XMLParserType

CHUNK = 1 << 16
ROOT = "trace-query-result"
Cells: TypeAlias = "list[Cell | None]"
_CUT = frozenset((errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN, errors.XML_ERROR_PARTIAL_CHAR,
                  errors.XML_ERROR_UNCLOSED_CDATA_SECTION))  # fmt: skip


class Careful:
    """One export as a series of items: a `Header` for each node, then its rows as lists of cells.

    A later node without a schema gets one of its own with None for a name. `rows` counts those that were whole.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.rows = 0
        self._file = file
        self._items: deque[Header | Cells] = deque()
        self._known: dict[str, Cell] = {}
        self._row: Cells | None = None
        self._header: Header | None = None
        self._shown: Header | None = None
        self._depth = 0
        self._parser = new_parser()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._builder = CellBuilder(Decoder(), self._look, self._known.__setitem__, self._finished)

    def items(self) -> Iterator[Header | Cells]:
        """Headers and rows in the order of the file. Raises UnreadableReport where it is cut off, damaged, hostile."""
        fed = 0
        while True:
            chunk = self._file.read(CHUNK)
            fed += len(chunk)
            try:
                self._parser.Parse(chunk, not chunk)
            except ExpatError as error:
                yield from self._items
                raise broken(error, self.rows, at_end=not chunk) from error
            except UnreadableReport:
                yield from self._items
                raise
            if fed - self._parser.CurrentByteIndex > MOST_TEXT:
                raise UnreadableReport("not an export of xctrace: one piece of it is larger than 16 MB")
            while self._items:
                yield self._items.popleft()
            if not chunk:
                return

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth == 1:
            if tag != ROOT:
                raise UnreadableReport(f"not an export of a table by xctrace: it begins with <{tag[:40]}>")
        elif self._row is not None:
            self._builder.start(tag, attributes)
        elif self._depth == 2:
            self._header = Header(attributes.get("xpath", "")) if tag == "node" else None
        elif tag == "row" and self._depth == 3 and self._header is not None:
            self._show()
            self._row = []
        elif self._header is not None:
            self._header.start(tag, attributes)
        if self._depth > 256:
            raise UnreadableReport("not an export of xctrace: more than 256 elements in one another")

    def _text(self, text: str) -> None:
        if self._row is not None:
            self._builder.text(text)
        elif self._header is not None:
            self._header.text(text)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._row is not None:
            if self._builder.depth:
                self._builder.end()
            else:
                self.rows += 1
                self._items.append(self._row)
                self._row = None
        elif self._header is not None:
            if self._depth == 1:
                if self._header.schema is not None:
                    self._show()
                self._header = None
            else:
                self._header.end(tag)

    def _show(self) -> None:
        """The head of a node is whole when its first row begins, or when it ends."""
        if self._header is not None and self._shown is not self._header:
            self._items.append(self._header)
            self._shown = self._header

    def _finished(self, cell: Cell | None) -> None:
        assert self._row is not None
        self._row.append(cell)

    def _look(self, reference: str, tag: str) -> Cell:
        found = self._known.get(reference)
        if found is None:
            raise unknown(reference, tag)
        return found


def new_parser() -> XMLParserType:
    """An expat parser that refuses every DOCTYPE: an export has none, and entities are what bombs are made of."""
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    return parser


def _refuse(*_: object) -> None:
    raise UnreadableReport("hostile or no export of xctrace: it has a DOCTYPE, which exports never have")


def unknown(reference: str, tag: str) -> DamagedExport:
    """Why a reference cannot be followed."""
    return DamagedExport(
        f"damaged: <{tag[:40]}> refers to id {reference[:40]}, which was not said before", EXPORT_AGAIN
    )


EXPORT_AGAIN = "export it again from its .trace: xctrace export --input X.trace --xpath ... --output X.xml"


def broken(error: ExpatError, rows: int, *, at_end: bool) -> DamagedExport:
    """What an error of expat means, with how many rows were whole before it."""
    whole = f"after {rows:,} whole row{'' if rows == 1 else 's'}"
    if at_end and errors.messages[error.code] in _CUT:
        return DamagedExport(f"cut off {whole}: the export ends in its middle", EXPORT_AGAIN)
    text = errors.messages.get(error.code, "not well-formed")
    return DamagedExport(f"no well-formed XML at line {error.lineno} {whole}: {text}", EXPORT_AGAIN)
