"""Rules on memory that is kept: lines of Python that hold ever more."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Allocations, Hotspot, Insight, Place, Profile

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
