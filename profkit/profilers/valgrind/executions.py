"""How often each instruction was executed, from a callgrind file recorded with `--dump-instr=yes`."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.valgrind.lines import chunks_of_lines
from profkit.profilers.valgrind.names import Names, without_level

Executed = dict[int, int]  # link-time address -> how often


def read_executions(path: Path) -> dict[tuple[str, str], Executed] | None:
    """Per (object file, function), how often each of its addresses was executed, over all dumps of the file.

    None where the file has no instruction addresses or does not count instructions (`Ir`). Here positions are
    followed, other than in the profile: each is relative to the one before it, also on the lines of calls.
    Raises UnreadableReport where the file breaks the grammar.
    """
    reader = _Reader(path)
    for lines in chunks_of_lines(path):
        reader.take(lines)
    return reader.executed if reader.has_addresses else None


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._objects, self._functions = Names(), Names()
        self.executed: dict[tuple[str, str], Executed] = {}
        self.has_addresses = False
        self._column: int | None = None
        self._object = ""
        self._current: Executed = {}
        self._address = 0
        self._called = False

    def take(self, lines: list[bytes]) -> None:
        """Take one chunk of lines."""
        address, column, current, called = self._address, self._column, self._current, self._called
        for line in lines:
            if not line:
                continue
            first = line[0]
            if 42 <= first <= 57:
                if column is None:
                    continue
                try:
                    tokens = line.split(None, column + 1)
                    address = _moved(address, tokens[0])
                    if not called and len(tokens) > column:
                        current[address] = current.get(address, 0) + int(tokens[column])
                except ValueError as error:
                    raise UnreadableReport(f"{self._path} is no sound callgrind file: {error}") from error
                called = False
            elif line.startswith(b"calls="):
                called = True
            elif line.startswith(b"fn="):
                key = (self._object, without_level(self._functions.resolve(line[3:])))
                current = self.executed.setdefault(key, {})
            elif line.startswith((b"cfn=", b"jfn=")):
                self._functions.resolve(line[4:])  # may give a number its name
            elif line.startswith(b"ob="):
                self._object = self._objects.resolve(line[3:])
            elif line.startswith(b"cob="):
                self._objects.resolve(line[4:])
            elif line.startswith(b"positions:"):
                self._positions = line.partition(b":")[2].split()
            elif line.startswith(b"events:"):
                column = self._find_column(line.partition(b":")[2].split())
        self._address, self._column, self._current, self._called = address, column, current, called

    _positions: tuple[bytes, ...] | list[bytes] = ()

    def _find_column(self, events: list[bytes]) -> int | None:
        if not self._positions or self._positions[0] != b"instr" or b"Ir" not in events:
            return None
        self.has_addresses = True
        return len(self._positions) + events.index(b"Ir")


def _moved(address: int, position: bytes) -> int:
    """The address that `position` means after `address`: absolute, +n, -n, or * for the same."""
    first = position[:1]
    if first == b"*":
        return address
    if first == b"+":
        return address + int(position[1:], 0)
    if first == b"-":
        return address - int(position[1:], 0)
    return int(position, 0)
