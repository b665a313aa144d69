"""Which launch of a configuration is counted, and which configurations one run of the workload can serve.

ncu counts the launches of each configuration apart and is told one number to skip, for all of them. So configurations
share a run of the workload where one number lies in what is steady of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.model import KernelTime

WARMED = 1  # launches of a benchmark's region passed over; its warm-up came before


@dataclass(frozen=True)
class Steady:
    """The launches of a configuration that may be counted, by number from 0: `low` to `high`, best from `best` on."""

    kernel: KernelTime
    low: int
    high: int
    best: int


@dataclass(frozen=True)
class Group:
    """Configurations that are counted in one run of the workload, each at its launch number `launch`."""

    kernels: tuple[KernelTime, ...]
    launch: int


def in_benchmark(kernel: KernelTime, traced: int, counted: int) -> Steady:
    """In a benchmark's region that ran `traced` iterations under the trace and runs `counted` under the counters."""
    there = max(1, kernel.launches * counted // max(1, traced))
    return Steady(kernel, 0, there - 1, min(WARMED, there - 1))


def in_program(kernel: KernelTime, *, before: int) -> Steady:
    """In a program that runs as it ran under the trace; `before` launches of this configuration were set-up.

    Rather late than early: what is compiled, tuned or loaded at the first call comes before.
    """
    return Steady(kernel, before, before + kernel.launches - 1, before + kernel.launches // 2)


def iterations_needed(kernels: Sequence[KernelTime], traced: int) -> int:
    """How often a benchmark must run until each configuration was launched often enough."""
    rarest = min((kernel.launches for kernel in kernels), default=traced)
    return max(1, min(traced, -(-traced * (WARMED + 1) // max(1, rarest))))


def group(steady: Sequence[Steady]) -> tuple[Group, ...]:
    """As few groups as the steady parts allow, each with a launch number that lies in all of its parts."""
    late = _stab([(s.best, s.high, s) for s in steady])
    whole = _stab([(s.low, s.high, s) for s in steady])
    return late if len(late) <= len(whole) else whole


def _stab(parts: Sequence[tuple[int, int, Steady]]) -> tuple[Group, ...]:
    """The fewest numbers that hit every part: always the next one that ends (interval stabbing)."""
    waiting = sorted(parts, key=lambda part: part[1])
    groups: list[Group] = []
    while waiting:
        end = waiting[0][1]
        hit = [part for part in waiting if part[0] <= end]
        waiting = [part for part in waiting if part[0] > end]
        first = max(part[0] for part in hit)
        hit.sort(key=lambda part: -part[2].kernel.total)
        groups.append(Group(tuple(part[2].kernel for part in hit), first + (end - first) // 2))
    return tuple(sorted(groups, key=lambda found: -sum(kernel.total for kernel in found.kernels)))
