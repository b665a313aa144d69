"""What pairs of times say: the speed-up with its interval, and FASTER, SAME, SLOWER or AMBIGUOUS."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

from profkit.analysis.evaluation import doubted, speed_word
from profkit.core.inference import signed_rank_interval
from profkit.core.statistics import median
from profkit.core.types import Speedup
from profkit.kernels.evaluation.request import PairOptions

FEWEST_ROUNDS = 6  # of fewer no interval is known
CONFIDENCE = 0.95
SURE = 0.999  # of FASTER and SLOWER: a suite has hundreds of tests, and a busy machine that is taken for a quiet one


class Pair(NamedTuple):
    """Seconds of one call of each, in which round, and whether a process waited for a processor meanwhile."""

    round: int
    reference: float
    candidate: float
    waited: bool


def undisturbed(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Those in which nobody waited; all, where those are of too few rounds."""
    quiet = [pair for pair in pairs if not pair.waited]
    return quiet if len({pair.round for pair in quiet}) >= FEWEST_ROUNDS else pairs


def find_speedup(pairs: Sequence[Pair], options: PairOptions, confidence: float = CONFIDENCE) -> Speedup:
    """The middle of the rounds' median ratios, with its interval by the signed-rank test.

    A round is the unit: all of its pairs share where their memory lies, so a hundred of them are one answer.
    """
    rounds: dict[int, list[float]] = {}
    for pair in pairs:
        rounds.setdefault(pair.round, []).append(log(pair.reference / pair.candidate))
    ratios = [median(each) for each in rounds.values()]
    interval = signed_rank_interval(ratios, confidence)
    low, middle, high = (min(ratios), median(ratios), max(ratios)) if interval is None else interval
    value, low, high = exp(middle), exp(low), exp(high)
    speedup = Speedup(value, low, high, speed_word(value, low, high, options.floor), len(pairs))
    is_sure = speedup.word in ("SAME", "AMBIGUOUS") or _is_sure(ratios, options.floor)
    return speedup if interval is not None and is_sure else doubted(speedup)


def _is_sure(ratios: Sequence[float], floor: float) -> bool:
    """Whether one side is faster; so few rounds that no interval is so sure must all lie beyond the floor."""
    interval = signed_rank_interval(ratios, SURE)
    if interval is None:
        return min(ratios) > log(1 + floor) or max(ratios) < -log(1 + floor)
    return interval[0] > 0 or interval[2] < 0


def is_decided(speedup: Speedup, options: PairOptions) -> bool:
    """Whether more pairs would change nothing."""
    return log(speedup.high / speedup.low) / 2 <= options.precision and speedup.word != "AMBIGUOUS"
