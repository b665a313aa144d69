"""Counts how often the inner loops of a program went round, by the executions of their instructions.

A jump back to a loop's head was taken as often as it ran more often than what follows it. What else came to the loop
entered it: at most so often, since what follows a jump may be reached from elsewhere as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from profkit.profilers.valgrind.instructions import address_runs, disassembler, read_elf
from profkit.profilers.valgrind.scalar_loops import scalar_work
from profkit.profilers.valgrind.strides import Code, back_jumps, strided_in

MAX_LOOPS = 10  # loops, of most instructions
LATENCY = 4.0  # cycles until a floating-point sum can be added to
EACH_CYCLE = 3.0  # instructions of code that waits for nothing
SERIAL = 2.0  # times as long as its instructions take: then a loop waits for its sums
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
    strided: int = 0  # loads from addresses that are a large, equal step apart
    scalar: int = (
        0  # arithmetic instructions of a round, each of one number, where no round needs another one; else 0
    )
    bytes: int = 0  # of such a number


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
        after = {text[0]: other[0] for text, other in pairwise(texts)}
        for body, jumps in _inner_loops(texts):
            head = body[0][0]
            # Once for each round: its head, or what a jump into the loop comes to first.
            most = max(executed.get(at, 0) for at, mnemonic, _ in body if mnemonic != "call")
            taken = sum(max(0, executed.get(at, 0) - executed.get(after.get(at, -1), 0)) for at in jumps)
            if taken <= 0:
                continue
            entries = max(1, most - taken)
            total = sum(executed.get(at, 0) for at, _, _ in body)
            serial = _serial(body, total / most)
            found.append(
                CountedLoop(
                    _sum_at(body) if serial else head,
                    total,
                    entries,
                    most / entries,
                    serial,
                    sum(executed.get(at, 0) for at in strided_in(body)),
                    *scalar_work(body),
                )
            )
    return sorted(found, key=lambda loop: -loop.executed)[:MAX_LOOPS]


def _inner_loops(code: Code) -> Iterator[tuple[Code, list[int]]]:
    """Yield innermost loops, with the addresses of all jumps to their heads."""
    by_head: dict[int, list[int]] = {}
    for first, last in back_jumps(code):
        by_head.setdefault(first, []).append(last)
    for first, tails in by_head.items():
        if not any(first < other < max(tails) for other in by_head):
            yield code[first : max(tails) + 1], [code[at][0] for at in tails]


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
