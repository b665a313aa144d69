"""The one sampling loop, and when it stops: one rule, for calls in a process and for whole processes alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from time import perf_counter
from typing import NamedTuple

from profkit.core import statistics
from profkit.core.statistics import Interval

# Below 16 samples an autocorrelation cannot be told from noise, and 16 independent ones are asked for because
# the interval's coverage falls to 60 % without that on AR(1) noise of 0.9
# (tests/performance/interval_coverage.py).
LEAST_SAMPLES = 16
LEAST_INDEPENDENT = 15.5
SLOW_SIGMAS, SLOW_SHARE = 5.0, 0.05  # a first call is this far beyond the noise, and worth a word
FEW_SAMPLES = 40  # runs of one mode are often 20 long (a page's placement, a clock step): two of them
MOST_HIDDEN = 0.6  # of the precision asked: what a drift nobody sees may still be worth
DOUBTED_SAMPLES = 96  # with more, a drift of the size of the interval shows by itself
LOOK_GROWTH = 1.41  # every look is one more chance to stop by luck: twice as many samples, two looks
# Samples are spread over at least this long, and at most a quarter of the budget: an interval from 16 ms of a
# processor that is still raising its frequency is narrow and wrong.
SPREAD_SECONDS = 0.2
TimingProgress = Callable[[float, int, "float | None"], None]  # seconds gone, samples, relative half-width
DRIFT_SHARE = 0.1  # a drift that moves the median by a tenth of the precision asked is no drift


class SampleAssessment(NamedTuple):
    """What the samples so far say. The first `warmup` of them are warm-up; `interval` is of the rest."""

    warmup: int
    warm: bool
    interval: Interval | None
    half_width: float | None  # relative to the median
    precise: bool  # the half-width is as small as asked
    done: bool  # and there is enough behind it to believe so


def assess_samples(samples: Sequence[float], precision: float, *, doubt: bool = True) -> SampleAssessment:
    """Where warm-up ends, how well the median of the rest is known, and whether that is enough.

    With `doubt` a few samples in which no drift shows are not enough while they could hide one.
    """
    start = statistics.settling_index(samples, precision * DRIFT_SHARE)
    warmup = start or 0
    warmup += _count_slow_start(samples[warmup:])
    steady = samples[warmup:]
    bounds = statistics.median_interval(steady)
    half = statistics.relative_half_width(steady)
    precise = half is not None and half <= precision
    believable = len(steady) >= LEAST_SAMPLES and bounds is not None and bounds.effective >= LEAST_INDEPENDENT
    settled = start is not None and not (doubt and _may_hide_drift(steady, precision))
    return SampleAssessment(
        warmup, start is not None, bounds, half, precise, precise and believable and settled
    )


def sample_until(
    take_block: Callable[[int], Sequence[float]],
    assess: Callable[[Sequence[float]], SampleAssessment],
    *,
    begin: float,
    budget: float,
    first_look: int = 0,
    after_look: Callable[[], object] = lambda: None,
    progress: TimingProgress | None = None,
) -> list[float]:
    """Samples, taken in blocks until `assess` says that they are enough, or `budget` seconds since `begin` are gone.

    `take_block` is told how many samples are wanted before anybody looks at them again; it may give others, or none.
    At least one sample is waited for, whatever it costs. The first look is after `first_look` samples, 0: after as many
    as fill SPREAD_SECONDS; later ones come on a geometric schedule, each followed by `after_look`.
    """
    samples: list[float] = []
    block_seconds, ask, now = 0.0, first_look, perf_counter()
    while not samples or now - begin + block_seconds < budget:
        block = take_block(max(1, ask - len(samples)))
        before, now = now, perf_counter()
        block_seconds = now - before
        if not block:
            continue
        samples += block
        ask = ask or first_sample_count(block_seconds / len(block), budget)
        if len(samples) < ask:
            continue
        assessment = assess(samples)
        if progress is not None:
            progress(now - begin, len(samples), assessment.half_width)
        if assessment.done:
            break
        ask = next_sample_count(len(samples))
        after_look()
        now = perf_counter()
    return samples


def first_sample_count(sample_seconds: float, budget: float) -> int:
    """How many samples of that length there should be before it is worth asking."""
    return max(LEAST_SAMPLES, ceil(min(SPREAD_SECONDS, budget / 4) / max(sample_seconds, 1e-9)))


def _count_slow_start(samples: Sequence[float]) -> int:
    """How many samples at the very beginning are far slower than the rest: first calls, too few to be a drift."""
    if not samples:
        return 0
    centre, sigma = statistics.median(samples), statistics.mad_sigma(samples)
    limit = centre + max(SLOW_SIGMAS * sigma, SLOW_SHARE * centre)
    slow = 0
    while slow < len(samples) // 4 and samples[slow] > limit:
        slow += 1
    return slow


def _may_hide_drift(steady: Sequence[float], precision: float) -> bool:
    """Whether a drift or a second mode that would move the median could hide in these few samples."""
    if len(steady) >= DOUBTED_SAMPLES:
        return False
    bound = statistics.drift_bound(steady)
    return len(steady) < FEW_SAMPLES or (bound is not None and bound > precision * MOST_HIDDEN)


def is_enough(samples: Sequence[float], precision: float, elapsed: float, budget: float) -> bool:
    """True when the median is known to ±`precision` (relative, 0.01 is 1 %) or `budget` seconds have gone.

    Ask on a geometric schedule (`next_look`), not after each sample.
    """
    return elapsed >= budget or (
        len(samples) >= LEAST_SAMPLES and assess_samples(samples, precision, doubt=False).done
    )


def next_sample_count(count: int) -> int:
    """How many samples there should be before it is worth asking again."""
    return max(LEAST_SAMPLES, count + 1, int(count * LOOK_GROWTH))
