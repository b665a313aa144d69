"""The machine a run is made on: what decides whether two runs may be compared.

Nothing that identifies the machine is read.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from profkit.core.types import Cache, Machine
from profkit.hardware import system
from profkit.hardware.macos import sysctl_number, sysctl_text

_ROOT = Path("/")


def read_machine(root: Path = _ROOT) -> Machine:
    """Read the machine from /proc and /sys below `root`; never raises for what is missing there.

    `cores` are those this process may use: its affinity, and whole cores' worth of its control group's quota (1.5
    counts as 1, since a second thread would be throttled). `memory_bytes` likewise is the smaller of the
    machine's memory and the group's limit. Caches are those of the first usable core (see `read_caches`).
    """
    if root == _ROOT and platform.system() == "Darwin":
        return _read_machine_macos()
    allowed = usable_cores(root)
    processor = read_processor(root, allowed[0] if allowed else 0)
    guest, container = is_guest(root, processor.flags), is_container(root)
    # A container alone changes nothing about CPUID: only a hypervisor's word is doubted.
    caches, instruction = read_caches(root, allowed, guest)
    limits = read_limits(root)
    cores = max(1, len(allowed))
    if limits.cpus is not None:
        cores = min(cores, max(1, math.floor(limits.cpus)))
    frequency = f"sys/devices/system/cpu/cpu{allowed[0] if allowed else 0}/cpufreq"
    highest = system.read_number(root, f"{frequency}/cpuinfo_max_freq")
    return Machine(
        system=system.read_text(root, "proc/sys/kernel/ostype") or platform.system(),
        release=system.read_text(root, "proc/sys/kernel/osrelease") or platform.release(),
        architecture=system.read_text(root, "proc/sys/kernel/arch") or platform.machine(),  # since Linux 6.1
        cpu=processor.name,
        vendor=processor.vendor,
        family=processor.family,
        model=processor.model,
        cores=cores,
        caches=caches,
        memory_bytes=_read_memory(root, limits),
        virtual=" in a ".join(["container"] * container + ["virtual machine"] * guest) or None,
        governor=system.read_text(root, f"{frequency}/scaling_governor") or None,
        max_mhz=highest / 1000 if highest else None,  # the file is in kHz
        features=processor.features,
        instruction_cache=instruction,
    )


_CACHE_KEYS = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}


def _read_machine_macos() -> Machine:
    """Read the machine from macOS' sysctl, which reports no cache ways: those are assumed, and marked so.

    Caches are those of the fastest kind of core (perflevel0), of which `shared` use one L2.
    """
    brand = sysctl_text("machdep.cpu.brand_string") or platform.processor() or "unknown"
    vendor = "Apple" if brand.startswith("Apple") else "unknown"
    line = sysctl_number("hw.cachelinesize") or 64
    caches: list[Cache] = []
    for level, key in _CACHE_KEYS.items():
        size = sysctl_number(f"hw.perflevel0.{key}") or sysctl_number(f"hw.{key}")
        if size:
            shared = (sysctl_number("hw.perflevel0.cpusperl2") or 1) if level == 2 else 1
            caches.append(Cache(level, size, USUAL[level][1], line, shared, source="assumed"))
    return Machine(
        system=platform.system(),
        release=platform.release(),
        architecture=platform.machine(),  # x86_64 under Rosetta: such a run is compared with no other
        cpu=brand,
        vendor=vendor,
        family=None,
        model=None,
        cores=sysctl_number("hw.logicalcpu") or os.cpu_count() or 1,
        caches=tuple(caches),
        memory_bytes=sysctl_number("hw.memsize") or 0,
        virtual="virtual machine" if sysctl_number("kern.hv_vmm_present") else None,
        governor=None,
        max_mhz=None,  # Apple silicon does not tell it
    )


def usable_cores(root: Path = _ROOT) -> tuple[int, ...]:
    """Return the logical processors this process may run on; empty where the system does not report them."""
    status = system.parse_fields(system.read_text(root, "proc/self/status"))
    listed = system.parse_core_list(status.get("Cpus_allowed_list"))
    if listed:
        return listed
    if root == _ROOT:
        return tuple(range(os.cpu_count() or 1))
    return system.parse_core_list(system.read_text(root, "sys/devices/system/cpu/online"))


def _read_memory(root: Path, limits: CgroupLimits) -> int:
    """Return the bytes of memory this process may use, 0 where neither the machine nor a limit is known."""
    words = system.parse_fields(system.read_text(root, "proc/meminfo")).get("MemTotal", "").split()
    total = int(words[0]) * 1024 if words and words[0].isdigit() else 0  # 0 is the model's "not told"
    return min(total, limits.memory) if limits.memory and total else limits.memory or total


# ------------------------------------------------------------ containers and hypervisors

_CONTAINER_WORDS = ("kubepods", "docker", "podman", "libpod", "lxc", "containerd", "garden")
# What firmware calls itself; the product name of a bare-metal cloud server ends in `.metal`.
_GUEST_FIRMWARE = re.compile(
    r"qemu|kvm|vmware|innotek|virtualbox|xen|amazon ec2|google compute|openstack|parallels|apple virtualization|"
    r"microsoft corporation virtual machine"
)
_GUEST_CLOCKS = re.compile("kvm-clock|hyperv|xen")


@dataclass(frozen=True)
class CgroupLimits:
    """The control group's limits: `cpus` in cores' worth of time, memory in bytes; None means no limit."""

    cpus: float | None = None
    memory: int | None = None
    memory_used: int | None = None


def read_limits(root: Path = Path("/")) -> CgroupLimits:
    """Read the tightest limits of this process's control group and all groups above it (cgroup v2)."""
    cpus: list[float] = []
    memory: list[int] = []
    used: int | None = None
    for folder in _group_folders(root):
        share = _quota(system.read_text(root, f"{folder}/cpu.max"))
        if share is not None:
            cpus.append(share)
        limit = system.read_number(root, f"{folder}/memory.max")
        if limit is not None:
            if not memory or limit < min(memory):
                used = system.read_number(root, f"{folder}/memory.current")
            memory.append(limit)
    return CgroupLimits(min(cpus, default=None), min(memory, default=None), used)


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes this process may still allocate, within its control group's limit.

    Without a limit that is what the kernel calls available; None where neither is known.
    """
    if root == Path("/") and platform.system() == "Darwin":
        import psutil  # here: heavy

        return int(psutil.virtual_memory().available)
    line = system.parse_fields(system.read_text(root, "proc/meminfo")).get("MemAvailable", "").split()
    free = int(line[0]) * 1024 if line and line[0].isdigit() else None
    limits = read_limits(root)
    if limits.memory is None:
        return free
    left = max(0, limits.memory - (limits.memory_used or 0))
    return left if free is None else min(free, left)


def is_guest(root: Path, flags: frozenset[str]) -> bool:
    """Return whether this system is a guest of a hypervisor.

    `flags` are the processor's feature flags. On Arm no flag marks a guest, so only firmware or the clock can
    tell; a guest that hides both is taken for bare metal.
    """
    release = (system.read_text(root, "proc/sys/kernel/osrelease") or "").lower()
    firmware = " ".join(
        (system.read_text(root, f"sys/class/dmi/id/{name}") or "") for name in ("sys_vendor", "product_name")
    ).lower()
    clocks = system.read_text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    if (
        "hypervisor" in flags or "microsoft" in release or _GUEST_CLOCKS.search(clocks)
    ):  # Linux inside Windows
        return True
    return not firmware.rstrip().endswith(".metal") and _GUEST_FIRMWARE.search(firmware) is not None


def is_container(root: Path) -> bool:
    """Return whether this process runs in a container."""
    if any((root / file).exists() for file in (".dockerenv", "run/.containerenv", "run/systemd/container")):
        return True
    groups = [system.read_text(root, path) or "" for path in ("proc/1/cgroup", "proc/self/cgroup")]
    return any(word in text for text in groups for word in _CONTAINER_WORDS)


def _group_folders(root: Path) -> Iterator[str]:
    """Yield the folders, relative to `root`, of this process's control group and those above it.

    Inside a container the path in /proc is often the host's and absent here; then the mount's own top is the
    container's group, which is always among the folders yielded.
    """
    lines = (system.read_text(root, "proc/self/cgroup") or "").splitlines()
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    inside = PurePosixPath("" if ".." in path else path)  # a group outside this namespace's view
    for step in (inside, *inside.parents):
        yield str(PurePosixPath("sys/fs/cgroup") / step)


def _quota(content: str | None) -> float | None:
    """Parse `max 100000` or `150000 100000` into cores' worth of time; None if there is no limit.

    The numbers are microseconds of processor time, and of the period.
    """
    parts = (content or "").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts) or int(parts[1]) == 0:
        return None
    return int(parts[0]) / int(parts[1])


# The features that decide which code path a library takes or which instrument works.
_FLAG_PREFIXES = ("sse4_", "avx", "amx", "asimd", "sve")
_FLAG_NAMES = ("fma", "f16c", "sme", "sme2", "bf16", "i8mm", "fphp", "neon")


@dataclass(frozen=True)
class Processor:
    """The identity of a core. On Arm `model` is the part number and `vendor` the implementer."""

    name: str
    vendor: str
    family: int | None
    model: int | None
    flags: frozenset[str]

    @property
    def features(self) -> tuple[str, ...]:
        """Return the flags that matter for speed, sorted."""
        return tuple(
            sorted(flag for flag in self.flags if flag.startswith(_FLAG_PREFIXES) or flag in _FLAG_NAMES)
        )


UNKNOWN = Processor("unknown", "unknown", None, None, frozenset())


def read_processor(root: Path = Path("/"), core: int = 0) -> Processor:
    """Read the identity of `core` (of the first core where that is not listed); UNKNOWN without /proc/cpuinfo."""
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
    """Return implementers by number, and core names by (implementer, part)."""
    table = json.loads((Path(__file__).with_name("arm_cores.json")).read_text("utf-8"))
    vendors = {int(number, 16): str(name) for number, name in table["implementers"].items()}
    parts = {
        (int(number, 16), int(part, 16)): str(name)
        for number, cores in table["parts"].items()
        for part, name in cores.items()
    }
    return vendors, parts


def _parse_number(value: str | None) -> int | None:
    """Parse `26` or `0xd0c`; None where the text is not a number."""
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
    """Sort the data and unified caches of a core by level, L1 first."""
    return tuple(sorted(machine.caches, key=lambda cache: cache.level))


def data_cache(machine: Machine, level: int) -> Cache | None:
    """Return the data or unified cache of that level, None where the machine has none."""
    return next((cache for cache in machine.caches if cache.level == level), None)


def instruction_cache(machine: Machine) -> Cache:
    """Return the first-level instruction cache; an assumed one for a machine recorded without it."""
    return machine.instruction_cache or USUAL_INSTRUCTION


def read_caches(root: Path, cores: tuple[int, ...], virtual: bool) -> tuple[tuple[Cache, ...], Cache]:
    """Read the data caches and the instruction cache of the first of `cores` from sysfs.

    Caches that cannot exist in this form are replaced by common ones, marked as assumed. On a hybrid processor
    the first core is a performance core, since Linux numbers those first. Sizes and lines in bytes.
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
    """Return whether a core can have a cache of this geometry behind those `below`."""
    smaller = max((smaller_cache.size for smaller_cache in below.values()), default=1)
    return cache.line in (16, 32, 64, 128, 256) and cache.size >= smaller and _sets_exist(cache)


def _sets_exist(cache: Cache) -> bool:
    """Return whether the cache has whole sets, and, below L3, a power of two of them.

    An L3 in slices may have another number, for example 12 * 1024.
    """
    if cache.line <= 0 or cache.ways <= 0 or cache.size % (cache.line * cache.ways) != 0:
        return False
    sets = cache.size // (cache.line * cache.ways)
    return cache.level >= 3 or sets & (sets - 1) == 0


def _read_sysfs_caches(root: Path, core: int) -> tuple[list[Cache], Cache | None]:
    """Read the data and unified levels in order, and the first instruction cache, from sysfs."""
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
    """Parse `48K`, `32768K` or `32M` into bytes; 0 where the text is not a size."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", content or "")
    if match is None:
        return 0
    unit = {"": 1, "K": KIB, "M": MIB, "G": 1024 * MIB}[match.group(2)]
    return int(match.group(1)) * unit
