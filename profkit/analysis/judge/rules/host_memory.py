"""Rules on caches, memory, branches and SIMD: judged by what they cost in the measured time, not by a rate alone.

Little's law (1961) tells latency from bandwidth: cache lines per second, times the latency of one, is the number of
lines that are under way at once. About one: each access waits for the one before it. Many: memory streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from profkit.analysis.evidence import RunEvidence
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.host import (
    EACH_MISSES,
    MEMORY_SECONDS,
    MIN_SIMULATED,
    MISPREDICTION_CYCLES,
    UNDER_WAY,
    clock_of,
    is_strided,
    simulated_share,
)
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import Gain, Hotspot, Insight, Place, RunDocument

LINE_BYTES = 64  # of a cache line
COLUMNS = (
    "Exchange the loops, or lay the data out by field: each load is an equal, large step from the last one"
)
ELEMENT_BYTES = 8
# accesses under way: within it they follow each other, as far as the latency is known
ONE_BY_ONE = (0.4, 2.5)
STREAMS = 60.0  # % of the measured bandwidth: the target's own threshold
COMPUTES = 10.0  # % of the arithmetic peak: a program that follows pointers computes next to nothing
ONE_THREAD = 1.15  # threads in use
MIN_SAMPLED = 0.5  # of the working time: samples of less have lost some of it
NOISE = 30.0  # %: half-width of the interval of the median time
COSTS = 0.1  # of the time: a smaller cost is not worth a change
SCALAR = 50.0  # % of the arithmetic that is SIMD: below, scalar instructions take most of its time


def unoptimised_build(run: RunEvidence) -> Iterator[Insight]:
    """Yield a program that gcc compiled without optimisation, and that works."""
    options = run.document.facts.get("compiler", "")
    split = run.document.time_split
    if not options.startswith("GNU ") or re.search(r" -O([1-3sgz]|fast)?(?= |$)", options):
        return
    if split is not None and split.waiting is not None and split.waiting > 0.5 * split.wall:
        return
    command = run.document.workload.command
    name = re.split(r"[/\\]", command[0])[-1] if command else "the program"
    yield insight_at(
        "unoptimised-build",
        "Compile with optimisation",
        f"the debug information of {name} says how it was compiled: {re.sub(r' (-m[a-z]|--param)[^ ]*', '', options)}",
        hottest_place(run),
    )


def memory_latency(run: RunEvidence) -> Iterator[Insight]:
    """Find loads from memory that wait for each other: lists, trees, tables that are larger than the caches."""
    moved, seconds = run.values.get("dram.read", run.values.get("dram.bytes")), _working_seconds(run)
    share = run.values.get("bandwidth.dram.share")
    if not moved or not seconds or share is None or share >= STREAMS or not _is_native(run):
        return
    if not _time_is_known(run) or run.values.get("flops.share", 0.0) > COMPUTES:
        return
    moved *= _share_of_loads(run)
    under_way = moved / LINE_BYTES * MEMORY_SECONDS / seconds
    if not ONE_BY_ONE[0] <= under_way <= ONE_BY_ONE[1]:
        return
    yield insight_at(
        "memory-latency",
        "Avoid loads from memory that wait for each other",
        f"{under_way:.1f} accesses to memory are under way at a time "
        f"({format_quantity(moved / LINE_BYTES, 'count')} lines in {format_quantity(seconds, 's')}, at about "
        f"{format_quantity(MEMORY_SECONDS, 's')} each), and {percent_text(share)} of the bandwidth is used: each load "
        "waits for the one before",
        hottest_native(run, "DLmr", "D1mr", "cache-misses"),
        Gain(
            min(0.95, min(1.0, under_way) * (1 - share / 100)),
            "the time of an iteration",
            "until bandwidth limits it",
        ),
    )


def wasted_lines(run: RunEvidence) -> Iterator[Insight]:
    """Find loads that use one element of each cache line: columns of a matrix, fields of records.

    A walk in order misses once in 64 bytes: one of 16 floats, one of 8 doubles.
    """
    line, lines, seconds = _hottest(run, "DLmr"), run.profile("counted-lines"), _working_seconds(run)
    if line is None or lines is None or line not in lines.hotspots or is_little_simulated(run.document):
        return
    if not seconds or not _is_native(run) or any(memory_latency(run)):
        return
    loads, misses = line.counters.get("Dr", 0.0), line.counters.get("DLmr", 0.0)
    if not loads or misses < EACH_MISSES * loads:
        return
    share = misses * MEMORY_SECONDS / UNDER_WAY / seconds
    if share < COSTS:
        return
    found = insight_at(
        "strided-access",
        "Use all of each cache line: walk memory in order",
        f"{percent_text(100 * misses / loads)} of {format_quantity(loads, 'count')} loads there miss all caches: each "
        f"brings {LINE_BYTES} bytes and uses one element of them, where a walk in order uses all",
        hottest_native(run, "DLmr"),
        Gain(
            min(0.9, share) * (1 - ELEMENT_BYTES / LINE_BYTES),
            "the time of an iteration",
            f"these misses at {format_quantity(MEMORY_SECONDS, 's')} each, {UNDER_WAY} of them under way at a time",
        ),
    )
    if is_strided(run.document, misses):
        found = replace(found, title=COLUMNS, change=words("strided-access.columns", "host"))
    yield found


def memory_bandwidth(run: RunEvidence) -> Iterator[Insight]:
    """Find memory moves as much as this machine can: only less traffic helps."""
    share, moved = run.values.get("bandwidth.dram.share"), run.values.get("bandwidth.dram")
    if share is None or moved is None or share < STREAMS or share > 105:
        return
    declared = run.values.get("bandwidth.declared")
    gain = None
    if declared and declared < moved:
        gain = Gain(
            1 - declared / moved, "the time of an iteration", "until it moves only the bytes that it declares"
        )
    yield insight_at(
        "memory-bandwidth",
        "Move less data: memory is at its limit",
        f"memory moves {format_quantity(moved, 'B/s')}, {percent_text(share)} of the highest rate "
        "measured on this machine",
        hottest_native(run, "DLmr", "D1mr", "cache-misses"),
        gain,
    )


def mispredicted_branches(run: RunEvidence) -> Iterator[Insight]:
    """Find branches that depend on the data, where their mispredictions take a good part of the time.

    A simulated predictor is a small one: it mispredicts calls through tables, as libraries dispatch, which a real one
    learns. It is believed only of code that is there with its source.
    """
    rate, count = run.values.get("branch.miss_rate"), run.values.get("branch.count")
    seconds = _working_seconds(run)
    if rate is None or count is None or not seconds or not _is_native(run) or not _time_is_known(run):
        return
    clock = clock_of(run.document)
    misses = count * rate / 100
    share = misses * MISPREDICTION_CYCLES / clock / seconds
    place = hottest_native(run, "Bcm", "branch-misses")
    is_simulated = any(
        reading.metric == "branch.miss_rate" and reading.quality == "simulated"
        for reading in run.document.readings
    )
    if share < COSTS or rate < 1 or (is_simulated and place.file is None):
        return
    yield Insight(
        "mispredicted-branches",
        "Avoid branches that depend on the data",
        f"{percent_text(rate)} of {format_quantity(count, 'count')} branches are mispredicted: at "
        f"{MISPREDICTION_CYCLES} cycles each about {percent_text(100 * min(1.0, share))} of the time",
        "Replace them by arithmetic, masks, min and max or a table; sort or group the data by case first.",
        place,
        Gain(min(0.9, share), "the time of an iteration", f"{MISPREDICTION_CYCLES} cycles for each of them"),
    )


def scalar_arithmetic(run: RunEvidence) -> Iterator[Insight]:
    """Find compiled arithmetic on one element at a time."""
    simd, flops = run.values.get("simd.utilization"), run.values.get("flops")
    instructions, share = run.values.get("instructions"), run.values.get("flops.share")
    if simd is None or not flops or not instructions or simd >= SCALAR or not _is_native(run):
        return
    arithmetic = flops / instructions
    if any(wasted_lines(run)) or any(memory_latency(run)):
        return
    loops = run.profile("counted-loops")
    if loops is not None and not any(loop.counters.get("scalar") for loop in loops.hotspots):
        return  # by its machine code no loop of the program computes numbers that are independent of each other
    if arithmetic < 0.1 or run.values.get("bandwidth.dram.share", 0.0) >= STREAMS:
        return
    left = 1 - (share or 0.0) / 100
    yield insight_at(
        "scalar-arithmetic",
        "Let the compiler vectorise the arithmetic (SIMD)",
        f"{percent_text(simd)} of the arithmetic instructions are SIMD, and there are {arithmetic:.2f} operations for "
        "each instruction",
        hottest_native(run, "Ir", "cycles"),
        Gain(min(left, 0.75), "the time of an iteration", "four elements at a time instead of one"),
    )


def is_little_simulated(document: RunDocument) -> bool:
    """Return whether counts of lines are those of less than a tenth of the run."""
    share = simulated_share(document)
    return share is not None and share < MIN_SIMULATED


def _working_seconds(run: RunEvidence) -> float | None:
    """Return the median time without the part in which the whole process waited, as far as that was looked at.

    Of one thread that perf sampled, the shorter of the two runs.
    """
    seconds, split = run.values.get("time.median"), run.document.time_split
    timings = run.document.timings
    if seconds is None or split is None or not timings or timings[0].kind != "process" or split.wall <= 0:
        return seconds
    idle = min(0.95, ((split.waiting or 0.0) + (split.queued or 0.0)) / split.wall)
    working, sampled = seconds * (1 - idle), run.profile("functions")
    if sampled is None or sampled.unit != "s" or (split.threads or 0.0) > ONE_THREAD:
        return working
    # Other programs take caches and clock: they make a run longer, never shorter.
    return sampled.total if MIN_SAMPLED * working <= sampled.total < working else working


def _share_of_loads(run: RunEvidence) -> float:
    """Return the share of lines from memory that a load waits for (nothing waits for a store); 1 if not counted."""
    profile = run.profile("counted-functions")
    counted = [spot.counters for spot in profile.hotspots] if profile is not None else []
    loads, stores = (sum(counters.get(name, 0.0) for counters in counted) for name in ("DLmr", "DLmw"))
    return loads / (loads + stores) if loads + stores else 1.0


def _time_is_known(run: RunEvidence) -> bool:
    """Return whether the median time is known well enough to compare counts with it."""
    return run.values.get("time.interval", 0.0) <= NOISE


def _is_native(run: RunEvidence) -> bool:
    """Return whether the program is machine code: the caches and branches of an interpreter cannot be changed by its
    users.
    """
    return run.document.workload.python is None and run.profile("own-time") is None


def hottest_place(run: RunEvidence) -> Place:
    """Return the program's line of most time, by its samples."""
    first = next(
        (spot for spot in run.document.hot_spots if spot.where.file is not None or spot.where.function), None
    )
    return first.where if first is not None else Place()


def _hottest(run: RunEvidence, *counters: str) -> Hotspot | None:
    """Return the compiled function with the most of the first counted one of these counters, or its line with most."""
    lines = run.profile("counted-lines")
    for profile in run.document.profiles:
        for counter in counters if profile.kind != "counted-lines" else ():
            counted = [row for row in profile.hotspots if row.counters.get(counter)]
            if not counted:
                continue
            first = max(counted, key=lambda row: row.counters[counter])
            inside = [
                row
                for row in (lines.hotspots if lines is not None else ())
                if (row.function, row.library) == (first.function, first.library)
                and row.counters.get(counter)
            ]
            return max(inside, key=lambda row: row.counters[counter], default=first)
    return None


def hottest_native(run: RunEvidence, *counters: str) -> Place:
    """Return the place of the most of the first of these counters that was counted."""
    first = _hottest(run, *counters)
    return Place(function=first.function, file=first.file, line=first.line) if first is not None else Place()
