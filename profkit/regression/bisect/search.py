"""What a bisection tests next, and when it has its answer.

The next test is of the commit at which half of the probability lies on either side. That is Horstein's scheme
("Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory 9, 1963), for a search on a grid Burnashev
and Zigangirov ("An interval estimation problem for controlled observations", Probl. Inf. Transm. 10, 1974): with
answers that are wrong now and then it needs a constant factor more than log2(n) tests, where plain bisection has no way
back from the first wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2

from profkit.regression.bisect.posterior import (
    Observation,
    Rules,
    Stretch,
    between_ends,
    level_of,
    stretches,
    tests_of_others,
)

MOST_DIRECT = 3  # tests of one commit against the one before it, and of an end
MOST_AGAIN = 3  # tests of a commit that is neither like the one end nor like the other
MOST_LEVEL = 6  # tests of a commit, where its level has to be known better
PART = 0.3  # of the change: an answer that leaves out more than this may not be the only one
PRECISE = 8  # standard errors that the change is large, so that half of it is told from all of it


@dataclass(frozen=True)
class Move:
    """What to do next: run `later` in turn with `earlier`.

    `direct`: to confirm an answer. `error`: until the standard error of the shift is at most this.
    """

    earlier: int
    later: int
    direct: bool = False
    error: float | None = None


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


def next_move(
    n: int, skipped: frozenset[int], seen: Sequence[Observation], rules: Rules
) -> Move | tuple[Found, ...]:
    """The next test, of the largest part that is open; or what was found, in the order of the commits.

    `seen` begins with the test of both ends. `skipped` commits cannot be tested.
    """
    spent = len(seen) > 2 * _most_tests(n)
    seen = tests_of_others(skipped, seen)
    ends = []
    for stretch in sorted(stretches(n, skipped, seen, rules), key=lambda one: -abs(one.size)):
        step = _step_of(stretch, skipped, seen, rules)
        if isinstance(step, Move):
            if not spent:
                return step
            step = Found(stretch.low, stretch.high, 1.0, stretch.size, rest=True)
        ends.append(step)
    return tuple(sorted(ends, key=lambda one: one.low))


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
    direct = [test.shift for test in seen if (test.earlier, test.later) == (first, last)]
    agree = sum(abs(shift) > abs(shift - stretch.size) for shift in direct)
    if len(inside) >= _most_tests(high - low) or _refuted(stretch, inside) >= MOST_DIRECT:
        known = mass > 0.5 and 2 * agree > len(direct)  # less sure than was asked for, and said so
        return (
            Found(first, last, mass, stretch.size, False)
            if known
            else Found(low, high, 1.0, stretch.size, True)
        )
    single = 1 - stretch.several
    sure = mass >= rules.certainty
    if sure or not stops or (mass >= rules.certainty * single and not direct):
        if len(direct) < MOST_DIRECT and 2 * agree <= len(direct):
            return Move(first, last, direct=True)
        if not stops:
            return Found(first, last, 1.0, stretch.size, rest=2 * agree <= len(direct))
        doubtful = _unsure_of_rest(stretch, (first, last), seen, rules) if direct else None
        if doubtful is not None:
            return Move(0, doubtful, error=abs(stretch.size) / PRECISE)
        if sure:
            return Found(first, last, mass, stretch.size, rest=False)
    ends = sum((test.earlier, test.later) == (0, high) for test in seen)
    if mass >= rules.certainty * single and ends < MOST_DIRECT:
        # it may have been the end that was measured wrong
        return Move(0, high, error=abs(stretch.size) / PRECISE)
    again = between_ends(stretch, seen, rules, least=1) if stretch.several >= 0.5 else None
    if again is not None and sum(test.later == again for test in seen) <= MOST_AGAIN:
        # it may have been the test that was wrong
        return Move(0, again, error=abs(stretch.size) / PRECISE)
    return Move(0, _most_telling(stretch, stops, seen, rules))


def _most_telling(stretch: Stretch, stops: Sequence[int], seen: Sequence[Observation], rules: Rules) -> int:
    """The commit at which half of the probability lies on either side; of one stretch without the ends.

    Where a single commit is sure enough if it is a single one, the untested one in the middle of most others.
    """
    single = max(1 - stretch.several, 1e-12)
    half = min(stops, key=lambda c: (round(abs(stretch.up_to(c) / single - 0.5), 9), c))
    told = abs(stretch.up_to(half) / single - 0.5) * 2
    tested = sorted({test.later for test in seen} | {stretch.low, stretch.high})
    open_ones = [c for c in stops if c not in tested]
    if told < rules.certainty or not open_ones:
        return half
    return max(open_ones, key=lambda c: (min(abs(c - other) for other in tested), -c))


def _unsure_of_rest(
    stretch: Stretch, place: tuple[int, int], seen: Sequence[Observation], rules: Rules
) -> int | None:
    """Where an answer made only a part of the change: the commit whose level has to be known better, or None.

    Noise as large as a part hides it in the short tests of a search. The rest lies before the answer's parent, after
    the answer, or nowhere, if it was the end that was measured wrong.
    """
    direct = [test for test in seen if (test.earlier, test.later) == place]
    weights = [1 / max(test.error, 1e-6) ** 2 for test in direct]
    made = sum(w * test.shift for w, test in zip(weights, direct, strict=True)) / sum(weights)
    missing = (stretch.size - made) * (1 if stretch.size > 0 else -1)
    if len(stretch.weights) == 1 or missing <= max(rules.floor, PART * abs(stretch.size)):
        return None
    for commit in (stretch.high, *place):
        tests = sum((test.earlier, test.later) == (0, commit) for test in seen)
        known = level_of(commit, seen).error <= abs(stretch.size) / PRECISE
        if commit > stretch.low and not known and tests < MOST_LEVEL:
            return commit
    return None


def _refuted(stretch: Stretch, inside: Sequence[Observation]) -> int:
    """How many direct tests of a stretch's commits found nothing of the change there."""
    direct = [
        test for test in inside if test.later - test.earlier < stretch.high - stretch.low and test.earlier
    ]
    return sum(abs(test.shift) <= abs(test.shift - stretch.size) for test in direct)


def _most_tests(commits: int) -> int:
    """Tests after which a stretch is given up: three times what a search takes on a noisy machine."""
    return 12 + 6 * ceil(log2(max(commits, 1)))
