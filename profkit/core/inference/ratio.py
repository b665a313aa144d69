"""How many times as long: the ratio of two medians, with what is known of it.

The unit of replication is the process, not the sample. A process keeps its memory layout, its place on the cores and
its share of a shared machine from its first sample to its last, so a thousand samples of one are one answer to the
question how long the next one will take. All reckoning is in logarithms: a ratio and its inverse are as far from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log, sqrt

from profkit.core.inference.ranks import mann_whitney, shift_interval
from profkit.core.inference.tails import (
    normal_quantile,
    normal_two_sided,
    student_quantile,
    student_two_sided,
)
from profkit.core.statistics import (
    MEDIAN_TO_MEAN,
    effective_size,
    mad_sigma,
    median,
    median_inefficiency,
    median_interval,
)

Groups = Sequence[Sequence[float]]  # the samples of each process, in the order in which they were taken

# Standard deviation (relative) of what one process takes from that of the next, where only one was run and so nothing
# tells. It rests on little: of 6 A/A pairs of single processes of one Python workload, on one shared virtual machine
# with four tasks a core (docs/measurements.md), it called none DIFFERENT. Nothing says that it holds for other programs
# and machines: layouts of code and memory are known to move a time by more (Mytkowicz and others, "Producing wrong data
# without doing anything obviously wrong!", 2009). Who needs more than that runs several processes.
BETWEEN = 0.02
MANY = 30  # samples of one process from which those that follow each other still tell something: see `_following`
RANKED = 6  # processes on each side from which ranks decide: fewer cannot reach 99 %, and Student's t is used
POWER = 0.8  # the usual chance to see a change that is there (Cohen, 1988)


@dataclass(frozen=True)
class Ratio:
    """The ratio candidate over baseline of the medians, and its error in logarithms.

    `within` is what the noise inside of the processes explains, `between` what they differ from each other by; with
    `freedom` degrees of freedom, infinite where `assumed`: taken from experience, since one process shows none.
    `independent` is what the samples of a process are worth where they follow each other so closely that no ranks give
    an interval; None where they do not.
    """

    value: float
    within: float
    between: float
    freedom: float
    baseline: tuple[float, ...]  # logarithms of the processes' medians
    candidate: tuple[float, ...]
    assumed: bool = False
    independent: float | None = None

    @property
    def ranked(self) -> bool:
        """Whether there are processes enough to decide by ranks."""
        return min(len(self.baseline), len(self.candidate)) >= RANKED

    @property
    def p(self) -> float:
        """Two-sided p of no change: by Mann-Whitney where there are processes enough, else by Student's t."""
        if self.ranked:
            return mann_whitney(self.baseline, self.candidate)
        distance = abs(log(self.value))
        if self.assumed:
            return _two_sided(distance, sqrt(self.within**2 + self.between**2), inf)
        return max(
            _two_sided(distance, self.between, self.freedom),
            _two_sided(distance, self.within, inf),
        )

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Low and high of the ratio at `confidence`; always around `value`."""
        if self.ranked and (bounds := shift_interval(self.baseline, self.candidate, confidence)) is not None:
            return min(_exp(bounds[0]), self.value), max(_exp(bounds[1]), self.value)
        half = self._half(confidence)
        centre = log(self.value)
        return _exp(centre - half), _exp(centre + half)

    def detectable(self, confidence: float = 0.95, power: float = POWER) -> float:
        """The smallest relative change that such samples show with probability `power`: 0.03 is 3 %.

        The half-width of the interval and the quantile of `power` beyond it (Cohen, "Statistical power analysis"). An
        estimate, like the noise that it is made of: with two or three processes a rough one.
        """
        low, high = self.interval(confidence)
        half = (log(high) - log(low)) / 2
        quantile = self._quantile((1 + confidence) / 2)
        return _exp(half * (1 + self._quantile(power) / quantile)) - 1

    def _half(self, confidence: float) -> float:
        upper = (1 + confidence) / 2
        if self.assumed:
            return normal_quantile(upper) * sqrt(self.within**2 + self.between**2)
        return max(self._quantile(upper) * self.between, normal_quantile(upper) * self.within)

    def _quantile(self, p: float) -> float:
        return normal_quantile(p) if self.freedom == inf else student_quantile(p, self.freedom)


def ratio_of(baseline: Groups, candidate: Groups, between: float = BETWEEN) -> Ratio | None:
    """The ratio of the medians of the processes' medians; None where nothing can be said of its error.

    With two processes or more on a side their medians show how much processes differ: the error is Welch's, with
    Satterthwaite's degrees of freedom, and never smaller than what the noise inside of them explains. Where only one
    side has them, the other is taken to differ as much. With one on each side `between` is assumed, and the noise
    inside must be known: 6 independent samples or more, or 30 that follow each other. None also where a median is not
    above 0, or where equal readings of a coarse clock show no noise at all.
    """
    first, second = _side_in_logarithms(baseline), _side_in_logarithms(candidate)
    if first is None or second is None:
        return None
    centre = median(second.medians) - median(first.medians)
    within = None
    if first.within is not None and second.within is not None:
        within = sqrt(first.within**2 + second.within**2)
    value, a, b = _exp(centre), tuple(first.medians), tuple(second.medians)
    if len(a) == 1 and len(b) == 1:
        return _ratio_of_single_processes(value, first, second, between)
    error, freedom = _welch(a, b)
    if error == 0 and within is None:
        return None
    return Ratio(value, within or 0.0, error, freedom, a, b)


@dataclass(frozen=True)
class _Side:
    medians: list[float]
    within: float | None  # standard error of their median by the noise inside; None where not all tell it
    first: list[float]  # logarithms of the first process's samples

    def following(self) -> tuple[float, float] | None:
        """The standard error of a process that is alone, and how many samples its own are worth."""
        return _error_of_dependent_samples(self.first) if self.within is None else (self.within, inf)


def _ratio_of_single_processes(value: float, first: _Side, second: _Side, between: float) -> Ratio | None:
    """Of one process on each side."""
    a, b = first.following(), second.following()
    if a is None or b is None:
        return None
    within, worth = sqrt(a[0] ** 2 + b[0] ** 2), min(a[1], b[1])
    independent = worth if worth < inf else None
    medians = tuple(first.medians), tuple(second.medians)
    return Ratio(value, within, between * sqrt(2), inf, *medians, assumed=True, independent=independent)


def _error_of_dependent_samples(values: Sequence[float]) -> tuple[float, float] | None:
    """The error of the median of many samples of which too few are independent for ranks, and how many those are.

    Half the width of an interval is Student's t by as many degrees of freedom as samples are independent, less one,
    and nowhere more than from the smallest to the largest sample: a process that was seen long enough to wander about
    its median has passed it. By simulation (AR(1), 125 samples) that misses in up to 5 % with a memory of 0.95 to 0.97.
    A series that wanders as slowly as it is long (0.99) it misses in a quarter; with the spread that is assumed between
    processes 6 % of such equal pairs then lie outside, and below 1 % beyond a floor of 2 % (`tests/core/inference/`).
    None below 30 samples, and where they show no noise.
    """
    if len(values) < MANY:
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
    known = [(bounds.high - bounds.low) / 2 / 1.96 for bounds in intervals if bounds is not None]
    within = None
    if len(known) == len(logarithms):
        within = sqrt(median_inefficiency(len(logarithms)) * sum(error * error for error in known)) / len(
            logarithms
        )
    return _Side([median(group) for group in logarithms], within, logarithms[0])


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The standard error of the difference of two medians, and its degrees of freedom (Welch; Satterthwaite)."""
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
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else 0.0


def _exp(x: float) -> float:
    """exp, and no overflow: of samples that lie 300 orders of magnitude apart nothing is known in any case."""
    return exp(min(700.0, max(-700.0, x)))


def _two_sided(distance: float, error: float, freedom: float) -> float:
    if error <= 0:
        return 1.0 if distance == 0 else 0.0
    t = distance / error
    return normal_two_sided(t) if freedom == inf else student_two_sided(t, freedom)
