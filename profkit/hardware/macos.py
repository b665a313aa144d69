"""A Mac, from `sysctl`, `pmset` and `notifyutil`: the machine, and what holds its clocks down. None needs root."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from dataclasses import dataclass

from profkit.core.types import Cache, Machine
from profkit.hardware.processor import find_typical_caches
from profkit.hardware.system import program_output, python_name


def sysctl_text(name: str) -> str | None:
    """The text that `sysctl -n NAME` prints; None where this system has no such name."""
    raw = _sysctl_bytes(name)
    if raw is not None:
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None
    return _ask_sysctl(name)


def sysctl_number(name: str) -> int | None:
    """The whole number that has this name; None where there is none."""
    raw = _sysctl_bytes(name)
    if raw is not None:
        return int.from_bytes(raw, "little", signed=True) if len(raw) in (4, 8) else None
    words = _ask_sysctl(name)
    try:
        return int(words) if words else None
    except ValueError:
        return None


def _ask_sysctl(name: str) -> str | None:
    return (
        program_output("sysctl", "-n", name)
        if platform.system() == "Darwin" and not _has_sysctlbyname()
        else None
    )


def _has_sysctlbyname() -> bool:
    try:
        return hasattr(ctypes.CDLL(None), "sysctlbyname")
    except (OSError, TypeError):
        return False


def _sysctl_bytes(name: str) -> bytes | None:
    """The bytes of one value, None where this system has no such name, or no sysctlbyname."""
    try:
        library = ctypes.CDLL(None)
        length = ctypes.c_size_t(0)
        if library.sysctlbyname(name.encode(), None, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        buffer = ctypes.create_string_buffer(length.value)
        if library.sysctlbyname(name.encode(), buffer, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        return buffer.raw[: length.value]
    except (OSError, AttributeError, ValueError, TypeError):
        return None


_CACHE_KEYS = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}
_LEVELS_MOST = 4  # kinds of cores; chips have two, and the M5 three
# FEAT_... of sysctl hw.optional.arm, by the name that Linux gives the same feature.
_ARM_FEATURES = {
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
    vendor = "Apple" if arm else sysctl_text("machdep.cpu.vendor") or "unknown"
    family, model = sysctl_number("machdep.cpu.family"), sysctl_number("machdep.cpu.model")
    usual = find_typical_caches(vendor, family, model)
    line = sysctl_number("hw.cachelinesize") or 64
    caches: list[Cache] = []
    for level, key in _CACHE_KEYS.items():
        # perflevel0 are the performance cores; the plain name is what older systems and Intel have
        size = sysctl_number(f"hw.perflevel0.{key}") or sysctl_number(f"hw.{key}")
        geometry = usual.level(level)
        if size:
            shared = (sysctl_number("hw.perflevel0.cpusperl2") or 1) if level == 2 else 1
            caches.append(Cache(level, size, geometry[1] if geometry else 16, line, shared, source="assumed"))
    size = sysctl_number("hw.perflevel0.l1icachesize") or sysctl_number("hw.l1icachesize")
    return Machine(
        system=platform.system(),
        release=platform.release(),
        architecture=platform.machine(),  # x86_64 under Rosetta: such a run is compared with no other
        cpu=sysctl_text("machdep.cpu.brand_string") or platform.processor() or "unknown",
        vendor=vendor,
        family=family,
        model=model,
        stepping=sysctl_number("machdep.cpu.stepping"),
        cores=sysctl_number("hw.logicalcpu") or os.cpu_count() or 1,
        caches=tuple(caches),
        memory_bytes=sysctl_number("hw.memsize") or 0,
        virtual="hypervisor" if sysctl_number("kern.hv_vmm_present") else None,
        governor=None,
        max_mhz=None,  # Apple silicon does not tell it
        python=python_name(),
        features=_read_features(arm, translated),
        instruction_cache=Cache(1, size, usual.l1i[1], line, source="assumed") if size else None,
    )


def is_translated() -> bool:
    """Whether Rosetta translates this process from Intel's instructions to Apple's."""
    return sysctl_number("sysctl.proc_translated") == 1


def core_kinds() -> tuple[CoreKind, ...]:
    """The kinds of cores, fastest first; empty on Intel Macs, and on systems that do not tell them (macOS 11)."""
    kinds = []
    for level in range(min(sysctl_number("hw.nperflevels") or 0, _LEVELS_MOST)):
        cores = sysctl_number(f"hw.perflevel{level}.logicalcpu")
        name = sysctl_text(f"hw.perflevel{level}.name") or ("Performance", "Efficiency")[min(level, 1)]
        if cores:
            kinds.append(CoreKind(name, cores))
    return tuple(kinds)


def available_memory_macos() -> int | None:
    """Bytes that may still be taken: what is free or can be freed at once. None where psutil is absent."""
    try:
        import psutil  # here: heavy
    except ImportError:
        return None
    try:
        return int(psutil.virtual_memory().available)
    except (OSError, RuntimeError, AttributeError):
        return None


def _read_features(arm: bool, translated: bool) -> tuple[str, ...]:
    features = [f"{kind.cores} {kind.name.lower()}" for kind in core_kinds()]
    if translated:
        features.append("rosetta")
    if arm:
        features += [name for key, name in _ARM_FEATURES.items() if sysctl_number(f"hw.optional.arm.{key}")]
    else:
        texts = (sysctl_text(f"machdep.cpu.{name}") or "" for name in ("features", "leaf7_features"))
        listed = " ".join(texts).upper().split()
        features += [name.lower().replace("1.0", "") for name in _INTEL_FEATURES if name in listed]
    return tuple(features)


# kOSThermalPressureLevel... of macOS (libkern/OSThermalNotification.h); 0 is Nominal.
_PRESSURE_NAMES = {1: "moderate", 2: "heavy", 3: "trapping", 4: "sleeping"}
_CLOCK_LIMIT = re.compile(r"CPU_Speed_Limit\s*=\s*(\d{1,3})\b")
_WARNING = re.compile(r"(thermal|performance) warning level\s*[=:]\s*(\d+)", re.IGNORECASE)
_POWER_MODE = re.compile(r"^\s*(lowpowermode|powermode)\s+(\d)\b", re.MULTILINE)
_POWER_SOURCE = re.compile(r"Now drawing from '([^']+)'")


@dataclass(frozen=True)
class MacPower:
    """One look. `pressure` is the thermal level in words, "nominal" where nothing is held down; None: not told.

    `limit` is the share of its clock (%) that the system allows the processor, which Intel Macs tell.
    """

    pressure: str | None = None
    limit: int | None = None
    low_power: bool | None = None
    source: str | None = None  # "mains", "battery"

    @property
    def slowed(self) -> tuple[str, ...]:
        """Why all clocks are held down, one phrase for each reason; a battery alone is none."""
        reasons = []
        if self.pressure not in (None, "nominal"):
            reasons.append(f"thermal pressure: {self.pressure}")
        if self.limit is not None and self.limit < 100:
            reasons.append(f"processor limited to {self.limit} % of its clock for heat")
        if self.low_power:
            reasons.append("low power mode")
        return tuple(reasons)


def read_power() -> MacPower:
    """The state of this Mac now; takes some 40 ms. All None on another system, or where nothing answers."""
    level = program_output("notifyutil", "-g", "com.apple.system.thermalpressurelevel", seconds=2.0)
    therm = program_output("pmset", "-g", "therm", seconds=2.0)
    return MacPower(
        pressure=parse_pressure(level) or parse_warning(therm),
        limit=parse_clock_limit(therm),
        low_power=parse_low_power(program_output("pmset", "-g", seconds=2.0)),
        source=parse_power_source(program_output("pmset", "-g", "batt", seconds=2.0)),
    )


def parse_pressure(answer: str | None) -> str | None:
    """`com.apple.system.thermalpressurelevel 2`, as notifyutil prints it, in words; None for anything else."""
    digits = (answer or "").split()[-1:]
    if not digits or not digits[0].isdecimal() or len(digits[0]) > 3:
        return None
    level = int(digits[0])
    return "nominal" if level == 0 else _PRESSURE_NAMES.get(level, f"level {level}")


def parse_warning(answer: str | None) -> str | None:
    """The warning that `pmset -g therm` shows; "nominal" where it says that it has recorded none."""
    levels = [(match[1].lower(), int(match[2])) for match in _WARNING.finditer(answer or "")]
    raised = [f"{kind} warning level {level}" for kind, level in levels if level > 0]
    if raised:
        return ", ".join(raised)
    return "nominal" if levels or "No thermal warning level has been recorded" in (answer or "") else None


def parse_clock_limit(answer: str | None) -> int | None:
    """CPU_Speed_Limit of `pmset -g therm` in per cent; Apple silicon shows none."""
    match = _CLOCK_LIMIT.search(answer or "")
    return int(match[1]) if match else None


def parse_low_power(answer: str | None) -> bool | None:
    """Whether low power mode is on, by `pmset -g`: `lowpowermode 1`, or `powermode 1` on Macs that have a high one."""
    modes = dict(_POWER_MODE.findall(answer or ""))
    if not modes:
        return None
    return modes.get("powermode") == "1" or modes.get("lowpowermode") == "1"


def parse_power_source(answer: str | None) -> str | None:
    """`mains` or `battery`, by the first line of `pmset -g batt`."""
    match = _POWER_SOURCE.search(answer or "")
    return None if match is None else "battery" if "battery" in match[1].lower() else "mains"
