"""Which kernels are counted (the fewest configurations that make up the region's GPU time), and which launch of each.

ncu has two ways to pick launches, and each matched launch that it does not count costs 10 ms (H200, ncu 2025.3):

- of each configuration one, by a number that is the same for all (`per-launch-config`). The count of none is ever full,
  so launches cost to the end of the program: for regions, in which the profiler is on for few launches.
- so many in a row, from one on (`global`). When they are done, the program runs on freely: for programs that mark
  nothing, where a window of launches is looked for that has each configuration in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from profkit.core.formatting import format_percent, plural
from profkit.core.types import GpuTrace, Kernel, KernelTime

# ../docs/cuda.md, "the plan": the tail beyond it is many kernels that no target can matter for.
COVERED = 0.95  # of the GPU time of what can be counted
MOST_KERNELS = 10  # launch configurations
# A collective waits for its partners: replayed alone it hangs (NVIDIA/nccl issues 466, 536).
_COLLECTIVE = re.compile(r"nccl|nvshmem|AllReduce|one_shot_all|two_shot_all|multimem_", re.IGNORECASE)
# What fills tensors with numbers. In a marked region it is the workload's own (dropout is one), and counted.
_INITIALISER = re.compile(
    r"distribution_(elementwise|nullary)|curand|philox_|random_(from_to|kernel)|FillFunctor|generate_seed|memset"
    r"|randperm|arange_cuda|eye_kernel",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChosenKernels:
    """What is to be counted, largest total first; `seconds` is the GPU time of all kernels, also those left out."""

    kernels: tuple[KernelTime, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def share(self, kernel: KernelTime) -> float:
        """Of the region's GPU time, 0..1."""
        return kernel.total / self.seconds if self.seconds > 0 else 0.0


def choose_kernels(trace: GpuTrace, most: int = MOST_KERNELS) -> ChosenKernels:
    """The launch configurations that make up 95 % of the GPU time, at most `most`; what is left out is said."""
    seconds = sum(kernel.total for kernel in trace.kernels)
    notes: list[str] = []
    candidates = list(trace.kernels)
    for what, pattern in _unwanted_kernels(trace):
        dropped = [k for k in candidates if pattern.search(k.kernel.name)]
        remaining = [k for k in candidates if not pattern.search(k.kernel.name)]
        if not dropped or (not remaining and pattern is _INITIALISER):
            continue  # a workload that only draws random numbers is one
        candidates = remaining
        notes.append(f"not counted, {_share_text(dropped, seconds)}: {what}")
    candidates.sort(key=lambda kernel: -kernel.total)
    wanted = COVERED * sum(kernel.total for kernel in candidates)
    chosen: list[KernelTime] = []
    for kernel in candidates:
        if sum(k.total for k in chosen) >= wanted:
            break
        chosen.append(kernel)
    if len(chosen) > most:
        notes.append(
            f"{len(chosen)} launch configurations make up {format_percent(100 * COVERED)} % of the GPU time; "
            f"the {most} largest are counted, {_share_text(chosen[:most], seconds)}"
        )
    return ChosenKernels(tuple(chosen[:most]), seconds, tuple(notes))


def _unwanted_kernels(trace: GpuTrace) -> list[tuple[str, re.Pattern[str]]]:
    unwanted = [("collectives, which hang when they are replayed alone", _COLLECTIVE)]
    if not trace.marked:
        unwanted.append(("initialisers, which fill tensors before the work", _INITIALISER))
    return unwanted


def _share_text(kernels: list[KernelTime], seconds: float) -> str:
    share = format_percent(100 * sum(k.total for k in kernels) / seconds) if seconds > 0 else "0"
    return f"{share} % of the GPU time in {plural(len(kernels), 'configuration')}"


WARMED = 1  # launches of a benchmark's region passed over; its warm-up came before
SEEN = 2  # launches of each configuration after which it is taken to be warm
MATCHED_SECONDS = 0.010  # of a launch that is matched and not counted
COUNTED_SECONDS = 0.05  # of one that is counted, in one replay pass: 26 to 54 ms
WIDEST = 100  # launches of a window


@dataclass(frozen=True)
class WarmLaunches:
    """The launches of a configuration that may be counted, by number from 0: `low` to `high`, best from `best` on."""

    kernel: KernelTime
    low: int
    high: int
    best: int


@dataclass(frozen=True)
class CountedLaunches:
    """Configurations that are counted in one run of the workload: each at its launch number `launch`, or all that are
    in `window`: launches to pass over, and to count, of those that match their names. `passed`: launches that cost.
    """

    kernels: tuple[KernelTime, ...]
    launch: int
    window: tuple[int, int] | None = None
    passed: int = 0


def launches_in_benchmark(kernel: KernelTime, traced: int, counted: int) -> WarmLaunches:
    """In a benchmark's region that ran `traced` iterations under the trace and runs `counted` under the counters."""
    there = max(1, kernel.launches * counted // max(1, traced))
    return WarmLaunches(kernel, 0, there - 1, min(WARMED, there - 1))


def launches_in_entries(kernel: KernelTime, entries: int, looked: int) -> WarmLaunches:
    """In `looked` of the `entries` of a region: those are warm, so its first launch there will do."""
    return WarmLaunches(kernel, 0, max(0, kernel.launches * looked // max(1, entries) - 1), 0)


def launches_in_program(kernel: KernelTime, *, before: int) -> WarmLaunches:
    """In a program that runs as it ran under the trace; `before` launches of this configuration were set-up.

    Rather late than early: what is compiled, tuned or loaded at the first call comes before.
    """
    return WarmLaunches(kernel, before, before + kernel.launches - 1, before + kernel.launches // 2)


def iterations_needed(kernels: Sequence[KernelTime], traced: int) -> int:
    """How often a benchmark must run until each configuration was launched often enough."""
    rarest = min((kernel.launches for kernel in kernels), default=traced)
    return max(1, min(traced, -(-traced * (WARMED + 1) // max(1, rarest))))


def entries_needed(kernels: Sequence[KernelTime], entries: int, processes: int) -> tuple[int, int]:
    """How many of a process's entries of a region to pass over, and how many to look at, so that each configuration
    comes up. Launches are of all `processes`."""
    rarest = min((kernel.launches for kernel in kernels), default=1)
    looked = max(1, min(entries, -(-entries * max(1, processes) // max(1, rarest))))
    return min(SEEN, max(0, entries - looked)), looked


def group_launches(steady: Sequence[WarmLaunches]) -> tuple[CountedLaunches, ...]:
    """As few groups as the steady parts allow, each with a launch number that lies in all of its parts."""
    late = _group_by_number([(s.best, s.high, s) for s in steady])
    whole = _group_by_number([(s.low, s.high, s) for s in steady])
    return late if len(late) <= len(whole) else whole


def _group_by_number(parts: Sequence[tuple[int, int, WarmLaunches]]) -> tuple[CountedLaunches, ...]:
    """The fewest numbers that hit every part: always the next one that ends (interval stabbing)."""
    waiting = sorted(parts, key=lambda part: part[1])
    groups: list[CountedLaunches] = []
    while waiting:
        end = waiting[0][1]
        hit = [part for part in waiting if part[0] <= end]
        waiting = [part for part in waiting if part[0] > end]
        first = max(part[0] for part in hit)
        hit.sort(key=lambda part: -part[2].kernel.total)
        groups.append(CountedLaunches(tuple(part[2].kernel for part in hit), first + (end - first) // 2))
    return tuple(sorted(groups, key=lambda group: -sum(kernel.total for kernel in group.kernels)))


def find_windows(
    trace: GpuTrace,
    kernels: Sequence[KernelTime],
    matches: Callable[[Kernel], bool],
    *,
    from_start: bool,
    replays: int = 1,
    most_seconds: float = inf,
) -> tuple[CountedLaunches, ...]:
    """The shortest stretch of launches that has each of `kernels` in it after two launches of each; several stretches,
    in several runs, where one does not have them all. Empty where the trace tells no order, or not of all of them.

    `matches`: whether ncu's name filter takes a kernel. `from_start`: ncu counts from the program's begin and not from
    that of the marked part. A stretch that takes longer than `most_seconds` is cut to what has most GPU time.
    """
    taken = [matches(k.kernel) for k in trace.kernels]
    wanted = {number for number, k in enumerate(trace.kernels) if k in kernels}
    order = [number for number in trace.order if taken[number]]
    if not wanted or not wanted <= set(order):
        return ()
    before = 0
    if from_start:
        before = sum(k.setup_launches for k in (*trace.kernels, *trace.setup) if matches(k.kernel))

    def seconds(begin: int, end: int) -> float:
        return MATCHED_SECONDS * (before + begin) + COUNTED_SECONDS * replays * (end - begin)

    places = _warm_places(order, wanted)
    windows: list[CountedLaunches] = []
    while wanted:
        begin, end, there = _cheapest_window(places, wanted, trace, seconds, most_seconds)
        counted = tuple(sorted((trace.kernels[n] for n in there), key=lambda k: -k.total))
        windows.append(CountedLaunches(counted, 0, (before + begin, end - begin), before + begin))
        wanted = wanted - there
    return tuple(sorted(windows, key=lambda window: -sum(kernel.total for kernel in window.kernels)))


def _warm_places(order: Sequence[int], wanted: set[int]) -> list[tuple[int, int]]:
    """Where each of `wanted` was launched, in order, without its first two; its last one stays in any case."""
    left = Counter(number for number in order if number in wanted)
    passed = {number: min(SEEN, count - 1) for number, count in left.items()}
    places: list[tuple[int, int]] = []
    for at, number in enumerate(order):
        if number in wanted:
            if passed[number]:
                passed[number] -= 1
            else:
                places.append((at, number))
    return places


def _cheapest_window(
    places: Sequence[tuple[int, int]],
    wanted: set[int],
    trace: GpuTrace,
    seconds: Callable[[int, int], float],
    most_seconds: float,
) -> tuple[int, int, set[int]]:
    """The cheapest stretch that has all of `wanted`; where none of the allowed width and cost has, that with most GPU
    time. `seconds`: what a stretch costs.
    """
    mine = [place for place in places if place[1] in wanted]
    best: tuple[float, float, float, int, int, set[int]] | None = None
    for first, (begin, _) in enumerate(mine):
        there: dict[int, int] = {}
        for at, number in mine[first:]:
            if at - begin >= WIDEST or len(there) == len(wanted):
                break
            if there and number not in there and seconds(begin, at + 1) > most_seconds:
                break
            there.setdefault(number, at)
        end = max(there.values()) + 1
        time = sum(trace.kernels[number].total for number in sorted(there))
        cost = seconds(begin, end)
        key = (max(0.0, cost - most_seconds), -time, cost)
        if best is None or key < best[:3]:
            best = (*key, begin, end, set(there))
    assert best is not None  # each of `wanted` has a place
    return best[3:]
