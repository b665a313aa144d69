"""Reads what looks at registers left, and marks their stops in perf's text of switches."""

from __future__ import annotations

import bisect
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.files.regular import open_regular, read_start

# user_regs_struct of sys/user.h
ORDER = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp"),
)
REGISTERS = tuple(name for name in ORDER if name.startswith("r"))  # general ones, and the instruction pointer
RECORD = struct.Struct(f"<IIddQ{len(REGISTERS)}Q256s")
MAX_LOOKS = 4000
EARLY = 2e-4  # s that perf's clock may be before this one's


def watched_file(looks: Path) -> Path:
    """Return the file with the watched calls of a run that leaves its looks in `looks`."""
    return looks.with_suffix(".watched")


@dataclass(frozen=True)
class Look:
    """The registers of a thread: `address` of its next instruction in the program's file, general and XMM ones.

    The address is 0 where it runs other code. `begin` and `end` of its stop are seconds of CLOCK_MONOTONIC.
    """

    thread: int
    begin: float
    end: float
    address: int
    general: dict[str, int]
    xmm: tuple[bytes, ...]  # 16 bytes each
    mxcsr: int


def read_looks(path: Path) -> list[Look]:
    """Return the looks that a run of `looks_argv` left; none where it could not look."""
    try:
        data = read_start(path, MAX_LOOKS * RECORD.size)
    except OSError:
        return []
    looks = []
    for at in range(0, len(data) - RECORD.size + 1, RECORD.size):
        thread, mxcsr, begin, end, address, *values, xmm = RECORD.unpack_from(data, at)
        general = dict(zip(REGISTERS, values, strict=True))
        parts = tuple(xmm[16 * n : 16 * n + 16] for n in range(16))
        looks.append(Look(thread, begin, end, address, general, parts, mxcsr))
    return looks


def mark_stops(switches: Path, looks: Sequence[Look]) -> None:
    """Mark the looks' own switches in perf's text as times without a processor: nothing was waited for."""
    stops: dict[bytes, list[tuple[float, float]]] = {}
    for look in looks:
        stops.setdefault(b"%d" % look.thread, []).append((look.begin - EARLY, look.end))
    if not stops:
        return
    marked = switches.with_suffix(".marked")
    with open_regular(switches) as text, open(marked, "wb") as output:
        for line in text:
            numbers, at, *fields = line.split() if b" OUT" in line else (b"", b"")
            of_thread = stops.get(numbers.partition(b"/")[2]) if fields[-1:] == [b"OUT"] else None
            if of_thread is not None:
                now = float(at.rstrip(b":"))
                near = bisect.bisect(of_thread, (now, float("inf"))) - 1
                if near >= 0 and now <= of_thread[near][1]:
                    line = line.rstrip() + b" preempt\n"
            output.write(line)
    os.replace(marked, switches)
