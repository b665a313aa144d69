"""DIFFERENT, SAME or AMBIGUOUS: what an interval says of a change that counts from a floor on. Nothing else decides.

That no difference was found is never taken for sameness.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from profkit.core.types import ChangeWord, Course, Direction


class Interval(NamedTuple):
    """Of a ratio or a difference: its middle, and where it may begin and end."""

    low: float
    middle: float
    high: float


def ratio_interval(before: Interval, after: Interval) -> Interval:
    """Of after over before, whose middles are above 0; without an end where `before` may be 0."""
    high = after.high / before.low if before.low > 0 else inf
    return Interval(after.low / before.high, after.middle / before.middle, high)


def decide(
    interval: Interval | None, floor: float, *, around: float = 1.0, by_middle: bool = False
) -> ChangeWord:
    """The word for a change of which `floor` is the least that counts.

    `around` 1: of a ratio, and the floor reaches from 1 / (1 + floor) to 1 + floor; `around` 0: of a difference, from
    -floor to floor. SAME: the whole interval lies within the floor. DIFFERENT: the whole interval lies beyond it; with
    `by_middle` its middle does, and it leaves `around` out. AMBIGUOUS: neither, or there is no interval.
    """
    if interval is None:
        return "ambiguous"
    low, middle, high = interval
    least, most = (1 / (1 + floor), 1 + floor) if around else (-floor, floor)
    if least <= low and high <= most:
        return "same"
    if by_middle:
        sure = (low > around or high < around) and not least <= middle <= most
    else:
        sure = low > most or high < least
    return "different" if sure else "ambiguous"


def course_of(before: float, after: float, better: Direction) -> Course:
    """Whether a change from `before` to `after` is for the better, by the direction that is good for the metric."""
    if better == "none" or before == after:
        return "neither"
    return "worse" if (after > before) == (better == "lower") else "better"


def ratio_of_values(before: float, after: float) -> float | None:
    """After over before; None where that is no number: before 0, or of another sign."""
    if before <= 0 or after < 0:
        return None
    ratio = after / before
    return ratio if ratio < inf else None
