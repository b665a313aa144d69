"""Counts the instruction mix of a simulated run: floating-point operations, and how many are packed."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import RUN, Counter, Fact, Scope
from profkit.profilers.valgrind.callgrind import Executed, read_executions
from profkit.profilers.valgrind.strides import strided_loads

Kind = Literal["other", "fp", "simd-int"]


@dataclass(frozen=True)
class Instruction:
    """The effect of one execution: `flop` operations of `bits` each, in `width` bits of register (0: scalar)."""

    kind: Kind = "other"
    flop: int = 0
    bits: int = 0
    width: int = 0
    chained: bool = False  # loads the address that it will load from next
    strided: bool = False  # loads from addresses that are a large, equal step apart


OTHER = Instruction()

# Valgrind has no AVX-512, so neither half precision nor registers of 512 bits are met.
_X86_FMA = re.compile(r"v?fn?m(?:add|sub)(?:add|sub)?(?:132|213|231)?([ps])([sd])$")
_X86_FP = re.compile(r"v?(?:add|sub|mul|div|sqrt|min|max|rcp|rsqrt|addsub|hadd|hsub)([ps])([sd])$")
_X86_DOT = re.compile(r"v?dp(p)([sd])$")
_X87 = re.compile(r"(?:fi?(?:add|sub|subr|mul|div|divr)p?|fsqrt)$")
_X86_PACKED_INT = re.compile(
    r"(?:v?p(?!ush|op|refetch|extr|insr|ause)|vbroadcasti|vinserti|vextracti)[a-z0-9]+$"
)
_X86_CHAINED = re.compile(r"(r\w+), qword ptr \[\1(?: [+-] (?:0x)?[0-9a-f]+)?\]")
_X86_BITS = {"s": 32, "d": 64}
_X86_WIDTHS = (("ymm", 256), ("xmm", 128), ("mm", 64))


@lru_cache(maxsize=65536)  # a program has few distinct texts, each at many addresses
def classify_x86_64(mnemonic: str, operands: str) -> Instruction:
    """Return what an x86-64 instruction in capstone's Intel syntax computes."""
    mnemonic = mnemonic.rpartition(" ")[2]  # rep, lock
    width = next((bits for name, bits in _X86_WIDTHS if name in operands), 0)
    for pattern, flop in ((_X86_FMA, 2), (_X86_FP, 1), (_X86_DOT, 2)):
        if (matched := pattern.match(mnemonic)) is not None:
            bits = _X86_BITS[matched[2]]
            if matched[1] == "s":
                return Instruction("fp", flop, bits)
            return Instruction("fp", flop * width // bits, bits, width)
    if _X87.match(mnemonic):
        return Instruction("fp", 1, 80)
    if width and _X86_PACKED_INT.match(mnemonic):
        return Instruction("simd-int", width=width)
    if mnemonic == "mov" and _X86_CHAINED.fullmatch(operands):
        return Instruction(chained=True)
    return OTHER


_X86_64 = 62  # e_machine, System V ABI
_PT_LOAD = 1
_MAX_HEADERS = 1024  # a real file has a dozen


@dataclass(frozen=True)
class ElfSegment:
    """One loaded piece of the file: `size` bytes at `offset` appear at `address`."""

    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Elf:
    """The places of all loaded addresses in the file at `path`."""

    path: Path
    segments: tuple[ElfSegment, ...]

    def read(self, address: int, size: int) -> bytes:
        """Read up to `size` bytes at `address`; fewer at a segment's end, none outside of every segment."""
        for segment in self.segments:
            inside = address - segment.address
            if 0 <= inside < segment.size:
                try:
                    with open_regular(self.path) as file:
                        file.seek(segment.offset + inside)
                        return file.read(min(size, segment.size - inside))
                except (OSError, ValueError, OverflowError):  # replaced meanwhile, or a lying header
                    return b""
        return b""


def read_elf(path: Path) -> Elf | None:
    """Read the layout of the 64-bit little-endian ELF file at `path`; None for other files, or not of x86-64."""
    try:
        if not path.is_file():  # an object may be named like a device or a fifo
            return None
        with open_regular(path) as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return None
            machine = struct.unpack_from("<H", head, 18)[0]
            table = struct.unpack_from("<Q", head, 32)[0]
            size, count = struct.unpack_from("<HH", head, 54)
            if machine != _X86_64 or size < 56 or count > _MAX_HEADERS:
                return None
            file.seek(table)
            headers = file.read(size * count)
    except (OSError, ValueError, OverflowError):
        return None
    segments = []
    for start in range(0, len(headers) - 55, size):
        kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", headers, start)
        if kind == _PT_LOAD:
            segments.append(ElfSegment(address, offset, in_file))
    return Elf(path, tuple(segments))


HOTTEST = 50  # functions that get a mix of their own
# beyond this share the counts are not counts of the workload; 2 % is what theory is held to
UNDECODED_LIMIT = 0.05
WORTH_A_NOTE = 0.005  # a quarter of the 2 % that theory is held to
_LONGEST = 16  # bytes; x86-64 allows 15
_GAP = 64  # addresses closer than this are decoded in one sweep over the bytes between them


@dataclass(frozen=True)
class InstructionCounts:
    """Counts of executed instructions; `flop*` counts operations: lanes, and a multiply-add as two."""

    executed: int = 0
    undecoded: int = 0
    flop32: int = 0
    flop64: int = 0
    flop80: int = 0
    scalar: int = 0  # floating-point instructions on one value, and
    packed: int = 0  # on more than one
    simd_int: int = 0  # packed integer, logic and shuffle instructions
    chained: int = 0  # loads that give the address of the next one
    strided: int = 0  # loads from addresses that are a large, equal step apart

    def __add__(self, other: InstructionCounts) -> InstructionCounts:
        return InstructionCounts(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(InstructionCounts))
        )

    def counters(self, scope: Scope = RUN) -> tuple[Counter, ...]:
        """Return the counts by name; without values where too much could not be decoded."""
        values = {
            "FLOP": self.flop32 + self.flop64 + self.flop80,
            "FLOP32": self.flop32,
            "FLOP64": self.flop64,
            "FPinstr": self.scalar + self.packed,
            "SIMDfp": self.packed,
            "SIMDint": self.simd_int,
            "chained": self.chained,
            "strided": self.strided,
        }
        share = self.undecoded / self.executed if self.executed else 0.0
        if share > UNDECODED_LIMIT:
            reason = Fact.of("code-in-no-file", share=share)
            return tuple(Counter(n, None, "not-counted", scope=scope, reason=reason) for n in values)
        return tuple(Counter(n, float(v), "measured", scope=scope) for n, v in values.items())


@dataclass(frozen=True)
class InstructionMix:
    """The mix of a run and of its functions, most instructions first; `notes` say what is not in it."""

    whole: InstructionCounts
    functions: tuple[tuple[Scope, InstructionCounts], ...]
    notes: tuple[Fact, ...] = ()
    executions: Mapping[tuple[str, str], Executed] = field(
        default_factory=dict
    )  # by object file and function

    def counters(self) -> tuple[Counter, ...]:
        """Return the counts of the run, then of each function in its own scope."""
        return (*self.whole.counters(), *(c for scope, mix in self.functions for c in mix.counters(scope)))


def instruction_mix(path: Path, *more: Path) -> InstructionMix | None:
    """Return the mix of the callgrind file at `path` and of the run's other processes.

    None where the files have no addresses. Reads the object files that the report names. Raises UnreadableReport
    for an invalid callgrind file.
    """
    executions: dict[tuple[str, str], Executed] = {}
    for file in (path, *more):
        executed = read_executions(file)
        if executed is None:
            return None
        for key, counts in executed.items():
            sums = executions.setdefault(key, {})
            for address, count in counts.items():
                sums[address] = sums.get(address, 0) + count
    by_object: dict[str, set[int]] = {}
    for (library, _), counts in executions.items():
        by_object.setdefault(library, set()).update(counts)
    decoded = {library: _decode_addresses(library, addresses) for library, addresses in by_object.items()}
    mixes: dict[tuple[str, str], InstructionCounts] = {}
    for key, counts in executions.items():
        mixes[key] = _instruction_counts(counts, decoded[key[0]])
    whole = sum(mixes.values(), InstructionCounts())
    if not 0 <= whole.executed < 1 << 63:
        raise UnreadableReport(
            f"{path} counts {str(whole.executed)[:24]} instructions, which no run can have"
        )
    hottest = sorted(mixes, key=lambda key: (-mixes[key].executed, key))[:HOTTEST]
    largest = [key for key in hottest if mixes[key].executed]
    functions = tuple(
        (Scope("function", name, library or None), mixes[library, name]) for library, name in largest
    )
    return InstructionMix(whole, functions, tuple(_notes(mixes, whole)), executions)


def _instruction_counts(counts: Executed, decoded: dict[int, Instruction]) -> InstructionCounts:
    sums = dict.fromkeys((f.name for f in fields(InstructionCounts)), 0)
    for address, count in counts.items():
        sums["executed"] += count
        instruction = decoded.get(address)
        if instruction is None:
            sums["undecoded"] += count
            continue
        sums["strided"] += count if instruction.strided else 0
        if instruction.kind == "fp":
            precision = f"flop{instruction.bits or 64}"
            sums[precision] += count * instruction.flop
            sums["packed" if instruction.width >= 128 else "scalar"] += count
        elif instruction.kind == "simd-int":
            sums["simd_int"] += count
        elif instruction.chained:
            sums["chained"] += count
    return InstructionCounts(**sums)


def _notes(mixes: dict[tuple[str, str], InstructionCounts], whole: InstructionCounts) -> Iterator[Fact]:
    if whole.undecoded > WORTH_A_NOTE * whole.executed:
        missing: dict[str, int] = {}
        for (library, _), mix in mixes.items():
            missing[library] = missing.get(library, 0) + mix.undecoded
        worst = max(missing, key=lambda library: missing[library])
        share = whole.undecoded / whole.executed
        has_file = worst not in ("", "???")
        yield Fact.of(
            "not-decoded" if has_file else "compiled-not-decoded", share=share, name=Path(worst).name
        )
    yield Fact("no-avx-512")


def _decode_addresses(library: str, addresses: set[int]) -> dict[int, Instruction]:
    """Decode the instruction at each of `addresses` in the object file, as far as it can be read."""
    elf = read_elf(Path(library)) if library and library != "???" else None
    if elf is None:
        return {}
    disassemble = disassembler()
    decoded: dict[int, Instruction] = {}
    for run in address_runs(sorted(addresses)):
        code = elf.read(run[0], run[-1] - run[0] + _LONGEST)
        texts = [
            (address, mnemonic, operands) for address, _, mnemonic, operands in disassemble(code, run[0], 0)
        ]
        strided = strided_loads(texts)
        for address, mnemonic, operands in texts:
            if address in addresses:
                instruction = classify_x86_64(mnemonic, operands)
                decoded[address] = replace(instruction, strided=True) if address in strided else instruction
        for address in run:
            if address not in decoded:  # the sweep lost step: data between instructions
                code = elf.read(address, _LONGEST)
                for _, _, mnemonic, operands in disassemble(code, address, 1):
                    decoded[address] = classify_x86_64(mnemonic, operands)
    return decoded


def address_runs(addresses: list[int]) -> Iterator[list[int]]:
    """Yield addresses that are so near each other that the bytes between them are decoded as well."""
    run: list[int] = []
    for address in addresses:
        if run and address - run[-1] > _GAP:
            yield run
            run = []
        run.append(address)
    if run:
        yield run


def disassembler() -> Callable[[bytes, int, int], Iterator[tuple[int, int, str, str]]]:
    """Return capstone's function for x86-64 code, which yields address, size, mnemonic and operands."""
    import capstone  # here: 30 ms that a report without addresses need not pay

    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassemble: Callable[[bytes, int, int], Iterator[tuple[int, int, str, str]]] = engine.disasm_lite
    return disassemble
