"""The tree of the stacks in which one process was seen: its functions, their lines, and nodes that have numbers."""

from __future__ import annotations

import os

from ..own_library import is_own
from ..values import FunctionValues, cache_uses, is_grouping, is_keepable
from .rows import line_at

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from .rows import Row

DEEP = 100  # frames of a stack that costs more than to look at it
MAX_NODES = 60_000  # frames of the tree of stacks: 2 MB of text
MAX_FUNCTIONS = 20_000
MAX_RECURSIVE_CALLS = 20  # of a function, whose arguments are looked at
ROOT, OURS = 0, -1  # of the tree; what we did in the program's thread
# numbers of frames: the import system, and what came after the bounds; REST is a node, too
IMPORT, REST = 0, 1
FIXED = ("[import]", "[more functions]")  # their names
_WIDTH = 20  # bits of a frame's number
_INSTALLED = ("site-packages", "dist-packages", "/lib/python")
# What the companion of torch does for itself waits for the device: it is no part of the program.
_COMPANION = {
    "operation_lines.py": ("_begin", "_stop", "_line_text", "_follow_memory", "_look_at_memory"),
    "operation_window.py": ("_mark_unit",),
}
_IMPORT_SYSTEM = ("<frozen importlib", "<frozen zipimport")
_OUR_START = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "start_up", ""
)


class Function:
    """A code object, which is kept so that its address stays its own, and the numbers of its lines."""

    __slots__ = ("code", "companion", "fixed", "groups", "hidden", "lines", "number", "users", "values")

    def __init__(self, code: CodeType, number: int, fixed: int | None = None) -> None:
        self.code, self.number = code, number
        # the frame of all its lines
        self.fixed = IMPORT if code.co_filename.startswith(_IMPORT_SYSTEM) else fixed
        self.hidden = is_own(code.co_filename) or code.co_filename.startswith(_OUR_START)
        ours = _COMPANION.get(os.path.basename(code.co_filename), ()) if self.hidden else ()
        self.companion = code.co_name in ours
        self.lines: dict[int, int] = {}  # offset of the instruction -> number of the frame
        self.users = not self.hidden and self.fixed is None and not _is_installed(code.co_filename)
        self.values = FunctionValues() if self.users or is_keepable(code) else None
        self.groups = not self.users and is_grouping(code)


class StackTree:
    """What was seen so far, and in `functions` and `nodes` what of it is not in the file yet."""

    def __init__(self) -> None:
        self.known: dict[int, Function] = {}  # by the address of the code
        self.deep = False  # a stack since this was set to False has more than DEEP frames
        self.functions: list[list[Any]] = []  # rows for the file
        self.nodes: list[list[Any]] = []
        self._frames: dict[tuple[int, int], int] = {}  # function and line -> number of the frame
        self._places: list[tuple[int, int]] = [(IMPORT, 0), (REST, 0)]  # and back
        self._numbers: dict[int, int] = {}

    def node_of(self, rows: list[Row]) -> int:
        """Return the number of a stack in the tree; a recursive function appears once, at its last line."""
        self.deep = self.deep or len(rows) > DEEP
        functions = self.known
        numbers: list[int] = []
        last: Function | None = None
        for code, offset in rows:
            function = functions.get(id(code))
            if function is None:
                function = self.add_function(code)
            if function.companion:
                return OURS
            if function is not last and not function.hidden:
                number = function.fixed
                if number is None:
                    number = function.lines.get(offset)
                    if number is None:
                        number = self._add_line(function, offset)
                    numbers.append(number)
                elif not numbers or numbers[-1] != number:
                    numbers.append(number)
                last = function
        nodes, node = self._numbers, ROOT
        for number in reversed(numbers):
            child = nodes.get(node << _WIDTH | number)
            if child is None:
                if len(nodes) >= MAX_NODES:
                    return REST
                child = nodes[node << _WIDTH | number] = len(nodes) + REST + 1
                self.nodes.append([child, node, *self._places[number]])
            node = child
        return node or REST

    def add_function(self, code: CodeType) -> Function:
        """Return what is kept of a function that is seen for the first time."""
        if len(self.known) >= MAX_FUNCTIONS:  # a program that makes code without end
            return Function(code, REST, REST)
        number = len(self.known) + len(FIXED)
        function = self.known[id(code)] = Function(code, number)
        if function.fixed is None and not function.hidden:
            name = getattr(code, "co_qualname", code.co_name)  # 3.11
            self.functions.append([number, name, code.co_filename, code.co_firstlineno])
        return function

    def _add_line(self, function: Function, offset: int) -> int:
        place = function.number, line_at(function.code, offset)
        number = self._frames.get(place)
        if number is None:
            number = self._frames[place] = len(self._places)
            self._places.append(place)
        function.lines[offset] = number
        return number

    def look_at_values(self, frame: FrameType | None) -> None:
        """Note the variables of the innermost function of the program, and the arguments of libraries that it calls.

        `frame`: the innermost frame of a thread.
        """
        innermost, grouping = frame, None
        while frame is not None:
            function = self.known.get(id(frame.f_code))
            if function is not None and function.groups:
                grouping = frame
            elif function is not None and function.values is not None and not function.users:
                # re._compile mostly finds what it compiled before, and calls nothing then.
                if frame is not innermost or function.code.co_name != "_compile":
                    function.values.look_at_arguments(frame)
            elif function is not None and function.values is not None:
                function.values.look(frame)
                if grouping is not None:
                    function.values.look_at_groups(grouping, frame.f_lineno)
                outer = frame.f_back
                for _ in range(MAX_RECURSIVE_CALLS):  # of itself: a recursion has its arguments on the stack
                    if outer is None or outer.f_code is not frame.f_code:
                        break
                    function.values.look(outer)
                    outer = outer.f_back
                caller = self.known.get(id(outer.f_code)) if outer is not None else None
                if outer is not None and caller is not None and caller.users and caller.values is not None:
                    caller.values.look_from_below(outer)
                return
            frame = frame.f_back

    def values_seen(self) -> list[list[object]]:
        """Return, by function, its looks, its number of different arguments (-1: unknown), and types of variables."""
        caches = cache_uses(lambda file: not _is_installed(file) and not is_own(file))
        return [
            [
                function.number,
                seen.looks,
                -1 if seen.arguments is None else len(seen.arguments),
                {**seen.types, **caches.get(id(function.code), {})},
            ]
            for function in self.known.values()
            if (seen := function.values) is not None and (seen.looks or seen.types)
        ]


def _is_installed(file: str) -> bool:
    return file.startswith("<") or any(part in file for part in _INSTALLED)
