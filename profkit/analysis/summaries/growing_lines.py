"""The source lines that hold ever more memory, as a profile: what rules on a run look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profkit.core.types import Hotspot, Profile

if TYPE_CHECKING:
    from profkit.runtime.passes.read_tracemalloc import Allocations

MOST_LINES = 5


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
