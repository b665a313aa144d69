"""Reads what an .ncu-rep has of single instructions, the kernel's code, and NVIDIA's rule results.

Per-instruction values are instances of a metric, by the address of the instruction; the lowest address that
was executed is the kernel's begin. RuleResult, fields by number (seen in reports of 2022.4 to 2025.3): 1
identifier, 2 title, 3 body {1 items {1 message {1 text, 2 kind, 4 title}, 10 speed-up {1 local or global, 2
%}}}.

The code comes out of the kernel's cubin, an ELF file. Nothing here disassembles: of an instruction only what
a conclusion needs is known: what goes through the queues of memory and special instructions, and the width of
an access. The operation stands in the low 9 of its 12 opcode bits on every chip since Volta, the width in
bits 73 to 75, the index register of a constant and the one with the address of an access to local memory in
bits 24 to 31 (seen in code of compute capability 7.0 to
9.0, held against the accesses that Nsight Compute counted and against what ptxas made of known PTX). Line
tables are those of DWARF 2 to 4 ("DWARF Debugging Information Format", 6.2).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.core.types import KernelInstruction, Scope, ToolRule
from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    Buffer,
    Message,
    ReportMessage,
    read_fields,
    read_float64,
)
from profkit.profilers.ncu.launches import finite_number
from profkit.profilers.ncu.results import metric_value

INSTRUCTION_BYTES = 16  # Volta and later
_OPERATIONS = {
    0x181: "LDG",
    0x186: "STG",
    0x184: "LDS",
    0x188: "STS",
    0x183: "LDL",
    0x187: "STL",
    0x182: "LDC",
}
_OPERATIONS |= {0x18E: "RED", 0x1A6: "RED", 0x18C: "ATOMS", 0x18D: "ATOMS", 0x189: "SHFL", 0x119: "S2R"}
_OPERATIONS |= {0x1A3: "ATOMG", 0x1A8: "ATOMG", 0x1A9: "ATOMG", 0x105: "F2I", 0x106: "I2F", 0x108: "MUFU"}
_OPERATIONS |= {0x1A1: "MATCH", 0x11D: "BAR"}
_NO_INDEX = 0xFF  # the register that is always zero: a constant whose place is known, such as an argument
_STACK = 1  # the register that holds the stack's pointer, from a kernel's begin to its end
_LOCAL = (0x183, 0x187)
_WIDTHS = {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: "", 5: ".64", 6: ".128"}
MAX_ROWS = 1_000_000  # of a line table: a hostile one would never end


@dataclass(frozen=True)
class LineTableRow:
    """The source line of the code that begins at `offset` (bytes from the kernel's begin)."""

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
        """Return the memory access or special instruction at `offset`, such as `LDG.128`; else None."""
        if not 0 <= offset <= len(self.code) - INSTRUCTION_BYTES:
            return None
        low, high = struct.unpack_from("<QQ", self.code, offset)
        operation = _OPERATIONS.get(low & 0x1FF)
        if operation is None or (operation == "LDC" and (low >> 24) & 0xFF == _NO_INDEX):
            return None
        return operation + (_WIDTHS.get((high >> 9) & 7, "") if operation[:2] in ("LD", "ST") else "")

    def fixed_local(self, executed: Mapping[int, float]) -> float | None:
        """Return the share (0..1) of accesses to local memory at fixed places of the stack; None if there are none.

        `executed`: how often each instruction was, by its offset.
        """
        fixed = total = 0.0
        for offset, count in executed.items():
            if not 0 <= offset <= len(self.code) - INSTRUCTION_BYTES:
                continue
            (low,) = struct.unpack_from("<Q", self.code, offset)
            if low & 0x1FF in _LOCAL:
                total += count
                fixed += count if (low >> 24) & 0xFF == _STACK else 0.0
        return fixed / total if total > 0 else None

    def line(self, offset: int) -> LineTableRow | None:
        """Return the source line of the instruction at `offset`."""
        place = bisect_right(self.lines, offset, key=lambda line: line.offset) - 1
        return self.lines[place] if place >= 0 else None


def read_kernel_code(cubin: bytes, symbol: str) -> KernelCode | None:
    """Return the code of the kernel with this mangled name.

    None where the cubin does not hold it, or is damaged.
    """
    try:
        sections = _sections(cubin)
        place = next((section for section in sections if section.name == f".text.{symbol}"), None)
        if place is None:
            return None
        names = {section.name for section in sections if section.size}
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
    """Read the section headers of a little-endian ELF64 file. Raises struct.error and ValueError."""
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
    """Yield the rows of the line tables for this section of code."""
    table = next((section for section in sections if section.name == ".debug_line"), None)
    if table is None:
        return
    targets = _relocated_sections(data, sections)
    at, end = table.offset, table.offset + table.size
    while at + 10 < end:
        length = struct.unpack_from("<I", data, at)[0]
        yield from _unit_lines(data, at, targets, table.offset, code)
        at += 4 + length


def _relocated_sections(data: bytes, sections: list[_Section]) -> dict[int, int]:
    """Map the offset of each address that the linker fills into the line table to its target section."""
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
    """Run the line number program of one unit (DWARF 2 to 4), and yield its rows."""
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
    address, file, line, in_section = 0, 1, 1, False
    for _ in range(MAX_ROWS):
        if at >= end or line_range == 0:
            return
        opcode = data[at]
        at += 1
        if opcode >= opcode_base:
            step = opcode - opcode_base
            address += least * (step // line_range)
            line += line_base + step % line_range
            if in_section:
                yield LineTableRow(address, files.get(file, "?"), line)
        elif opcode == 0:
            size, at = _unsigned(data, at)
            kind, next_ = data[at], at + size
            if kind == 1:  # end of the sequence
                address, file, line, in_section = 0, 1, 1, False
            elif kind == 2:
                address = int.from_bytes(data[at + 1 : next_], "little")
                target = targets.get(at + 1 - base)
                in_section = target == code.index if target is not None else code.address <= address
                address -= 0 if target is not None else code.address
            at = next_
        elif opcode == 1:
            if in_section:
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
    """Read the files of a unit by number, with their folder where they have one."""
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


_METRIC, _RULE = 13, 19  # fields of ProfileResult
_CUBIN = 4  # field of SourceData
_GLOBAL_SPEEDUP = 2
SECTORS, SECTORS_IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
WAVEFRONTS, WAVEFRONTS_IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
EXECUTED, SAMPLES = "inst_executed", "smsp__pcsamp_sample_count"
_STALL = re.compile(r"^smsp__pcsamp_warps_issue_stalled_(\w+?)(?<!_not_issued)$")
MAX_INSTRUCTIONS = 12  # kept of one kernel: a reader looks at fewer
_MARKUP = re.compile(r"@\w+:([^:@]*)(?::[^@]*)?@")


def is_per_instruction(name: str) -> bool:
    """Return whether the instances of this metric are read."""
    return name in (SECTORS, SECTORS_IDEAL, WAVEFRONTS, WAVEFRONTS_IDEAL, EXECUTED, SAMPLES) or (
        _STALL.match(name) is not None and not name.endswith("_not_issued")
    )


def read_kernel_details(
    data: Buffer,
    part: ReportMessage,
    names: Mapping[int, str],
    scope: Scope,
    code_of: Callable[[], KernelCode | None],
) -> tuple[tuple[KernelInstruction, ...], tuple[ToolRule, ...], bool]:
    """Read a result's costliest instructions, its rules, and whether the kernel is a debug build.

    `part` is the result; `names` are the metrics to read by the id of their name. Raises MalformedMessage.
    """
    metrics: dict[str, dict[int, float]] = {}
    rules: list[ToolRule] = []
    for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size):
        if number == _METRIC and wire == LENGTH:
            name, instances = _instances(data, a, b, names)
            if name is not None and instances:
                metrics[name] = instances
        elif number == _RULE and wire == LENGTH:
            rules += _rule_results(Message(data, a, b), scope)
    code = code_of()
    return tuple(_instructions(metrics, scope, code)), tuple(rules), code is not None and code.debug


def find_code(data: Buffer, sources: Sequence[ReportMessage], symbol: str) -> KernelCode | None:
    """Return the code of a kernel from the cubins that a report carries. Raises MalformedMessage."""
    for part in sources:
        for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size):
            if number == _CUBIN and wire == LENGTH:
                code = read_kernel_code(bytes(data[a:b]), symbol)
                if code is not None:
                    return code
    return None


def _instances(
    data: Buffer, at: int, end: int, names: Mapping[int, str]
) -> tuple[str | None, dict[int, float]]:
    """Read a ProfileMetricResult: its name if that is wanted, and its values by address."""
    name: str | None = None
    values: dict[int, float] = {}
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            name = names.get(a)
            if name is None:
                return None, {}
        elif number == 3 and wire == LENGTH:
            address = value = None
            for inner, inner_wire, c, d in read_fields(data, a, b):
                if inner_wire == LENGTH and inner in (1, 2):
                    parsed = finite_number(metric_value(data, c, d))
                    address, value = (parsed, value) if inner == 1 else (address, parsed)
            if address is not None and value is not None:
                values[int(address)] = value
    return name, values


def _instructions(
    metrics: Mapping[str, Mapping[int, float]], scope: Scope, code: KernelCode | None
) -> Iterator[KernelInstruction]:
    """Yield the instructions with the most stall samples, excess sectors or bank conflicts.

    Each number is a share of the kernel's.
    """
    executed = metrics.get(EXECUTED)
    if not executed:
        return
    base = min(executed)
    counts = {address - base: count for address, count in executed.items()}
    fixed = code.fixed_local(counts) if code is not None else None
    samples = metrics.get(SAMPLES, {})
    excess = _excess(metrics, SECTORS, SECTORS_IDEAL)
    conflicts = _excess(metrics, WAVEFRONTS, WAVEFRONTS_IDEAL)
    shares = [_shares(values) for values in (samples, excess, conflicts)]
    ranked: dict[int, None] = {}
    for values in shares:
        ranked |= dict.fromkeys(sorted(values, key=lambda place: -values[place])[: MAX_INSTRUCTIONS // 2])
    stalls = {
        match[1]: values for name, values in metrics.items() if (match := _STALL.match(name)) is not None
    }
    for address in sorted(ranked, key=lambda place: -max(values.get(place, 0.0) for values in shares)):
        reasons = {
            reason: values.get(address, 0.0) for reason, values in stalls.items() if reason != "selected"
        }
        reason = max(reasons, key=lambda key: reasons[key]) if any(reasons.values()) else None
        offset = address - base
        line = code.line(offset) if code is not None else None
        yield KernelInstruction(
            scope,
            offset,
            code.instruction(offset) if code is not None else None,
            line.file if line is not None else None,
            line.line if line is not None else None,
            samples=shares[0].get(address, 0.0),
            excess_sectors=shares[1].get(address, 0.0),
            conflicts=shares[2].get(address, 0.0),
            stall=reason,
            fixed_local=fixed,
        )


def _excess(metrics: Mapping[str, Mapping[int, float]], name: str, ideal: str) -> Mapping[int, float]:
    least = metrics.get(ideal, {})
    return {
        address: value - least[address]
        for address, value in metrics.get(name, {}).items()
        if address in least and value > least[address]
    }


def _shares(values: Mapping[int, float]) -> dict[int, float]:
    total = sum(values.values())
    return {address: value / total for address, value in values.items()} if total > 0 else {}


def _rule_results(rule: Message, scope: Scope) -> Iterator[ToolRule]:
    """Yield the messages of one rule that have an estimated speed-up."""
    for body in rule.parts(3):
        for item in body.parts(1):
            text = title = ""
            for message in item.parts(1):
                text, title = (_MARKUP.sub(r"\1", message.text(number)) for number in (1, 4))
            for estimate in item.parts(10):
                spans = [span for span in estimate.spans.get(2, ()) if span[1] - span[0] == 8]
                speedup = read_float64(item.data, spans[-1][0]) / 100 if spans else -1.0
                if 0 <= speedup <= 1:
                    whole = estimate.numbers.get(1) == _GLOBAL_SPEEDUP
                    yield ToolRule(scope, rule.text(1), title or rule.text(2), text, speedup, whole)
