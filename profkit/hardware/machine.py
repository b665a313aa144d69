"""The machine a run is made on: what decides whether two runs may be compared, and nothing that names it."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from profkit.core.types import Machine
from profkit.hardware import system
from profkit.hardware.macos import available_memory_macos
from profkit.hardware.processor import read_caches, read_processor

_ROOT = Path("/")


def read_machine(root: Path = _ROOT) -> Machine:
    """The machine as /proc and /sys below `root` tell it; never raises for what is missing there.

    `cores` are those this process may use: its affinity, and whole cores' worth of its control group's quota
    (1.5 counts as 1, since a second thread would be throttled). `memory_bytes` likewise is the smaller of the
    machine's memory and the group's limit. Caches are those of the first usable core (see `read_caches`).
    """
    if root == _ROOT and platform.system() == "Darwin":
        from profkit.hardware.macos import read_machine_macos

        return read_machine_macos()
    allowed = usable_cores(root)
    processor = read_processor(root, allowed[0] if allowed else 0)
    above, around = find_hypervisor(root, processor.flags), container_kind(root)
    # A container alone changes nothing about CPUID: only a hypervisor's word is doubted.
    caches, instruction = read_caches(root, allowed, above is not None)
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
        virtual=f"{around} in {above}" if around and above else around or above,
        governor=system.read_text(root, f"{frequency}/scaling_governor") or None,
        max_mhz=highest / 1000 if highest else None,  # the file is in kHz
        features=processor.features,
        instruction_cache=instruction,
    )


def usable_cores(root: Path = _ROOT) -> tuple[int, ...]:
    """Numbers of the logical processors this process may run on; empty where the system does not tell."""
    status = system.parse_fields(system.read_text(root, "proc/self/status"))
    listed = system.parse_core_list(status.get("Cpus_allowed_list"))
    if listed:
        return listed
    if root == _ROOT:
        return tuple(range(os.cpu_count() or 1))
    return system.parse_core_list(system.read_text(root, "sys/devices/system/cpu/online"))


def _read_memory(root: Path, limits: CgroupLimits) -> int:
    words = system.parse_fields(system.read_text(root, "proc/meminfo")).get("MemTotal", "").split()
    total = int(words[0]) * 1024 if words and words[0].isdigit() else 0  # 0 is the model's "not told"
    return min(total, limits.memory) if limits.memory and total else limits.memory or total


# ------------------------------------------------------------ containers and hypervisors

_CONTAINER_WORDS = ("kubepods", "docker", "podman", "libpod", "lxc", "containerd", "garden")
# What firmware calls itself; the product name of a bare-metal cloud server ends in `.metal`.
_FIRMWARE_WORDS = {
    "qemu": "qemu",
    "kvm": "kvm",
    "vmware": "vmware",
    "innotek": "virtualbox",
    "virtualbox": "virtualbox",
    "xen": "xen",
    "amazon ec2": "kvm",
    "google compute": "kvm",
    "openstack": "kvm",
    "microsoft corporation virtual machine": "hyper-v",
    "parallels": "parallels",
    "apple virtualization": "apple",
}
_CLOCK_WORDS = {"kvm-clock": "kvm", "hyperv": "hyper-v", "xen": "xen"}


@dataclass(frozen=True)
class CgroupLimits:
    """The control group's limits: `cpus` in cores' worth of time, memory in bytes; None means no limit."""

    cpus: float | None = None
    memory: int | None = None
    memory_used: int | None = None


def read_limits(root: Path = Path("/")) -> CgroupLimits:
    """The tightest limit of this process's control group and all groups above it (cgroup v2)."""
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
    """Bytes this process may still take: what the kernel calls available, within the group's limit."""
    if root == Path("/") and platform.system() == "Darwin":
        return available_memory_macos()
    line = system.parse_fields(system.read_text(root, "proc/meminfo")).get("MemAvailable", "").split()
    free = int(line[0]) * 1024 if line and line[0].isdigit() else None
    limits = read_limits(root)
    if limits.memory is None:
        return free
    left = max(0, limits.memory - (limits.memory_used or 0))
    return left if free is None else min(free, left)


def find_hypervisor(root: Path, flags: frozenset[str]) -> str | None:
    """The hypervisor this system is a guest of, `hypervisor` where it is unnamed, None on bare metal.

    `flags` are the processor's feature flags. On Arm no flag tells a guest, so only firmware or the clock can say it;
    a guest that hides both reads as bare metal.
    """
    release = (system.read_text(root, "proc/sys/kernel/osrelease") or "").lower()
    if "microsoft" in release:
        return "wsl"
    firmware = " ".join(
        (system.read_text(root, f"sys/class/dmi/id/{name}") or "") for name in ("sys_vendor", "product_name")
    ).lower()
    clocks = system.read_text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    for told, words in ((firmware, _FIRMWARE_WORDS), (clocks, _CLOCK_WORDS)):
        for word, kind in words.items() if not told.rstrip().endswith(".metal") else ():
            if word in told:
                return kind
    return "hypervisor" if "hypervisor" in flags else None


def container_kind(root: Path) -> str | None:
    """`docker`, `podman`, `kubernetes`, ..., or None outside a container."""
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    named = system.read_text(root, "run/systemd/container")
    if named:
        return named
    for path in ("proc/1/cgroup", "proc/self/cgroup"):
        groups = system.read_text(root, path) or ""
        for word in _CONTAINER_WORDS:
            if word in groups:
                return "kubernetes" if word == "kubepods" else word
    return None


def _group_folders(root: Path) -> Iterator[str]:
    """Folders, below `root`, of this process's group and those above it.

    Inside a container the path that /proc tells is often the host's and absent here; then the mount's own
    top is the container's group, which is always among the folders yielded.
    """
    lines = (system.read_text(root, "proc/self/cgroup") or "").splitlines()
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    inside = PurePosixPath("" if ".." in path else path)  # a group outside this namespace's view
    for step in (inside, *inside.parents):
        yield str(PurePosixPath("sys/fs/cgroup") / step)


def _quota(content: str | None) -> float | None:
    """`max 100000` or `150000 100000`: microseconds of processor time per period."""
    parts = (content or "").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts) or int(parts[1]) == 0:
        return None
    return int(parts[0]) / int(parts[1])
