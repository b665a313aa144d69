"""The processor and its caches as one core sees them, and when not to believe what is told of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.types import Cache, Machine
from profkit.hardware import system

# The features that decide which code path a library takes or which instrument works.
_FLAG_PREFIXES = ("sse4_", "avx", "amx", "asimd", "sve")
_FLAG_NAMES = ("fma", "f16c", "sme", "sme2", "bf16", "i8mm", "fphp", "neon")


@dataclass(frozen=True)
class Processor:
    """One core's identity. On Arm `model` is the part, `vendor` the implementer."""

    name: str
    vendor: str
    family: int | None
    model: int | None
    flags: frozenset[str]

    @property
    def features(self) -> tuple[str, ...]:
        """The flags that matter for speed, in order."""
        return tuple(
            sorted(flag for flag in self.flags if flag.startswith(_FLAG_PREFIXES) or flag in _FLAG_NAMES)
        )


UNKNOWN = Processor("unknown", "unknown", None, None, frozenset())


def read_processor(root: Path = Path("/"), core: int = 0) -> Processor:
    """The identity of `core` (of the first one, where that is not listed); UNKNOWN without /proc/cpuinfo."""
    blocks = map(system.parse_fields, (system.read_text(root, "proc/cpuinfo") or "").split("\n\n"))
    listed = [block for block in blocks if block]
    if not listed:
        return UNKNOWN
    numbers = [block.get("processor", "") for block in listed]
    return _parse_processor(listed[numbers.index(str(core)) if str(core) in numbers else 0])


def _parse_processor(block: dict[str, str]) -> Processor:
    flags = frozenset((block.get("flags") or block.get("Features") or "").split())
    if "CPU implementer" in block:
        return _identify_arm(block, flags)
    name = block.get("model name") or block.get("cpu") or block.get("uarch") or block.get("cpu model")
    return Processor(
        name=" ".join((name or "unknown").split()),
        vendor=block.get("vendor_id") or block.get("mvendorid") or "unknown",
        family=_parse_number(block.get("cpu family")),
        model=_parse_number(block.get("model")),
        flags=flags,
    )


def _identify_arm(block: dict[str, str], flags: frozenset[str]) -> Processor:
    implementer, part = _parse_number(block["CPU implementer"]), _parse_number(block.get("CPU part"))
    vendors, parts = arm_names()
    vendor = vendors.get(implementer or -1, f"implementer {block['CPU implementer']}")
    return Processor(
        name=parts.get((implementer or -1, part or -1))
        or f"{vendor} part {block.get('CPU part', 'unknown')}",
        vendor=vendor,
        family=_parse_number(block.get("CPU architecture")),
        model=part,
        flags=flags,
    )


@lru_cache
def arm_names() -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """Implementers by number, and core names by (implementer, part)."""
    table = json.loads((Path(__file__).with_name("arm_cores.json")).read_text("utf-8"))
    vendors = {int(number, 16): str(name) for number, name in table["implementers"].items()}
    parts = {
        (int(number, 16), int(part, 16)): str(name)
        for number, cores in table["parts"].items()
        for part, name in cores.items()
    }
    return vendors, parts


def _parse_number(value: str | None) -> int | None:
    """`26`, `0xd0c`; None where it is no number."""
    try:
        return int(value, 0) if value else None
    except ValueError:
        return None


KIB, MIB = 1024, 1024 * 1024
# (bytes, ways) of a common server's caches: what is assumed of a machine that does not tell its own.
USUAL = {1: (32 * KIB, 8), 2: (MIB, 16), 3: (32 * MIB, 16)}
USUAL_INSTRUCTION = Cache(1, 32 * KIB, 8, source="assumed")

# QEMU's stand-ins (target/i386/cpu.c, legacy_l2/l3_cache)
_EMULATED_CACHES = {(2, 4 * MIB, 16), (3, 16 * MIB, 16)}


def data_caches(machine: Machine) -> tuple[Cache, ...]:
    """Data and unified caches of one core, L1 first."""
    return tuple(sorted(machine.caches, key=lambda cache: cache.level))


def data_cache(machine: Machine, level: int) -> Cache | None:
    """The data or unified cache of that level, None where the machine has none."""
    return next((cache for cache in machine.caches if cache.level == level), None)


def instruction_cache(machine: Machine) -> Cache:
    """The first-level instruction cache; an assumed one for a machine recorded without it."""
    return machine.instruction_cache or USUAL_INSTRUCTION


def read_caches(root: Path, cores: tuple[int, ...], virtual: bool) -> tuple[tuple[Cache, ...], Cache]:
    """Data caches and the instruction cache of the first of `cores` from sysfs; what cannot be true is assumed.

    On a hybrid part this is a performance core, which Linux numbers first. Sizes and lines in bytes.
    """
    data, instruction = _read_sysfs_caches(root, cores[0] if cores else 0)
    emulated = virtual and all(
        (c.level, c.size, c.ways) in _EMULATED_CACHES for c in data if c.level in (2, 3)
    )
    believed: dict[int, Cache] = {}
    for cache in data:
        if _is_possible(cache, believed) and not (emulated and cache.level in (2, 3)):
            believed[cache.level] = cache
        else:
            _assume_cache(believed, cache.level, len(cores))
    for level in (1, 2, 3):
        if level not in believed and (not data or level < 3 or virtual):
            _assume_cache(believed, level, len(cores))
    if instruction is None or not _is_possible(instruction, {}):
        instruction = USUAL_INSTRUCTION
    return tuple(believed[level] for level in sorted(believed)), instruction


def _assume_cache(believed: dict[int, Cache], level: int, cores: int) -> None:
    if level in USUAL:
        shared = max(cores, 1) if level == 3 else 1
        believed[level] = Cache(level, *USUAL[level], shared=shared, source="assumed")


def _is_possible(cache: Cache, below: dict[int, Cache]) -> bool:
    """Whether a core can have a cache of this geometry behind those `below`."""
    smaller = max((smaller_cache.size for smaller_cache in below.values()), default=1)
    return cache.line in (16, 32, 64, 128, 256) and cache.size >= smaller and _sets_exist(cache)


def _sets_exist(cache: Cache) -> bool:
    """Whole sets, and in a core's own caches a power of two: an L3 in slices may have, say, 12 * 1024."""
    if cache.line <= 0 or cache.ways <= 0 or cache.size % (cache.line * cache.ways) != 0:
        return False
    sets = cache.size // (cache.line * cache.ways)
    return cache.level >= 3 or sets & (sets - 1) == 0


def _read_sysfs_caches(root: Path, core: int) -> tuple[list[Cache], Cache | None]:
    """Data and unified levels in order, and the first instruction cache, as sysfs tells them."""
    folder = f"sys/devices/system/cpu/cpu{core}/cache"
    data: dict[int, Cache] = {}
    instruction: Cache | None = None
    for index in range(16):  # no processor has more; a folder listing would follow a hostile tree
        kind = system.read_text(root, f"{folder}/index{index}/type")
        level = system.read_number(root, f"{folder}/index{index}/level")
        if kind is None or level is None:
            continue
        cache = Cache(
            level=level,
            size=_parse_size(system.read_text(root, f"{folder}/index{index}/size")),
            ways=system.read_number(root, f"{folder}/index{index}/ways_of_associativity") or 0,
            line=system.read_number(root, f"{folder}/index{index}/coherency_line_size") or 64,  # 0: not told
            shared=max(
                1,
                len(system.parse_core_list(system.read_text(root, f"{folder}/index{index}/shared_cpu_list"))),
            ),
        )
        if kind == "Instruction" and level == 1:
            instruction = instruction or cache
        elif kind in ("Data", "Unified"):
            data.setdefault(level, cache)
    return [data[level] for level in sorted(data)], instruction


def _parse_size(content: str | None) -> int:
    """`48K`, `32768K`, `32M` in bytes; 0 where it is no size."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", content or "")
    if match is None:
        return 0
    unit = {"": 1, "K": KIB, "M": MIB, "G": 1024 * MIB}[match.group(2)]
    return int(match.group(1)) * unit
