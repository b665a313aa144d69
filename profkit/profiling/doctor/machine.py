"""The machine as the doctor tells it: processor, memory, and the caches that a simulation will use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.types import Cache, Check
from profkit.hardware.machine import cache_doubts, read_machine
from profkit.hardware.processor import data_caches, instruction_cache

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10


def machine_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Who this processor is, and whether its cache geometry can be believed."""
    machine = read_machine(root)
    memory = f"{machine.memory_bytes / GIB:.1f} GiB" if machine.memory_bytes else "memory not told"
    place = f", {machine.virtual}" if machine.virtual else ", bare metal"
    yield Check(
        "processor",
        "ok",
        f"{machine.cpu} ({machine.vendor}), {machine.cores} usable core(s), {memory}{place}",
    )
    doubts = cache_doubts(root)
    simulated = machine.system != "Darwin"  # valgrind is not for macOS: there nothing depends on the ways
    told = ", ".join(
        [
            f"I1 {_words(instruction_cache(machine))}",
            *(f"{'D1' if c.level == 1 else f'L{c.level}'} {_words(c)}" for c in data_caches(machine)),
        ]
    )
    yield Check(
        "caches",
        "limited" if doubts and simulated else "ok",
        f"{told}{' - ' + '; '.join(doubts) if doubts else ''}",
        "compare simulated miss rates only between runs with the same geometry"
        if doubts and simulated
        else None,
    )


def _words(cache: Cache) -> str:
    size = f"{cache.size // MIB} MiB" if cache.size % MIB == 0 else f"{cache.size // KIB} KiB"
    return f"{size} {cache.ways}-way{' (assumed)' if cache.source == 'assumed' else ''}"
