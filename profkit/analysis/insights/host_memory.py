"""Rules on caches, memory, branches and SIMD: judged by what they cost in the measured time, not by a rate alone.

Little's law (1961) tells latency from bandwidth: lines of memory per second, times the time that one takes, is how many
are under way at once. About one: each access waits for the one before it. Many: memory streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence
from profkit.analysis.insights.host_python import INTERPRETED, interpreter_share
from profkit.analysis.insights.rule import percent_text
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, Hotspot, Insight, Place

LINE_BYTES = 64
# From the load to the value, of servers and desktops alike 80 to 120 ns (Intel's Memory Latency Checker).
MEMORY_SECONDS = 90e-9
ONE_BY_ONE = (
    0.4,
    2.5,
)  # accesses under way: within it they follow each other, as far as the latency is known
STREAMS = 60.0  # % of the measured bandwidth: the target's own threshold
# Cycles that a mispredicted branch costs: 15 to 20 on all big cores (Agner Fog, "The microarchitecture of Intel, AMD
# and VIA CPUs").
MISPREDICTION_CYCLES = 15
USUAL_CLOCK = 3e9  # Hz, where the machine does not tell its own
COMPUTES = 10.0  # % of the arithmetic peak: a program that follows pointers computes next to nothing
NOISE = 30.0  # %, half the interval of the median time
COSTS = 0.1  # of the time: less is not worth a change
SCALAR = 50.0  # % of the arithmetic that is SIMD: below, scalar instructions take most of its time


def memory_latency(run: RunEvidence) -> Iterator[Insight]:
    """Loads from memory that wait for each other: lists, trees, tables that are larger than the caches."""
    moved, seconds = run.values.get("dram.read", run.values.get("dram.bytes")), _working_seconds(run)
    share = run.values.get("bandwidth.dram.share")
    if not moved or not seconds or share is None or share >= STREAMS or not _is_native(run):
        return
    if not _time_is_known(run) or run.values.get("flops.share", 0.0) > COMPUTES:
        return
    under_way = moved / LINE_BYTES * MEMORY_SECONDS / seconds
    if not ONE_BY_ONE[0] <= under_way <= ONE_BY_ONE[1]:
        return
    yield Insight(
        "memory-latency",
        "Let loads from memory not wait for each other",
        f"{under_way:.1f} accesses to memory are under way at a time "
        f"({format_quantity(moved / LINE_BYTES, 'count')} lines in "
        f"{format_quantity(seconds, 's')}, at about {format_quantity(MEMORY_SECONDS, 's')} each), and "
        f"{percent_text(share)} of the bandwidth "
        "is used: each load waits for the one before",
        "Lists, trees and hash tables give the address of the next element only with the last "
        "one. Keep elements side by side in "
        "an array, work on several chains at once, prefetch, or make the data fit the cache "
        "(smaller types, blocks).",
        hottest_native(run, "DLmr", "D1mr", "cache-misses"),
        Gain(
            min(0.95, min(1.0, under_way) * (1 - share / 100)),
            "the time of an iteration",
            "until bandwidth limits it",
        ),
    )


def memory_bandwidth(run: RunEvidence) -> Iterator[Insight]:
    """Memory moves as much as this machine can: only less traffic helps."""
    share, moved = run.values.get("bandwidth.dram.share"), run.values.get("bandwidth.dram")
    if share is None or moved is None or share < STREAMS or share > 105:
        return
    declared = run.values.get("bandwidth.declared")
    gain = None
    if declared and declared < moved:
        gain = Gain(
            1 - declared / moved, "the time of an iteration", "until it moves only the bytes that it declares"
        )
    yield Insight(
        "memory-bandwidth",
        "Move less data: memory is at its limit",
        f"memory moves {format_quantity(moved, 'B/s')}, {percent_text(share)} of what this machine reaches",
        "Fuse passes over the same array, work in blocks that stay in the cache, use smaller "
        "types (float32, int32). More threads "
        "do not help.",
        hottest_native(run, "DLmr", "D1mr", "cache-misses"),
        gain,
    )


def mispredicted_branches(run: RunEvidence) -> Iterator[Insight]:
    """Branches that depend on the data, where their mispredictions take a good part of the time."""
    rate, count = run.values.get("branch.miss_rate"), run.values.get("branch.count")
    seconds = _working_seconds(run)
    if rate is None or count is None or not seconds or not _is_native(run) or not _time_is_known(run):
        return
    machine = run.document.machine
    clock = machine.max_mhz * 1e6 if machine is not None and machine.max_mhz else USUAL_CLOCK
    misses = count * rate / 100
    share = misses * MISPREDICTION_CYCLES / clock / seconds
    if share < COSTS or rate < 1:
        return
    yield Insight(
        "mispredicted-branches",
        "Avoid branches that depend on the data",
        f"{percent_text(rate)} of {format_quantity(count, 'count')} branches are mispredicted: at "
        f"{MISPREDICTION_CYCLES} cycles each "
        f"about {percent_text(100 * min(1.0, share))} of the time",
        "Replace them by arithmetic, masks, min and max or a table; sort or group the data by case first.",
        hottest_native(run, "Bcm", "branch-misses"),
        Gain(min(0.9, share), "the time of an iteration", f"{MISPREDICTION_CYCLES} cycles for each of them"),
    )


def scalar_arithmetic(run: RunEvidence) -> Iterator[Insight]:
    """Compiled arithmetic on one element at a time."""
    simd, flops = run.values.get("simd.utilization"), run.values.get("flops")
    instructions, share = run.values.get("instructions"), run.values.get("flops.share")
    if simd is None or not flops or not instructions or simd >= SCALAR or not _is_native(run):
        return
    arithmetic = flops / instructions
    if arithmetic < 0.1 or run.values.get("bandwidth.dram.share", 0.0) >= STREAMS:
        return
    left = 1 - (share or 0.0) / 100
    yield Insight(
        "scalar-arithmetic",
        "Let the compiler vectorise the arithmetic (SIMD)",
        f"{percent_text(simd)} of the arithmetic instructions are SIMD, and there are "
        f"{arithmetic:.2f} operations for each "
        "instruction",
        "-O3 -march=native, contiguous float arrays marked restrict, no calls or branches in the "
        "inner loop; look at the report of "
        "-fopt-info-vec-missed (gcc) or -Rpass-missed=loop-vectorize (clang).",
        hottest_native(run, "Ir", "cycles"),
        Gain(min(left, 0.75), "the time of an iteration", "four elements at a time instead of one"),
    )


def _working_seconds(run: RunEvidence) -> float | None:
    """The median time without the part in which the whole process waited, as far as that was looked at."""
    seconds, split = run.values.get("time.median"), run.document.time_split
    timings = run.document.timings
    if seconds is None or split is None or not timings or timings[0].kind != "process" or split.wall <= 0:
        return seconds
    idle = min(0.95, ((split.waiting or 0.0) + (split.queued or 0.0)) / split.wall)
    return seconds * (1 - idle)


def _time_is_known(run: RunEvidence) -> bool:
    """Whether the median time is known well enough to hold counts against it."""
    return run.values.get("time.interval", 0.0) <= NOISE


def _is_native(run: RunEvidence) -> bool:
    """Whether compiled code does the work: of an interpreter's own caches and branches nobody can change anything."""
    interpreter = interpreter_share(run)
    if interpreter is not None:
        return interpreter < INTERPRETED
    profile = run.profile("own-time")
    if profile is None:
        return True
    own = sum(one.own for one in profile.hotspots if one.file is not None and one.file.endswith(".py"))
    return own < 0.3 * profile.total


def hottest_native(run: RunEvidence, *counters: str) -> Place:
    """The compiled function with the most of the first of these counters that was counted, and its line of that."""
    for profile in run.document.profiles:
        for counter in counters:
            counted = [
                one
                for one in profile.hotspots
                if one.counters.get(counter) and profile.kind != "counted-lines"
            ]
            if counted:
                first = max(counted, key=lambda one: one.counters[counter])
                line = _hottest_line(run, first, counter)
                return Place(function=first.function, file=line.file, line=line.line)
    return Place()


def _hottest_line(run: RunEvidence, function: Hotspot, counter: str) -> Hotspot:
    """The line of a function with the most of a counter; the function itself where no lines were counted."""
    profile = run.profile("counted-lines")
    inside = [
        one
        for one in (profile.hotspots if profile is not None else ())
        if (one.function, one.library) == (function.function, function.library) and one.counters.get(counter)
    ]
    return max(inside, key=lambda one: one.counters[counter], default=function)
