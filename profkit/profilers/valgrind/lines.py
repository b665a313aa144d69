"""Costs by source line of the costliest functions, from a callgrind file with line positions.

A line stands in the file that it was written in: of code that the compiler moved into another function, that is the
file and line of the inlined code (callgrind's `fi=` and `fe=`), under the function that holds it now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Hotspot, Profile
from profkit.profilers.valgrind.callgrind import (
    CallgrindFunction,
    NameTable,
    chunks_of_lines,
    move_position,
    without_level,
)

COSTLIEST = 3  # functions by each event whose lines are read, and
MOST_LINES = 5  # lines by each event that are kept

SourceLine = tuple[CallgrindFunction, str, int]  # function, file of the line, line


def read_line_costs(
    paths: Iterable[Path], functions: Collection[CallgrindFunction], events: Sequence[str]
) -> Profile | None:
    """The costliest lines of `functions`, over all `paths`; None where no file knows lines.

    Raises UnreadableReport where a file breaks the grammar.
    """
    costs: dict[SourceLine, list[int]] = {}
    for path in paths:
        reader = _LineReader(path, functions, events)
        for lines in chunks_of_lines(path):
            reader.take(lines)
        for place, sums in reader.costs.items():
            known = costs.setdefault(place, [0] * len(events))
            for column, cost in enumerate(sums):
                known[column] += cost
    if not costs:
        return None
    kept: dict[SourceLine, None] = {}
    for column in range(len(events)):
        best = sorted(costs, key=lambda place: costs[place][column], reverse=True)[:MOST_LINES]
        kept |= dict.fromkeys(place for place in best if costs[place][column] > 0)
    hotspots = tuple(
        Hotspot(
            function.name,
            float(costs[function, file, line][0]),
            file=file,
            line=line,
            library=function.library or None,
            counters={
                event: float(cost) for event, cost in zip(events, costs[function, file, line], strict=True)
            },
        )
        for function, file, line in sorted(kept, key=lambda place: (-costs[place][0], place))
    )
    total = float(sum(sums[0] for sums in costs.values()))
    return Profile(
        "source lines of the costliest functions", "instructions", total, hotspots, "counted-lines"
    )


class _LineReader:
    """Where the reader stands. Positions are relative to the line of costs before, in whatever function that is."""

    def __init__(self, path: Path, functions: Collection[CallgrindFunction], events: Sequence[str]) -> None:
        self._path, self._wanted, self._events = path, functions, list(events)
        self.costs: dict[SourceLine, list[int]] = {}
        self._objects, self._files, self._functions = NameTable(), NameTable(), NameTable()
        self._library = self._file = ""
        self._function: CallgrindFunction | None = None  # None: one that nobody asked for
        self._column: int | None = None  # of the line among the positions
        self._positions = 1
        self._order: list[int] = []
        self._line = 0
        self._called = False

    def take(self, lines: list[bytes]) -> None:
        """Take one chunk of lines."""
        for line in lines:
            if not line:
                continue
            if 42 <= line[0] <= 57:  # a digit, +, - or *: a position and costs
                if self._column is not None:
                    self._cost_line(line)
                self._called = False
            elif line.startswith(b"calls="):
                self._called = True
            else:
                self._name_line(line)

    def _cost_line(self, line: bytes) -> None:
        assert self._column is not None
        try:
            if self._function is None or self._called:
                self._line = move_position(self._line, line.split(None, self._column + 1)[self._column])
                return
            tokens = line.split()
            self._line = move_position(self._line, tokens[self._column])
            if self._line <= 0 or self._file in ("", "???"):
                return
            place = (self._function, self._file, self._line)
            sums = self.costs.get(place)
            if sums is None:
                sums = self.costs[place] = [0] * len(self._events)
            for event, cost in zip(self._order, tokens[self._positions :], strict=False):
                sums[event] += int(cost)
        except (ValueError, IndexError) as error:
            raise UnreadableReport(f"{self._path} is no sound callgrind file: {error}") from error

    def _name_line(self, line: bytes) -> None:
        key, equals, value = line.partition(b"=")
        if key in (b"fl", b"fi", b"fe"):
            self._file = self._files.resolve(value)
        elif key == b"fn":
            name = without_level(self._functions.resolve(value))
            function = CallgrindFunction(self._library, self._file, name)
            self._function = function if function in self._wanted else None
        elif key == b"ob":
            self._library = self._objects.resolve(value)
        elif key in (b"cfi", b"cfl", b"jfi"):  # may give a number its name, as the next two
            self._files.resolve(value)
        elif key in (b"cfn", b"jfn"):
            self._functions.resolve(value)
        elif key == b"cob":
            self._objects.resolve(value)
        elif not equals and line.startswith(b"positions:"):
            positions = line.partition(b":")[2].split()
            self._positions = max(1, len(positions))
            self._column = positions.index(b"line") if b"line" in positions else None
        elif not equals and line.startswith(b"events:"):
            events = line.partition(b":")[2].decode("utf-8", "replace").split()
            if unknown := [name for name in events if name not in self._events]:
                raise UnreadableReport(f"{self._path} has parts with other events: {', '.join(unknown)[:80]}")
            self._order = [self._events.index(name) for name in events]
