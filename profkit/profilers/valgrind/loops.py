"""Counts how often the inner loops of a program went round, by the executions of their instructions.

A loop's last jump was taken as often as it ran more often than what follows it. So each time that a loop was
entered it went round as often as its first instruction ran, less those jumps, tells; at least, since what follows
may be reached from elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.profilers.valgrind.instructions import address_runs, disassembler, read_elf
from profkit.profilers.valgrind.strides import Code, loops

MOST = 10  # loops, of most instructions
LATENCY = 4.0  # cycles until a floating-point sum can be added to
EACH_CYCLE = 3.0  # instructions of code that waits for nothing
SERIAL = 1.5  # times as long as its instructions take: then a loop waits for its sums
_ADDS = re.compile(r"v?(?:add|sub)s[sd]|vfn?m(?:add|sub)(?:231)s[sd]")
_LONGEST = 16  # bytes of an instruction


@dataclass(frozen=True)
class CountedLoop:
    """An innermost loop: instructions that ran in it, how often it was entered, how often it went round each time."""

    address: int
    executed: int
    entries: int
    rounds: float
    serial: float  # times as long as its instructions take, because each sum waits for the one before; 0: it does not


def counted_loops(executed: Mapping[int, int], program: Path) -> list[CountedLoop]:
    """Return the inner loops of a program's own code that ran most instructions; `executed` by address."""
    elf = read_elf(program)
    if elf is None:
        return []
    found: list[CountedLoop] = []
    disassemble = disassembler()
    for run in address_runs(sorted(executed)):
        code = elf.read(run[0], run[-1] - run[0] + _LONGEST)
        texts = [(at, mnemonic, operands) for at, _, mnemonic, operands in disassemble(code, run[0], 0)]
        after = {one[0]: other[0] for one, other in zip(texts, texts[1:], strict=False)}
        for body in loops(texts, calls=True):
            head, last = body[0][0], body[-1][0]
            heads = executed.get(head, 0)
            taken = executed.get(last, 0) - executed.get(after.get(last, -1), 0)
            if heads <= 0 or taken <= 0:
                continue
            entries = max(1, heads - taken)
            total = sum(executed.get(at, 0) for at, _, _ in body)
            serial = _serial(body, total / heads)
            found.append(
                CountedLoop(_sum_at(body) if serial else head, total, entries, heads / entries, serial)
            )
    return sorted(found, key=lambda one: -one.executed)[:MOST]


def _serial(body: Code, each: float) -> float:
    """Return how many times as long a loop's longest chain of sums takes as its `each` instructions; 0 where that is
    not so.
    """
    longest = max((len(adds) for adds in _sums(body).values()), default=0)
    ratio = longest * LATENCY / max(1.0, each / EACH_CYCLE)
    # Divisions and roots follow each other no faster than sums do.
    slow = any(re.search(r"^call|div|sqrt", mnemonic) for _, mnemonic, _ in body)
    return ratio if ratio >= SERIAL and not slow else 0.0


def _sum_at(body: Code) -> int:
    return max(_sums(body).values(), key=len)[0]


def _sums(body: Code) -> Mapping[str, Sequence[int]]:
    """Return the registers to which a loop only adds, and which it uses for nothing else, with where it does so."""
    adds: dict[str, list[int]] = {}
    uses: Counter[str] = Counter()
    for address, mnemonic, operands in body:
        parts = [part.strip() for part in operands.split(",")]
        uses.update(set(re.findall(r"[xyz]mm\d+", operands)))
        is_sum = (
            _ADDS.fullmatch(mnemonic) is not None and parts[0] not in parts[1 if mnemonic[0] != "v" else 2 :]
        )
        three = len(parts) == 3 and not mnemonic.startswith("vf")
        if is_sum and (not three or parts[1] == parts[0]):
            adds.setdefault(parts[0], []).append(address)
    return {register: at for register, at in adds.items() if len(at) == uses[register]}


def loops_of(executions: Mapping[tuple[str, str], Mapping[int, int]], program: Path) -> list[CountedLoop]:
    """Return the loops of a program whose executions were read by object file and function."""
    executed: Counter[int] = Counter()
    for (library, _), counts in executions.items():
        if Path(library).name == program.name:
            executed.update(counts)
    return counted_loops(executed, program)
