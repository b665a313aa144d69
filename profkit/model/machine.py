"""The machine, its measured peaks, and what the doctor says of it."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.model.words import CheckState


@dataclass(frozen=True)
class Cache:
    """One data or unified cache as one core sees it. `size` and `line` in bytes; `shared` cores share it."""

    level: int
    size: int
    ways: int
    line: int = 64
    shared: int = 1
    source: str = "sysfs"  # sysfs, or "assumed" where the machine does not say


@dataclass(frozen=True)
class Machine:
    """What decides whether two runs may be compared, without naming the machine."""

    system: str
    release: str
    architecture: str
    cpu: str
    vendor: str
    family: int | None
    model: int | None
    stepping: int | None
    cores: int
    caches: tuple[Cache, ...]
    memory_bytes: int
    virtual: str | None  # hypervisor or container kind, None on bare metal
    governor: str | None
    max_mhz: float | None
    python: str
    features: tuple[str, ...] = ()
    instruction_cache: Cache | None = None  # first level; `caches` holds data and unified ones only


@dataclass(frozen=True)
class Peaks:
    """The machine's own measured limits. Bandwidth in bytes/s, arithmetic in FLOP/s; None if not measured."""

    bandwidth_one: float | None
    bandwidth_all: float | None
    flops_f32_one: float | None
    flops_f32_all: float | None
    threads: int
    method: str


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was tried, what came of it, and the one line that fixes it."""

    name: str
    state: CheckState
    detail: str
    fix: str | None = None
    path: str | None = None
    version: str | None = None
