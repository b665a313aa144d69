"""One pass over a callgrind file: own costs per function, calls between functions, and each dump's header.

The grammar is valgrind's "Callgrind Format Specification"; it is also written by Xdebug, pprof,
pyprof2calltree and others, with events of their own. Positions are not followed here: a function's sums do
not need them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from profkit.core.errors import UnreadableReport
from profkit.profilers.valgrind.lines import add_columns, chunks_of_lines
from profkit.profilers.valgrind.names import Names, without_level

_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9 ]*):(.*)", re.DOTALL)
_MOST_EVENTS = 100  # a line with more is no list of events but an attack on memory


class Function(NamedTuple):
    """What tells one function from another: a static function's name may stand in many files."""

    library: str
    file: str
    name: str


@dataclass
class Dump:
    """One dump (part) of a file. Costs are in the order of `events`."""

    header: dict[str, str] = field(default_factory=dict)
    descriptions: list[str] = field(default_factory=list)
    events: tuple[str, ...] = ()
    positions: int = 1
    totals: tuple[int, ...] | None = None
    summary: tuple[int, ...] | None = None
    own: dict[Function, list[int]] = field(default_factory=dict)
    calls: dict[tuple[Function, Function], list[int]] = field(default_factory=dict)  # [calls, first event]


def tally(path: Path) -> list[Dump]:
    """Every dump in the callgrind file at `path`, with its costs summed by function.

    Raises UnreadableReport where the file breaks the grammar.
    """
    tally = _Tally(path)
    for lines in chunks_of_lines(path):
        tally.take(lines)
    return tally.finish()


class _Tally:
    """Where the reader stands in the file, and the lines it has not summed yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dumps: list[Dump] = []
        self._objects, self._files, self._functions = Names(), Names(), Names()
        self._known: dict[tuple[str, str, str], Function] = {}
        self._library = self._file = ""
        self._begin()

    def _begin(self) -> None:
        self._dump = Dump()
        self._in_body = False
        self._library = self._file = ""
        self._called_library: str | None = None
        self._called_file: str | None = None
        self._called: str = ""
        self._function = self._intern("", "", "")
        self._own: list[bytes] = []
        self._pending = {self._function: self._own}
        self._calls: list[int] | None = None  # takes the one line behind `calls=`

    def take(self, lines: list[bytes]) -> None:
        """Take one chunk of lines. Kept in one loop: a large file has tens of millions of them."""
        own, calls, skip = self._own, self._calls, self._dump.positions
        for line in lines:
            if not line:
                continue
            first = line[0]
            if 42 <= first <= 57:  # a digit, +, - or *: a position and costs
                if calls is None:
                    own.append(line)
                else:
                    calls[1] += self._inclusive(line, skip)
                    calls = None
            elif first == 99:  # c: what is called
                if line.startswith(b"cfn="):
                    self._called = self._functions.resolve(line[4:])
                elif line.startswith(b"calls="):
                    calls = self._call(line)
                else:
                    self._position(line)
            elif line.startswith(b"fn="):
                self._start_function(line)
                own = self._own
            elif first != 35:  # not a comment
                self._position(line)
                own, skip = self._own, self._dump.positions
        self._own, self._calls = own, calls
        self._sum()

    def _intern(self, library: str, file: str, name: str) -> Function:
        key = (library, file, name)
        function = self._known.get(key)
        if function is None:
            function = self._known[key] = Function(library, file, without_level(name))
        return function

    def _start_function(self, line: bytes) -> None:
        self._in_body = True
        self._function = self._intern(self._library, self._file, self._functions.resolve(line[3:]))
        self._own = self._pending.setdefault(self._function, [])

    def _inclusive(self, line: bytes, skip: int) -> int:
        """The first event's inclusive cost; the other events' are in nobody's use."""
        try:
            tokens = line.split(None, skip + 1)
            return int(tokens[skip]) if len(tokens) > skip else 0
        except ValueError as error:
            raise self._broken(line) from error

    def _call(self, line: bytes) -> list[int]:
        file = self._file if self._called_file is None else self._called_file
        library = self._library if self._called_library is None else self._called_library
        self._called_file = self._called_library = None
        called = self._intern(library, file, self._called)
        pair = (self._function, called)
        count = line[6:].split(None, 1)
        calls = self._dump.calls.get(pair)
        if calls is None:
            calls = self._dump.calls[pair] = [0, 0]
        try:
            calls[0] += int(count[0])
        except (ValueError, IndexError) as error:
            raise self._broken(line) from error
        return calls

    def _position(self, line: bytes) -> None:
        """A line that is neither a cost, a call nor a function's start."""
        key, equals, value = line.partition(b"=")
        if equals and key in (b"fl", b"fi", b"fe"):
            self._file = self._files.resolve(value)
        elif equals and key == b"ob":
            self._library = self._objects.resolve(value)
        elif equals and key in (b"cfi", b"cfl"):
            self._called_file = self._files.resolve(value)
        elif equals and key == b"cob":
            self._called_library = self._objects.resolve(value)
        elif equals and key == b"jfi":  # where a jump goes; may give a number its name
            self._files.resolve(value)
        elif equals and key == b"jfn":
            self._functions.resolve(value)
        elif equals and key in (b"jump", b"jcnd", b"rec", b"frfn"):
            pass  # the position line behind a jump has no costs and adds nothing
        else:
            self._header(line)

    def _header(self, line: bytes) -> None:
        matched = _HEADER.match(line)
        if matched is None:
            if not line.strip():
                return
            raise self._broken(line)
        key = matched[1].decode("ascii").strip().lower()
        value = matched[2].decode("utf-8", "replace").strip()
        if key in ("summary", "totals"):
            setattr(self._dump, key, _numbers(value))
            return
        if self._in_body:
            self._end()
        if key == "events":
            self._dump.events = tuple(value.split())
            if not 1 <= len(self._dump.events) <= _MOST_EVENTS:
                raise UnreadableReport(
                    f"{self._path} names {len(self._dump.events)} events, which is no profile"
                )
        elif key == "positions":
            self._dump.positions = max(1, len(value.split()))
        elif key == "desc":
            self._dump.descriptions.append(value)
        else:
            self._dump.header.setdefault(key, value)

    def _sum(self) -> None:
        """Add up the lines of this chunk and forget them."""
        dump = self._dump
        try:
            for function, lines in self._pending.items():
                if lines:
                    add_columns(_sums(dump.own, function, dump), lines, dump.positions)
                    lines.clear()
        except ValueError as error:
            raise UnreadableReport(
                f"{self._path} is no sound callgrind file: costs expected, found {error}"
            ) from error
        self._pending = {self._function: self._own}

    def _end(self) -> None:
        self._sum()
        self._dumps.append(self._dump)
        self._begin()

    def finish(self) -> list[Dump]:
        """All dumps. Raises UnreadableReport where not one names its events."""
        self._end()
        dumps = [d for d in self._dumps if d.events]
        if dumps and any("part" in d.header for d in self._dumps if not d.events):
            raise UnreadableReport(f"{self._path} was cut short: its last dump has only a header")
        if not dumps:
            raise UnreadableReport(f"{self._path} names no events: it is no callgrind file or was cut short")
        return dumps

    def _broken(self, line: bytes) -> UnreadableReport:
        shown = line[:60].decode("utf-8", "replace")
        return UnreadableReport(f"{self._path} is no sound callgrind file: cannot read {shown!r}")


def _sums(table: dict[Function, list[int]], function: Function, dump: Dump) -> list[int]:
    sums = table.get(function)
    if sums is None:
        sums = table[function] = [0] * len(dump.events)
    return sums


def _numbers(text: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(word) for word in text.split())
    except ValueError:
        return None
