"""What many small steps add up to: the recent nights against an old anchor, which no pairwise rule ever does."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from profkit.regression.detection.band import MEDIAN_VARIANCE, TOO_MUCH, Band, far_band, middle, near_band
from profkit.regression.detection.rules import Rule

ANCHOR = 24  # nights that the old state is the median of
SIGMAS = 3.0  # standard errors by which the recent median must be beyond the floor


def drifted(
    level: Sequence[float],
    anchor: Sequence[float],
    old: float,
    rule: Rule,
    inherited: float | None,
    guess: float,
) -> tuple[int, Band] | None:
    """The side to which the level has drifted away from the anchor, and the band about its median `old`; else None.

    The median of the last two weeks lies beyond the floor by 3 standard errors (those of two medians, with
    (1 + r) / (1 - r) for neighbours that cling), and that of the last week beyond it. Two weeks, so that a step of this
    week is told by others. Not for a series that clings too much: it wanders without a cause.
    """
    week = rule.recent
    if len(anchor) < ANCHOR or len(level) < 2 * week + ANCHOR:
        return None
    floor = rule.drift_floor(old)
    last = middle(sorted(level[-week:])) - old
    if abs(last) <= floor:
        return None
    shift = middle(sorted(level[-2 * week :])) - old
    if abs(shift) <= floor or shift * last < 0:
        return None
    far = far_band(near_band(level, inherited, rule), level, rule, guess=guess)
    kept = max(far.cling, 0.0)
    error = far.sigma * sqrt(MEDIAN_VARIANCE * (1 + kept) / (1 - kept) * (0.5 / week + 1 / ANCHOR))
    if far.cling > TOO_MUCH or abs(shift) - SIGMAS * error <= floor:
        return None
    return (1 if shift > 0 else -1), Band(old, far.sigma, old - floor, old + floor, ANCHOR, far.cling)
