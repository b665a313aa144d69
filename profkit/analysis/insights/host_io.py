"""Rules on input and output: many small transfers, and waiting for the disk after each piece."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_calls import brief_name
from profkit.analysis.insights.host_memory import hottest_native
from profkit.analysis.insights.host_threads import small_tasks
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Allocations, Gain, Hotspot, Insight, Place, Profile

MANY_CALLS = 20_000  # a second: at about 0.2 to 1 µs each, some per cent of the time
SMALL_BYTES = 1024  # a call: below, what a call costs is more than what it copies
IN_KERNEL = 0.2  # of the time
SYNCS = 20
WORTH = 0.15
_TRANSFERS = re.compile(
    r"<(built-in method posix\.(read|write|pread|pwrite)|method '(read|write|readline|flush)' of .*)>"
)
_SYNC = "<built-in method posix.fsync>"


def small_transfers(run: RunEvidence) -> Iterator[Insight]:
    """Reads and writes of a few bytes: the kernel is entered for each."""
    split = run.document.time_split
    if split is None or not split.io_calls or split.system is None or split.wall <= 0:
        return
    each = ((split.read or 0.0) + (split.written or 0.0)) / split.io_calls
    working = max(1e-9, split.wall - (split.queued or 0.0))
    share = min(1.0, split.system / working)
    if split.io_calls < MANY_CALLS * working or each > SMALL_BYTES or share < IN_KERNEL:
        return
    if any(small_tasks(run)):  # the pipes of a pool: its own rule says what to do
        return
    calls, moved = split.io_calls, (split.read or 0.0) + (split.written or 0.0)
    yield Insight(
        "small-transfers",
        "Read and write larger blocks",
        f"{format_quantity(float(calls), 'count')} calls of read and write move {format_quantity(each, 'B')} each "
        f"({format_quantity(moved, 'B')} in all); {percent_text(100 * share)} of the time is spent in the kernel",
        "Read and write through a buffer of 64 KiB or more: fread and fwrite, std::ifstream, BufReader and BufWriter; "
        "in Python a file that is not opened with buffering=0, whole lines or blocks, and no flush after each; "
        "or map the file (mmap).",
        _transferring(run) or hottest_native(run, "Ir"),
        Gain(share, "the time in which it has a processor", "the time in the kernel, as if it took none"),
    )


def _transferring(run: RunEvidence) -> Place | None:
    """The function of a Python program that reads and writes most often."""
    profile = run.profile("program-calls")
    callers = [
        edge
        for edge in (profile.hotspots if profile is not None else ())
        if edge.callee is not None and _TRANSFERS.fullmatch(edge.callee.function) and is_users_code(edge.file)
    ]
    first = max(callers, key=lambda edge: edge.calls or 0, default=None)
    return Place(function=first.function, file=first.file, line=first.line) if first is not None else None


def repeated_sync(run: RunEvidence) -> Iterator[Insight]:
    """A program that waits for the disk after each piece that it writes."""
    profile = run.profile("program-calls")
    for edge in profile.hotspots if profile is not None else ():
        if (
            edge.callee is None
            or edge.callee.function != _SYNC
            or not is_users_code(edge.file)
            or profile is None
        ):
            continue
        share, calls = edge.own / profile.total, edge.calls or 0
        if share < WORTH or calls < SYNCS:
            continue
        yield Insight(
            "repeated-sync",
            f"Do not wait for the disk after each piece in {edge.function}",
            f"{percent_text(100 * share)} of the profiled time is in {plural(calls, 'call')} of {brief_name(_SYNC)}, "
            f"{format_quantity(edge.own / calls, 's')} each",
            "fsync once at the end, or after a group of pieces (a transaction); write alone leaves it to the system.",
            Place(function=edge.function, file=edge.file, line=edge.line),
            Gain(share * (1 - 1 / calls), "the profiled time", "one call instead of all"),
        )


MOST_LINES = 5
POOL, EACH_THREAD = 3, 2  # threads; blocks that each may hold of what it works on, while a pool fills
_MODULES = "<frozen importlib"  # the code of modules is kept on purpose


def growing_lines(allocations: Allocations) -> Profile | None:
    """The lines that hold ever more: of a region by iterations, else by looks during the run. None where none does.

    `own` are the bytes by which a line grew, `counters` what that is known by.
    """
    spots = [
        Hotspot(
            f"{line.file}:{line.line}",
            float(line.last - line.first),
            float(line.last),
            line.blocks,
            line.file,
            line.line,
            counters={"looks": line.looks, "begin": line.begin, "end": line.end, "first": line.first},
        )
        for line in allocations.steady[:MOST_LINES]
    ]
    if allocations.growth.leak and allocations.growth.per_iteration is not None:
        counters = {"iterations": allocations.growth.iterations, "each": allocations.growth.per_iteration}
        spots = [
            Hotspot(
                f"{line.file}:{line.line}",
                line.size,
                None,
                line.count,
                line.file,
                line.line,
                counters=counters,
            )
            for line in allocations.growing[:MOST_LINES]
            if line.size > 0
        ]
    total = sum(spot.own for spot in spots)
    return Profile("lines that hold ever more", "B", total, tuple(spots), "growing-lines") if spots else None


def growing_memory(run: RunEvidence) -> Iterator[Insight]:
    """A line of Python whose memory is not given back: it grew with each iteration, or from each look to the next."""
    profile = run.profile("growing-lines")
    if profile is None:
        return
    split = run.document.time_split
    threads = (split.thread_count if split is not None else None) or 1
    kept = [
        one
        for one in profile.hotspots
        if not (one.file or "").startswith(_MODULES)
        and (threads < POOL or (one.calls or 0) > EACH_THREAD * threads)
    ]
    own = [one for one in kept if is_users_code(one.file)]
    first = max(own or kept, key=lambda one: one.own, default=None)
    if first is None:
        return
    yield Insight(
        "growing-memory",
        "What is allocated here is kept as long as the program runs",
        _growth_text(first),
        "Keep only what is still needed: collections.deque(maxlen=...), functools.lru_cache(maxsize=...), delete "
        "entries that are done, drop what holds them (callbacks, caches, lists of results), or write them out as "
        "they come.",
        Place(file=first.file, line=first.line),
    )


def _growth_text(line: Hotspot) -> str:
    counters = line.counters
    if "looks" in counters:
        return (
            f"this line held more memory at each of {counters['looks']:.0f} looks: "
            f"{format_quantity(counters['first'], 'B')} {format_quantity(counters['begin'], 's')} after the start, "
            f"{format_quantity(line.total, 'B')} in {format_quantity(float(line.calls or 0), 'count')} blocks after "
            f"{format_quantity(counters['end'], 's')} (under tracemalloc)"
        )
    count = round(counters["iterations"])
    return (
        f"each iteration leaves {format_quantity(counters['each'], 'B')} behind; this line grew by "
        f"{format_quantity(line.own, 'B')} in {plural(count, 'iteration')}"
    )
