"""Finds loops in x86-64 code that compute one floating-point number at a time though no round needs another one.

Proved by the loop alone: it goes straight through, no register of numbers is used before it is set in the same round,
what it loads and stores moves by one element, and nothing is loaded beside a place that it stores to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.profilers.valgrind.strides import Code, steps_in, whole_register, written_registers

_ARITHMETIC = re.compile(r"v?(?:add|sub|mul|div|sqrt|min|max|fn?m(?:add|sub)\d{3})(s[sd])")
_PACKED = re.compile(r"v?(?:add|sub|mul|div|sqrt|min|max|fn?m(?:add|sub)\d{3})p[sd]")
_SETS = re.compile(r"v?(?:mov\w*|cvt\w*|sqrts[sd]|broadcast\w*)|v?pxor|v?xorp[sd]")
_FUSED = re.compile(r"vfn?m(?:add|sub)\d{3}s[sd]")
_NUMBERS = re.compile(r"[xyz]mm\d+")
_REGISTER = re.compile(r"\b(?:r\w+|e\w{2})\b")
_BYTES = {"ss": 4, "sd": 8}


def scalar_work(body: Code) -> tuple[int, int]:
    """Return how many arithmetic instructions a round of such a loop has, and the bytes of a number.

    (0, 0) for any other loop.
    """
    kinds = [found[1] for _, mnemonic, _ in body if (found := _ARITHMETIC.fullmatch(mnemonic)) is not None]
    jumps = sum(mnemonic.startswith("j") for _, mnemonic, _ in body)
    packed = any(_PACKED.fullmatch(mnemonic) or mnemonic.startswith("call") for _, mnemonic, _ in body)
    if not kinds or len(set(kinds)) > 1 or jumps != 1 or packed or _is_carried(body):
        return 0, 0
    size = _BYTES[kinds[0]]
    return (len(kinds), size) if _is_in_order(body, size) else (0, 0)


def _is_carried(body: Code) -> bool:
    """Return whether a register of numbers is used before it is set in a round, and changed in it."""
    used_first: set[str] = set()
    changed: set[str] = set()
    for _, mnemonic, operands in body:
        parts = [part.strip() for part in operands.split(",")]
        target = parts[0] if parts and _NUMBERS.fullmatch(parts[0]) else None
        same = len(set(parts)) == 1 and mnemonic.endswith(("xor", "xorps", "xorpd"))
        alone = _SETS.fullmatch(mnemonic) is not None or (len(parts) > 2 and not _FUSED.fullmatch(mnemonic))
        sources = [] if same else _NUMBERS.findall(",".join(parts[1:] if target and alone else parts))
        used_first |= set(sources) - changed
        if target is not None:
            changed.add(target)
    return bool(used_first & changed) or _is_carried_in_whole_numbers(body)


def _is_carried_in_whole_numbers(body: Code) -> bool:
    """Return whether the same holds of a general register, but for those that move by the same step each time."""
    moved = steps_in(body)
    used_first: set[str] = set()
    changed: set[str] = set()
    for _, mnemonic, operands in body:
        target, _, rest = operands.partition(",")
        named = {whole_register(name) for name in _REGISTER.findall(operands)}
        if mnemonic.startswith(("mov", "lea", "cvt", "set")) and "[" not in target:
            named = {whole_register(name) for name in _REGISTER.findall(rest)}  # its target is only set
        used_first |= named - changed
        changed |= set(written_registers(mnemonic, operands))
    return bool((used_first & changed) - moved.steps.keys())


def _is_in_order(body: Code, size: int) -> bool:
    """Return whether a loop stores numbers that lie side by side, and loads such ones or what stays."""
    moved = steps_in(body)
    stored: dict[str, str] = {}
    loaded: list[tuple[str, str]] = []
    for mnemonic, address, stores in _accesses(body):
        registers = [(whole_register(name), name) for name in _REGISTER.findall(address)]
        changing = [whole for whole, _ in registers if whole in moved.written]
        if len(changing) > 1 or any(whole not in moved.steps for whole in changing):
            return False
        if changing:
            scale = re.search(rf"\b{re.escape(dict(registers)[changing[0]])}\s*\*\s*(\d)", address)
            if abs(moved.steps[changing[0]]) * (int(scale[1]) if scale is not None else 1) != size:
                return False
        elif stores:
            return False  # a single place that is stored to each time
        key = " ".join(sorted(whole for whole, _ in registers))
        if stores and _NUMBERS.search(mnemonic):
            stored[key] = address
        elif not stores:
            loaded.append((key, address))
    return bool(stored) and all(stored.get(key, address) == address for key, address in loaded)


def _accesses(body: Code) -> Iterator[tuple[str, str, bool]]:
    """Yield each access to memory: the instruction, its address, and whether it stores."""
    for _, mnemonic, operands in body:
        memory = re.search(r"\[([^\]]*)\]", operands)
        if memory is None or mnemonic in ("lea", "nop") or mnemonic.startswith("prefetch"):
            continue
        stores = "," in operands and memory.start() < operands.index(",") and mnemonic not in ("cmp", "test")
        yield f"{mnemonic} {operands}", memory[1], stores
