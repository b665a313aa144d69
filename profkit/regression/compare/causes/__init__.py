"""Why something changed: one rule in each file, which looks at both runs and says what their counters show.

A rule explains nothing that was not found different, and every sentence carries the values that it rests on. Rules are
tried in the order of this list: what lies outside of the program first, then what it does otherwise, then how well.
"""

from collections.abc import Callable, Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes import (
    buffers,
    calls,
    clocks,
    encoders,
    heat,
    host,
    imports,
    inside,
    launches,
    memory,
    misses,
    moved,
    neighbours,
    occupancy,
    others,
    shape,
    software,
    states,
    traffic,
    transfers,
    triton,
    work,
)
from profkit.regression.compare.view import View

RULES: tuple[Callable[[View], Iterator[Cause]], ...] = (
    neighbours.find,
    clocks.find,
    heat.find,
    states.find,
    software.find,
    others.find,
    triton.find,
    shape.find,
    occupancy.find,
    moved.find,
    encoders.find,
    calls.find,
    launches.find,
    buffers.find,
    host.find,
    transfers.find,
    work.find,
    traffic.find,
    inside.find,
    misses.find,
    memory.find,
    imports.find,
)
MOST_OF_A_KIND = 5  # the largest: a hundred kernels whose registers rose are one story


def causes_of(view: View) -> tuple[Cause, ...]:
    """What every rule finds, in their order."""
    found: list[Cause] = []
    for rule in RULES:
        told: dict[str, int] = {}
        for cause in rule(view):
            told[cause.kind] = told.get(cause.kind, 0) + 1
            if told[cause.kind] <= MOST_OF_A_KIND:
                found.append(cause)
    return tuple(found)
