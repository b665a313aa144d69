"""The machine a run is made on: what decides whether two runs may be compared, and nothing that names it."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

from profkit.core.types import Machine
from profkit.hardware import container, tree
from profkit.hardware.processor import CacheReport, Processor, read_caches, read_processor
from profkit.hardware.system import python_name

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
    report, virtual = _read_caches_and_guest(root, processor, allowed)
    limits = container.read_limits(root)
    cores = max(1, len(allowed))
    if limits.cpus is not None:
        cores = min(cores, max(1, math.floor(limits.cpus)))
    frequency = f"sys/devices/system/cpu/cpu{allowed[0] if allowed else 0}/cpufreq"
    highest = tree.read_number(root, f"{frequency}/cpuinfo_max_freq")
    return Machine(
        system=tree.read_text(root, "proc/sys/kernel/ostype") or platform.system(),
        release=tree.read_text(root, "proc/sys/kernel/osrelease") or platform.release(),
        architecture=_read_architecture(root, processor),
        cpu=processor.name,
        vendor=processor.vendor,
        family=processor.family,
        model=processor.model,
        stepping=processor.stepping,
        cores=cores,
        caches=report.caches,
        memory_bytes=_read_memory(root, limits),
        virtual=virtual,
        governor=tree.read_text(root, f"{frequency}/scaling_governor") or None,
        max_mhz=highest / 1000 if highest else None,  # the file is in kHz
        python=python_name(),
        features=processor.features,
        instruction_cache=report.instruction,
    )


def cache_warnings(root: Path = _ROOT) -> tuple[str, ...]:
    """What of the machine's cache geometry was not believed and what is assumed instead, in words."""
    if root == _ROOT and platform.system() == "Darwin":
        return ("macOS does not tell the ways of its caches: those are assumed",)
    allowed = usable_cores(root)
    report, _ = _read_caches_and_guest(root, read_processor(root, allowed[0] if allowed else 0), allowed)
    return report.doubts


def usable_cores(root: Path = _ROOT) -> tuple[int, ...]:
    """Numbers of the logical processors this process may run on; empty where the system does not tell."""
    status = tree.parse_fields(tree.read_text(root, "proc/self/status"))
    listed = tree.parse_core_list(status.get("Cpus_allowed_list"))
    if listed:
        return listed
    if root == _ROOT:
        return tuple(range(os.cpu_count() or 1))
    return tree.parse_core_list(tree.read_text(root, "sys/devices/system/cpu/online"))


def _read_caches_and_guest(
    root: Path, processor: Processor, allowed: tuple[int, ...]
) -> tuple[CacheReport, str | None]:
    above, around = container.find_hypervisor(root, processor.flags), container.container_kind(root)
    virtual = f"{around} in {above}" if around and above else around or above
    # A container alone changes nothing about CPUID: only a hypervisor's word is doubted.
    return read_caches(root, processor, allowed, above is not None), virtual


def _read_architecture(root: Path, processor: Processor) -> str:
    architecture = tree.read_text(root, "proc/sys/kernel/arch")  # since Linux 6.1
    if architecture:
        return architecture
    if root != _ROOT and processor.vendor != "unknown":
        return "x86_64" if processor.vendor in ("GenuineIntel", "AuthenticAMD", "HygonGenuine") else "aarch64"
    return platform.machine()


def _read_memory(root: Path, limits: container.CgroupLimits) -> int:
    words = tree.parse_fields(tree.read_text(root, "proc/meminfo")).get("MemTotal", "").split()
    total = int(words[0]) * 1024 if words and words[0].isdigit() else 0  # 0 is the model's "not told"
    return min(total, limits.memory) if limits.memory and total else limits.memory or total
