"""When a test of a bisection has enough pairs: as soon as another commit would tell more for the time."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log2, pi, sqrt

from profkit.regression.bisect.posterior import APART, Observation, Rules, Stretch, spread_of, stretches
from profkit.regression.bisect.search import Move, next_move

FEW = 4  # pairs, after which it is asked whether more of them are needed
LEAST_GAIN = 0.01  # bits


def is_enough(
    present: Move,
    n: int,
    skipped: frozenset[int],
    seen: Sequence[Observation],
    rules: Rules,
    start: float,
) -> bool:
    """Whether `present`, the last of `seen`, can stop: it has the error asked for, or another commit tells more.

    To begin with another one takes as long as `start` pairs. What is compared is the information of a few pairs on the
    side on which the change lies, for the time that they take.
    """
    last = seen[-1]
    if present.error is not None:
        return last.error <= present.error
    move = next_move(n, skipped, seen, rules)
    if not isinstance(move, Move) or move.direct:
        return True
    inside = {
        commit: one for one in stretches(n, skipped, seen, rules) for commit in range(one.low + 1, one.high)
    }
    if last.later not in inside or move.later not in inside:
        return True
    stretch = inside[last.later]
    scale = spread_of(last.error, stretch.before, stretch.after, rules)
    if min(abs(last.shift - level.value) for level in (stretch.before, stretch.after)) > APART * scale:
        return True  # clearly neither
    here = _gain(stretch, last.later, last, last.pairs, rules)
    if move.later == last.later:
        return here <= LEAST_GAIN
    there = _gain(inside[move.later], move.later, last, 0, rules)
    return here <= max(LEAST_GAIN, there * FEW / (FEW + start))


def _gain(stretch: Stretch, commit: int, test: Observation, pairs: int, rules: Rules) -> float:
    """Bits that a few more pairs tell of the side on which the change lies, after `pairs` of this commit.

    With a normal level of the commit around that of its side, the pairs to come are a binary channel with normal noise,
    if a single commit made the change.
    """
    single = 1 - stretch.several
    side = min(1.0, max(0.0, stretch.up_to(commit) / single)) if single > 0 else 0.0
    per_pair = test.error**2 * test.pairs
    own = spread_of(0.0, stretch.before, stretch.after, rules) ** 2
    apart, left = stretch.size, own
    if pairs:
        known = per_pair / pairs
        apart, left = apart * known / (own + known), own * known / (own + known)
    return single * _information(side, abs(apart) / sqrt(max(1e-12, left + per_pair / FEW)))


def _information(side: float, apart: float) -> float:
    """Bits that a normal value tells of two sides whose means are `apart` standard deviations.

    `side` is the probability of the one. By the sum over 33 places of the normal distribution.
    """
    left = 0.0
    for k in range(-16, 17):
        z = k / 4
        weight = exp(-0.5 * z * z) / sqrt(2 * pi) / 4
        for own, other in ((side, 1 - side), (1 - side, side)):
            if own > 1e-9:
                left += own * weight * log2(1 + other / own * exp(-apart * z - apart * apart / 2))
    return max(0.0, _entropy(side) - left)


def _entropy(side: float) -> float:
    return -sum(p * log2(p) for p in (side, 1 - side) if p > 0)
