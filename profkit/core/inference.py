"""Tests, intervals of ratios, and corrections for many looks: pure functions on samples.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, exp, hypot, inf, isfinite, isinf, lgamma, log, log1p, sqrt
from typing import NamedTuple

from profkit.core.statistics import (
    MEDIAN_TO_MEAN,
    effective_size,
    half_width_within,
    mad_sigma,
    median,
    median_inefficiency,
    median_interval,
)
from profkit.core.types import ChangeWord, Course, Direction


class Interval(NamedTuple):
    """An interval of a ratio or a difference, with its middle."""

    low: float
    middle: float
    high: float


def ratio_interval(before: Interval, after: Interval) -> Interval:
    """Return the interval of `after` over `before`, whose middles are above 0.

    Its high end is infinite if `before` may be 0.
    """
    high = after.high / before.low if before.low > 0 else inf
    return Interval(after.low / before.high, after.middle / before.middle, high)


def decide(
    interval: Interval | None, floor: float, *, around: float = 1.0, by_middle: bool = False
) -> ChangeWord:
    """Decide whether an interval shows a change, where `floor` is the smallest change that counts.

    `around` 1: the interval is of a ratio, and the floor reaches from 1 / (1 + floor) to 1 + floor; `around` 0:
    it is of a difference, and the floor reaches from -floor to floor. "same": the whole interval lies within the
    floor. "different": the whole interval lies beyond it; with `by_middle` its middle does, and the interval
    leaves `around` out. "ambiguous": neither, or there is no interval.
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
    """Say whether a change is for the better or the worse, by the direction that is good for the metric."""
    if better == "none" or before == after:
        return "neither"
    return "worse" if (after > before) == (better == "lower") else "better"


def ratio_of_values(before: float, after: float) -> float | None:
    """Return after over before, or None if that is no number: `before` is not above 0, or `after` is negative."""
    if before <= 0 or after < 0:
        return None
    ratio = after / before
    return ratio if ratio < inf else None


MAX_EXACT = 80  # values: up to here all arrangements are counted; beyond, the normal approximation


def signed_rank_interval(values: Sequence[float], confidence: float) -> tuple[float, float, float] | None:
    """Return low, middle and high of differences by the signed-rank test, assuming that they are symmetric.

    All three come from the means of all pairs of values, each value with itself, too. The interval holds what the
    test does not reject; one value in four may lie anywhere. None if there are too few values for `confidence`:
    below 6 at 95 %. Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598; Wilcoxon, Biometrics Bulletin 1 (1945)
    80.
    """
    n = len(values)
    cut = _signed_rank(n, confidence) if n else 0
    if cut == 0:
        return None
    means = sorted((values[i] + values[k]) / 2 for i in range(n) for k in range(i, n))
    return means[cut - 1], median(means), means[len(means) - cut]


@lru_cache(maxsize=1024)
def _signed_rank(n: int, confidence: float) -> int:
    """Return the rank, from each end of the ordered pair means, that bounds the interval.

    0 if none reaches `confidence`.
    """
    tail = (1 - confidence) / 2
    if n > MAX_EXACT:
        reach = n * (n + 1) / 4 + student_quantile(tail, inf) * sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(0, int(reach))
    counts = [1]  # of the signs of ranks 1 to n, those with which sum of positive ranks
    for rank in range(1, n + 1):
        counts = [
            (counts[total] if total < len(counts) else 0) + (counts[total - rank] if total >= rank else 0)
            for total in range(len(counts) + rank)
        ]
    passed = 0
    for total, count in enumerate(counts):
        passed += count
        if passed / 2**n > tail:
            return total
    return 0


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values so that of those at or below q, at most a share of q is false on average.

    In the order given. Valid where the tests are independent or vary together, as the times of one run do.
    Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289. Raises ValueError for a value outside 0 to 1.
    """
    if not all(0 <= value <= 1 for value in p):
        raise ValueError("a p-value lies between 0 and 1")
    order = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(p), 1.0
    for steps, place in enumerate(order):
        least = min(least, p[place] * len(p) / (len(p) - steps))
        adjusted[place] = least
    return tuple(adjusted)


def coverage_of_selected(selected: int, looked_at: int, q: float = 0.05) -> float:
    """Return the confidence at which the intervals of selected results cover in a share of 1 - q on average.

    Intervals of what was selected for its size must be wider: 1 - q * selected / looked_at. Without a selection,
    the result is that of one. Benjamini and Yekutieli, J. Am. Stat. Assoc. 100 (2005) 71.
    """
    return 1 - q * max(1, selected) / max(1, looked_at)


# ---------------------------------------------------------------- how many times as long
#
# The unit of replication is the process, not the sample: a process keeps its memory layout and its place on the cores
# from its first sample to its last. All reckoning is in logarithms: a ratio and its inverse are as far from 1.

Groups = Sequence[Sequence[float]]  # the samples of each process, in the order in which they were taken

# Standard deviation (relative) of what one process takes from that of the next, where only one was run and so nothing
# tells. It rests on little (docs/measurements.md): layouts of code and memory are known to move a time by more
# (Mytkowicz and others, 2009). Several processes tell.
BETWEEN = 0.02
MIN_CORRELATED = 30  # samples of one process from which those that follow each other still tell something
POWER = 0.8  # the usual chance to see a change that is there (Cohen, 1988)


@dataclass(frozen=True)
class Ratio:
    """The ratio candidate over baseline of the medians; its errors are standard errors of its logarithm."""

    value: float
    within: float  # what the noise inside of the processes explains
    between: float  # what they differ from each other by
    freedom: float  # of `between`; infinite where that is assumed
    assumed: bool = False  # from experience, since one process shows none
    independent: float | None = None  # what samples are worth that follow each other too closely for ranks

    @property
    def _errors(self) -> list[tuple[float, float]]:
        """List the standard errors with their degrees of freedom; the wider interval of them counts."""
        if self.assumed:
            return [(hypot(self.within, self.between), inf)]
        return [(self.between, self.freedom), (self.within, inf)]

    @property
    def p(self) -> float:
        """Return the two-sided p-value of no change, by Student's t."""
        return max(_two_sided(abs(log(self.value)), *error) for error in self._errors)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return low and high of the ratio at `confidence`; they always enclose `value`."""
        upper, centre = (1 + confidence) / 2, log(self.value)
        half = max(student_quantile(upper, freedom) * error for error, freedom in self._errors)
        return _exp(centre - half), _exp(centre + half)

    def detectable(self, confidence: float = 0.95, power: float = POWER) -> float:
        """Return the smallest relative change that such samples show with probability `power`: 0.03 is 3 %.

        It is the half-width of the interval and the quantile of `power` beyond it (Cohen, "Statistical power
        analysis"). An estimate, like the noise that it is made of: with two or three processes, a rough one.
        """
        low, high = self.interval(confidence)
        half = (log(high) - log(low)) / 2
        quantile = student_quantile((1 + confidence) / 2, self.freedom)
        return _exp(half * (1 + student_quantile(power, self.freedom) / quantile)) - 1


def ratio_of(baseline: Groups, candidate: Groups, between: float = BETWEEN) -> Ratio | None:
    """Return the ratio of the medians of the processes' medians, or None if its error cannot be estimated.

    With two processes or more on a side, their medians show how much processes differ (Welch; Satterthwaite), and
    never less than the noise inside of them explains. If only one side has several, the other is assumed to
    differ as much. With one process on each side, `between` is assumed, and the noise inside must be known: it
    takes 6 independent samples or more, or 30 that follow each other. None also if a median is not above 0, or a
    coarse clock shows no noise at all.
    """
    first, second = _side_in_logarithms(baseline), _side_in_logarithms(candidate)
    if first is None or second is None:
        return None
    centre = median(second.medians) - median(first.medians)
    within = None
    if first.within is not None and second.within is not None:
        within = hypot(first.within, second.within)
    value, a, b = _exp(centre), first.medians, second.medians
    if len(a) == 1 and len(b) == 1:
        return _ratio_of_single_processes(value, first, second, between)
    error, freedom = _welch(a, b)
    if error == 0 and within is None:
        return None
    return Ratio(value, within or 0.0, error, freedom)


@dataclass(frozen=True)
class _Side:
    medians: list[float]
    within: float | None  # standard error of their median by the noise inside; None where not all tell it
    first: list[float]  # logarithms of the first process's samples


def _ratio_of_single_processes(value: float, first: _Side, second: _Side, between: float) -> Ratio | None:
    """Return the ratio for one process on each side, with an assumed error between processes."""
    errors = [
        _error_of_dependent_samples(side.first) if side.within is None else (side.within, inf)
        for side in (first, second)
    ]
    if errors[0] is None or errors[1] is None:
        return None
    within, worth = hypot(errors[0][0], errors[1][0]), min(errors[0][1], errors[1][1])
    independent = worth if worth < inf else None
    return Ratio(value, within, between * sqrt(2), inf, assumed=True, independent=independent)


def _error_of_dependent_samples(values: Sequence[float]) -> tuple[float, float] | None:
    """Estimate the error of a median whose samples are too dependent for ranks; return it and their worth.

    The worth is the number of independent samples. Half the width of an interval is Student's t with one degree
    of freedom less than that, and never more than half the range of the samples: a process that was observed long
    enough to wander about its median has passed it. By simulation (AR(1), 125 samples) this misses in up to 5 %
    with a memory of 0.95 to 0.97, and in a quarter of series that wander as slowly as they are long (0.99). None
    below 30 samples, and without noise.
    """
    if len(values) < MIN_CORRELATED:
        return None
    worth = effective_size(values)
    half = (max(values) - min(values)) / 2
    by_t = student_quantile(0.975, max(1.0, worth - 1)) * MEDIAN_TO_MEAN * mad_sigma(values) / sqrt(worth)
    if half <= 0:
        return None
    return (min(by_t, half) if by_t > 0 else half) / 1.96, worth


def _side_in_logarithms(groups: Groups) -> _Side | None:
    logarithms = [[log(value) for value in group] for group in groups if group and min(group) > 0]
    if not logarithms or not all(isfinite(value) for group in logarithms for value in group):
        return None
    intervals = [median_interval(group) for group in logarithms]
    within = half_width_within(intervals, len(intervals)) / 1.96 if None not in intervals else None
    return _Side([median(group) for group in logarithms], within, logarithms[0])


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the difference of two medians, and its degrees of freedom (Welch.

    Satterthwaite).
    """
    spreads = [_variance(values) for values in (a, b)]
    if len(a) == 1 or len(b) == 1:  # the one that is alone differs as the others do
        known, count = (spreads[1], len(b)) if len(a) == 1 else (spreads[0], len(a))
        return sqrt(known * (1 + median_inefficiency(count) / count)), float(count - 1)
    parts = [
        median_inefficiency(len(values)) * spread / len(values)
        for values, spread in zip((a, b), spreads, strict=True)
    ]
    if sum(parts) == 0:
        return 0.0, float(min(len(a), len(b)) - 1)
    weights = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    return sqrt(sum(parts)), sum(parts) ** 2 / weights


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)


def _exp(x: float) -> float:
    """Return exp(x) without overflow: samples 300 orders of magnitude apart say nothing in any case."""
    return exp(min(700.0, max(-700.0, x)))


def _two_sided(distance: float, error: float, freedom: float) -> float:
    if error <= 0:
        return 1.0 if distance == 0 else 0.0
    return student_two_sided(distance / error, freedom)


class Centre(NamedTuple):
    """The median over several processes, with its 95 % interval."""

    median: float
    low: float | None
    high: float | None
    # (largest - smallest process median) / median: shows a memory layout that was lucky
    between_spread: float | None


@lru_cache(maxsize=16)  # a run's samples are asked about by every summary, and a comparison asks once more
def combine_processes(processes: tuple[tuple[float, ...], ...]) -> Centre | None:
    """Return the median over processes, each counted once, with an interval that reflects how much they differ.

    The centre is the median of the processes' medians. Its interval is the wider of what the noise within the
    processes explains and what their medians show: from six processes on by order statistics, which a disturbed
    process does not widen; below that by Student's t with P - 1 degrees of freedom, which for two or three is
    wide, and honest. None if there are no values at all.
    """
    if not (samples := [values for values in processes if values]):
        return None
    centres = [median(values) for values in samples]
    intervals = [median_interval(values) for values in samples]
    centre, count = median(centres), len(samples)
    if count == 1:
        alone = intervals[0]
        return Centre(centre, alone and alone.low, alone and alone.high, None)
    spread = (max(centres) - min(centres)) / centre if centre > 0 else None
    inside = half_width_within(intervals, count)
    if (ranked := median_interval(centres)) is not None:
        low, high = min(ranked.low, centre - inside), max(ranked.high, centre + inside)
        return Centre(centre, max(0.0, low), high, spread)
    between = sqrt(median_inefficiency(count) * _variance(centres) / count)
    if between == 0 and None in intervals:  # equal readings of a coarse clock are no proof of precision
        return Centre(centre, None, None, spread)
    half = max(student_quantile(0.975, count - 1) * between, inside)
    return Centre(centre, max(0.0, centre - half), centre + half, spread)


# ---------------------------------------------------------------- tails of the normal distribution and of Student's t

_TINY = 1e-300  # stands for 0 in Lentz' continued fraction
_MAX_TERMS = 10_000


def student_two_sided(t: float, freedom: float) -> float:
    """Return P(|T| >= |t|) for Student's t.

    It is the incomplete beta I_x(freedom / 2, 1 / 2) at x = freedom / (freedom + t^2): Abramowitz and Stegun,
    26.7.1 with 26.5.27. The relative error stays below 1e-9 from 0.1 to 1e5 degrees of freedom; infinite ones are
    the normal distribution.
    """
    if isinf(freedom):
        return erfc(abs(t) / sqrt(2))
    # t^2 / freedom by way of t / sqrt(freedom), which does not overflow where t^2 would
    ratio = (abs(t) / sqrt(freedom)) ** 2 if abs(t) < 1e150 else inf
    if isinf(ratio):
        return 0.0
    return _beta(1 / (1 + ratio), ratio / (1 + ratio), -log1p(ratio), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def student_quantile(p: float, freedom: float) -> float:
    """Return t with P(T <= t) = p: 2.228 for p = 0.975 and 10 degrees of freedom; -inf for 0 and inf for 1.

    Raises ValueError for a p outside 0 to 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies between 0 and 1, not {p}")
    if p in (0.0, 1.0):
        return inf if p else -inf
    if p > 0.5:
        return -student_quantile(1 - p, freedom)  # 1 - p is exact from 0.5 on
    low, high = 0.0, 1.0  # bracketed, then halved to the last bit
    while student_two_sided(high, freedom) / 2 > p:
        low, high = high, high * 2
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if student_two_sided(middle, freedom) / 2 > p else (low, middle)
    return -high if p < 0.5 else 0.0


def _beta(x: float, y: float, log_x: float, a: float, b: float) -> float:
    """Return I_x(a, b), given y = 1 - x and log x as well, since x next to 1 has lost its digits."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    scale = exp(a * log_x + b * log(y) - lgamma(a) - lgamma(b) + lgamma(a + b))
    if x < (a + 1) / (a + b + 2):
        return scale / a / _fraction(x, a, b)
    return 1 - scale / b / _fraction(y, b, a)


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction of the incomplete beta (Abramowitz and Stegun, 26.5.8) by Lentz's method."""
    result, c, d = 1.0, 1.0, 0.0
    for n in range(1, _MAX_TERMS):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / ((1 + term * d) or _TINY), (1 + term / c) or _TINY
        result *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return result
