"""Where in a row of commits a time changed, from tests of which any may be wrong: the posterior, and what to test next.

Commits are numbers: 0 is the good end, n the bad end. A test says by how much commit b is slower than commit a, as the
logarithm of a ratio with its error. For each commit there is the probability that it made the change; the next test is
of the commit at which half of that lies on either side. That is Horstein's scheme ("Sequential transmission using
noiseless feedback", IEEE Trans. Inf. Theory 9, 1963), for a search on a grid Burnashev and Zigangirov ("An interval
estimation problem for controlled observations", Probl. Inf. Transm. 10, 1974): with answers that are wrong now and then
it needs a constant factor more than log2(n) tests, where plain bisection has no way back from the first wrong one.

Here an answer is a number and not a yes or no, and so it can also say that a commit is neither like the one end nor
like the other: then the change has several parts, and each side of that commit is searched for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, exp, log, log2, pi, sqrt

WRONG = 0.1  # of the tests say what is true of the other end: a disturbance that lasts, an unlucky build
WILD = 0.05  # of the tests say anything
SEVERAL = 0.1  # before any test: the probability that no single commit made the change
SPLIT = 0.8  # from this probability of several parts on they are searched one by one
CLEAR = 3.0  # logarithm of the ratio of two likelihoods from which more pairs would say nothing new
APART = 3.0  # standard errors by which a value is neither like the one end nor like the other
MOST_DIRECT = 3  # tests of one commit against the one before it


@dataclass(frozen=True)
class Rules:
    """`certainty`: the probability at which a search ends; `floor`: the logarithm of the smallest ratio that counts."""

    certainty: float = 0.95
    floor: float = log(1.02)


@dataclass(frozen=True)
class Observation:
    """One test: commit `later` takes exp(`shift`) times as long as `earlier`, with the standard `error` of `shift`."""

    earlier: int
    later: int
    shift: float
    error: float


@dataclass(frozen=True)
class Move:
    """What to do next: run `later` in turn with `earlier`. `direct`: to confirm an answer."""

    earlier: int
    later: int
    direct: bool = False


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
        return sum(self.weights[: max(0, commit - self.low)])


@dataclass(frozen=True)
class Found:
    """A stretch at its end: the change is in one of the commits after `low` up to `high`.

    `rest`: it is too small to be searched, or no single one of these made it.
    """

    low: int
    high: int
    probability: float
    size: float
    rest: bool


def stretches(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> tuple[Stretch, ...]:
    """The whole row, or where the tests say that the change has several parts, a stretch for each.

    What was seen of a commit that is `skipped` by now does not count: it cannot be asked again.
    """
    return _divide(0, n, _of_others(skipped, seen), rules)


def next_move(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> Move | tuple[Found, ...]:
    """The next test, of the largest part that is open; or what was found, in the order of the commits.

    `seen` begins with the test of both ends. `skipped` commits cannot be tested.
    """
    spent = len(seen) > 2 * _most_tests(n)
    seen = _of_others(skipped, seen)
    ends = []
    for stretch in sorted(stretches(n, skipped, seen, rules), key=lambda one: -abs(one.size)):
        step = _step_of(stretch, skipped, seen, rules)
        if isinstance(step, Move):
            if not spent:
                return step
            step = Found(stretch.low, stretch.high, 1.0, stretch.size, rest=True)
        ends.append(step)
    return tuple(sorted(ends, key=lambda one: one.low))


def is_clear(stretch: Stretch, shift: float, error: float, rules: Rules) -> bool:
    """Whether more pairs of a test against the good end would change little: it is like one end, or clearly neither."""
    spread = _spread(error, stretch.before, stretch.after, rules)
    near, far = sorted(abs(shift - level.value) / spread for level in (stretch.before, stretch.after))
    return (far**2 - near**2) / 2 >= CLEAR and (near < 2 or near > APART)


def probabilities(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> tuple[float, ...]:
    """Of each commit 1..n the probability that it made a change, the largest part of it or another."""
    return tuple(weight for stretch in stretches(n, skipped, seen, rules) for weight in stretch.weights)


# ---------------------------------------------------------------- the posterior


def _of_others(skipped: frozenset[int], seen: Sequence[Observation]) -> list[Observation]:
    return [test for test in seen if test.earlier not in skipped and test.later not in skipped]


def _divide(low: int, high: int, seen: Sequence[Observation], rules: Rules) -> tuple[Stretch, ...]:
    stretch = _stretch(low, high, seen, rules)
    if stretch.several < SPLIT:
        return (stretch,)
    between = _between(stretch, seen, rules, least=2)
    if between is None:
        return (stretch,)
    return (*_divide(low, between, seen, rules), *_divide(between, high, seen, rules))


def _stretch(low: int, high: int, seen: Sequence[Observation], rules: Rules) -> Stretch:
    """The posterior of one stretch, by the tests of commits inside of it."""
    before, after, count = _level(low, seen), _level(high, seen), high - low
    size = after.value - before.value
    prior = SEVERAL if count > 1 else 0.0
    several = log(prior) if prior else -float("inf")
    # By commit: the logarithm of its weight, as sums of steps so that each test costs the same however many there are
    steps = [0.0] * (count + 1)
    constant = log((1 - prior) / count)
    unknown = 1 / (3 * abs(size)) if size else 1.0  # the density of a value of which nothing is expected
    for test in seen:
        if not _speaks_of(test, low, high):
            continue
        inside = test.earlier >= low
        spread = _spread(test.error, before, after, rules)
        none, whole = (0.0, size) if inside else (before.value, after.value)
        changed = _likelihood(test.shift, whole, none, spread, unknown)
        unchanged = _likelihood(test.shift, none, whole, spread, unknown)
        first = (
            max(test.earlier, low) - low
        )  # the change is between the two if it is one of first + 1 .. last
        last = min(test.later, high) - low
        constant += log(unchanged)
        steps[first] += log(changed) - log(unchanged)
        steps[last] -= log(changed) - log(unchanged)
        several += log(unknown)
    logs = [constant + gain for gain in accumulate(steps[:count])]
    top = max(*logs, several)
    weights = [exp(value - top) for value in logs]
    other = exp(several - top)
    total = sum(weights) + other
    return Stretch(low, high, before, after, tuple(w / total for w in weights), other / total)


def _speaks_of(test: Observation, low: int, high: int) -> bool:
    """Whether a test tells the commits of a stretch apart: one against the good end, or between two of them."""
    if test.earlier == 0:
        return low < test.later < high
    return low <= test.earlier and test.later <= high and (test.earlier, test.later) != (low, high)


def _likelihood(value: float, true: float, other: float, spread: float, unknown: float) -> float:
    right = 1 - WRONG - WILD
    return right * _density(value - true, spread) + WRONG * _density(value - other, spread) + WILD * unknown


def _density(distance: float, spread: float) -> float:
    return exp(-0.5 * min((distance / spread) ** 2, 1400.0)) / (spread * sqrt(2 * pi))


def _spread(error: float, before: Level, after: Level, rules: Rules) -> float:
    """The standard deviation of a test around what is expected.

    Other commits of the row may each make a change below the floor: half of it is a standard deviation.
    """
    return max(1e-6, sqrt(error**2 + (rules.floor / 2) ** 2 + (before.error**2 + after.error**2) / 2))


def _level(commit: int, seen: Sequence[Observation]) -> Level:
    """The mean of the tests of a commit against the good end, weighted by their errors, without what contradicts."""
    tests = _agreeing_tests(commit, seen)
    if commit == 0 or not tests:
        return Level(0.0, 0.0)
    weights = [1 / max(test.error, 1e-6) ** 2 for test in tests]
    value = sum(weight * test.shift for weight, test in zip(weights, tests, strict=True)) / sum(weights)
    return Level(value, 1 / sqrt(sum(weights)))


def _agreeing_tests(commit: int, seen: Sequence[Observation]) -> list[Observation]:
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


def _between(stretch: Stretch, seen: Sequence[Observation], rules: Rules, least: int) -> int | None:
    """The tested commit that is farthest from both ends of a stretch; None where all are like one of them.

    Of `least` tests that agree, and are the most of those of the commit.
    """
    counts: dict[int, int] = {}
    for test in seen:
        if test.earlier == 0 and stretch.low < test.later < stretch.high:
            counts[test.later] = counts.get(test.later, 0) + 1
    distances = []
    for commit, count in counts.items():
        agreeing = len(_agreeing_tests(commit, seen))
        level = _level(commit, seen)
        spread = _spread(level.error, stretch.before, stretch.after, rules)
        near = min(abs(level.value - end.value) for end in (stretch.before, stretch.after))
        if agreeing >= least and 2 * agreeing > count and near > max(rules.floor / 2, 2 * spread):
            distances.append((near / spread, -commit))
    return -max(distances)[1] if distances else None


# ---------------------------------------------------------------- the rule


def _step_of(
    stretch: Stretch, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> Move | Found:
    """The next test of one stretch, or how it ended."""
    low, high = stretch.low, stretch.high
    if abs(stretch.size) <= rules.floor:
        return Found(low, high, 1.0, stretch.size, rest=True)
    stops = [c for c in range(low + 1, high) if c not in skipped]
    groups = list(pairwise([low, *stops, high]))
    masses = [stretch.up_to(last) - stretch.up_to(first) for first, last in groups]
    mass, (first, last) = max(zip(masses, groups, strict=True))
    inside = [test for test in seen if low <= test.earlier and test.later <= high]
    if len(inside) >= _most_tests(high - low) or _refuted(stretch, inside) >= MOST_DIRECT:
        return Found(low, high, 1.0, stretch.size, rest=True)
    direct = [test.shift for test in seen if (test.earlier, test.later) == (first, last)]
    agree = sum(abs(shift) > abs(shift - stretch.size) for shift in direct)
    if mass >= rules.certainty or not stops:
        if len(direct) < MOST_DIRECT and 2 * agree <= len(direct):
            return Move(first, last, direct=True)
        if not stops:
            return Found(first, last, 1.0, stretch.size, rest=2 * agree <= len(direct))
        return Found(first, last, mass, stretch.size, rest=False)
    again = _between(stretch, seen, rules, least=1) if stretch.several >= 0.5 else None
    if again is not None:  # it may have been the test that was wrong
        return Move(0, again)
    single = 1 - stretch.several
    return Move(0, min(stops, key=lambda c: (abs(stretch.up_to(c) / max(single, 1e-12) - 0.5), c)))


def _refuted(stretch: Stretch, inside: Sequence[Observation]) -> int:
    """How many direct tests of a stretch's commits found nothing of the change there."""
    direct = [
        test for test in inside if test.later - test.earlier < stretch.high - stretch.low and test.earlier
    ]
    return sum(abs(test.shift) <= abs(test.shift - stretch.size) for test in direct)


def _most_tests(commits: int) -> int:
    """Tests after which a stretch is given up: twice what a search takes in which every tenth test is wrong."""
    return 10 + 4 * ceil(log2(max(commits, 1)))
