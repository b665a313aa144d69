"""Two versions run in turn: different, the same, or not decided yet. The error holds however often it is looked at.

A round is one run of each version, each in a fresh process. Everything that compares two versions decides by this one
rule: `compare --base`, `bisect` and the nightly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, e, exp, isfinite, log, sqrt
from typing import Literal, Protocol, cast

from profkit.core.inference import Interval, course_of, decide, student_quantile
from profkit.core.statistics import median
from profkit.core.types import RUN, Change, ChangeWord, Course, Direction, Sample, Scope

# `more`: not decided, and rounds are left; `ambiguous`: not decided, and the rounds are spent.
ConfirmWord = Literal["different", "same", "ambiguous", "more"]


class HasFloor(Protocol):
    """A metric, and the smallest change of it that counts."""

    @property
    def metric(self) -> str:
        """Its name."""

    def floor(self, centre: float) -> float:
        """The smallest change that counts where the value is `centre`, in the unit of `centre`."""


@dataclass(frozen=True)
class MetricFloor:
    """A metric whose floor is the larger of a `relative` one and an `absolute` one in the metric's unit."""

    metric: str
    relative: float
    absolute: float = 0.0

    def floor(self, centre: float) -> float:
        """The smallest change that counts where the value is `centre`."""
        return max(self.relative * abs(centre), self.absolute)


@dataclass(frozen=True)
class Confirmation:
    """The word after `rounds` rounds; `change` has the ratio of candidate over last good with its interval.

    `wanted`: how many rounds there should be before it is asked again (0 where it is decided).
    """

    word: ConfirmWord
    rounds: int
    wanted: int = 0
    change: Change | None = None


FIRST_ROUNDS = 4  # rounds below which a spread is a guess
MOST_ROUNDS = 20
# Of calling the same different: two-sided, over all looks at the rounds of one metric in one night.
ALPHA = 0.02
# Of calling a change that is as large as the floor the same; the nights to come would still see it.
ALPHA_SAME = 0.1
_MOST_LOG = 100.0  # of a ratio: e to that power is still a number that can be written
TRIM = 8  # of so many rounds the largest and the smallest are left out of the mean


def decided_words(stored: Mapping[str, str]) -> dict[str, ConfirmWord]:
    """The words of past re-runs that decided something, by the id of the run."""
    return {
        entry: cast("ConfirmWord", word)
        for entry, word in stored.items()
        if word in ("different", "same", "ambiguous")
    }


def rounds_of_looks(most: int = MOST_ROUNDS) -> tuple[int, ...]:
    """The numbers of rounds after which it is asked: 4, 6, 9, 14, 20, each half as many again."""
    counts = [min(FIRST_ROUNDS, most)]
    while counts[-1] < most:
        counts.append(min(most, ceil(counts[-1] * 1.5)))
    return tuple(counts)


def confirm(
    rounds: Sequence[tuple[float, float]],
    rule: HasFloor,
    better: Direction = "lower",
    unit: str = "",
    most: int = MOST_ROUNDS,
    spent: bool = False,
    scope: Scope = RUN,
    looked_at: int = 1,
) -> Confirmation:
    """The word on `rounds`, each (candidate, baseline): one number per fresh process, in `unit`.

    `most` rounds can be had at all; `looked_at` times are decided beside each other, and share the error.

    The paired log ratios (differences, where a value is not positive) have a trimmed mean with Student's interval
    (Tukey and McLaughlin 1963). Beyond the floor at an error of 0.02 it is `different`; within it at an error of 0.1 it
    is `same`, and the change has the interval of that error. Between the two it is `more`, until `most` rounds are
    there, or `spent` says that the time is over: `ambiguous`.
    Each look takes its part of an error by alpha ln(1 + (e - 1) t) with t the share of the rounds (Lan and DeMets 1983,
    their Pocock-like function), so that looking again and again does not find what is not there.
    Raises ValueError for a value that is not finite.
    """
    if any(not isfinite(v) for pair in rounds for v in pair):
        raise ValueError("a round has a value that is no number")
    n = len(rounds)
    steps = rounds_of_looks(most)
    if n < min(steps):
        if not spent:
            return Confirmation("more", n, steps[0])
        return Confirmation("ambiguous", n)
    part = _alpha_share(n, most) / looked_at
    wide, narrow = _interval(rounds, ALPHA * part), _interval(rounds, ALPHA_SAME * part)
    base, low, high = wide.base, wide.low, wide.high
    floor = rule.floor(base)
    word = decide(Interval(low, wide.centre, high), floor, around=0)
    if (
        word != "different"
        and decide(Interval(narrow.low, narrow.centre, narrow.high), floor, around=0) == "same"
    ):
        word, low, high = "same", narrow.low, narrow.high  # what it rests on
    change = _build_change(rounds, rule, better, unit, word, (wide.centre, low, high), base, floor, scope)
    change = replace(change, detectable=wide.least_seen(floor) / abs(base) if base else None)
    if word != "ambiguous":
        return Confirmation(word, n, 0, change)
    if n < most and not spent:
        return Confirmation("more", n, next(s for s in steps if s > n), change)
    return Confirmation("ambiguous", n, 0, change)


def _alpha_share(n: int, most: int) -> float:
    """The share of an error that the look after `n` of `most` rounds may spend: the difference to the look before."""
    before = max((s for s in rounds_of_looks(most) if s < n), default=0)
    return log(1 + (e - 1) * min(1.0, n / most)) - log(1 + (e - 1) * before / most)


@dataclass(frozen=True)
class _Interval:
    """A shift and its ends in the unit of the values. `half` is half its width: of logarithms, if `of_ratios`."""

    centre: float
    low: float
    high: float
    base: float
    half: float
    of_ratios: bool

    def least_seen(self, floor: float) -> float:
        """The smallest rise whose whole interval would be beyond the floor."""
        if not self.of_ratios:
            return floor + self.half
        return (self.base + floor) * exp(self.half) - self.base


def _interval(rounds: Sequence[tuple[float, float]], alpha: float) -> _Interval:
    """The change of the centre of the last good values; of logarithms it is wider upwards and never below -100 %."""
    base = median([old for _, old in rounds])
    logs = all(new > 0 and old > 0 for new, old in rounds)
    steps = [log(new / old) if logs else new - old for new, old in rounds]
    mean, error, freedom = trimmed_mean(steps, len(steps) // TRIM)
    half = student_quantile(1 - alpha / 2, freedom) * error
    if not logs:
        return _Interval(mean, mean - half, mean + half, base, half, of_ratios=False)
    half = min(half, _MOST_LOG)
    centre, low, high = (base * (exp(step) - 1) for step in (mean, mean - half, mean + half))
    return _Interval(centre, low, high, base, half, of_ratios=True)


def trimmed_mean(values: Sequence[float], cut: int) -> tuple[float, float, int]:
    """The mean without the `cut` smallest and the `cut` largest values, its standard error and degrees of freedom.

    The error comes from the winsorized values (Tukey and McLaughlin 1963). At least two values must be left.
    """
    ordered, n = sorted(values), len(values)
    inner = ordered[cut : n - cut]
    winsorized = [inner[0]] * cut + inner + [inner[-1]] * cut
    middle = sum(winsorized) / n
    spread = sqrt(sum((value - middle) ** 2 for value in winsorized) / (n - 1))
    return sum(inner) / len(inner), spread * sqrt(n) / len(inner), len(inner) - 1


def _build_change(
    rounds: Sequence[tuple[float, float]],
    rule: HasFloor,
    better: Direction,
    unit: str,
    word: ChangeWord,
    interval: tuple[float, float, float],
    base: float,
    floor: float,
    scope: Scope,
) -> Change:
    shift, low, high = interval
    new, old = [pair[0] for pair in rounds], [pair[1] for pair in rounds]
    course: Course = course_of(0, shift, better) if word == "different" else "neither"
    relative = None if base == 0 else tuple(1 + v / base for v in (shift, low, high))
    return Change(
        metric=rule.metric,
        unit=unit,
        better=better,
        baseline=Sample(median(old), groups=tuple((v,) for v in old)),
        candidate=Sample(median(new), groups=tuple((v,) for v in new)),
        word=word,
        course=course,
        scope=scope,
        ratio=relative[0] if relative else None,
        low=relative[1] if relative else None,
        high=relative[2] if relative else None,
        floor=floor / abs(base) if base else 0.0,
        limit=None if base else floor,
    )
