"""Decide by alternating pairs of runs whether one of two versions takes longer.

The error holds however often one looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, e, exp, isfinite, log, sqrt
from typing import Protocol

from profkit.core.inference import Interval, course_of, decide, student_quantile
from profkit.core.statistics import median
from profkit.core.types import RUN, Change, ChangeWord, Direction, Sample, Scope


class Floor(Protocol):
    """The smallest change of a metric that counts."""

    @property
    def metric(self) -> str:
        """Return the metric that is decided."""

    def floor(self, centre: float) -> float:
        """Return the smallest change that counts, in the unit of `centre`."""


FIRST_ROUNDS = 4  # rounds below which a spread is a guess
MAX_ROUNDS = 20
# Of calling the same different: two-sided, over all looks at the rounds of one metric in one night.
ALPHA = 0.02
# Of calling a change that is as large as the floor the same; the nights to come would still see it.
ALPHA_SAME = 0.1
_MAX_LOG = 100.0  # of a ratio: e to that power is still a number that can be written
_MIN_VALUE = 1e-12  # in any unit: of nothing there is no ratio
TRIM = 8  # of so many rounds the largest and the smallest are left out of the mean


def rounds_of_looks(most: int = MAX_ROUNDS) -> tuple[int, ...]:
    """Return the numbers of rounds after which to decide: 4, 6, 9, 14, 20, each half as many again."""
    counts = [min(FIRST_ROUNDS, most)]
    while counts[-1] < most:
        counts.append(min(most, ceil(counts[-1] * 1.5)))
    return tuple(counts)


def confirm(
    rounds: Sequence[tuple[float, float]],
    rule: Floor,
    unit: str = "",
    most: int = MAX_ROUNDS,
    scope: Scope = RUN,
    looked_at: int = 1,
) -> Change | None:
    """Decide what change `rounds` show, each (candidate, baseline): one number per fresh process, in `unit`.

    None below four rounds. `most` is the largest number of rounds that can be run; `looked_at` is the number of
    decisions made side by side, which share the error.

    The paired log ratios have a trimmed mean with Student's interval (Tukey and McLaughlin 1963). Beyond the
    floor at an error of 0.02 it is `different`; within it at an error of 0.1 it is `same`, and the change has the
    interval of that error. Between the two it is `ambiguous`. Each look takes its part of an error by alpha ln(1
    + (e - 1) t) with t the share of the rounds (Lan and DeMets 1983, their Pocock-like function), so that looking
    again and again does not find what is not there. Raises ValueError for a value that is not finite.
    """
    if any(not isfinite(v) for pair in rounds for v in pair):
        raise ValueError("a round has a value that is not a number")
    n = len(rounds)
    if n < min(FIRST_ROUNDS, most):
        return None
    part = _alpha_share(n, most) / looked_at
    mean, error, freedom = trimmed_mean(
        [log(max(new, _MIN_VALUE) / max(old, _MIN_VALUE)) for new, old in rounds], n // TRIM
    )
    base = max(median([old for _, old in rounds]), _MIN_VALUE)
    floor = rule.floor(base)

    def interval(alpha: float) -> Interval:
        half = min(student_quantile(1 - alpha / 2, freedom) * error, _MAX_LOG)
        return Interval(*(base * (exp(step) - 1) for step in (mean - half, mean, mean + half)))

    shown = wide = interval(ALPHA * part)
    word = decide(wide, floor, around=0)
    if word != "different" and decide(narrow := interval(ALPHA_SAME * part), floor, around=0) == "same":
        word, shown = "same", narrow  # what it rests on
    sides = [old for _, old in rounds], [new for new, _ in rounds]
    change = change_between(sides, shown, word, floor, rule.metric, "lower", unit, scope)
    # The smallest rise whose whole interval would be beyond the floor.
    seen = (1 + floor / base) * (1 + wide.high / base) / (1 + wide.middle / base) - 1
    return replace(change, detectable=seen)


def _alpha_share(n: int, most: int) -> float:
    """Return the share of an error that the look after `n` of `most` rounds may spend beyond the look before it."""
    before = max((s for s in rounds_of_looks(most) if s < n), default=0)
    return log(1 + (e - 1) * min(1.0, n / most)) - log(1 + (e - 1) * before / most)


def trimmed_mean(values: Sequence[float], cut: int) -> tuple[float, float, int]:
    """Return the mean without the `cut` smallest and largest values, its standard error and degrees of freedom.

    The error comes from the winsorized values (Tukey and McLaughlin 1963). At least two values must be left.
    """
    ordered, n = sorted(values), len(values)
    inner = ordered[cut : n - cut]
    winsorized = [inner[0]] * cut + inner + [inner[-1]] * cut
    middle = sum(winsorized) / n
    spread = sqrt(sum((value - middle) ** 2 for value in winsorized) / (n - 1))
    return sum(inner) / len(inner), spread * sqrt(n) / len(inner), len(inner) - 1


def change_of_counts(
    sides: tuple[Sequence[float], Sequence[float]],
    floor: float,
    metric: str,
    better: Direction = "lower",
    unit: str = "",
    scope: Scope = RUN,
) -> Change:
    """Decide what the exact counts before (`sides[0]`) and after show: their difference is an interval without width.

    `floor` is the smallest difference that counts, in `unit`.
    """
    shift = Interval(*3 * (median(sides[1]) - median(sides[0]),))
    word = decide(shift, floor, around=0)
    return change_between(sides, shift, word, floor, metric, better, unit, scope)


def change_between(
    sides: tuple[Sequence[float], Sequence[float]],
    shift: Interval,
    word: ChangeWord,
    floor: float,
    metric: str,
    better: Direction,
    unit: str,
    scope: Scope,
) -> Change:
    """Build the change from the values before (`sides[0]`) to those after.

    `shift` and `floor` are differences in `unit`.
    """
    base, now = median(sides[0]), median(sides[1])
    ratio, low, high = (1 + v / base if base else None for v in (shift.middle, shift.low, shift.high))
    return Change(
        metric=metric,
        unit=unit,
        better=better,
        baseline=Sample(base, groups=tuple((v,) for v in sides[0])),
        candidate=Sample(now, groups=tuple((v,) for v in sides[1])),
        word=word,
        course=course_of(0, shift.middle, better) if word == "different" else "neither",
        scope=scope,
        ratio=ratio,
        low=low,
        high=high,
        floor=floor / abs(base) if base else 0.0,
        limit=None if base else floor,
    )
