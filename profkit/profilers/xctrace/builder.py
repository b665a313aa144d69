"""Cells out of the events of expat: nested elements, ids, and references to what was said before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.cells import Cell, Decoder

MOST_DEPTH = 64  # elements in one another; a frame of a stack in a narrative of a row lies at 9
MOST_PARTS = 1 << 20  # of one element; a stack has some hundred frames
MOST_TEXT = 1 << 24  # characters of one element


class CellBuilder:
    """Takes begin, text and end of elements; gives every finished top-level one to `finished`.

    `look` finds what a `ref` names; `keep` is told of every element with an id, nested ones too.
    """

    def __init__(
        self,
        decoder: Decoder,
        look: Callable[[str, str], Cell],
        keep: Callable[[str, Cell], None],
        finished: Callable[[Cell | None], None],
    ) -> None:
        self._decoder, self._look, self._keep, self._finished = decoder, look, keep, finished
        self._open: list[tuple[str, Mapping[str, str], list[str], list[Cell | None]]] = []

    @property
    def depth(self) -> int:
        """How many elements are open."""
        return len(self._open)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins. Raises UnreadableReport where elements lie in one another without end."""
        if len(self._open) >= MOST_DEPTH:
            raise UnreadableReport(
                f"not an export of xctrace: more than {MOST_DEPTH} elements in one another"
            )
        self._open.append((tag, attributes, [], []))

    def text(self, text: str) -> None:
        """Text in the element that is open."""
        if self._open:
            self._open[-1][2].append(text)

    def end(self) -> None:
        """The innermost element ends."""
        tag, attributes, texts, parts = self._open.pop()
        cell: Cell | None
        if tag == "sentinel":
            cell = None
        elif (reference := attributes.get("ref")) is not None:
            cell = self._look(reference, tag)
        else:
            text = "".join(texts)
            if len(text) > MOST_TEXT:
                raise UnreadableReport("not an export of xctrace: a value of more than 16 million characters")
            cell = self._decoder.cell(tag, attributes, text, parts)
            if (identity := attributes.get("id")) is not None:
                self._keep(identity, cell)
        if not self._open:
            self._finished(cell)
        else:
            siblings = self._open[-1][3]
            if len(siblings) >= MOST_PARTS:
                raise UnreadableReport("not an export of xctrace: one value with more than a million parts")
            siblings.append(cell)
