"""How much faster: the word of a speed-up, the mean of several, and what one is surely faster than.

A word is decided once, where a test is timed: the judge knows whether the machine was busy. What is AMBIGUOUS there
stays so in every mean: it may be equal, whatever its interval says, and all of them together for one and the same
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from typing import NamedTuple

from profkit.core.inference import Interval, decide
from profkit.core.types import ChangeWord, Speedup, SpeedWord, TestResult


@dataclass(frozen=True)
class MeanSpeedup:
    """The geometric mean of the speed-ups of `n` tests, exp(mean(ln s)).

    `low` and `high` are its 95 % interval by the error of the measurements alone: the tests are given and no sample of
    others. They are None where some test has no interval. `word`: see `word_of_parts`.
    """

    value: float
    low: float | None
    high: float | None
    word: SpeedWord
    n: int


# ---------------------------------------------------------------- the word


def speed_word(value: float, low: float | None, high: float | None, floor: float) -> SpeedWord:
    """FASTER and SLOWER are what is DIFFERENT, by the side of its middle; see `decide`."""
    interval = None if low is None or high is None else Interval(low, value, high)
    words: dict[ChangeWord, SpeedWord] = {
        "different": "FASTER" if value > 1 else "SLOWER",
        "same": "SAME",
        "ambiguous": "AMBIGUOUS",
    }
    return words[decide(interval, floor, by_middle=True)]


def doubted(speedup: Speedup) -> Speedup:
    """The speed-up of which something is known that its pairs do not show: AMBIGUOUS, and as low or as high as 1."""
    return replace(speedup, low=min(1.0, speedup.low), high=max(1.0, speedup.high), word="AMBIGUOUS")


def least_speedup(speedup: Speedup | MeanSpeedup | None) -> float:
    """What it is surely faster than: at most 1 unless it is FASTER; 0 of what has no interval, and of None."""
    if speedup is None or speedup.low is None or (isinstance(speedup, Speedup) and speedup.pairs < 2):
        return 0.0
    return speedup.low if speedup.word == "FASTER" else min(1.0, speedup.low)


def slowness(result: TestResult) -> tuple[bool, float]:
    """By which tests are ordered from the slowest on: those that are surely SLOWER come first."""
    speedup = result.speedup
    return (True, inf) if speedup is None else (speedup.word != "SLOWER", speedup.median)


# ---------------------------------------------------------------- several


class LogInterval(NamedTuple):
    """How far the ends of an interval lie from the median, in logarithms; 0 or more."""

    below: float
    above: float


def log_interval(speedup: Speedup) -> LogInterval | None:
    """The interval of the logarithm around that of the median, 1 within it where it is AMBIGUOUS; None without one.

    One pair of times has none.
    """
    if speedup.pairs < 2 or min(speedup.low, speedup.median, speedup.high) <= 0:
        return None
    known = doubted(speedup) if speedup.word == "AMBIGUOUS" else speedup
    if known.high / known.median <= 0:  # too small for a number: somebody wrote it by hand
        return None
    return LogInterval(max(0.0, log(known.median / known.low)), max(0.0, log(known.high / known.median)))


def summed_interval(parts: Sequence[tuple[float, Speedup]]) -> LogInterval | None:
    """Of the sum of logarithms of speed-ups, each with a weight, negative of what is divided by.

    None where one of them has no interval.

    Errors of measurement are independent, and add up by their squares. What is AMBIGUOUS is so because of the machine,
    which is the same for all of them: that adds up as it is.
    """
    squares, sums = [0.0, 0.0], [0.0, 0.0]
    for weight, speedup in parts:
        interval = log_interval(speedup)
        if interval is None:
            return None
        for side, width in enumerate(interval if weight > 0 else reversed(interval)):
            if speedup.word == "AMBIGUOUS":
                sums[side] += abs(weight) * width
            else:
                squares[side] += (weight * width) ** 2
    return LogInterval(sums[0] + sqrt(squares[0]), sums[1] + sqrt(squares[1]))


def word_of_parts(
    value: float, low: float | None, high: float | None, floor: float, parts: Iterable[Speedup]
) -> SpeedWord:
    """That of the whole's own interval; but where every part is AMBIGUOUS, so is the whole."""
    if all(part.word == "AMBIGUOUS" for part in parts):
        return "AMBIGUOUS"
    return speed_word(value, low, high, floor)


def mean_speedup(results: Iterable[TestResult], floor: float, *, unchanged: int = 0) -> MeanSpeedup | None:
    """The geometric mean of the results that have a speed-up; None without any. See `mean_of_speedups`."""
    speedups = (result.speedup for result in results)
    return mean_of_speedups((one for one in speedups if one is not None), floor, unchanged=unchanged)


def mean_of_speedups(speedups: Iterable[Speedup], floor: float, *, unchanged: int = 0) -> MeanSpeedup | None:
    """The geometric mean of them, with its interval and word; None without any.

    That of one test has the test's own interval, and lopsided ones stay so. `unchanged` tests more have a speed-up of
    exactly 1: what failed, and falls back to PyTorch.
    """
    known = [speedup for speedup in speedups if speedup.median > 0]
    if not known:
        return None
    n = len(known) + unchanged
    centre = sum(log(speedup.median) for speedup in known) / n
    interval = summed_interval([(1 / n, speedup) for speedup in known])
    value = exp(centre)
    low, high = (None, None) if interval is None else (exp(centre - interval[0]), exp(centre + interval[1]))
    return MeanSpeedup(value, low, high, word_of_parts(value, low, high, floor, known), n)


def combined_score(correctness: float | None, mean: MeanSpeedup | None) -> float | None:
    """Correctness score x geometric mean, the guides' one number; None where one has nothing behind it."""
    return None if correctness is None or mean is None else correctness * mean.value
