"""What an interval of a ratio says: it differs from 1 by more than a floor, by less, or nobody knows."""

from __future__ import annotations

from typing import Literal, NamedTuple

Decision = Literal["DIFFERENT", "SAME", "AMBIGUOUS"]


class Interval(NamedTuple):
    """Of a ratio: its middle, and where it may begin and end."""

    low: float
    middle: float
    high: float


def decide(interval: Interval | None, floor: float) -> Decision:
    """The word for a ratio, of which `floor` is the least change that counts.

    SAME: the whole interval lies within the floor around 1, from 1 / (1 + floor) to 1 + floor. DIFFERENT: it leaves 1
    out, and its middle lies beyond the floor. AMBIGUOUS: neither, or there is no interval.
    """
    if interval is None:
        return "AMBIGUOUS"
    low, middle, high = interval
    if 1 / (1 + floor) <= low and high <= 1 + floor:
        return "SAME"
    leaves_one_out = low > 1 or high < 1
    return "DIFFERENT" if leaves_one_out and not 1 / (1 + floor) <= middle <= 1 + floor else "AMBIGUOUS"
