"""The machine on macOS, from `sysctl` values read in this process: best effort, nothing invented."""

from __future__ import annotations

import ctypes
import os
import platform

from profkit.hardware.python import own_python
from profkit.hardware.typical import typical_of
from profkit.model import Cache, Machine


def read_machine_macos() -> Machine:
    """The machine as macOS tells it. It tells no ways of a cache: those are assumed and the cache says so."""
    arm = platform.machine() == "arm64"
    name = _text("machdep.cpu.brand_string") or platform.processor() or "unknown"
    vendor = "Apple" if arm else _text("machdep.cpu.vendor") or "unknown"
    family, model = _number("machdep.cpu.family"), _number("machdep.cpu.model")
    usual = typical_of(vendor, family, model)
    line = _number("hw.cachelinesize") or 64
    caches: list[Cache] = []
    for level, key in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        # perflevel0 are the performance cores; the plain name is what older systems and Intel have
        size = _number(f"hw.perflevel0.{key}") or _number(f"hw.{key}")
        geometry = usual.level(level)
        if size:
            caches.append(Cache(level, size, geometry[1] if geometry else 16, line, source="assumed"))
    size = _number("hw.perflevel0.l1icachesize") or _number("hw.l1icachesize")
    return Machine(
        system=platform.system(),
        release=platform.release(),
        architecture=platform.machine(),
        cpu=name,
        vendor=vendor,
        family=family,
        model=model,
        stepping=_number("machdep.cpu.stepping"),
        cores=os.cpu_count() or 1,
        caches=tuple(caches),
        memory_bytes=_number("hw.memsize") or 0,
        virtual="hypervisor" if _number("kern.hv_vmm_present") else None,
        governor=None,
        max_mhz=None,  # Apple silicon does not tell it
        python=own_python(),
        features=(),
        instruction_cache=Cache(1, size, usual.l1i[1], line, source="assumed") if size else None,
    )


def _raw(name: str) -> bytes | None:
    """The bytes of one sysctl value, None where this system has no such name."""
    try:
        library = ctypes.CDLL(None)
        length = ctypes.c_size_t(0)
        if library.sysctlbyname(name.encode(), None, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        buffer = ctypes.create_string_buffer(length.value)
        if library.sysctlbyname(name.encode(), buffer, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        return buffer.raw[: length.value]
    except (OSError, AttributeError, ValueError):
        return None


def _text(name: str) -> str | None:
    raw = _raw(name)
    return raw.rstrip(b"\0").decode("utf-8", "replace") if raw else None


def _number(name: str) -> int | None:
    raw = _raw(name)
    return int.from_bytes(raw, "little", signed=True) if raw and len(raw) in (4, 8) else None
