"""Small ELF files, made by hand: code at an address that differs from its place in the file."""

from __future__ import annotations

import struct
from pathlib import Path

ADDRESS, OFFSET = 0x401000, 0x200


def write_elf(path: Path, code: bytes, **wrong: int) -> Path:
    """One loaded segment with `code` at ADDRESS. `wrong` overrides header fields."""
    count, table, entry = wrong.get("count", 2), wrong.get("table", 64), wrong.get("entry", 56)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, table, 0, 0, 64, entry, count, 0, 0, 0)
    note = struct.pack("<IIQQQQQQ", 4, 4, 0, 0, 0, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, OFFSET, ADDRESS, ADDRESS, len(code), len(code), 4096)
    path.write_bytes((ident + header + note + load).ljust(OFFSET, b"\0") + code)
    return path
