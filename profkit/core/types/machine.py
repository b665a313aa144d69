"""The machine, its measured peaks, and what the doctor says of it."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.types.readings import CheckState


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
class Moment:
    """One cheap look at the machine, beside the timing pass. None where it does not tell."""

    when: str  # "before timing", "after timing"
    throttled: int | None = None  # times a core slowed itself for heat since it was started
    slowdowns: tuple[str, ...] = ()  # why a GPU holds its clock down: "power limit", "power brake"


@dataclass(frozen=True)
class Disturbance:
    """What others took from the processor while one process of the timing pass ran. None where nobody tells.

    `stolen` and `others` are of all cores together: they may be more than `seconds`.
    """

    seconds: float  # wall time of the process
    cpu: float | None = None  # CPU seconds of it and its children
    # seconds that the hypervisor gave to other guests while this one could have run
    stolen: float | None = None
    others: float | None = None  # CPU seconds of other processes
    # seconds that its own threads could run and had no core, at the last look at it
    waited: float | None = None
    # share of the time in which some task waited for a core, 0..1 (PSI cpu `some`)
    pressure: float | None = None


@dataclass(frozen=True)
class RunSpread:
    """How far runs of unchanged programs lay apart on this machine: logarithms of a run's time over the run's before.

    Made of `trials` such pairs of runs, the last ones; `rms` is the root of their mean square, `largest` the largest.
    """

    trials: int
    rms: float
    largest: float


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was tried, what came of it, and the one line that fixes it."""

    name: str
    state: CheckState
    detail: str
    fix: str | None = None
    path: str | None = None
    version: str | None = None
