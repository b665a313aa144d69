"""Decide in which of a row of commits a time changed: the probability of each, and which test to run next.

Commits are numbers: 0 is the good end, n the bad end. A test says by how much commit b is slower than commit
a, as the logarithm of a ratio with its error, and so how likely it is if b is like the one end, and if it is
like the other. A noisy test says little, a precise one much. 1 test in 50 may be wrong however precise it is:
a build with an unlucky layout, a disturbance that lasts. A commit that twice is like neither end splits the
change: each side of it is a stretch that is searched separately.

The next test is of the commit at which half of the probability lies on either side. That is Horstein's scheme
("Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory 9, 1963), for a search on a grid
Burnashev and Zigangirov ("An interval estimation problem for controlled observations", Probl. Inf. Transm.
10, 1974): with answers that are wrong now and then it needs a constant factor more than log2(n) tests, where
plain bisection cannot recover from the first wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import ceil, exp, hypot, inf, lgamma, log, log2, pi, sqrt
from typing import NamedTuple

from profkit.core.pairs import trimmed_mean
from profkit.core.types.comparison import CERTAINTY

WRONG = 0.01  # of the tests say what is true of the other end
WILD = 0.01  # of the tests say anything
APART = 3.0  # standard errors by which two tests of one commit contradict each other
NEITHER = 2.0  # standard errors by which a commit is neither like the one end nor like the other
CLEAR = 3.0  # standard errors that both ends lie apart: then a test can stop
MIN_PAIRS = 4  # pairs of a test before it is decided whether more of them are needed
MAX_DIRECT = 3  # tests of one commit against the one before it
MAX_AGAIN = 3  # tests of a commit that is neither like the one end nor like the other
PRECISE = 8  # standard errors in the change, so that half of it can be distinguished from all of it


Pairs = tuple[tuple[float, ...], ...]  # seconds of the earlier and of the later commit


@dataclass(frozen=True)
class Observation:
    """One test: commit `later` takes exp(`shift`) times as long as `earlier`, with `error` as standard error.

    `freedom` is the degrees of freedom with which the error of `shift` is known.
    """

    earlier: int
    later: int
    shift: float
    error: float
    freedom: float = inf


class Level(NamedTuple):
    """The logarithm of how much slower than the good end a commit is, its error, and how many of its tests agree."""

    value: float
    error: float
    agreeing: int = 0
    tests: int = 0


@dataclass(frozen=True)
class CommitRange:
    """The commits after `low` up to `high`, between which the time changes by one part of the whole change.

    `weights` are the probabilities that commit low + 1, low + 2, ... caused it.
    """

    low: int
    high: int
    before: Level
    after: Level
    weights: tuple[float, ...]

    @property
    def size(self) -> float:
        """Return the logarithm of the ratio over the whole stretch."""
        return self.after.value - self.before.value

    def up_to(self, commit: int) -> float:
        """Return the probability that `commit`, or one before it, caused the change."""
        return self._sums[min(max(0, commit - self.low), len(self.weights))]

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        return (0.0, *accumulate(self.weights))


@dataclass(frozen=True)
class Move:
    """The next test: run `later` alternately with `earlier`.

    `direct`: to confirm an answer, until it is decided; else until the standard error of the shift is at most
    `error`.
    """

    earlier: int
    later: int
    direct: bool = False
    error: float = 0.0


@dataclass(frozen=True)
class Found:
    """A stretch that is finished: the change is in one of the commits after `low` up to `high`.

    `rest`: it is too small to be searched, or no single one of these caused it.
    """

    low: int
    high: int
    probability: float
    size: float
    rest: bool


def next_move(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], floor: float
) -> Move | tuple[Found, ...]:
    """Choose the next test, from the largest part that is open.

    Or return what was found, in the order of the commits. `floor`: the logarithm of the smallest ratio that
    counts. `seen` begins with the test of both ends. `skipped` commits cannot be tested.
    """
    spent = len(seen) > 2 * _most_tests(n)
    seen = _of_others(skipped, seen)
    ends = []
    for stretch in sorted(stretches(n, skipped, seen, floor), key=lambda stretch: -abs(stretch.size)):
        step = _step_of(stretch, skipped, seen, floor)
        if isinstance(step, Move):
            if not spent:
                return step
            step = Found(stretch.low, stretch.high, 1.0, stretch.size, rest=True)
        ends.append(step)
    return tuple(sorted(ends, key=lambda end: end.low))


def _step_of(
    stretch: CommitRange, skipped: frozenset[int], seen: Sequence[Observation], floor: float
) -> Move | Found:
    """Choose the next test of one stretch, or return how it ended."""
    low, high, size = stretch.low, stretch.high, stretch.size
    if abs(size) <= floor:
        return Found(low, high, 1.0, size, rest=True)
    stops = [c for c in range(low + 1, high) if c not in skipped]
    groups = list(pairwise([low, *stops, high]))
    masses = [stretch.up_to(last) - stretch.up_to(first) for first, last in groups]
    mass, (first, last) = max(zip(masses, groups, strict=True))
    direct = [test for test in seen if (test.earlier, test.later) == (first, last)]
    agree = 2 * sum(abs(test.shift) > abs(test.shift - size) for test in direct) > len(direct)
    if sum(low <= test.earlier and test.later <= high for test in seen) >= _most_tests(high - low):
        is_known = mass > 0.5 and agree  # less certain than requested, which the result states
        return Found(first, last, mass, size, False) if is_known else Found(low, high, 1.0, size, True)
    if mass >= CERTAINTY or not stops:
        if len(direct) < MAX_DIRECT and not agree:
            return Move(first, last, direct=True)
        if not stops or not agree:
            return Found(low, high, 1.0, size, rest=not agree)
        return Found(first, last, mass, size, rest=False)
    again = between_ends(stretch, seen, floor, least=1)
    if again is not None and sum(test.later == again for test in seen) <= MAX_AGAIN:
        return Move(0, again, error=abs(size) / PRECISE)  # it may have been the test that was wrong
    likely = min(stops, key=lambda c: (round(abs(stretch.up_to(c) - 0.5), 9), c))
    return Move(0, likely, error=abs(size) / CLEAR)


def _most_tests(commits: int) -> int:
    """Return the number of tests after which a stretch is given up: three times what a noisy machine takes."""
    return 12 + 6 * ceil(log2(max(commits, 1)))


# ---------------------------------------------------------------- the probabilities


def stretches(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], floor: float
) -> tuple[CommitRange, ...]:
    """Divide the row of commits into a stretch for each part of the change that the tests show.

    Tests of a commit that is `skipped` by now do not count: it cannot be tested again.
    """
    seen = _of_others(skipped, seen)

    def divide(low: int, high: int) -> tuple[CommitRange, ...]:
        stretch = _stretch(low, high, seen, floor)
        between = between_ends(stretch, seen, floor, least=2)
        return (stretch,) if between is None else (*divide(low, between), *divide(between, high))

    return divide(0, n)


def _of_others(skipped: frozenset[int], seen: Sequence[Observation]) -> list[Observation]:
    return [test for test in seen if test.earlier not in skipped and test.later not in skipped]


def _stretch(low: int, high: int, seen: Sequence[Observation], floor: float) -> CommitRange:
    """Compute the posterior of one stretch from the tests of commits inside it; all are equally likely before.

    Summed up step by step, so that a test costs the same however many commits there are.
    """
    whole = CommitRange(low, high, level_of(low, seen), level_of(high, seen), ())
    steps = [0.0] * (high - low + 1)
    for test in seen:
        inside = low < test.later < high if test.earlier == 0 else low <= test.earlier and test.later <= high
        if not inside or (test.earlier, test.later) == (low, high):
            continue
        near, far = _likelihoods(test, whole, floor)
        # the change is between the two if it is one of first + 1 .. last
        first, last = max(test.earlier, low) - low, min(test.later, high) - low
        steps[first] += log(far) - log(near)
        steps[last] -= log(far) - log(near)
    logs = list(accumulate(steps[:-1]))
    odds = [exp(value - max(logs)) for value in logs]
    return CommitRange(low, high, whole.before, whole.after, tuple(value / sum(odds) for value in odds))


def _likelihoods(test: Observation, stretch: CommitRange, floor: float) -> tuple[float, float]:
    """Return the likelihoods of a test if the change is not between its commits, and if it is."""
    before, after, size = stretch.before.value, stretch.after.value, stretch.size
    against_good = test.earlier == 0 or test.earlier < stretch.low
    none, whole = (before, after) if against_good else (0.0, size)
    spread = _spread(test.error, stretch, floor)
    near, far = (_density(test.shift - value, spread, test.freedom) for value in (none, whole))
    right, unknown = 1 - WRONG - WILD, WILD / (3 * abs(size)) if size else WILD
    return right * near + WRONG * far + unknown, right * far + WRONG * near + unknown


def _density(distance: float, scale: float, freedom: float) -> float:
    """Return the density of Student's t distribution around 0."""
    square = min((distance / scale) ** 2, 1400.0)
    if freedom > 200:
        return exp(-0.5 * square) / (scale * sqrt(2 * pi))
    half = freedom / 2
    constant = exp(lgamma(half + 0.5) - lgamma(half)) / (scale * sqrt(pi * freedom))
    return constant * float((1 + square / freedom) ** -(half + 0.5))


def _spread(error: float, stretch: CommitRange, floor: float) -> float:
    """Return the standard deviation of a test around what is expected.

    Other commits of the row may each make a change below the floor: half of it is a standard deviation.
    """
    ends = (stretch.before.error**2 + stretch.after.error**2) / 2
    return max(1e-6, sqrt(error**2 + (floor / 2) ** 2 + ends))


def level_of(commit: int, seen: Sequence[Observation]) -> Level:
    """Average the tests of a commit against the good end, without those that contradict the median one."""
    tests = [test for test in seen if test.earlier == 0 and test.later == commit]
    if not tests:
        return Level(0.0, 0.0)
    tests.sort(key=lambda test: (test.shift, test.error))
    middle = tests[len(tests) // 2]
    reach = [APART * max(1e-6, hypot(test.error, middle.error)) for test in tests]
    agreeing = [t for t, most in zip(tests, reach, strict=True) if abs(t.shift - middle.shift) <= most]
    weights = [1 / max(test.error, 1e-6) ** 2 for test in agreeing]
    value = sum(weight * test.shift for weight, test in zip(weights, agreeing, strict=True)) / sum(weights)
    return Level(value, 1 / sqrt(sum(weights)), len(agreeing), len(tests))


def between_ends(stretch: CommitRange, seen: Sequence[Observation], floor: float, least: int) -> int | None:
    """Return the tested commit that is farthest from both ends of a stretch; None if all are like one of them.

    Only commits of which `least` tests, and most of its tests, agree.
    """
    distances = []
    for commit in {t.later for t in seen if t.earlier == 0 and stretch.low < t.later < stretch.high}:
        level = level_of(commit, seen)
        is_sure = level.agreeing >= least and 2 * level.agreeing > level.tests
        near = min(abs(level.value - end.value) for end in (stretch.before, stretch.after))
        spread = _spread(level.error, stretch, floor)
        if is_sure and near > max(floor / 2, NEITHER * spread):
            distances.append((near / spread, -commit))
    return -max(distances)[1] if distances else None


# ---------------------------------------------------------------- a test, from its pairs of runs


def observed(pairs: Pairs, reference: Pairs, earlier: int, later: int) -> Observation:
    """Return the trimmed mean of the logarithms of the ratios, with its error and how well that is known.

    Few pairs can agree by chance: their variance is averaged with that of the first test's pairs, which count as
    at most four further ones since the machine may be noisier by now (as Smyth, "Linear models and empirical
    Bayes methods", Stat. Appl. Genet. Mol. Biol. 3, 2004, does with the variances of many small samples).
    """
    mean, error, freedom = _trimmed(pairs)
    _, first_error, first_freedom = _trimmed(reference)
    borrowed = min(MIN_PAIRS, first_freedom)
    expected = first_error**2 * len(reference) / len(pairs)
    variance = (freedom * error**2 + borrowed * expected) / (freedom + borrowed)
    return Observation(earlier, later, mean, sqrt(variance), freedom + borrowed)


def _trimmed(pairs: Pairs) -> tuple[float, float, float]:
    """Average the log ratios without the largest and smallest: a sixth on each side, above eight pairs a quarter."""
    logs = [log(max(new, 1e-12) / max(old, 1e-12)) for old, new in pairs]
    return trimmed_mean(logs, len(pairs) // 4 if len(pairs) > 8 else len(pairs) // 6)
