"""A kernel's code out of a cubin: its memory accesses, its source lines, whether it is a debug build."""

from __future__ import annotations

import random
import struct

import pytest

from profkit.profilers.ncu.instructions import KernelCode, read_kernel_code

LDG_128 = struct.pack("<QQ", 0x981, 6 << 9)
FFMA = struct.pack("<QQ", 0x223, 4 << 9)
STG_32 = struct.pack("<QQ", 0x986, 4 << 9)


def line_program() -> bytes:
    """DWARF 2: offset 0 is line 10 of a.cu, offset 16 line 12, offset 32 line 11 of inc/b.cuh."""
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 10) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
    header += b"inc\0\0" + b"a.cu\0\0\0\0" + b"b.cuh\0\x01\0\0" + b"\0"
    program = bytes([0, 9, 2]) + bytes(8)  # set the address, which a relocation fills in
    program += bytes([3, 9, 1])  # advance the line by 9, a row
    program += bytes([10 + 7 + 14 * 16])  # 16 bytes on and two lines: a special opcode
    program += bytes([2, 16, 4, 2, 3, 0x7F, 1])  # 16 bytes on, file 2, a line back, a row
    program += bytes([0, 1, 1])
    body = struct.pack("<HI", 2, len(header)) + header + program
    return struct.pack("<I", len(body)) + body


def cubin(*, debug: bool = False, lines: bool = True) -> bytes:
    """A little-endian ELF64 file with one kernel `_Z1kPf` of three instructions."""
    code = LDG_128 + FFMA + STG_32
    address = 4 + 2 + 4 + len(b"") + line_program().index(bytes([0, 9, 2])) - 10 + 3
    sections: list[tuple[str, bytes, int]] = [("", b"", 0), (".text._Z1kPf", code, 0)]
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 2, 0, 1, 0, len(code))
    sections.append((".symtab", symbols, 0))
    if lines:
        sections.append((".debug_line", line_program(), 0))
        sections.append((".rel.debug_line", struct.pack("<QQ", address, (1 << 32) | 2), 2))
    if debug:
        sections += [(".debug_info", b"x", 0), (".debug_abbrev", b"x", 0)]
    names = b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".shstrtab\0"
    sections.append((".shstrtab", names, 0))
    data, rows, place = bytearray(64), [], 0
    for name, content, link in sections:
        rows.append(struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, len(data), len(content), link, 0, 1, 0))
        place += len(name) + 1
        data += content
    data[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HHH", data, 58, 64, len(rows), len(rows) - 1)
    return bytes(data) + b"".join(rows)


def test_memory_accesses_are_named_with_their_width_and_nothing_else_is() -> None:
    code = read_kernel_code(cubin(), "_Z1kPf")
    assert code is not None
    assert [code.instruction(offset) for offset in (0, 16, 32)] == ["LDG.128", None, "STG"]
    assert code.instruction(48) is None
    assert code.instruction(-16) is None


def test_of_constants_only_those_with_an_index_are_named() -> None:
    known, indexed = (struct.pack("<QQ", 0xB82 | register << 24, 4 << 9) for register in (0xFF, 7))
    code = KernelCode(known + indexed + struct.pack("<QQ", 0x9A3, 0), (), False)
    assert [code.instruction(offset) for offset in (0, 16, 32)] == [None, "LDC", "ATOMG"]


def test_an_instruction_has_the_line_of_the_row_at_or_before_it() -> None:
    code = read_kernel_code(cubin(), "_Z1kPf")
    assert code is not None
    rows = [code.line(offset) for offset in (0, 8, 16, 40)]
    assert [(row.file, row.line) for row in rows if row is not None] == [
        ("a.cu", 10),
        ("a.cu", 10),
        ("a.cu", 12),
        ("inc/b.cuh", 11),
    ]


def test_without_line_information_no_line_is_made_up_and_a_debug_build_is_told_from_one_with_it() -> None:
    code = read_kernel_code(cubin(lines=False), "_Z1kPf")
    assert code is not None
    assert (code.lines, code.line(0), code.debug) == ((), None, False)
    code = read_kernel_code(cubin(debug=True), "_Z1kPf")
    assert code is not None
    assert code.debug
    assert read_kernel_code(cubin(), "_Z1kPd") is None  # another kernel is not in it


def test_damage_makes_no_error() -> None:
    whole = cubin(debug=True)
    for end in range(0, len(whole), 7):
        read_kernel_code(whole[:end], "_Z1kPf")
    dice = random.Random(1)
    for _ in range(500):
        broken = bytearray(whole)
        for _ in range(4):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        read_kernel_code(bytes(broken), "_Z1kPf")


# As nvcc 13.0 made them for compute capability 9.0: STL.64 [R1+0x120], LDL.64 [R1+0x140] of registers that were spilled
# for __launch_bounds__(256, 8), and STL.128 [R1+0x10], LDL [R5], STL [R5] of an array that is cleared and then indexed.
SPILLED = [(0x120FF01007387, 0xFE20000100800), (0x14000010E7983, 0x1EA80000300A00)]
CLEARED, INDEXED = (0x10FF01007387, 0x1E80000100C00), (0x5057983, 0xEA40000100800)
STORED = (0x207007387, 0x7E20000100800)


def test_spilled_registers_have_fixed_places_and_an_array_with_an_index_has_none() -> None:
    def share(*parts: tuple[tuple[int, int], float]) -> float | None:
        code = KernelCode(FFMA + b"".join(struct.pack("<QQ", *words) for words, _ in parts), (), False)
        return code.fixed_local({0: 1e6, **{16 * n + 16: count for n, (_, count) in enumerate(parts)}})

    assert share(*((words, 1000.0) for words in SPILLED)) == 1.0
    assert share((CLEARED, 1.0), (INDEXED, 5.0), (STORED, 4.0)) == pytest.approx(0.1)
    assert share() is None
    assert KernelCode(FFMA, (), False).fixed_local({0: 1.0, 16: 9.0, -16: 1.0}) is None
