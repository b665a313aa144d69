"""Control limits of a series of nights: its median, and how far a night may lie from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from profkit.core.statistics import MAD_TO_SIGMA, mad_sigma, median
from profkit.regression.detection.rules import WINDOW, NightRule

LONG_WINDOW = 120  # nights that tell autocorrelation and how often a series leaves its limits: four months
SIGMAS = 4.0  # half-width of the limits in MAD-sigma
FOLLOWING_SIGMAS = 2.5  # sigma beyond which a night that follows a candidate says the same
CORRELATED = 0.2  # autocorrelation from which the spread of 24 nights understates the spread of all
LEAST_FOR_CORRELATION = 20  # nights below which autocorrelation is not estimated: its standard error is 0.22
CORRELATION_GUESS = 0.3  # what is taken for it before, and later still with the weight of 15 nights
GUESS_WEIGHT = 15
MEDIAN_VARIANCE = 1.571  # pi / 2: variance of a median over that of a mean, normal distribution
LITTLE_LOST = 0.05  # of a night's time, to others: from there on it counts half, and less the more it is
LEAST_WEIGHT = 0.1  # of a night that lost most of it: where all nights do, there is nothing else to go by
QUIET = 0.5  # of the largest weight: the nights that tell autocorrelation


@dataclass(frozen=True)
class ControlLimits:
    """`centre` and `sigma` of the nights before, and the edges beyond which a night is a candidate."""

    centre: float
    sigma: float
    low: float
    high: float
    nights: float  # as many nights alike as all of them weigh
    correlation: float = 0.0  # autocorrelation from one night to the next, where it was looked at


def weight_of(lost: float) -> float:
    """What a night counts that lost this share of its time to others: 1 without, a half at 5 %, a tenth at least."""
    return max(LEAST_WEIGHT, 1 / (1 + (lost / LITTLE_LOST) ** 2))


def nights_of(weights: Sequence[float]) -> float:
    """As many nights alike as these weigh (Kish 1965): (sum w)^2 / sum w^2."""
    return sum(weights) ** 2 / sum(weight * weight for weight in weights) if weights else 0.0


def _all_alike(level: Sequence[float], weights: Sequence[float] | None) -> Sequence[float]:
    return weights if weights is not None else [1.0] * len(level)


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value at which half of the weight lies on either side; between two where it is met exactly."""
    half = sum(weights) / 2
    below = 0.0
    ordered = sorted(zip(values, weights, strict=True))
    for place, (value, weight) in enumerate(ordered):
        below += weight
        if below > half * (1 + 1e-9):
            return value
        if below >= half * (1 - 1e-9):
            return (value + ordered[min(place + 1, len(ordered) - 1)][0]) / 2
    return ordered[-1][0]


def recent_limits(
    level: Sequence[float],
    inherited: float | None,
    rule: NightRule,
    weights: Sequence[float] | None = None,
) -> ControlLimits:
    """The limits by the last nights of a level alone: median +- max(4 MAD-sigma, floor).

    `inherited`: the relative sigma of the level before. A level of fewer than `WINDOW` nights takes its sigma from
    both, by their number of nights. The edge is wider by sqrt(1 + pi / 2 / n), as the centre is not known better, and
    where nothing is inherited once more by sqrt(1 + 12 (1 / n - 1 / WINDOW)): the MAD of 7 values is off by a third.
    By the `weights` of the nights (None: all alike) medians are weighted, and n is the number of nights they weigh.
    """
    values, parts = level[-WINDOW:], _all_alike(level, weights)[-WINDOW:]
    n = nights_of(parts)
    centre = weighted_median(values, parts)
    sigma = MAD_TO_SIGMA * weighted_median([abs(value - centre) for value in values], parts)
    unsure = 1 + MEDIAN_VARIANCE / n
    if n < WINDOW:
        if inherited is None:
            unsure *= 1 + 12 * (1 / n - 1 / WINDOW)
        else:
            before = inherited * abs(centre)
            sigma = sqrt(((WINDOW - n) * before**2 + n * sigma**2) / WINDOW)
    width = max(SIGMAS * sigma * sqrt(unsure), rule.floor(centre))
    return ControlLimits(centre, sigma, centre - width, centre + width, n)


def widened_limits(
    recent: ControlLimits,
    level: Sequence[float],
    rule: NightRule,
    followed: bool = False,
    guess: float = CORRELATION_GUESS,
    weights: Sequence[float] | None = None,
) -> ControlLimits:
    """The limits widened by what the last 120 nights of the level show: asked for when a night leaves the recent ones.

    Where neighbours are autocorrelated, a few nights show only a part of the spread and of the centre's error: with
    v = (1 + r) / (1 - r) sigma grows by 1 / sqrt(1 - v / n), the error of the centre by sqrt(v), and the sigma of all
    120 nights counts where it is larger. Where the level left the recent limits before (two modes, spikes), the edge
    moves out until only 1 night, and 1 in 50, lies beyond it. `followed`: the edge for a night after a candidate, by
    what an AR(1) makes of a value at 4 sigma, 4 r + 2.5 sqrt(1 - r^2), and never below the floor. `guess`: the
    autocorrelation of the level before, or what is taken for it. Of `weights` as in `recent_limits`: nights that weigh
    less than half of the heaviest tell no autocorrelation, and count for what they weigh beyond an edge.
    """
    last = _all_alike(level, weights)[-LONG_WINDOW:]
    parts = [weight / max(last) for weight in last]
    past = list(zip(level[-LONG_WINDOW:], parts, strict=True))
    quiet = [value for value, part in past if part >= QUIET]
    correlation = autocorrelation(quiet, guess)
    r, n = max(correlation, 0.0), recent.nights
    times = (1 + r) / (1 - r)
    sigma = recent.sigma
    if r > CORRELATED:
        sigma = max(sigma, mad_sigma(_residuals_of_line(quiet))) / sqrt(max(0.25, 1 - times / n))
    wide = sigma / recent.sigma if recent.sigma else 1.0
    wide *= sqrt((1 + MEDIAN_VARIANCE * times / n) / (1 + MEDIAN_VARIANCE / n))
    edges = wide * (recent.high - recent.low) / 2 if recent.sigma else (recent.high - recent.low) / 2
    if followed:
        edges *= min(1.0, (SIGMAS * r + FOLLOWING_SIGMAS * sqrt(1 - r * r)) / SIGMAS)
    edges = max(edges, rule.floor(recent.centre))
    low, high = recent.centre - edges, recent.centre + edges
    nights = sum(parts)
    allowed = 1 + int(nights) // 50
    if nights > 2 * allowed:
        ordered = sorted(past)
        lowest, highest = _value_after(ordered, allowed), _value_after(reversed(ordered), allowed)
        if highest > high:
            high = highest + sigma
        if lowest < low:
            low = lowest - sigma
    return ControlLimits(recent.centre, sigma, low, high, recent.nights, correlation)


def _value_after(ordered: Iterable[tuple[float, float]], allowed: float) -> float:
    """The first value with which these nights weigh more than `allowed`."""
    seen = 0.0
    for value, weight in ordered:
        seen += weight
        if seen > allowed + 1e-9:
            return value
    raise ValueError("all of them weigh less")


def autocorrelation(values: Sequence[float], guess: float = CORRELATION_GUESS) -> float:
    """Lag-1 autocorrelation of what is left of the values beside a straight line, drawn towards `guess`.

    The line goes first, since a slow drift would make every series look autocorrelated. Values are clipped at 3
    MAD-sigma. The estimate is too low by about (1 + 4 r) / n (Kendall 1954), which is added again. The guess weighs as
    much as 15 nights; below 20 nights it is all there is.
    """
    n = len(values)
    if n < LEAST_FOR_CORRELATION:
        return guess
    rest = _residuals_of_line(values)
    limit = 3 * mad_sigma(rest)
    if limit == 0:
        return 0.0
    rest = [min(1.0, max(-1.0, value / limit)) for value in rest]
    power = sum(v * v for v in rest)
    r = sum(rest[i] * rest[i + 1] for i in range(n - 1)) / power
    r = max(-1.0, min(0.98, r + (1 + 4 * r) / n))
    return (n * r + GUESS_WEIGHT * guess) / (n + GUESS_WEIGHT)


def _residuals_of_line(values: Sequence[float]) -> list[float]:
    """What is left of the values beside a straight line through the medians of their first and last third."""
    n, third = len(values), max(1, len(values) // 3)
    slope = (median(values[-third:]) - median(values[:third])) / max(1, n - third)
    rest = [value - slope * i for i, value in enumerate(values)]
    centre = median(rest)
    return [value - centre for value in rest]
