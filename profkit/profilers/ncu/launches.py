"""Holds profiled launches: values with their units, and launches grouped by launch configuration."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import TypeAlias

from profkit.analysis.metrics.formula import checked_counters
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.tables import load_yaml
from profkit.core.types import Counter, Fact, Kernel, KernelTime, Scope, together


@lru_cache(maxsize=1)
def _units() -> Mapping[str, Mapping[str, str]]:
    units: Mapping[str, Mapping[str, str]] = load_yaml(Path(__file__).with_name("units.yaml"))
    return units


@lru_cache(maxsize=8192)
def unit_of(name: str) -> str:
    """Return the base unit of the metric `name`; "" for a plain number and where no rule fits.

    Percentages are 0..100, times nanoseconds, rates per second.
    """
    units = _units()
    if name in units["names"]:
        return units["names"][name]
    stem, _, submetric = name.partition(".")
    last = submetric.rpartition(".")[2]
    if last.startswith("pct") or stem.endswith("_pct") or stem.startswith("breakdown:"):
        return "%"
    prefixed = next((unit for prefix, unit in units["prefixes"].items() if name.startswith(prefix)), None)
    if prefixed is not None or last in ("ratio", "max_rate"):
        return prefixed or ""
    words = stem.rpartition("__")[2].split("_")  # SASS counters have no unit before it: inst_executed
    unit = next((units["words"][word] for word in words if word in units["words"]), "")
    if last.endswith("per_second"):
        return "hz" if unit == "cycle" else f"{unit}/s" if unit else ""
    if last.startswith(("per_cycle", "peak_sustained")):
        return f"{unit}/cycle" if unit and unit not in ("warp", "cycle") else unit if unit == "warp" else ""
    return unit


# What one metric of one launch may be. None: it is in the report, but has no value of its own (instances alone).
# A fact says why what is printed there is no value.
Value: TypeAlias = "float | int | str | Fact | None"

DURATIONS = ("gpu__time_duration.sum", "gpu__time_duration.max", "gpu__time_duration.avg")  # ns, one launch
REGISTERS = "launch__registers_per_thread"
SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")
SHARED_ALL, SHARED_DRIVER = "launch__shared_mem_per_block", "launch__shared_mem_per_block_driver"
DEVICE = "launch__device_id"
BLOCKS = "launch__grid_size"
PASSES = "profiler__replayer_passes"
IDENTITY = (
    REGISTERS,
    *SHARED,
    SHARED_ALL,
    SHARED_DRIVER,
    DEVICE,
    BLOCKS,
    *DURATIONS,
)


NOT_AVAILABLE = ("n/a", "na", "not available")  # what stands in a text where a value should


@dataclass(frozen=True)
class LaunchResult:
    """One kernel launch of a report. `values` are in base units, see `unit_of`."""

    kernel: Kernel
    values: Mapping[str, Value] = field(repr=False)
    device: int | None = None
    lock_requested: bool | None = None  # whether the clocks were to be locked, and
    lock_done: bool | None = None  # whether they were; None where the report does not tell
    driver: str | None = None  # version of the kernel-mode driver

    @property
    def seconds(self) -> float | None:
        """Return the launch's time on the device in seconds; None where the report has none."""
        times = (finite_number(self.values.get(name)) for name in DURATIONS)
        return next((time * 1e-9 for time in times if time is not None and time >= 0), None)


def finite_number(value: Value) -> float | None:
    """Return `value` as a float; None for text, NaN, infinity and missing values."""
    if value is None or isinstance(value, str | Fact) or not math.isfinite(value):
        return None
    return float(value)


def kernel_of(
    name: str, mangled: str | None, grid: tuple[int, ...], block: tuple[int, ...], values: Mapping[str, Value]
) -> Kernel:
    """Return the launch configuration, with registers and shared memory where the report has them."""
    registers = finite_number(values.get(REGISTERS))
    return Kernel(
        name=name,
        grid=grid,
        block=block,
        mangled=mangled,
        registers=None if registers is None else int(registers),
        shared=_shared(values),
    )


def _shared(values: Mapping[str, Value]) -> int | None:
    """Return static and dynamic shared memory in bytes per block.

    The driver's own part, which newer versions report, is not the kernel's and is subtracted.
    """
    parts = [part for name in SHARED if (part := finite_number(values.get(name))) is not None]
    if parts:
        return int(sum(parts))
    whole = finite_number(values.get(SHARED_ALL))
    return None if whole is None else int(whole - (finite_number(values.get(SHARED_DRIVER)) or 0.0))


@dataclass
class LaunchGroup:
    """All launches of one scope, as they are added: numbers in flat arrays, and the reasons for missing ones."""

    kernel: Kernel
    scope: Scope
    first: int
    launches: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    numbers: dict[str, array[float]] = field(default_factory=dict)
    faults: dict[str, dict[Fact, int]] = field(default_factory=dict)  # metric -> what was wrong -> launches
    shapes: set[tuple[int | None, int | None]] = field(default_factory=set)  # registers, shared memory
    devices: set[int | None] = field(default_factory=set)

    def add(self, launch: LaunchResult) -> None:
        """Add one launch."""
        self.launches += 1
        self.shapes.add((launch.kernel.registers, launch.kernel.shared))
        self.devices.add(launch.device)
        if (time := launch.seconds) is not None:
            self.seconds.append(time)
        numbers = self.numbers
        for name, value in launch.values.items():
            if isinstance(value, Fact):
                self._fault(name, value)
            elif value is None or isinstance(value, str):
                self._no_number(name, value)
            elif math.isfinite(value):
                if name not in numbers:
                    numbers[name] = array("d")
                numbers[name].append(value)
            else:
                self._fault(name, Fact("value-is-nan" if math.isnan(value) else "value-is-infinite"))

    def _no_number(self, name: str, value: str | None) -> None:
        """Note why a value is missing; text is left out, as some attributes are text."""
        if value is None:
            self._fault(name, Fact("value-of-instances"))
        elif value.lower() in NOT_AVAILABLE:
            self._fault(name, Fact("value-not-available"))

    def _fault(self, name: str, what: Fact) -> None:
        counts = self.faults.setdefault(name, {})
        counts[what] = counts.get(what, 0) + 1

    def counters(self) -> Iterable[Counter]:
        """Yield the median of each metric over the launches, or why there is none."""
        for name in sorted(self.numbers.keys() | self.faults.keys()):
            numbers = self.numbers.get(name)
            faults = self.faults.get(name, {})
            several = self.launches > 1
            reasons = (
                Fact.of("in-launches", fault, count=count, of=self.launches) if several else fault
                for fault, count in faults.items()
            )
            yield Counter(
                name=name,
                value=median(numbers) if numbers else None,
                state="measured" if numbers else "not-counted",
                unit=unit_of(name),
                scope=self.scope,
                reason=together(*reasons),
            )

    def time(self) -> KernelTime | None:
        """Return the times of its launches; None where the report lacks any of them."""
        if len(self.seconds) < self.launches:
            return None
        return KernelTime(
            kernel=self.kernel,
            launches=self.launches,
            total=math.fsum(self.seconds),
            median=median(self.seconds),
            least=min(self.seconds),
            most=max(self.seconds),
            first=self.first,
        )


def group_launches(launches: Iterable[LaunchResult]) -> tuple[LaunchGroup, ...]:
    """Group launches by configuration (name, grid, block), in the order in which each first appears."""
    groups: dict[Scope, LaunchGroup] = {}
    for index, launch in enumerate(launches):
        scope = launch.kernel.scope
        group = groups.get(scope)
        if group is None:
            group = groups[scope] = LaunchGroup(launch.kernel, scope, index)
        group.add(launch)
    return tuple(groups.values())


# All launch attributes are read: they cost no replay pass, and describe what was launched.
PREFIXES = ("launch__",)


@lru_cache(maxsize=1)
def wanted_names() -> frozenset[str]:
    """Return the names of the metrics to read, as reports spell them, in lower case."""
    table = formula_table("ncu")
    names = {*IDENTITY, PASSES, *checked_counters("ncu"), *table.aliases}
    names |= {name for ways in table.formulas.values() for way in ways for name in way.names}
    return frozenset(name.lower() for name in names)


def is_wanted(name: str) -> bool:
    """Return whether the metric `name` is to be read."""
    return name.startswith(PREFIXES) or name.lower() in wanted_names()
