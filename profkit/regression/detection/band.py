"""The band in which a quiet night lies: what the nights before it were, how far they spread, and how they cling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from profkit.core.statistics import MAD_TO_SIGMA
from profkit.regression.detection.rules import Rule

LONG = 120  # nights that tell autocorrelation and how often a series leaves its band: four months
FOLLOW = 2.5  # sigma beyond which a night that follows a suspect one says the same
CLINGS = 0.2  # autocorrelation from which the spread of 24 nights understates the spread of all
TOO_MUCH = 0.75  # from which three nights are one: the effective number of 24 nights is below 4
LEAST_FOR_CLING = 20  # nights below which autocorrelation is not estimated: its standard error is 0.22
CLING_GUESS = 0.3  # what is taken for it before, and later still with the weight of 15 nights
GUESS_NIGHTS = 15
MEDIAN_VARIANCE = 1.571  # pi / 2: variance of a median over that of a mean, normal distribution
DETECTED = 1.2816  # sigma by which 9 of 10 nights of a changed level lie beyond the edge


@dataclass(frozen=True)
class Band:
    """`centre` and `sigma` of the nights before, and the edges beyond which a night is suspect."""

    centre: float
    sigma: float
    low: float
    high: float
    nights: int
    cling: float = 0.0  # autocorrelation from one night to the next, where it was looked at

    @property
    def detectable(self) -> float | None:
        """The relative change of which one night shows 9 in 10; None around 0."""
        if not self.centre:
            return None
        return ((self.high - self.low) / 2 + DETECTED * self.sigma) / abs(self.centre)


def middle(ordered: Sequence[float]) -> float:
    """The median of what is sorted already."""
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def spread(values: Sequence[float], centre: float) -> float:
    """MAD-sigma about `centre`."""
    return MAD_TO_SIGMA * middle(sorted([abs(value - centre) for value in values]))


def near_band(level: Sequence[float], inherited: float | None, rule: Rule) -> Band:
    """The band by the last nights of a level alone: median +- max(sigmas MAD-sigma, floor).

    `inherited`: the relative sigma of the level before. A level of fewer than `window` nights takes its sigma from
    both, by their number of nights. The edge is wider by sqrt(1 + pi / 2 / n), as the centre is not known better, and
    where nothing is inherited once more by sqrt(1 + 12 (1 / n - 1 / window)): the MAD of 7 values is off by a third.
    """
    last = sorted(level[-rule.window :])
    n = len(last)
    centre = middle(last)
    sigma = spread(last, centre)
    unsure = 1 + MEDIAN_VARIANCE / n
    if n < rule.window:
        if inherited is None:
            unsure *= 1 + 12 * (1 / n - 1 / rule.window)
        else:
            before = inherited * abs(centre)
            sigma = sqrt(((rule.window - n) * before**2 + n * sigma**2) / rule.window)
    width = max(rule.sigmas * sigma * sqrt(unsure), rule.floor(centre))
    return Band(centre, sigma, centre - width, centre + width, n)


def far_band(
    near: Band, level: Sequence[float], rule: Rule, followed: bool = False, guess: float = CLING_GUESS
) -> Band:
    """The band with what the last 120 nights of the level say beside: looked at when a night leaves the near one.

    Where neighbours cling together, a few nights show only a part of the spread and of the centre's error: with
    v = (1 + r) / (1 - r) sigma grows by 1 / sqrt(1 - v / n), the error of the centre by sqrt(v), and the sigma of all
    120 nights counts where it is larger. Where the level has left the near band before (two modes, spikes), the edge
    moves out until only 1 night, and 1 in 50, lies beyond it. `followed`: the edge for a night after a suspect one, by
    what an AR(1) makes of a value at 4 sigma, 4 r + 2.5 sqrt(1 - r^2), and never below the floor. `guess`: the
    autocorrelation of the level before, or what is taken for it.
    """
    past = level[-LONG:]
    cling = autocorrelation(past, guess)
    kept, n = max(cling, 0.0), near.nights
    times = (1 + kept) / (1 - kept)
    sigma = near.sigma
    if kept > CLINGS:
        sigma = max(sigma, spread(_level(past), 0.0)) / sqrt(max(0.25, 1 - times / n))
    wide = sigma / near.sigma if near.sigma else 1.0
    wide *= sqrt((1 + MEDIAN_VARIANCE * times / n) / (1 + MEDIAN_VARIANCE / n))
    edges = wide * (near.high - near.low) / 2 if near.sigma else (near.high - near.low) / 2
    if followed:
        edges *= min(1.0, (rule.sigmas * kept + FOLLOW * sqrt(1 - kept * kept)) / rule.sigmas)
    edges = max(edges, rule.floor(near.centre))
    low, high = near.centre - edges, near.centre + edges
    allowed = 1 + len(past) // 50
    if len(past) > 2 * allowed:
        ordered = sorted(past)
        if ordered[-1 - allowed] > high:
            high = ordered[-1 - allowed] + sigma
        if ordered[allowed] < low:
            low = ordered[allowed] - sigma
    return Band(near.centre, sigma, low, high, near.nights, cling)


def autocorrelation(values: Sequence[float], guess: float = CLING_GUESS) -> float:
    """Lag-1 autocorrelation of what is left of the values beside a straight line, drawn towards `guess`.

    The line goes first, since a slow drift would make every series look as if it clung. Values far out are held at 3
    MAD-sigma. The estimate is too low by about (1 + 4 r) / n (Kendall 1954), which is added again. The guess weighs as
    much as 15 nights; below 20 nights it is all there is.
    """
    n = len(values)
    if n < LEAST_FOR_CLING:
        return guess
    rest = _level(values)
    limit = 3 * spread(rest, 0.0)
    if limit == 0:
        return 0.0
    rest = [min(1.0, max(-1.0, value / limit)) for value in rest]
    power = sum(v * v for v in rest)
    r = sum(rest[i] * rest[i + 1] for i in range(n - 1)) / power
    r = max(-1.0, min(0.98, r + (1 + 4 * r) / n))
    return (n * r + GUESS_NIGHTS * guess) / (n + GUESS_NIGHTS)


def _level(values: Sequence[float]) -> list[float]:
    """What is left of the values beside a straight line through the medians of their first and last third."""
    n, third = len(values), max(1, len(values) // 3)
    early, late = middle(sorted(values[:third])), middle(sorted(values[-third:]))
    slope = (late - early) / max(1, n - third)
    rest = [value - slope * i for i, value in enumerate(values)]
    centre = middle(sorted(rest))
    return [value - centre for value in rest]
