"""Finds loads in x86-64 code whose address moves by the same large step with each iteration of their loop.

Proved by the loop alone: one register of the address is changed once in it, by a number or by a register that
the loop leaves as it is, and no other register of the address is changed. A hash or a list computes its
address otherwise, and a loop that was unrolled uses all that lies between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Address, mnemonic and operands in capstone's Intel syntax.
Code: TypeAlias = "Sequence[tuple[int, str, str]]"

LINE_BYTES = 64
LONGEST_LOOP = 200  # instructions
UNKNOWN = LINE_BYTES  # a step by a register: that it is large is seen by the misses
_GENERAL = re.compile(r"r(?:[abcd]x|[sd]i|[sb]p|\d+)\b")
_PARTS = {
    **{
        f"{kind}{name}": f"r{name}"
        for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")
        for kind in ("e", "")
    },
    **{f"{name}{half}": f"r{name}x" for name in "abcd" for half in "lh"},
    **{f"{name}l": f"r{name}" for name in ("si", "di", "bp", "sp")},
}
_READS_ALONE = re.compile(r"cmp|test|v?u?comis[sd]|push|nop|prefetch\w*|j\w+|bt")
_TERM = re.compile(r"([a-z]\w*)(?:\*(\d))?")
_WIDTHS = (("ymmword", 32), ("xmmword", 16), ("qword", 8), ("dword", 4), ("word", 2), ("byte", 1))
_ONE_OPERAND = re.compile(r"i?mul|i?div")


def strided_loads(code: Code) -> set[int]:
    """Return the addresses of strided loads in the innermost loops of a piece of code."""
    return {address for body in loops(code) for address in strided_in(body)}


def loops(code: Code) -> Iterator[Code]:
    """Yield the innermost loops without calls."""
    back = back_jumps(code)
    for first, last in back:
        inner = any((first, last) != jump and first <= jump[0] and jump[1] <= last for jump in back)
        body = code[first : last + 1]
        if not inner and not any(mnemonic in ("call", "syscall") for _, mnemonic, _ in body):
            yield body


def back_jumps(code: Code) -> list[tuple[int, int]]:
    """Return the jumps that end a loop, as numbers of instructions: where it goes, and where it is."""
    at = {address: number for number, (address, _, _) in enumerate(code)}
    jumps = [
        (at[int(operands, 16)], number)
        for number, (_, mnemonic, operands) in enumerate(code)
        if mnemonic.startswith("j")
        and re.fullmatch(r"0x[0-9a-f]{1,16}", operands)
        and int(operands, 16) in at
    ]
    return [(first, last) for first, last in jumps if first <= last < first + LONGEST_LOOP]


@dataclass(frozen=True)
class LoopSteps:
    """The registers that a loop changes, and by how much those move that move by the same each time."""

    written: frozenset[str]
    steps: dict[str, int]
    by_number: frozenset[str]  # those of them that move by a number in the code, not by a register


def steps_in(body: Code) -> LoopSteps:
    """Return the registers that a loop changes, and the constant steps of those that have one."""
    writes: dict[str, list[tuple[str, str]]] = {}
    for _, mnemonic, operands in body:
        for register in written_registers(mnemonic, operands):
            writes.setdefault(register, []).append((mnemonic, operands))
    steps = {
        register: step
        for register, changes in writes.items()
        if len(changes) == 1 and (step := _step(register, *changes[0], writes)) is not None
    }
    numbers = (
        register
        for register in steps
        if not _GENERAL.fullmatch(writes[register][0][1].partition(",")[2].strip())
    )
    return LoopSteps(frozenset(writes), steps, frozenset(numbers))


def strided_in(body: Code) -> Iterator[int]:
    """Yield the addresses of the loads of a loop that are a large, equal step apart.

    Loads side by side that together use half of the step or more walk in order: a loop that was unrolled or vectorised.
    """
    moved = steps_in(body)
    found: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    steps: dict[tuple[str, ...], int] = {}
    for address, mnemonic, operands in body:
        memory = _loaded(mnemonic, operands)
        if memory is None:
            continue
        terms = [(whole_register(name), int(scale or 1)) for name, scale in _TERM.findall(memory)]
        changed = [(register, scale) for register, scale in terms if register in moved.written]
        if len(changed) != 1:
            continue
        register, scale = changed[0]
        step = abs(moved.steps.get(register, 0)) * scale
        if step >= LINE_BYTES:
            key = tuple(name for name, _ in terms if _GENERAL.fullmatch(name))
            steps[key] = step if register in moved.by_number else 0
            found.setdefault(key, []).append((address, operands))
    for key, loads in found.items():
        if not steps[key] or 2 * _bytes_of(loads) < steps[key]:
            yield from (address for address, _ in loads)


def _bytes_of(loads: Sequence[tuple[int, str]]) -> int:
    """Return how many bytes different loads from one moving address bring together."""
    widths = {
        operands[operands.index("[") : operands.index("]")]: next(
            (size for name, size in _WIDTHS if name in operands), 8
        )
        for _, operands in loads
    }
    return sum(widths.values())


def whole_register(register: str) -> str:
    """Return the whole register of a part: `rax` of `eax` and `al`, `r8` of `r8d`."""
    return _PARTS.get(register, re.sub(r"^(r\d+)[dwb]$", r"\1", register))


def written_registers(mnemonic: str, operands: str) -> list[str]:
    """Return the general registers that an instruction changes."""
    if _READS_ALONE.fullmatch(mnemonic):
        return []
    parts = [part.strip() for part in operands.split(",")]
    if _ONE_OPERAND.fullmatch(mnemonic) and len(parts) == 1:
        return ["rax", "rdx"]
    if mnemonic in ("cdq", "cqo"):
        return ["rdx"]
    changed = parts if mnemonic in ("xchg", "xadd") else parts[:1]
    return [whole for part in changed if _GENERAL.fullmatch(whole := whole_register(part))]


def _step(
    register: str, mnemonic: str, operands: str, writes: dict[str, list[tuple[str, str]]]
) -> int | None:
    """Return by how much a change moves a register each time; None where that is not constant.

    It is UNKNOWN by another register that stays the same.
    """
    source = operands.partition(",")[2].strip()
    if mnemonic in ("inc", "dec"):
        return 1
    if mnemonic == "lea":
        moved = re.fullmatch(rf"\[{register} [+-] (0x[0-9a-f]+|\d+)\]", source)
        return int(moved[1], 0) if moved is not None else None
    if mnemonic not in ("add", "sub"):
        return None
    if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", source):
        return int(source, 0)
    return UNKNOWN if _GENERAL.fullmatch(source) and source not in writes else None


def _loaded(mnemonic: str, operands: str) -> str | None:
    """Return the address that an instruction loads from; None where it loads nothing."""
    memory = re.search(r"\[([^\]]*)\]", operands)
    if memory is None or mnemonic in ("lea", "nop") or mnemonic.startswith("prefetch"):
        return None
    stores = operands.index("[") < (operands.find(",") if "," in operands else len(operands))
    return None if stores and mnemonic not in ("cmp", "test") else memory[1]
