"""When to stop taking samples: one rule, for repeated calls in a process and for whole processes alike.

Pure: samples in, decision out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from profkit import statistics
from profkit.statistics import Interval

# Below 16 samples an autocorrelation cannot be told from noise, and 16 independent ones are asked for because
# the interval's coverage falls to 60 % without that on AR(1) noise of 0.9
# (tests/performance/interval_coverage.py).
LEAST_SAMPLES = 16
LEAST_INDEPENDENT = 15.5
LOOK_GROWTH = 1.41  # every look is one more chance to stop by luck: twice as many samples, two looks
DRIFT_SHARE = 0.1  # a drift that moves the median by a tenth of the precision asked is no drift


class Look(NamedTuple):
    """What the samples so far say. The first `warmup` of them are warm-up; `interval` is of the rest."""

    warmup: int
    warm: bool
    interval: Interval | None
    half_width: float | None  # relative to the median
    precise: bool  # the half-width is as small as asked
    done: bool  # and there is enough behind it to believe so


def look(samples: Sequence[float], precision: float) -> Look:
    """Where warm-up ends, how well the median of the rest is known, and whether that is enough."""
    start = statistics.settled_from(samples, precision * DRIFT_SHARE)
    kept = samples[start or 0 :]
    found = statistics.interval(kept)
    half = statistics.relative_half_width(kept)
    precise = half is not None and half <= precision
    believable = len(kept) >= LEAST_SAMPLES and found is not None and found.effective >= LEAST_INDEPENDENT
    return Look(
        start or 0, start is not None, found, half, precise, precise and believable and start is not None
    )


def enough(samples: Sequence[float], precision: float, elapsed: float, budget: float) -> bool:
    """True when the median is known to ±`precision` (relative, 0.01 is 1 %) or `budget` seconds have gone.

    Ask on a geometric schedule (`next_look`), not after each sample.
    """
    return elapsed >= budget or (len(samples) >= LEAST_SAMPLES and look(samples, precision).done)


def next_look(count: int) -> int:
    """How many samples there should be before it is worth asking again."""
    return max(LEAST_SAMPLES, count + 1, int(count * LOOK_GROWTH))
