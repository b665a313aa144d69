"""What the passes over a Python process tell in readings: its time, imports, and memory."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import RUN, Allocations, Fact, Profile, ProfileKind, Quality, Reading, Source

# What the cProfile reader tells; times in seconds.
CPROFILE_KINDS: tuple[ProfileKind, ...] = ("own-time", "cumulative-time", "calls", "imports")


def has_samples(profiles: Sequence[Profile]) -> bool:
    """Whether Python stacks were sampled."""
    return any(profile.kind == "sampled-functions" for profile in profiles)


def has_cprofile(profiles: Sequence[Profile]) -> bool:
    """Whether cProfile's results are there."""
    return any(profile.kind in CPROFILE_KINDS for profile in profiles)


def python_readings(profiles: Sequence[Profile]) -> tuple[Reading, ...]:
    """time.python and time.import (s): by cProfile where it ran, else by sampled stacks.

    cProfile slows Python code and not native code: its times are not those of the timing pass.
    """
    kinds = {profile.kind: profile for profile in profiles}
    own, imports = kinds.get("own-time"), kinds.get("imports")
    if own is not None:
        imported = imports.total if imports is not None else 0.0
        formula = "own time of all functions - import time"
        readings = [_reading("time.python", max(0.0, own.total - imported), "s", formula, "cprofile")]
        if imports is not None:
            formula = "cumulative time of the import system"
            readings.append(_reading("time.import", imports.total, "s", formula, "cprofile"))
        return tuple(readings)
    functions, sampled = kinds.get("sampled-functions"), kinds.get("sampled-imports")
    if functions is None or has_cprofile(profiles):
        return ()
    seconds = sum(spot.own for spot in functions.hotspots)
    formula = "processor time sampled outside of imports"
    readings = [_reading("time.python", seconds, "s", formula, "stacks", "estimated")]
    if sampled is not None:
        formula = "wall time sampled in imports"
        readings.append(_reading("time.import", sampled.total, "s", formula, "stacks", "estimated"))
    return tuple(readings)


def _reading(
    name: str, value: float, unit: str, formula: str, tool: str, quality: Quality = "measured"
) -> Reading:
    return Reading(name, value, unit, quality, RUN, Source(tool, formula=formula))


def allocation_readings(allocations: Allocations) -> tuple[Reading, ...]:
    """memory.python_peak (B, of the region where one was marked) and memory.python_growth (B/iteration).

    Growth is the part that is certain: the lower end of the 95 % interval of the Theil-Sen slope, at least 0.
    """
    growth, name = allocations.growth, "memory.python_growth"
    peak = allocations.region_peak if allocations.region_peak is not None else allocations.peak
    where = "in the region" if allocations.region_peak is not None else "of the whole process"
    formula = f"largest traced size {where}"
    of_peak = _reading("memory.python_peak", float(peak), "B", formula, "tracemalloc")
    if growth.low is None:
        return of_peak, unavailable_reading(
            name, RUN, Fact.message(growth.reason), source=Source("tracemalloc")
        )
    formula = "lower end of the 95 % interval of bytes held per iteration, at least 0"
    return of_peak, _reading(name, max(0.0, growth.low), "B/iteration", formula, "tracemalloc")
