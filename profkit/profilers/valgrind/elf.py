"""The code bytes of an ELF file at link-time addresses, as callgrind's `--dump-instr` names them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Architecture = Literal["x86_64", "aarch64"]

_MACHINES: dict[int, Architecture] = {62: "x86_64", 183: "aarch64"}  # e_machine, System V ABI
_PT_LOAD = 1
_MOST_HEADERS = 1024  # a real file has a dozen


@dataclass(frozen=True)
class Segment:
    """One loaded piece of the file: `size` bytes at `offset` appear at `address`."""

    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Elf:
    """Where in the file at `path` each loaded address stands."""

    path: Path
    architecture: Architecture
    segments: tuple[Segment, ...]

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes at `address`; fewer at a segment's end, none outside of every segment."""
        for segment in self.segments:
            inside = address - segment.address
            if 0 <= inside < segment.size:
                try:
                    with self.path.open("rb") as file:
                        file.seek(segment.offset + inside)
                        return file.read(min(size, segment.size - inside))
                except (OSError, ValueError, OverflowError):  # replaced meanwhile, or a lying header
                    return b""
        return b""


def read_elf(path: Path) -> Elf | None:
    """The layout of the 64-bit little-endian ELF file at `path`; None where it is none, or no known CPU."""
    try:
        if not path.is_file():  # an object may be named like a device or a fifo
            return None
        with path.open("rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return None
            machine = struct.unpack_from("<H", head, 18)[0]
            table = struct.unpack_from("<Q", head, 32)[0]
            size, count = struct.unpack_from("<HH", head, 54)
            if machine not in _MACHINES or size < 56 or count > _MOST_HEADERS:
                return None
            file.seek(table)
            headers = file.read(size * count)
    except (OSError, ValueError, OverflowError):
        return None
    segments = []
    for start in range(0, len(headers) - 55, size):
        kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", headers, start)
        if kind == _PT_LOAD:
            segments.append(Segment(address, offset, in_file))
    return Elf(path, _MACHINES[machine], tuple(segments))
