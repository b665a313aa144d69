"""Says what looks at registers show of the code they were taken in: numbers that are denormal, one divisor each time,
lines of the cache that several threads write to, and records of which a loop uses a small part.

The instruction that a thread waits for is the next one or one shortly before it, as processors stop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from profkit.core.types import RegisterFact
from profkit.profilers.perf.look_records import Look
from profkit.profilers.valgrind.instructions import Elf, read_elf
from profkit.profilers.valgrind.strides import LINE_BYTES, loops, steps_in, whole_register

MIN_LOOKS = 8
PART = 0.3  # of the looks at a function
SAME = 0.9  # of the looks at a division: the same divisor
TURNS = 4  # how often another thread writes to a line than the one before
USED = 0.25  # of a record: what uses more is no small part
PHASES = 2  # where in a record a loop begins: walks over columns begin everywhere
BEFORE = 3  # instructions that may have kept a thread where it was seen
WINDOW = 800  # bytes of code on both sides
_PLAIN = re.compile(r"v?(?:mul|div|sqrt|fn?m(?:add|sub)\d*)([sp])([sd])$")
_ADDS = re.compile(r"v?(?:add|sub)([sp])([sd])$")
_DAZ = 0x40  # of MXCSR: a denormal operand is taken for zero


@dataclass(frozen=True)
class CodePlace:
    """Where an address is in the source: `own` if no function of a library is inlined there."""

    function: str
    file: str | None
    line: int | None
    own: bool


@dataclass
class _Group:
    """The looks at one function, with the instructions around each."""

    looks: list[tuple[Look, list[Any]]] = field(default_factory=list)  # the next one, and those before it


# The instructions of a loop as address, mnemonic and operands, and all instructions around it by their addresses.
_Loop = tuple[Sequence[tuple[int, str, str]], Mapping[int, Any]]


class Code:
    """The machine code of a program, decoded where it is asked for."""

    def __init__(self, elf: Elf) -> None:
        import capstone

        self._elf = elf
        self._plain, self._engine = (capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64) for _ in range(2))
        self._engine.detail = True
        self._known: dict[int, list[Any]] = {}
        # Many looks are at the same few places, and many of these places in the same piece of code.
        self._loops: dict[int, list[_Loop]] = {}
        self._walks: dict[int, tuple[_Walk, ...]] = {}

    def around(self, address: int) -> list[Any]:
        """Return the instructions around an address, of which one begins there; none where that cannot be told."""
        if address not in self._known:
            self._decode(address)
        return self._known[address]

    def _decode(self, address: int) -> None:
        """Decode from the first place before an address from which the instructions fall into step with it."""
        self._known[address] = []
        for start in range(address - WINDOW, address):
            data = self._elf.read(start, 2 * WINDOW)
            if data and any(entry[0] == address for entry in self._plain.disasm_lite(data, start)):
                decoded = list(self._engine.disasm(data, start))
                near = (
                    instruction.address
                    for instruction in decoded
                    if abs(instruction.address - address) < WINDOW // 2
                )
                self._known |= {at: decoded for at in near if at not in self._known or at == address}
                return

    def loops_around(self, address: int) -> list[_Loop]:
        """Return the innermost loops of the instructions around an address."""
        around = self.around(address)
        if id(around) not in self._loops:
            texts = [
                (instruction.address, instruction.mnemonic, instruction.op_str) for instruction in around
            ]
            at = {instruction.address: instruction for instruction in around}
            self._loops[id(around)] = [(body, at) for body in loops(texts)]
        return self._loops[id(around)]

    def walks_at(self, address: int) -> tuple[_Walk, ...]:
        """Return the walks over records of the loops around an address."""
        if address not in self._walks:
            self._walks[address] = _walks(self, address)
        return self._walks[address]

    def at(self, address: int) -> list[Any]:
        """Return the instruction at an address, and those before it, the last one first; none if it is not known."""
        code = self.around(address)
        number = next((n for n, instruction in enumerate(code) if instruction.address == address), None)
        return code[max(0, number - BEFORE) : number + 1][::-1] if number is not None else []


def register_facts(
    program: Path, looks: Sequence[Look], places: Mapping[int, CodePlace]
) -> tuple[RegisterFact, ...]:
    """Return what the looks show. `places` has the source of addresses, as far as it is known."""
    elf = read_elf(program)
    if elf is None:
        return ()
    code = Code(elf)
    groups: dict[tuple[str, str | None], _Group] = {}
    for look in looks:
        place, there = places.get(look.address), code.at(look.address)
        if place is not None and there:
            groups.setdefault((place.function, place.file), _Group()).looks.append((look, there))
    facts: list[RegisterFact] = []
    for (function, file), group in groups.items():
        if len(group.looks) < MIN_LOOKS:
            continue
        for found in (_denormal(group), _divisor(group, places), _shared(group), _record(group, code)):
            if found is not None and found.looks >= max(MIN_LOOKS, PART * len(group.looks)):
                at = places.get(found.address)
                facts.append(
                    RegisterFact(
                        found.kind,
                        function,
                        file,
                        at.line if at is not None and at.file == file else None,
                        found.looks,
                        len(group.looks),
                        found.threads,
                        found.number,
                        found.size,
                    )
                )
    return tuple(facts)


@dataclass(frozen=True)
class _Found:
    kind: Any
    looks: int
    address: int
    number: int = 0
    size: int = 0
    threads: int = 1


def _operands(instruction: Any, kind: int) -> list[Any]:
    return [operand for operand in instruction.operands if operand.type == kind]


_REGISTER, _MEMORY = 1, 3  # capstone's X86_OP_REG and X86_OP_MEM


def _denormal(group: _Group) -> _Found | None:
    """Return that numbers are denormal where they are multiplied or divided, and where such are added."""
    seen = [
        shown
        for look, around in group.looks
        if not look.mxcsr & _DAZ
        and (shown := [instruction for instruction in around if _is_denormal(look, instruction)])
    ]
    # Sums of denormal numbers cost nothing on many processors.
    multiplied = [
        instruction for shown in seen for instruction in shown if _PLAIN.match(instruction.mnemonic)
    ]
    if len(multiplied) < MIN_LOOKS:
        return None
    address, _ = Counter(instruction.address for instruction in multiplied).most_common(1)[0]
    return _Found(
        "denormal", len(seen), address, number=max(_lanes(instruction)[1] for instruction in multiplied)
    )


def _lanes(instruction: Any) -> tuple[bool, int]:
    """Return whether an instruction computes with all lanes, and their bits; zero bits where it does not compute."""
    matched = _PLAIN.match(instruction.mnemonic) or _ADDS.match(instruction.mnemonic)
    return (matched[1] == "p", 32 if matched[2] == "s" else 64) if matched is not None else (False, 0)


def _is_denormal(look: Look, instruction: Any) -> bool:
    packed, bits = _lanes(instruction)
    if not bits:
        return False
    size = bits // 8
    for operand in _operands(instruction, _REGISTER):
        name = instruction.reg_name(operand.reg)
        if not re.fullmatch(r"[xy]mm(\d|1[0-5])", name):
            continue
        value = look.xmm[int(name[3:])]
        for at in range(0, 16 if packed else size, size):
            number = int.from_bytes(value[at : at + size], "little")
            mantissa = 23 if bits == 32 else 52
            if number & ((1 << mantissa) - 1) and not number >> mantissa & ((1 << (bits - 1 - mantissa)) - 1):
                return True
    return False


def _divisor(group: _Group, places: Mapping[int, CodePlace]) -> _Found | None:
    """Return that whole numbers are divided, each time by the same one."""
    values: list[tuple[int, int]] = []
    for look, around in group.looks:
        for instruction in around:
            if instruction.mnemonic in ("div", "idiv") and (registers := _operands(instruction, _REGISTER)):
                name, place = instruction.reg_name(registers[0].reg), places.get(instruction.address)
                value = look.general.get(whole_register(name))
                if value is not None and place is not None and place.own:
                    values.append((value & ((1 << 8 * registers[0].size) - 1), instruction.address))
                break
    if not values:
        return None
    divisor, times = Counter(value for value, _ in values).most_common(1)[0]
    if times < SAME * len(values):
        return None
    address = Counter(at for _, at in values).most_common(1)[0][0]
    return _Found("divisor", len(values), address, number=divisor)


def _address_of(look: Look, instruction: Any, memory: Any) -> int | None:
    """Return the address of an operand in memory by the registers; of a global one in the program's file."""
    address = memory.disp
    if memory.segment:
        return None
    for register, scale in ((memory.base, 1), (memory.index, memory.scale)):
        if register:
            name = instruction.reg_name(register)
            if name == "rip":
                address += instruction.address + instruction.size
                continue
            value = look.general.get(name)
            if value is None:
                return None
            address += value * scale
    return int(address & (1 << 64) - 1)


def _accesses(look: Look, around: Sequence[Any]) -> Iterator[tuple[int, bool, Any]]:
    """Yield address, whether it is written, and the instruction of the accesses that a look may wait for.

    The address of an instruction that was carried out is known as long as nothing changed its registers.
    """
    changed: set[str] = set()
    for number, instruction in enumerate(around):
        if number:
            changed |= {
                whole_register(instruction.reg_name(register)) for register in instruction.regs_access()[1]
            }
        if instruction.mnemonic in ("lea", "nop") or instruction.mnemonic.startswith("prefetch"):
            continue
        for operand in _operands(instruction, _MEMORY):
            names = {
                instruction.reg_name(register)
                for register in (operand.mem.base, operand.mem.index)
                if register
            }
            address = None if names & changed else _address_of(look, instruction, operand.mem)
            if address is not None:
                yield address, bool(operand.access & 2), instruction


def _is_locked(instruction: Any) -> bool:
    return "lock" in instruction.mnemonic or (
        instruction.mnemonic == "xchg" and bool(_operands(instruction, _MEMORY))
    )


def _shared(group: _Group) -> _Found | None:
    """Return that threads write to one line of the cache in turn: to the same place, or to places beside each other."""
    by_line: dict[int, list[tuple[int, int, int, bool, Any]]] = {}
    for number, (look, around) in enumerate(group.looks):
        for address, writes, instruction in _accesses(look, around):
            by_line.setdefault(address // LINE_BYTES, []).append(
                (number, look.thread, address, writes, instruction)
            )
    same: dict[int, Any] = {}
    beside: dict[int, Any] = {}
    threads: set[int] = set()
    for accesses in by_line.values():
        writers = {thread for _, thread, _, wrote, _ in accesses if wrote}
        order = [thread for _, thread, *_ in accesses if thread in writers]
        turns = sum(thread != other for thread, other in pairwise(order))
        if len(writers) < 2 or turns < TURNS:
            continue
        threads |= writers
        words = {thread: {a // 8 for _, of, a, _, _ in accesses if of == thread} for thread in writers}
        apart = sum(map(len, words.values())) == len(set().union(*words.values()))
        for number, _, _, _, instruction in accesses:
            if apart:
                beside[number] = instruction
            elif _is_locked(instruction):
                same[number] = instruction
    most, kind = max(((same, "contended"), (beside, "beside")), key=lambda threads: len(threads[0]))
    if not most:
        return None
    address = Counter(instruction.address for instruction in most.values()).most_common(1)[0][0]
    return _Found(kind, len(most), address, threads=len(threads))


def _record(group: _Group, code: Code) -> _Found | None:
    """Return that a loop goes from record to record, and uses a small part of each."""
    found: dict[tuple[int, int, int, int], list[int]] = {}
    for look, _ in group.looks:
        walked = next(filter(None, (walk.at(look) for walk in code.walks_at(look.address))), None)
        if walked is not None:
            first, size, used, phase = walked
            found.setdefault((first, size, used, 0), []).append(phase)
    best = max(found.items(), key=lambda item: len(item[1]), default=None)
    if best is None:
        return None
    (first, size, used, _), phases = best
    if len(set(phases)) > PHASES:
        return None
    return _Found("record", len(phases), first, number=used, size=size)


@dataclass(frozen=True)
class _Walk:
    """A load of a loop that goes from record to record: its address, what it moves by and uses of that (bytes)."""

    first: int
    size: int
    used: int
    instruction: Any
    memory: Any

    def at(self, look: Look) -> tuple[int, int, int, int] | None:
        """Return address, size, bytes used, and where in a record the look was; None if its registers do not say."""
        position = _address_of(look, self.instruction, self.memory)
        return (self.first, self.size, self.used, position % self.size) if position is not None else None


def _walks(code: Code, address: int) -> tuple[_Walk, ...]:
    """Return the walks of the loops around an address that use a small part of each record."""
    found: list[_Walk] = []
    for body, at in code.loops_around(address):
        if not body[0][0] <= address <= body[-1][0]:
            continue
        steps = steps_in(body)
        fields: dict[str, tuple[int, set[int], int, Any]] = {}
        for place, _, _ in body:
            instruction = at[place]
            if instruction.mnemonic in ("lea", "nop"):
                continue
            for operand in _operands(instruction, _MEMORY):
                memory = operand.mem
                names = [
                    (instruction.reg_name(register), scale)
                    for register, scale in ((memory.base, 1), (memory.index, memory.scale))
                    if register
                ]
                moved = [(name, scale) for name, scale in names if name in steps.written]
                if len(moved) != 1 or moved[0][0] not in steps.by_number:
                    continue
                size = abs(steps.steps[moved[0][0]]) * moved[0][1]
                _, used, _, _ = fields.setdefault(f"{names}", (size, set(), place, (instruction, memory)))
                used |= {(memory.disp + byte) % size for byte in range(operand.size)} if size else set()
        for size, used, place, (instruction, memory) in fields.values():
            size, used = _smallest(size, used)
            if size >= LINE_BYTES and len(used) <= USED * size:
                found.append(_Walk(place, size, len(used), instruction, memory))
    return tuple(found)


def _smallest(size: int, used: set[int]) -> tuple[int, set[int]]:
    """Return one record where a loop takes several at a time."""
    for number in (8, 4, 2):
        part = size // number
        if size % number == 0 and part >= LINE_BYTES:
            first = {address % part for address in used}
            if len(first) * number == len(used):
                return part, first
    return size, used


def line_addresses(looks: Iterable[Look], program: Path) -> set[int]:
    """Return the addresses whose source is asked for: those of looks, and of the instructions before them."""
    elf = read_elf(program)
    if elf is None:
        return set()
    code, addresses = Code(elf), {look.address for look in looks if look.address}
    return {instruction.address for address in addresses for instruction in code.at(address)}
