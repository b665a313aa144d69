"""Parses callgrind files: costs by function, calls, and executions by address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.files import reading

CHUNK_BYTES = 4 * 1024 * 1024  # some hundred thousand lines: enough to sum in bulk, little to hold


def chunks_of_lines(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of `path` without their ends, a chunk at a time. A line never straddles two chunks.

    Raises UnreadableReport where the file cannot be read or holds a line longer than a chunk.
    """
    with reading(path), open_regular(path) as file:
        partial = b""
        while chunk := file.read(CHUNK_BYTES):
            lines = (partial + chunk).split(b"\n")
            partial = lines.pop()
            if len(partial) > CHUNK_BYTES:
                raise UnreadableReport(
                    f"{path} holds a line of more than {CHUNK_BYTES} bytes: not a text report"
                )
            yield lines
        if partial:
            yield [partial]


def add_columns(sums: list[int], lines: list[bytes], skip: int) -> None:
    """Add the columns of `lines` behind the first `skip` ones to `sums`; missing columns at the end are zeros.

    Lines of the same width are split and summed together: several times faster than line by line. Raises
    ValueError for a column that is no number or is one too many.
    """
    by_width: dict[int, list[bytes]] = {}
    for line in lines:
        width = line.count(b" ")
        group = by_width.get(width)
        if group is None:
            by_width[width] = [line]
        else:
            group.append(line)
    for width, group in by_width.items():
        tokens = b" ".join(group).split()
        step = width + 1
        if len(tokens) != step * len(group):  # double or trailing blanks
            for line in group:
                _add_one(sums, line.split(), skip)
        elif len(group) == 1:
            _add_one(sums, tokens, skip)
        elif step - skip > len(sums):
            raise ValueError(group[0].decode("utf-8", "replace"))
        else:
            for column in range(skip, step):
                sums[column - skip] += sum(map(int, tokens[column::step]))


def _add_one(sums: list[int], tokens: list[bytes], skip: int) -> None:
    if len(tokens) - skip > len(sums):
        raise ValueError(b" ".join(tokens).decode("utf-8", "replace"))
    for column in range(skip, len(tokens)):
        sums[column - skip] += int(tokens[column])


_LEVEL = re.compile(r"'\d+$")
_NUMBERED = re.compile(rb"\((\d+)\)(?:\s+(.*))?$", re.DOTALL)


def without_level(function: str) -> str:
    """Return the function's name without callgrind's mark of a recursion level: `fib'2` is fib."""
    return _LEVEL.sub("", function)


class NameTable:
    """Resolves the names of one kind (objects, files or functions), which have numbers of their own."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def resolve(self, text: bytes) -> str:
        """Return the name that `text` stands for, which follows the `=`. An unknown number is its own name."""
        resolved = self._known.get(text)
        if resolved is not None:
            return resolved
        text = text.strip()
        numbered = _NUMBERED.match(text)
        if numbered is None:
            name = text.decode("utf-8", "replace")
        elif numbered[2] is None:
            return self._known.get(text) or text.decode("ascii", "replace")
        else:
            name = numbered[2].strip().decode("utf-8", "replace")
            self._known[b"(%s)" % numbered[1]] = name
            return name
        if len(self._known) < 1_000_000:  # an uncompressed file repeats its names too
            self._known[text] = name
        return name


_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9 ]*):(.*)", re.DOTALL)
_MAX_EVENTS = 100  # a line with more is no list of events but an attack on memory


class CallgrindFunction(NamedTuple):
    """The key of a function: a static function's name may occur in many files."""

    library: str
    file: str
    name: str


class _Position:
    """The current `function`, its object, and the `file` in which the next lines of costs were written."""

    def __init__(self) -> None:
        self._objects, self._files, self._functions = NameTable(), NameTable(), NameTable()
        self._known: dict[tuple[str, str, str], CallgrindFunction] = {}
        self.reset()

    def reset(self) -> None:
        """Begin another dump; numbers keep their names."""
        self._library = self.file = self._called = ""
        self._called_library: str | None = None
        self._called_file: str | None = None
        self.function = self._intern("", "", "")

    def take(self, line: bytes) -> bool:
        """Read a line that names something; return False for any other line."""
        key, equals, value = line.partition(b"=")
        if not equals:
            return False
        if key == b"fn":
            self.function = self._intern(self._library, self.file, self._functions.resolve(value))
        elif key == b"cfn":
            self._called = self._functions.resolve(value)
        elif key in (b"fl", b"fi", b"fe"):
            self.file = self._files.resolve(value)
        elif key == b"ob":
            self._library = self._objects.resolve(value)
        elif key in (b"cfi", b"cfl"):
            self._called_file = self._files.resolve(value)
        elif key == b"cob":
            self._called_library = self._objects.resolve(value)
        elif key == b"jfi":  # where a jump goes; may give a number its name
            self._files.resolve(value)
        elif key == b"jfn":
            self._functions.resolve(value)
        else:  # the position line behind a jump has no costs and adds nothing
            return key in (b"jump", b"jcnd", b"rec", b"frfn")
        return True

    def called(self) -> CallgrindFunction:
        """Return the function in which the next line of costs was spent.

        Its object and file are the caller's where none was named.
        """
        library = self._library if self._called_library is None else self._called_library
        file = self.file if self._called_file is None else self._called_file
        self._called_file = self._called_library = None
        return self._intern(library, file, self._called)

    def _intern(self, library: str, file: str, name: str) -> CallgrindFunction:
        key = (library, file, name)
        function = self._known.get(key)
        if function is None:
            function = self._known[key] = CallgrindFunction(library, file, without_level(name))
        return function


@dataclass
class CallgrindDump:
    """One dump (part) of a file. Costs are in the order of `events`."""

    header: dict[str, str] = field(default_factory=dict)
    descriptions: list[str] = field(default_factory=list)
    events: tuple[str, ...] = ()
    positions: int = 1
    totals: tuple[int, ...] | None = None
    summary: tuple[int, ...] | None = None
    own: dict[CallgrindFunction, list[int]] = field(default_factory=dict)
    # [calls, first event]
    calls: dict[tuple[CallgrindFunction, CallgrindFunction], list[int]] = field(default_factory=dict)


def parse_dumps(path: Path) -> list[CallgrindDump]:
    """Parse every dump in the callgrind file at `path`, with its costs summed by function.

    Raises UnreadableReport where the file breaks the grammar.
    """
    tally = _Parser(path)
    for lines in chunks_of_lines(path):
        tally.take(lines)
    return tally.finish()


class _Parser:
    """The state of a reader within the file, and the lines it has not summed yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dumps: list[CallgrindDump] = []
        self._names = _Position()
        self._begin()

    def _begin(self) -> None:
        self._dump = CallgrindDump()
        self._in_body = False
        self._names.reset()
        self._own: list[bytes] = []
        self._pending = {self._names.function: self._own}
        self._calls: list[int] | None = None  # takes the one line behind `calls=`

    def take(self, lines: list[bytes]) -> None:
        """Read one chunk of lines. Kept in one loop: a large file has tens of millions of them."""
        own_lines, calls, skip, names = self._own, self._calls, self._dump.positions, self._names
        for line in lines:
            if not line:
                continue
            first = line[0]
            if 42 <= first <= 57:  # a digit, +, - or *: a position and costs
                if calls is None:
                    own_lines.append(line)
                else:
                    calls[1] += self._inclusive(line, skip)
                    calls = None
            elif line.startswith(b"calls="):
                calls = self._call(line)
            elif first != 35:  # not a comment
                if not names.take(line):
                    self._header(line)
                    own_lines, skip = self._own, self._dump.positions
                elif line.startswith(b"fn="):
                    self._in_body = True
                    own_lines = self._own = self._pending.setdefault(names.function, [])
        self._own, self._calls = own_lines, calls
        self._sum()

    def _inclusive(self, line: bytes, skip: int) -> int:
        """Return the first event's inclusive cost; the other events' are not used anywhere."""
        try:
            tokens = line.split(None, skip + 1)
            return int(tokens[skip]) if len(tokens) > skip else 0
        except ValueError as error:
            raise self._broken(line) from error

    def _call(self, line: bytes) -> list[int]:
        pair = (self._names.function, self._names.called())
        calls = self._dump.calls.setdefault(pair, [0, 0])
        try:
            calls[0] += int(line[6:].split(None, 1)[0])
        except (ValueError, IndexError) as error:
            raise self._broken(line) from error
        return calls

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
            if not 1 <= len(self._dump.events) <= _MAX_EVENTS:
                raise UnreadableReport(
                    f"{self._path} names {len(self._dump.events)} events, which no profile has"
                )
        elif key == "positions":
            self._dump.positions = max(1, len(value.split()))
        elif key == "desc":
            self._dump.descriptions.append(value)
        else:
            self._dump.header.setdefault(key, value)

    def _sum(self) -> None:
        """Add up the lines of this chunk and drop them."""
        dump = self._dump
        try:
            for function, lines in self._pending.items():
                if lines:
                    sums = dump.own.setdefault(function, [0] * len(dump.events))
                    add_columns(sums, lines, dump.positions)
                    lines.clear()
        except ValueError as error:
            raise UnreadableReport(
                f"{self._path} is not a valid callgrind file: costs expected, found {error}"
            ) from error
        self._pending = {self._names.function: self._own}

    def _end(self) -> None:
        self._sum()
        self._dumps.append(self._dump)
        self._begin()

    def finish(self) -> list[CallgrindDump]:
        """Return all dumps. Raises UnreadableReport where none names its events, or the last was cut short."""
        self._end()
        dumps = [d for d in self._dumps if d.events]
        if dumps and any("part" in d.header for d in self._dumps if not d.events):
            raise UnreadableReport(f"{self._path} was cut short: its last dump has only a header")
        if not dumps:
            raise UnreadableReport(
                f"{self._path} names no events: it is not a callgrind file, or was cut short"
            )
        return dumps

    def _broken(self, line: bytes) -> UnreadableReport:
        shown = line[:60].decode("utf-8", "replace")
        return UnreadableReport(f"{self._path} is not a valid callgrind file: cannot read {shown!r}")


def _numbers(text: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(word) for word in text.split())
    except ValueError:
        return None


class CostLine(NamedTuple):
    """One line of own costs: the costs in the order of `events`, and where they were spent."""

    function: CallgrindFunction
    file: str
    position: int  # an address or a source line
    costs: list[bytes]
    events: tuple[str, ...]


def walk_costs(path: Path, kind: str) -> Iterator[CostLine]:
    """Yield every line of own costs with its position of a kind, "instr" or "line".

    Dumps without such positions yield none. Positions are followed: each is relative to the one before it, also
    on the lines of calls. Raises UnreadableReport where the file breaks the grammar.
    """
    names, positions = _Position(), ["line"]
    events: tuple[str, ...] = ()
    column: int | None = None
    place, called = 0, False
    for lines in chunks_of_lines(path):
        for line in lines:
            if not line:
                continue
            if 42 <= line[0] <= 57:
                if column is not None:
                    try:
                        tokens = line.split()
                        place = move_position(place, tokens[column])
                    except (ValueError, IndexError) as error:
                        raise UnreadableReport(f"{path} is not a valid callgrind file: {error}") from error
                    if not called:
                        yield CostLine(names.function, names.file, place, tokens[len(positions) :], events)
                called = False
            elif line.startswith(b"calls="):
                called = True
            elif line.startswith(b"positions:"):
                positions = line[10:].decode("utf-8", "replace").split() or ["line"]
                column = positions.index(kind) if kind in positions else None
            elif line.startswith(b"events:"):
                events = tuple(line[7:].decode("utf-8", "replace").split())
            else:
                names.take(line)


Executed = dict[int, int]  # link-time address -> how often


def read_executions(path: Path) -> dict[tuple[str, str], Executed] | None:
    """Return how often each address was executed, per (object file, function), over all dumps of the file.

    None where the file has no instruction addresses or does not count instructions (`Ir`). Raises
    UnreadableReport where the file breaks the grammar.
    """
    executed: dict[tuple[str, str], Executed] = {}
    function: CallgrindFunction | None = None
    of_function: Executed = {}
    for line in walk_costs(path, "instr"):
        if "Ir" not in line.events:
            continue
        if line.function is not function:
            function = line.function
            of_function = executed.setdefault((function.library, function.name), {})
        column = line.events.index("Ir")
        if column < len(line.costs):
            try:
                count = int(line.costs[column])
            except ValueError as error:
                raise UnreadableReport(f"{path} is not a valid callgrind file: {error}") from error
            of_function[line.position] = of_function.get(line.position, 0) + count
    return executed or None


def move_position(address: int, position: bytes) -> int:
    """Return the address or line that `position` means after `address`: absolute, +n, -n, or * for the same."""
    first = position[:1]
    if first == b"*":
        return address
    if first == b"+":
        return address + int(position[1:], 0)
    if first == b"-":
        return address - int(position[1:], 0)
    return int(position, 0)
