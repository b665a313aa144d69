"""Where in an export each id was said: found again in the file when a reference asks for it, so nothing need be kept.

xctrace numbers the elements of an export in the order in which they stand, and leaves no number out. So the first id of
every 64 KiB is enough to find any: an index of 20 bytes for each, some megabytes for an export of 6 GB.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pyexpat import ExpatError
from typing import IO

from profkit.profilers.xctrace.builder import CellBuilder
from profkit.profilers.xctrace.careful import new_parser, unknown
from profkit.profilers.xctrace.cells import Cell, Decoder

BLOCK = 1 << 16
MOST_ELEMENT = 1 << 22  # bytes of one element that a reference names
MANY = 8  # ids of one block that are worth a look at all of it
KEPT = 100_000  # cells that are kept; twice as many at most
_ID = re.compile(rb' id="([^"]*)"')
_OPENING = re.compile(rb'<([A-Za-z_][\w.-]*)(?: [A-Za-z_][\w.:-]*="[^"<]*")*(/?)>')


class Irregular(Exception):
    """Not written as xctrace writes: to be read element by element from its begin."""


class Definitions:
    """The ids of an export that is being read from `file`; `note` is called with each piece of it in turn."""

    def __init__(self, file: IO[bytes]) -> None:
        self.decoder = Decoder()
        self._file = file
        self._first = array("q")  # the first id of a block
        self._place = array("q")  # where its attribute stands in the file
        self._next: int | None = None  # the id that must follow
        self._young: dict[str, Cell] = {}
        self._old: dict[str, Cell] = {}
        self._looking: set[str] = set()

    def note(self, data: bytes, place: int) -> None:
        """Index a piece that stands at `place`. Raises Irregular where an id does not follow upon the one before."""
        said = _ID.findall(data)
        if not said:
            return
        number = self._next
        if number is None:
            if not said[0].isdigit() or len(said[0]) > 18:
                raise Irregular
            number = int(said[0])
        self._next = number + len(said)
        if said != [b"%d" % one for one in range(number, self._next)]:
            raise Irregular
        at = 0
        while (match := _ID.search(data, at)) is not None:
            self._first.append(int(match[1]))
            self._place.append(place + match.start())
            at = max(at + BLOCK, match.end())

    def keep(self, identity: str, cell: Cell) -> None:
        """Remember what an id is, for some time."""
        if len(self._young) >= KEPT:
            self._old, self._young = self._young, {}
        self._young[identity] = cell

    def look(self, reference: str, tag: str) -> Cell:
        """What an id is. Raises UnreadableReport where it was not said."""
        found = self._young.get(reference)
        if found is None:
            found = self._old.get(reference)
            if found is None:
                found = self._searched(reference, tag)
            self.keep(reference, found)
        return found

    def prepare(self, references: Iterable[str], tag: str) -> None:
        """Look many ids up at once: cheaper than one by one where they stand close together."""
        blocks: dict[int, list[str]] = {}
        for reference in references:
            if reference not in self._young and reference not in self._old and reference.isdecimal():
                block = bisect_right(self._first, int(reference[:18])) - 1
                blocks.setdefault(block, []).append(reference)
        simple = re.compile(
            rb'<%s id="(\d+)"(?: fmt="([^"<&\r\n\t]*)")?>([^<&\r]+)</' % re.escape(tag.encode())
        )
        for block, wanted in blocks.items():
            if block < 0 or len(wanted) < MANY:
                continue
            asked = frozenset(wanted)
            for number, fmt, text in simple.findall(self._block(block, 4096)):
                identity = number.decode()
                if identity in asked:
                    attributes = {"fmt": fmt.decode()} if fmt else {}
                    self.keep(identity, self.decoder.cell(tag, attributes, text.decode()))

    def parse(self, data: bytes, finished: Callable[[Cell | None], None]) -> None:
        """Build the cells of some elements, given as they stand in the file, with all that they refer to."""
        builder = CellBuilder(self.decoder, self.look, self.keep, finished)
        parser = new_parser()
        depth = 0

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > 1:
                builder.start(tag, attributes)

        def end(_: str) -> None:
            nonlocal depth
            depth -= 1
            if depth > 0:
                builder.end()

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = builder.text
        parser.Parse(b"<r>" + data + b"</r>", True)

    def _searched(self, reference: str, tag: str) -> Cell:
        if not reference.isascii() or not reference.isdecimal() or len(reference) > 18:
            raise unknown(reference, tag)
        block = bisect_right(self._first, int(reference)) - 1
        if block < 0 or int(reference) >= (self._next or 0) or reference in self._looking:
            raise unknown(reference, tag)
        self._looking.add(reference)
        try:
            cells: list[Cell | None] = []
            element = self._element(block, reference)
            if element is None:
                raise Irregular
            self.parse(element, cells.append)
        except ExpatError as error:  # an element in another of its own name
            raise Irregular from error
        finally:
            self._looking.discard(reference)
        if len(cells) != 1 or cells[0] is None:
            raise Irregular
        return cells[0]

    def _element(self, block: int, reference: str) -> bytes | None:
        """The element with that id, as it stands in the file."""
        needle = b' id="%s"' % reference.encode()
        more = 4096
        while True:
            data = self._block(block, more)
            at = data.find(needle)
            while at >= 0:
                opening = _OPENING.match(data, data.rfind(b"<", 0, at))
                if opening is not None and opening.end() > at:
                    break
                at = data.find(needle, at + 1)  # it was in a text
            if at < 0:
                return None
            assert opening is not None
            if opening[2]:
                return opening[0]
            end_tag = b"</" + opening[1] + b">"
            end = data.find(end_tag, opening.end())
            if end >= 0:
                return data[opening.start() : end + len(end_tag)]
            if more > MOST_ELEMENT:
                raise Irregular
            more *= 8

    def _block(self, block: int, more: int) -> bytes:
        """A block, with what its last element may have beyond its end; `<` of the first stands before its id."""
        begin = max(0, self._place[block] - 256)
        end = self._place[block + 1] if block + 1 < len(self._place) else self._place[block] + 2 * BLOCK
        self._file.seek(begin)
        return self._file.read(end - begin + more)
