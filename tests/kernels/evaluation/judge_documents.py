"""Times and facts as the judge gives them."""

from __future__ import annotations

from profkit.core.types import Fact, Speedup, SpeedWord
from profkit.kernels.evaluation.judging.judge import PairedTimes

BY_CHANCE = (Fact("difference-of-processes"),)


def times_of(median: float, word: SpeedWord, *, disturbed: bool = False) -> PairedTimes:
    speedup = Speedup(median, median - 0.01, median + 0.01, word, 40)
    return PairedTimes(speedup, 1.0 / median, 1.0, 5, disturbed, 1.0, 1.0, 1.0)
