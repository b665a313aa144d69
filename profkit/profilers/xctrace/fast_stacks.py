"""Stacks by one expression for a frame: a time profile consists of them, and most frames only name an id.

What does not fit (a frame with its source line, attributes in another order) is read the careful way, stack by stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.profilers.xctrace.cells import Cell
from profkit.profilers.xctrace.definitions import KEPT, Definitions, Irregular
from profkit.profilers.xctrace.text import text_of
from profkit.profilers.xctrace.values import Backtrace, Binary, Frame

TAGS = ("backtrace", "text-backtrace")
_ATTRIBUTE = rb'"([^"<\r\n\t]*)"'
_ADDRESS = rb'"(0x[0-9a-fA-F]{1,16})"'
_BINARY = rb'<binary (?:ref="(\d+)"/>|id="(\d+)" name=%s UUID=%s arch=%s load-addr=%s path=%s/>)' % (
    _ATTRIBUTE,
    _ATTRIBUTE,
    _ATTRIBUTE,
    _ADDRESS,
    _ATTRIBUTE,
)
_FRAME = re.compile(
    rb'<frame (?:ref="(\d+)"/>|id="(\d+)" name=%s addr=%s(?:/>|>\s*%s\s*</frame>))'
    % (_ATTRIBUTE, _ADDRESS, _BINARY)
)
_BEGIN = re.compile(rb'<(?:text-)?backtrace id="\d+">')


class Stacks:
    """Makes stacks of elements; remembers frames and binaries for a while, and finds them again in the file."""

    def __init__(self, tag: str, definitions: Definitions) -> None:
        self._tag, self._definitions = tag, definitions
        self._frames: dict[bytes, Frame] = {}
        self._binaries: dict[bytes, Binary] = {}

    def cells(self, elements: Sequence[bytes]) -> list[Cell | None]:
        """The cell of each element, without the elements in it."""
        if len(self._frames) > KEPT:
            self._frames.clear()
        return [self._cell(element) for element in elements]

    def _cell(self, element: bytes) -> Cell | None:
        found = _FRAME.findall(element)
        if len(found) != element.count(b"<frame") or _BEGIN.match(element) is None:
            cells: list[Cell | None] = []
            self._definitions.parse(element, cells.append)
            if len(cells) != 1:
                raise Irregular
            return cells[0]
        frames = self._frames
        stack = []
        for groups in found:
            frame = frames.get(groups[0] or groups[1])
            if frame is None:
                frame = self._again(groups[0]) if groups[0] else self._said(groups)
                frames[groups[0] or groups[1]] = frame
            stack.append(frame)
        return Cell(self._tag, Backtrace(tuple(stack)))

    def _again(self, key: bytes) -> Frame:
        value = self._definitions.look(key.decode(), "frame").value
        if not isinstance(value, Frame):
            raise Irregular
        return value

    def _said(self, groups: Sequence[bytes]) -> Frame:
        _, _, name, address, reference, identity, *told = groups
        binary = None
        if reference or identity:
            key = reference or identity
            binary = self._binaries.get(key)
            if binary is None:
                binary = self._binary_again(key) if reference else self._binary(*told)
                self._binaries[key] = binary
        return self._definitions.decoder.one(Frame(text_of(name), int(address, 16), binary))

    def _binary(self, name: bytes, uuid: bytes, arch: bytes, address: bytes, path: bytes) -> Binary:
        texts = (text_of(name), text_of(path), text_of(uuid), text_of(arch))
        return self._definitions.decoder.one(Binary(*texts, int(address, 16)))

    def _binary_again(self, key: bytes) -> Binary:
        value = self._definitions.look(key.decode(), "binary").value
        if not isinstance(value, Binary):
            raise Irregular
        return value
