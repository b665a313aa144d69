"""Cache geometry as one core sees it, and when not to believe it.

A hypervisor passes CPUID on, invents it or leaves it out: a guest on a part with 32 MiB of L3 has been seen
to report a direct-mapped L3 of 320 MiB (the sum over the socket). A simulation with such a geometry answers
another question, so what cannot be true is replaced by the processor's typical geometry, marked `assumed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.types import Cache, Machine
from profkit.hardware import tree
from profkit.hardware.processor import Processor
from profkit.hardware.typical import Typical, typical_of

KIB, MIB = 1024, 1024 * 1024

# The smallest and largest that exist (L1: 8 KiB Atom to 192 KiB Apple; L2: 128 KiB to 72 MiB of Apple's and
# Qualcomm's clusters; L3: 1 MiB to the 504 MiB of a Xeon 6 socket), with room for what comes next.
_SIZES = {1: (4 * KIB, 512 * KIB), 2: (64 * KIB, 128 * MIB), 3: (512 * KIB, 1024 * MIB)}
_AMD_L3_MOST = 128 * MIB  # one core sees one CCX: 96 MiB with stacked cache is the most built
_WAYS_MOST = (
    64  # 20 is the most of a real L3; a "fully associative" one is CPUID's word for "see another leaf"
)
_EMULATED = {(2, 4 * MIB, 16), (3, 16 * MIB, 16)}  # QEMU's stand-ins (target/i386/cpu.c, legacy_l2/l3_cache)


@dataclass(frozen=True)
class CacheReport:
    """The geometry to work with, and in words what was not believed (`doubts`, empty where all was)."""

    caches: tuple[Cache, ...]
    instruction: Cache
    doubts: tuple[str, ...] = ()


def data_caches(machine: Machine) -> tuple[Cache, ...]:
    """Data and unified caches of one core, L1 first."""
    return tuple(sorted(machine.caches, key=lambda cache: cache.level))


def data_cache(machine: Machine, level: int) -> Cache | None:
    """The data or unified cache of that level, None where the machine has none."""
    return next((cache for cache in machine.caches if cache.level == level), None)


def instruction_cache(machine: Machine) -> Cache:
    """The first-level instruction cache; the typical one (`assumed`) for a machine recorded without it."""
    if machine.instruction_cache is not None:
        return machine.instruction_cache
    usual = typical_of(machine.vendor, machine.family, machine.model)
    return Cache(1, *usual.l1i, source="assumed")


def read_caches(root: Path, processor: Processor, cores: tuple[int, ...], virtual: bool) -> CacheReport:
    """Geometry of the first of `cores` from sysfs, with what cannot be true replaced and named.

    On a hybrid part this is a performance core, which Linux numbers first. Sizes and lines in bytes.
    """
    core = cores[0] if cores else 0
    data, instruction = _from_sysfs(root, core)
    usual = typical_of(processor.vendor, processor.family, processor.model)
    doubts: list[str] = []
    if not data:
        doubts.append("the machine does not tell its caches")
    believed: dict[int, Cache] = {}
    emulated = virtual and all((c.level, c.size, c.ways) in _EMULATED for c in data if c.level in (2, 3))
    for cache in data:
        reason = _why_not(cache, believed, processor.vendor)
        if reason is None and emulated and cache.level in (2, 3):
            reason = "is what an emulator reports for every processor"
        if reason is None:
            believed[cache.level] = cache
        else:
            doubts.append(f"L{cache.level} ({_words(cache)}) {reason}")
            _assume(believed, usual, cache.level, len(cores))
    for level in (1, 2, 3):
        if level not in believed and (not data or level < 3 or virtual):
            if data and not any(cache.level == level for cache in data) and usual.level(level):
                doubts.append(f"L{level} is not told")
            _assume(believed, usual, level, len(cores))
    if instruction is None or _why_not(instruction, {}, processor.vendor) is not None:
        if data:
            doubts.append("L1 for instructions is not told or cannot be")
        instruction = Cache(1, *usual.l1i, source="assumed")
    ordered = tuple(believed[level] for level in sorted(believed))
    if any(cache.source == "assumed" for cache in (*ordered, instruction)):
        doubts.append(f"assumed instead: that of {usual.name}")
    return CacheReport(ordered, instruction, tuple(doubts))


def _assume(believed: dict[int, Cache], usual: Typical, level: int, cores: int) -> None:
    geometry = usual.level(level)
    if geometry is not None:
        believed[level] = Cache(level, *geometry, shared=max(cores, 1) if level == 3 else 1, source="assumed")


def _why_not(cache: Cache, below: dict[int, Cache], vendor: str) -> str | None:
    """Why this geometry cannot be true, None where it can."""
    low, high = _SIZES.get(cache.level, (4 * KIB, 4096 * MIB))
    if vendor == "AuthenticAMD" and cache.level == 3:
        high = _AMD_L3_MOST
    smaller = max((other.size for other in below.values()), default=0)
    rules = (
        (cache.line not in (16, 32, 64, 128, 256), "has no possible line size"),
        (cache.size <= 0, "has no size"),
        (cache.ways <= 0, "does not tell its ways"),
        (cache.level > 1 and cache.ways == 1, "would be direct-mapped, as no processor of today is"),
        (cache.ways > _WAYS_MOST, "has more ways than any processor"),
        (not low <= cache.size <= high, "is of a size no core has"),
        (not _sets_exist(cache), "has a number of sets that cannot be"),
        (cache.size < smaller, "is smaller than the level before it"),
    )
    return next((reason for wrong, reason in rules if wrong), None)


def _sets_exist(cache: Cache) -> bool:
    """Whole sets, and in a core's own caches a power of two: an L3 in slices may have, say, 12 * 1024."""
    if cache.line <= 0 or cache.ways <= 0 or cache.size % (cache.line * cache.ways) != 0:
        return False
    sets = cache.size // (cache.line * cache.ways)
    return cache.level >= 3 or sets & (sets - 1) == 0


def _from_sysfs(root: Path, core: int) -> tuple[list[Cache], Cache | None]:
    """Data and unified levels in order, and the first instruction cache, as sysfs tells them."""
    folder = f"sys/devices/system/cpu/cpu{core}/cache"
    data: dict[int, Cache] = {}
    instruction: Cache | None = None
    for index in range(16):  # no processor has more; a folder listing would follow a hostile tree
        kind = tree.text(root, f"{folder}/index{index}/type")
        level = tree.number(root, f"{folder}/index{index}/level")
        if kind is None or level is None:
            continue
        cache = Cache(
            level=level,
            size=_size(tree.text(root, f"{folder}/index{index}/size")),
            ways=tree.number(root, f"{folder}/index{index}/ways_of_associativity") or 0,
            line=tree.number(root, f"{folder}/index{index}/coherency_line_size") or 0,
            shared=max(1, len(tree.core_list(tree.text(root, f"{folder}/index{index}/shared_cpu_list")))),
        )
        if kind == "Instruction" and level == 1:
            instruction = instruction or cache
        elif kind in ("Data", "Unified"):
            data.setdefault(level, cache)
    ordered = [_with_ways(data[level]) for level in sorted(data)]
    return ordered, instruction and _with_ways(instruction)


def _with_ways(cache: Cache) -> Cache:
    """A line of 0 is a kernel that does not tell it: 64 bytes is what x86 and Arm servers have."""
    return replace(cache, line=64) if cache.line == 0 else cache


def _size(content: str | None) -> int:
    """`48K`, `32768K`, `32M` in bytes; 0 where it is no size."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", content or "")
    if match is None:
        return 0
    unit = {"": 1, "K": KIB, "M": MIB, "G": 1024 * MIB}[match.group(2)]
    return int(match.group(1)) * unit


def _words(cache: Cache) -> str:
    size = f"{cache.size // MIB} MiB" if cache.size >= MIB else f"{cache.size // KIB} KiB"
    return f"{size}, {cache.ways}-way, line {cache.line}"
