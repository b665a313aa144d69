"""Nights in a row on one side: none of them need be far out for all of them to be no accident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from profkit.regression.detection.band import CLING_GUESS, LONG, Band, far_band, middle, near_band
from profkit.regression.detection.rules import Rule

SHORTEST = 4
LONGEST = 14  # two weeks: what takes longer to be seen is for the drift
CHANCE = 1e-6  # of a run in a quiet series, each night of which could begin one: 1 in 3,000 years


@dataclass(frozen=True)
class Run:
    """The last `nights` of a level are a level of their own, on `side` of the band of those before."""

    nights: int
    side: int
    band: Band


def run_of(
    level: Sequence[float],
    about: float,
    rule: Rule,
    inherited: float | None = None,
    guess: float = CLING_GUESS,
) -> Run | None:
    """The run that the level ends with, if there is one.

    All of its k nights are beyond m, its median is beyond the floor, and chance would not do it: of the nights before
    the share p lies beyond m as well, (count + 1) / (n + 1), and p^k is below 1e-6, with k (1 - r) / (1 + r) for k
    where neighbours cling with autocorrelation r. No distribution is assumed: two modes or spikes make p larger.
    `about`: roughly the centre of the level; only where the last nights are all on one side of it they are looked at.
    `inherited`, `guess`: relative sigma and autocorrelation of the level before.
    """
    if len(level) < rule.least + SHORTEST:
        return None
    near = level[-SHORTEST:]
    if not (min(near) > about or max(near) < about):
        return None
    centre = middle(sorted(level[-rule.window - SHORTEST : -SHORTEST]))
    least = rule.floor(centre) / 2
    if min(near) > centre + least:
        side = 1
    elif max(near) < centre - least:
        side = -1
    else:
        return None
    for nights in range(SHORTEST, min(LONGEST, len(level) - rule.least) + 1):
        past = level[-LONG - nights : -nights]
        last = level[-nights:]
        centre = middle(sorted(past[-rule.window :]))
        if side * (middle(sorted(last)) - centre) <= rule.floor(centre):
            continue
        edge = min(last) if side > 0 else max(last)
        if side * (edge - centre) <= 0:
            return None
        share = (sum(side * (value - edge) >= 0 for value in past) + 1) / (len(past) + 1)
        if nights * log(share) >= log(CHANCE):
            continue
        band = far_band(near_band(past, inherited, rule), past, rule, guess=guess)
        kept = max(band.cling, 0.0)
        if nights * (1 - kept) / (1 + kept) * log(share) < log(CHANCE):
            return Run(nights, side, band)
    return None
