"""The machine on macOS, from `sysctl` values: best effort, nothing invented."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from profkit.core.types import Cache, Machine
from profkit.hardware.python import own_python
from profkit.hardware.sysctl import number, text
from profkit.hardware.typical import typical_of

_SIZES = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}
_LEVELS_MOST = 4  # kinds of cores; chips have two, and the M5 three
# FEAT_... of sysctl hw.optional.arm, by the name that Linux gives the same feature.
_FEATURES = {
    "FEAT_BF16": "bf16",
    "FEAT_I8MM": "i8mm",
    "FEAT_FP16": "fphp",
    "FEAT_SME": "sme",
    "FEAT_SME2": "sme2",
}
_INTEL_FEATURES = ("AVX1.0", "AVX2", "AVX512F", "FMA", "F16C")


@dataclass(frozen=True)
class CoreKind:
    """Cores of one kind: "Performance", "Efficiency", "Super", as macOS calls them."""

    name: str
    cores: int


def read_machine_macos() -> Machine:
    """The machine as macOS tells it. It tells no ways of a cache: those are assumed and the cache says so.

    Caches are those of the fastest kind of core (perflevel0), of which `shared` use one L2. `features` has the kinds
    of cores, "4 performance" and "4 efficiency", and "rosetta" where this Python's instructions are Intel's.
    """
    translated = is_translated()
    arm = platform.machine() == "arm64" or translated
    vendor = "Apple" if arm else text("machdep.cpu.vendor") or "unknown"
    family, model = number("machdep.cpu.family"), number("machdep.cpu.model")
    usual = typical_of(vendor, family, model)
    line = number("hw.cachelinesize") or 64
    caches: list[Cache] = []
    for level, key in _SIZES.items():
        # perflevel0 are the performance cores; the plain name is what older systems and Intel have
        size = number(f"hw.perflevel0.{key}") or number(f"hw.{key}")
        geometry = usual.level(level)
        if size:
            shared = (number("hw.perflevel0.cpusperl2") or 1) if level == 2 else 1
            caches.append(Cache(level, size, geometry[1] if geometry else 16, line, shared, source="assumed"))
    size = number("hw.perflevel0.l1icachesize") or number("hw.l1icachesize")
    return Machine(
        system=platform.system(),
        release=platform.release(),
        architecture=platform.machine(),  # x86_64 under Rosetta: such a run is compared with no other
        cpu=text("machdep.cpu.brand_string") or platform.processor() or "unknown",
        vendor=vendor,
        family=family,
        model=model,
        stepping=number("machdep.cpu.stepping"),
        cores=number("hw.logicalcpu") or os.cpu_count() or 1,
        caches=tuple(caches),
        memory_bytes=number("hw.memsize") or 0,
        virtual="hypervisor" if number("kern.hv_vmm_present") else None,
        governor=None,
        max_mhz=None,  # Apple silicon does not tell it
        python=own_python(),
        features=_features(arm, translated),
        instruction_cache=Cache(1, size, usual.l1i[1], line, source="assumed") if size else None,
    )


def is_translated() -> bool:
    """Whether Rosetta translates this process from Intel's instructions to Apple's."""
    return number("sysctl.proc_translated") == 1


def core_kinds() -> tuple[CoreKind, ...]:
    """The kinds of cores, fastest first; empty on Intel Macs, and on systems that do not tell them (macOS 11)."""
    kinds = []
    for level in range(min(number("hw.nperflevels") or 0, _LEVELS_MOST)):
        cores = number(f"hw.perflevel{level}.logicalcpu")
        name = text(f"hw.perflevel{level}.name") or ("Performance", "Efficiency")[min(level, 1)]
        if cores:
            kinds.append(CoreKind(name, cores))
    return tuple(kinds)


def memory_available() -> int | None:
    """Bytes that may still be taken: what is free or can be freed at once. None where psutil is absent."""
    try:
        import psutil  # here: heavy
    except ImportError:
        return None
    try:
        return int(psutil.virtual_memory().available)
    except (OSError, RuntimeError, AttributeError):
        return None


def _features(arm: bool, translated: bool) -> tuple[str, ...]:
    found = [f"{kind.cores} {kind.name.lower()}" for kind in core_kinds()]
    if translated:
        found.append("rosetta")
    if arm:
        found += [name for key, name in _FEATURES.items() if number(f"hw.optional.arm.{key}")]
    else:
        listed = (
            f"{text('machdep.cpu.features') or ''} {text('machdep.cpu.leaf7_features') or ''}".upper().split()
        )
        found += [name.lower().replace("1.0", "") for name in _INTEL_FEATURES if name in listed]
    return tuple(found)
