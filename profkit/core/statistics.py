"""Robust statistics of timings: the median, how well it is known, and what would make it misleading.

Standard library only and no import of the library's own `statistics`: this module is also imported into the
workload's process, where the timing pass runs, so it must be small and quick to load.

All values are seconds (or any one unit); sequences are in the order in which they were taken where a function
speaks of autocorrelation or drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp, floor, isfinite, lgamma, log, sqrt
from operator import mul
from typing import NamedTuple

CONFIDENCE = 0.95
MAD_TO_SIGMA = 1.4826  # 1 / quantile(0.75) of the normal distribution
MEDIAN_TO_MEAN = 1.2533  # sqrt(pi / 2): standard error of a median over that of a mean, normal distribution
# A drift counts from here: 1 in 80 quiet series shows one by chance, which costs it samples
DRIFT_SIGMAS = 2.5
DRIFT_REST_SIGMAS = 1.5  # and where there was one, what is left after the cut must be quieter than chance
DRIFT_RUN = 12  # a series shorter than this says nothing of drift: its parts would be of 2 values
MAX_LAGS = 100


class MedianInterval(NamedTuple):
    """An interval of the median; `effective` is the number of independent samples behind it."""

    low: float
    high: float
    effective: float


def median(values: Sequence[float]) -> float:
    """Return the median. Raises ValueError for an empty sequence."""
    if not values:
        raise ValueError("the median of nothing")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return exp(mean(ln x)) of the values above 0; None if there are none."""
    logs = [log(value) for value in values if value > 0]
    return exp(sum(logs) / len(logs)) if logs else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` (0 to 100) of the values lie, linear between neighbours (type 7).

    Raises ValueError for an empty sequence.
    """
    if not values:
        raise ValueError("a percentile of nothing")
    ordered = sorted(values)
    place = (len(ordered) - 1) * min(100.0, max(0.0, percent)) / 100
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def mad_sigma(values: Sequence[float]) -> float:
    """Estimate the standard deviation from the median absolute deviation, which one outlier cannot move."""
    centre = median(values)
    return MAD_TO_SIGMA * median([abs(value - centre) for value in values])


@lru_cache(maxsize=4096)
def median_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """Return k such that the order statistics x(k) and x(n+1-k) enclose the median at `confidence`; 0 if none do.

    The smallest k (from 1) with P(Bin(n, 1/2) <= k) >= (1 - confidence) / 2: distribution-free, from 6 values on
    at 95 %.
    """
    tail, total = (1 - confidence) / 2, 0.0
    for k in range(n + 1):
        # log space: 2**-n underflows from n = 1075
        term = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2)
        total += exp(term) if term > -700 else 0.0
        if total >= tail - 1e-12:
            return k
    return 0


def effective_size(values: Sequence[float]) -> float:
    """Return how many independent samples these are worth: n / (1 + 2 * sum of autocorrelations), at most n.

    Autocorrelations are added from lag 1 up to the first below 0.05. Short series show too little of theirs, so
    where lag 1 is significant an AR(1) process with the bias-corrected coefficient (n * r + 1) / (n - 3) is a
    second bound. Outliers are clipped at 3 sigma first, since they hide the correlation of the rest.
    """
    n = len(values)
    # Apart by the rounding of the clock alone, they have no correlation.
    if n < 8 or max(values) - min(values) < 1e-12 * abs(values[0]):
        return float(n)
    sizes = [float(n), _size_by_sum(values)]
    sigma = mad_sigma(values)
    if sigma > 0:
        centre = median(values)
        values = [min(centre + 3 * sigma, max(centre - 3 * sigma, value)) for value in values]
        sizes.append(_size_by_sum(values))
    centred = _centred(values)
    power = sum(v * v for v in centred)
    neighbours = _autocorrelation(centred, 1, power) if power > 0 else 0.0
    if neighbours > 2 / sqrt(n):
        unbiased = min(0.99, (n * neighbours + 1) / (n - 3))
        sizes.append(n * (1 - unbiased) / (1 + unbiased))
    return max(1.0, min(sizes))


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> MedianInterval | None:
    """Return the median's interval by order statistics, with the ranks of as many samples as are independent.

    None below 6 independent samples at 95 %: no interval of that confidence exists then.
    """
    effective = min(float(len(values)), effective_size(values)) if values else 0.0
    k = median_rank(int(effective), confidence)
    if k == 0:
        return None
    # The rank keeps its place in the distribution: rank k of n_eff is rank (k - 1/2) / n_eff * n + 1/2 of n.
    place = max(1, floor((k - 0.5) / int(effective) * len(values) + 0.5))
    ordered = sorted(values)
    return MedianInterval(ordered[place - 1], ordered[len(values) - place], effective)


def relative_half_width(values: Sequence[float], confidence: float = CONFIDENCE) -> float | None:
    """Return half the interval's width over the median: 0.01 means known to ±1 %; None if there is no interval."""
    bounds = median_interval(values, confidence)
    centre = median(values) if values else 0.0
    if bounds is None or centre <= 0:
        return None
    return (bounds.high - bounds.low) / 2 / centre


def relative_drift(values: Sequence[float], sigmas: float = DRIFT_SIGMAS) -> float:
    """Return the relative change from the beginning to the second half, or 0.0 if it does not exceed the noise.

    Negative: it got faster. The first eighth, quarter and half are each compared with the second half by their
    medians, since a warm-up is steepest at its start. The noise, with its autocorrelation, is that of the second
    half about a line through it, so that neither hides the other. The largest change that exceeds the noise is
    returned.
    """
    n = len(values)
    if n < DRIFT_RUN:
        return 0.0
    late = values[n - n // 2 :]
    settled = median(late)
    if settled <= 0:
        return 0.0
    noise = _without_trend(late)
    independent = effective_size(noise) / len(noise)
    sigma = MEDIAN_TO_MEAN * mad_sigma(noise)
    worst = 0.0
    for length in (max(3, n // 8), max(3, n // 4), n // 2):
        change = settled - median(values[:length])
        error = sigma * sqrt(1 / max(1.0, length * independent) + 1 / max(1.0, len(late) * independent))
        if abs(change) > sigmas * error and abs(change) > abs(worst):
            worst = change
    return worst / settled


def drift_bound(values: Sequence[float]) -> float | None:
    """Return the largest relative change between the two halves that these values may hide, one-sided at 95 %.

    None below twelve values. That no drift exceeds the noise of a few samples is no proof that there is none.
    """
    n = len(values)
    if n < DRIFT_RUN:
        return None
    early, late = values[: n // 2], values[n - n // 2 :]
    settled = median(late)
    if settled <= 0:
        return None
    noise = [*_without_trend(early), *_without_trend(late)]
    sigma = MEDIAN_TO_MEAN * (mad_sigma(noise[: n // 2]) + mad_sigma(noise[n // 2 :])) / 2
    error = sigma * sqrt(4 / max(2.0, effective_size(late) * 2))
    return (abs(settled - median(early)) + 1.645 * error) / settled


def settling_index(values: Sequence[float], tolerance: float = 0.0) -> int | None:
    """Return the index from which the series drifts by at most `tolerance` (relative); None if it still drifts.

    A series that drifts is cut at its first sixteenth, eighth, up to its quarter, until the rest is quiet even by
    a sharper test; then as much again is dropped, since an exponential warm-up that has just sunk into the noise
    still moves the median. At least half is kept.
    """
    n = len(values)
    if abs(relative_drift(values)) <= tolerance:
        return 0
    for sixteenths in range(1, 5):
        cut = max(1, n * sixteenths // 16)
        if abs(relative_drift(values[cut:], DRIFT_REST_SIGMAS)) <= tolerance:
            return 2 * cut
    return None


def theil_sen_slope(points: Sequence[tuple[float, float]]) -> tuple[float, float | None, float | None] | None:
    """Return the Theil-Sen slope of (x, y): the median of all pairwise slopes.

    And its 95 % interval by Kendall's statistic. Without an interval below 5 points; None unless there are two
    different x. Takes time in the square of the number of points. After Sen, JASA 63 (1968) 1379, normal
    approximation.
    """
    slopes = sorted(
        (yb - ya) / (xb - xa) for i, (xa, ya) in enumerate(points) for xb, yb in points[i + 1 :] if xb != xa
    )
    if not slopes:
        return None
    n, count = len(points), len(slopes)
    if n < 5:
        return median(slopes), None, None
    reach = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, floor((count - reach) / 2))
    return median(slopes), slopes[low], slopes[count - 1 - low]


# ---------------------------------------------------------------- inside


def _centred(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values) if values else 0.0
    return [value - mean for value in values]


def _autocorrelation(centred: Sequence[float], lag: int, power: float) -> float:
    products: Iterable[float] = map(mul, centred, centred[lag:])
    return sum(products) / power


def _without_trend(values: Sequence[float]) -> list[float]:
    """Return the values without their trend: a line through the medians of the two halves."""
    half = len(values) // 2
    rise = (median(values[-half:]) - median(values[:half])) / (len(values) - half)
    return [value - rise * index for index, value in enumerate(values)]


def _size_by_sum(values: Sequence[float]) -> float:
    n, centred = len(values), _centred(values)
    power = sum(v * v for v in centred)
    if power <= 0 or not isfinite(power):
        return float(n)
    total = 0.0
    for lag in range(1, min(n // 4, MAX_LAGS)):
        correlation = _autocorrelation(centred, lag, power)
        if correlation < 0.05:
            break
        total += correlation
    return n / (1 + 2 * total)


def median_inefficiency(count: int) -> float:
    """Return the variance of a median of `count` values over that of their mean.

    1 for two, 1.35 for three, towards pi / 2.
    """
    return 1.0 if count == 2 else 1 + (MEDIAN_TO_MEAN**2 - 1) * (1 - 1 / count) ** 1.25


def half_width_within(intervals: Sequence[MedianInterval | None], count: int) -> float:
    """Return half the width of the interval that the noise inside of the processes explains.

    0 where some process has no interval, as one that gave a single value.
    """
    known = [bounds for bounds in intervals if bounds is not None]
    if len(known) < count:
        return 0.0
    errors = [(bounds.high - bounds.low) / 2 / 1.96 for bounds in known]
    return 1.96 * sqrt(median_inefficiency(count) * sum(error * error for error in errors)) / count
