"""The copies and memsets at both ends of the repetition: an iteration has what lies between two, launch for launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from profkit.analysis.timeline.order import Order, of_lane
from profkit.analysis.timeline.records import TRANSFER
from profkit.analysis.timeline.spool import Spool
from profkit.analysis.timeline.steady import Steady

_MOST = 1 << 12  # transfers between two iterations; of a loop that has more, some miss at the ends

_Moved = tuple[int, int]  # when it was launched, and of which kind


def with_copies(activities: Spool, order: Order, steady: Steady) -> tuple[int, int]:
    """From when to when the repetition was launched: its kernels, and around them what one iteration copies.

    A loop that copies in, computes and copies out begins before its first kernel and ends behind its last. What lies
    between the last kernel of an iteration and the first of the next is one set of copies; as much of it as there is
    before the first kernel belongs to the first iteration, and the rest, if there is such, to the last.
    """
    times = order.times
    middle = steady.first + steady.repeats // 2 * steady.period
    first, last = int(times[steady.first]), int(times[steady.last - 1])
    if not steady.first < middle < steady.last:
        return first, last
    before = int(times[steady.first - 1]) if steady.first else -(1 << 62)
    after = int(times[steady.last]) if steady.last < len(times) else 1 << 62
    bounds = ((before, first), (int(times[middle - 1]), int(times[middle])), (last, after))
    lead, between, trail = _between(activities, order.lane, bounds)
    one = Counter(kind for _, kind in between)
    taken = _taken(lead[::-1], one)
    return min([first, *taken]), max([last, *_taken(trail, one)])


def _between(
    activities: Spool, lane: int, bounds: Sequence[tuple[int, int]]
) -> tuple[list[_Moved], list[_Moved], list[_Moved]]:
    """What was moved in each of the three spans of time: of the first the latest, of the others the earliest."""
    import numpy as np

    found: list[list[_Moved]] = [[], [], []]
    for block in activities:
        moved = block[(block["kind"] == TRANSFER)]
        moved = moved[of_lane(moved, lane)]
        when = np.where(moved["launch"] >= 0, moved["launch"], moved["start"])
        for number, (begin, end) in enumerate(bounds):
            inside = (when > begin) & (when < end)
            if inside.any() and (number == 0 or len(found[number]) < _MOST):
                found[number] += zip(when[inside].tolist(), moved["what"][inside].tolist(), strict=True)
        found[0] = sorted(found[0])[-_MOST:]
    return found[0], sorted(found[1])[:_MOST], sorted(found[2])[:_MOST]


def _taken(moved: Sequence[_Moved], left: Counter[Any]) -> list[int]:
    """When the first of `moved` were launched, while they are of the kinds that are `left`, which they use up."""
    taken = []
    for when, kind in moved:
        if left[kind] <= 0:
            break
        left[kind] -= 1
        taken.append(when)
    return taken
