"""A kernel's machine code out of its cubin (an ELF file): instructions by offset, their source lines, debug builds.

Nothing here disassembles: of an instruction only what a conclusion needs is known, the kind and width of a memory
access. The operation stands in the low 8 of its 12 opcode bits on every chip since Volta, the width in bits 73 to 75
(seen in reports of compute capability 7.0 to 9.0, held against the accesses that Nsight Compute counted).
Line tables are those of DWARF 2 to 4 ("DWARF Debugging Information Format", 6.2).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

INSTRUCTION_BYTES = 16  # Volta and later
_OPERATIONS = {0x81: "LDG", 0x86: "STG", 0x84: "LDS", 0x88: "STS", 0x83: "LDL", 0x87: "STL", 0x8E: "RED"}
_OPERATIONS |= {0xA8: "ATOMG", 0xA9: "ATOMG", 0x8C: "ATOMS", 0x8D: "ATOMS"}
_WIDTHS = {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: "", 5: ".64", 6: ".128"}
MOST_ROWS = 1_000_000  # of a line table: a hostile one would never end


@dataclass(frozen=True)
class LineTableRow:
    """Where the code from `offset` (bytes from the kernel's begin) on comes from."""

    offset: int
    file: str
    line: int


@dataclass(frozen=True)
class KernelCode:
    """One kernel of a cubin. `lines` are sorted by offset; empty where it was compiled without -lineinfo."""

    code: bytes
    lines: tuple[LineTableRow, ...]
    debug: bool  # compiled with -G: without optimisation

    def instruction(self, offset: int) -> str | None:
        """`LDG.128`: the memory access at `offset`; None for anything else."""
        if not 0 <= offset <= len(self.code) - INSTRUCTION_BYTES:
            return None
        low, high = struct.unpack_from("<QQ", self.code, offset)
        operation = _OPERATIONS.get(low & 0xFF)
        return None if operation is None else operation + _WIDTHS.get((high >> 9) & 7, "")

    def line(self, offset: int) -> LineTableRow | None:
        """The source line of the instruction at `offset`."""
        place = bisect_right(self.lines, offset, key=lambda line: line.offset) - 1
        return self.lines[place] if place >= 0 else None


def read_kernel_code(cubin: bytes, symbol: str) -> KernelCode | None:
    """The code of the kernel with this mangled name; None where the cubin does not hold it, or is damaged."""
    try:
        sections = _sections(cubin)
        place = next((one for one in sections if one.name == f".text.{symbol}"), None)
        if place is None:
            return None
        names = {one.name for one in sections if one.size}
        lines = tuple(sorted(_lines_of(cubin, sections, place), key=lambda line: line.offset))
        return KernelCode(
            cubin[place.offset : place.offset + place.size],
            lines,
            ".debug_info" in names and ".debug_abbrev" in names,
        )
    except (struct.error, IndexError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class _Section:
    name: str
    index: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


def _sections(data: bytes) -> list[_Section]:
    """The section headers of a little-endian ELF64 file. Raises struct.error and ValueError."""
    if data[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF64 file")
    table = struct.unpack_from("<Q", data, 40)[0]
    entry, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQII", data, table + number * entry) for number in range(count)]
    texts = rows[names][4]
    return [
        _Section(_string(data, texts + row[0]), number, row[1], row[3], row[4], row[5], row[6])
        for number, row in enumerate(rows)
    ]


def _string(data: bytes, at: int) -> str:
    end = data.index(b"\0", at)
    return data[at:end].decode("utf-8", "replace")


def _lines_of(data: bytes, sections: list[_Section], code: _Section) -> Iterator[LineTableRow]:
    """The rows of the line tables that are about this section of code."""
    table = next((one for one in sections if one.name == ".debug_line"), None)
    if table is None:
        return
    targets = _relocated_sections(data, sections)
    at, end = table.offset, table.offset + table.size
    while at + 10 < end:
        length = struct.unpack_from("<I", data, at)[0]
        yield from _unit_lines(data, at, targets, table.offset, code)
        at += 4 + length


def _relocated_sections(data: bytes, sections: list[_Section]) -> dict[int, int]:
    """Of each address in the line table that the linker fills in: its offset there -> the section that it is in."""
    targets: dict[int, int] = {}
    for section in sections:
        if section.name not in (".rel.debug_line", ".rela.debug_line"):
            continue
        size = 24 if section.name.startswith(".rela") else 16
        symbols = sections[section.link]
        for at in range(section.offset, section.offset + section.size - size + 1, size):
            place, info = struct.unpack_from("<QQ", data, at)
            index = struct.unpack_from("<H", data, symbols.offset + 24 * (info >> 32) + 6)[0]
            targets[place] = index
    return targets


def _unit_lines(
    data: bytes, start: int, targets: dict[int, int], base: int, code: _Section
) -> Iterator[LineTableRow]:
    """One unit's line number program (DWARF 2 to 4)."""
    length, version, header_length = struct.unpack_from("<IHI", data, start)
    if not 2 <= version <= 4 or length >= 0xFFFF_FFF0:
        return
    at, end = start + 10, start + 4 + length
    least = data[at]
    at += 2 if version >= 4 else 1
    line_base, line_range, opcode_base = struct.unpack_from("<bBB", data, at + 1)
    lengths = data[at + 4 : at + 4 + opcode_base - 1]
    files = _file_names(data, at + 4 + opcode_base - 1)
    at = start + 10 + header_length
    address, file, line, own = 0, 1, 1, False
    for _ in range(MOST_ROWS):
        if at >= end or line_range == 0:
            return
        opcode = data[at]
        at += 1
        if opcode >= opcode_base:
            step = opcode - opcode_base
            address += least * (step // line_range)
            line += line_base + step % line_range
            if own:
                yield LineTableRow(address, files.get(file, "?"), line)
        elif opcode == 0:
            size, at = _unsigned(data, at)
            kind, next_ = data[at], at + size
            if kind == 1:  # end of the sequence
                address, file, line, own = 0, 1, 1, False
            elif kind == 2:
                address = int.from_bytes(data[at + 1 : next_], "little")
                target = targets.get(at + 1 - base)
                own = target == code.index if target is not None else code.address <= address
                address -= 0 if target is not None else code.address
            at = next_
        elif opcode == 1:
            if own:
                yield LineTableRow(address, files.get(file, "?"), line)
        elif opcode == 2:
            value, at = _unsigned(data, at)
            address += least * value
        elif opcode == 3:
            value, at = _signed(data, at)
            line += value
        elif opcode == 4:
            file, at = _unsigned(data, at)
        elif opcode == 8:
            address += least * ((255 - opcode_base) // line_range)
        elif opcode == 9:
            address += struct.unpack_from("<H", data, at)[0]
            at += 2
        else:
            for _ in range(lengths[opcode - 1]):
                _, at = _unsigned(data, at)


def _file_names(data: bytes, at: int) -> dict[int, str]:
    """The files of a unit by number, with their folder where they have one."""
    folders = [""]
    while data[at]:
        folders.append(_string(data, at))
        at = data.index(b"\0", at) + 1
    at += 1
    files: dict[int, str] = {}
    while data[at]:
        name = _string(data, at)
        at = data.index(b"\0", at) + 1
        folder, at = _unsigned(data, at)
        _, at = _unsigned(data, at)
        _, at = _unsigned(data, at)
        inside = folders[folder] if folder < len(folders) else ""
        files[len(files) + 1] = f"{inside}/{name}" if inside and not name.startswith("/") else name
    return files


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            return value, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, next_ = _unsigned(data, at)
    bits = 7 * (next_ - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), next_
