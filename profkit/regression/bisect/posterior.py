"""What tests say of where in a row of commits a time changed: for each commit the probability that it made it.

Commits are numbers: 0 is the good end, n the bad end. A test says by how much commit b is slower than commit a, as the
logarithm of a ratio with its error, and so how likely it is if b is like the one end, and if it is like the other. A
noisy test says little, a precise one much. 1 test in 50 may be wrong however precise it is: a build with an unlucky
layout, a disturbance that lasts.

A test can also be neither like the one end nor like the other: then the change has several parts, and each side of that
commit is searched for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import exp, inf, lgamma, log, pi, sqrt

WRONG = 0.01  # of the tests say what is true of the other end: a disturbance that lasts, an unlucky build
WILD = 0.01  # of the tests say anything
SEVERAL = 0.05  # before any test: the probability that no single commit made the change
ANYTHING = 0.2  # of that: neither one commit nor two
SHARES = (-1.0, -0.5, 1 / 3, 1 / 2, 2 / 3, 1.5, 2.0)  # of the change before the second of two
MOST_TESTED = 150  # commits: more than a search tests, as a file of somebody else may have
SPLIT = 0.8  # from this probability of several parts on they are searched one by one
APART = 3.0  # standard errors by which a value is neither like the one end nor like the other


@dataclass(frozen=True)
class Rules:
    """`certainty`: the probability at which a search ends; `floor`: the logarithm of the smallest ratio that counts."""

    certainty: float = 0.95
    floor: float = log(1.02)


@dataclass(frozen=True)
class Observation:
    """One test: commit `later` takes exp(`shift`) times as long as `earlier`, with the standard `error` of `shift`.

    `freedom` is by how many degrees of freedom the error is known, `pairs` what it comes from.
    """

    earlier: int
    later: int
    shift: float
    error: float
    freedom: float = inf
    pairs: int = 4


@dataclass(frozen=True)
class Level:
    """How much slower than the good end a commit is, as a logarithm, with its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Stretch:
    """The commits after `low` up to `high`, between which the time changes by one part of the whole change.

    `weights` are the probabilities that commit low + 1, low + 2, ... alone made it; `several` is that no single one
    did. Together they are 1.
    """

    low: int
    high: int
    before: Level
    after: Level
    weights: tuple[float, ...]
    several: float

    @property
    def size(self) -> float:
        """The logarithm of the ratio over the whole stretch."""
        return self.after.value - self.before.value

    def up_to(self, commit: int) -> float:
        """The probability that one commit made it, and is `commit` or one before it."""
        return self._sums[min(max(0, commit - self.low), len(self.weights))]

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        return (0.0, *accumulate(self.weights))


def stretches(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> tuple[Stretch, ...]:
    """The whole row, or where the tests say that the change has several parts, a stretch for each.

    What was seen of a commit that is `skipped` by now does not count: it cannot be asked again.
    """
    return _divide(0, n, tests_of_others(skipped, seen), rules)


def tests_of_others(skipped: frozenset[int], seen: Sequence[Observation]) -> list[Observation]:
    """The tests of commits that are not skipped."""
    return [test for test in seen if test.earlier not in skipped and test.later not in skipped]


def _divide(low: int, high: int, seen: Sequence[Observation], rules: Rules) -> tuple[Stretch, ...]:
    stretch = _stretch(low, high, seen, rules)
    if stretch.several < SPLIT:
        return (stretch,)
    between = between_ends(stretch, seen, rules, least=2)
    if between is None:
        return (stretch,)
    return (*_divide(low, between, seen, rules), *_divide(between, high, seen, rules))


def _stretch(low: int, high: int, seen: Sequence[Observation], rules: Rules) -> Stretch:
    """The posterior of one stretch, by the tests of commits inside of it.

    Both its levels are known but for their errors: the weights are summed over what they may be, so that the tests of
    the search correct what the test of the ends said.
    """
    before, after, count = level_of(low, seen), level_of(high, seen), high - low
    tests = [test for test in seen if _speaks_of(test, low, high)]
    logs: list[list[float]] = []
    for first, first_weight in _values(before):
        for last, last_weight in _values(after):
            constant = log((1 - SEVERAL if count > 1 else 1.0) / count * first_weight * last_weight)
            row = _logs_of_one(low, high, (first, last), tests, rules)
            logs.append([constant + gain for gain in row])
    several = log_of_several(low, high, (before, after), tests, rules) if count > 1 else -inf
    top = max(several, *(max(row) for row in logs))
    weights = [sum(exp(row[place] - top) for row in logs) for place in range(count)]
    other = exp(several - top)
    total = sum(weights) + other
    return Stretch(low, high, before, after, tuple(w / total for w in weights), other / total)


def _values(level: Level) -> list[tuple[float, float]]:
    """What a level may be, each with its probability: five values of a normal distribution."""
    if not level.error:
        return [(level.value, 1.0)]
    nodes = ((-2.857, 0.01126), (-1.3556, 0.22208), (0.0, 0.53333), (1.3556, 0.22208), (2.857, 0.01126))
    return [(level.value + z * level.error, weight) for z, weight in nodes]


def _logs_of_one(
    low: int, high: int, levels: tuple[float, float], tests: Sequence[Observation], rules: Rules
) -> list[float]:
    """By commit, the logarithm of the likelihood of all tests if it alone made the change between these levels.

    Summed up step by step, so that a test costs the same however many commits there are.
    """
    before, after = levels
    steps, constant = [0.0] * (high - low + 1), 0.0
    for test in tests:
        none, whole = (0.0, after - before) if _is_inside(test, low) else (before, after)
        spread = max(1e-6, sqrt(test.error**2 + (rules.floor / 2) ** 2))
        near, far = (density(test.shift - value, spread, test.freedom) for value in (none, whole))
        unknown = WILD * _unknown(after - before)
        right = 1 - WRONG - WILD
        changed, unchanged = (
            log(right * far + WRONG * near + unknown),
            log(right * near + WRONG * far + unknown),
        )
        # The change is between the two if it is one of first + 1 .. last
        first, last = max(test.earlier, low) - low, min(test.later, high) - low
        constant += unchanged
        steps[first] += changed - unchanged
        steps[last] -= changed - unchanged
    return [constant + gain for gain in accumulate(steps[:-1])]


def log_of_several(
    low: int, high: int, levels: tuple[Level, Level], tests: Sequence[Observation], rules: Rules
) -> float:
    """The logarithm of the likelihood of all tests if several commits made the change, with its prior.

    Two of them, with each share of the change before the second one that is in SHARES; or any number, where a test can
    say anything.
    """
    before, after = levels
    size, count = after.value - before.value, high - low
    inside = {commit for test in tests for commit in (test.earlier, test.later) if low < commit < high}
    if not size or len(inside) > MOST_TESTED:
        return log(SEVERAL) + len(tests) * log(_unknown(size))
    borders = sorted(inside | {low, high})
    groups = [last - first for first, last in pairwise(borders)]
    pairs = count * (count - 1) / 2
    logs = [log(SEVERAL * ANYTHING) + len(tests) * log(_unknown(size))]
    for share in SHARES:
        prior = log(SEVERAL * (1 - ANYTHING) / len(SHARES) / pairs)
        at = (before.value, before.value + share * size, after.value)
        by_level = [[0.0] * len(borders) for _ in at]
        between = []
        for test in tests:
            told = _logs_at(test, at, levels, rules)
            if _is_inside(test, low):
                between.append((borders.index(test.earlier), borders.index(test.later), told))
                continue
            for column, value in zip(by_level, told[0], strict=True):
                column[borders.index(test.later)] += value
        none, some, whole = (list(accumulate(column)) for column in by_level)
        for first, early in enumerate(groups):
            for second in range(first, len(groups)):
                weight = early * groups[second] if second > first else early * (early - 1) / 2
                if not weight:
                    continue
                found = none[first] + some[second] - some[first] + whole[-1] - whole[second]
                for begin, end, told in between:
                    found += told[_place(begin, first, second)][_place(end, first, second)]
                logs.append(prior + log(weight) + found)
    top = max(logs)
    return top + log(sum(exp(value - top) for value in logs))


def _place(border: int, first: int, second: int) -> int:
    """How many of two changes, in the groups `first` and `second`, lie before a border of groups."""
    return (border > first) + (border > second)


def _logs_at(
    test: Observation, at: tuple[float, float, float], levels: tuple[Level, Level], rules: Rules
) -> list[list[float]]:
    """The logarithms of the likelihood of a test by the levels of its commits: of the earlier one, of the later one.

    A test against the good end has one row, where the level of that is 0.
    """
    size = levels[1].value - levels[0].value
    scale = spread_of(test.error, *levels, rules)
    wide = sqrt(scale**2 + (size / 12) ** 2)  # the level between is known to half the distance of two shares
    rows = [(0.0, False)] if test.earlier == 0 else [(value, place == 1) for place, value in enumerate(at)]
    return [
        [
            log(
                (1 - WILD)
                * density(
                    test.shift - (later - earlier), wide if open_level or place == 1 else scale, test.freedom
                )
                + WILD * _unknown(size)
            )
            for place, later in enumerate(at)
        ]
        for earlier, open_level in rows
    ]


def _unknown(size: float) -> float:
    """The density of a value of which nothing is expected."""
    return 1 / (3 * abs(size)) if size else 1.0


def _is_inside(test: Observation, low: int) -> bool:
    """Whether both commits of a test lie in a stretch: else the first one is the good end."""
    return test.earlier >= low and test.earlier > 0


def _speaks_of(test: Observation, low: int, high: int) -> bool:
    """Whether a test tells the commits of a stretch apart: one against the good end, or between two of them."""
    if test.earlier == 0:
        return low < test.later < high
    return low <= test.earlier and test.later <= high and (test.earlier, test.later) != (low, high)


def density(distance: float, scale: float, freedom: float) -> float:
    """Of Student's t distribution around 0."""
    square = min((distance / scale) ** 2, 1400.0)
    if freedom > 200:
        return exp(-0.5 * square) / (scale * sqrt(2 * pi))
    half = freedom / 2
    constant = exp(lgamma(half + 0.5) - lgamma(half)) / (scale * sqrt(pi * freedom))
    return constant * float((1 + square / freedom) ** -(half + 0.5))


def spread_of(error: float, before: Level, after: Level, rules: Rules) -> float:
    """The standard deviation of a test around what is expected.

    Other commits of the row may each make a change below the floor: half of it is a standard deviation.
    """
    return max(1e-6, sqrt(error**2 + (rules.floor / 2) ** 2 + (before.error**2 + after.error**2) / 2))


def level_of(commit: int, seen: Sequence[Observation]) -> Level:
    """The mean of the tests of a commit against the good end, weighted by their errors, without what contradicts."""
    tests = agreeing_tests(commit, seen)
    if commit == 0 or not tests:
        return Level(0.0, 0.0)
    weights = [1 / max(test.error, 1e-6) ** 2 for test in tests]
    value = sum(weight * test.shift for weight, test in zip(weights, tests, strict=True)) / sum(weights)
    return Level(value, 1 / sqrt(sum(weights)))


def agreeing_tests(commit: int, seen: Sequence[Observation]) -> list[Observation]:
    """The tests of a commit against the good end that agree with the one in the middle of them."""
    tests = sorted(
        (t for t in seen if t.earlier == 0 and t.later == commit), key=lambda test: (test.shift, test.error)
    )
    middle = tests[len(tests) // 2] if tests else None
    return [
        test
        for test in tests
        if middle is not None
        and abs(test.shift - middle.shift) <= APART * max(1e-6, sqrt(test.error**2 + middle.error**2))
    ]


def between_ends(stretch: Stretch, seen: Sequence[Observation], rules: Rules, least: int) -> int | None:
    """The tested commit that is farthest from both ends of a stretch; None where all are like one of them.

    Of `least` tests that agree, and are the most of those of the commit.
    """
    counts: dict[int, int] = {}
    for test in seen:
        if test.earlier == 0 and stretch.low < test.later < stretch.high:
            counts[test.later] = counts.get(test.later, 0) + 1
    distances = []
    for commit, count in counts.items():
        agreeing = len(agreeing_tests(commit, seen))
        level = level_of(commit, seen)
        spread = spread_of(level.error, stretch.before, stretch.after, rules)
        near = min(abs(level.value - end.value) for end in (stretch.before, stretch.after))
        if agreeing >= least and 2 * agreeing > count and near > max(rules.floor / 2, 2 * spread):
            distances.append((near / spread, -commit))
    return -max(distances)[1] if distances else None
