"""Times one function on a CUDA device, cold: each call finds a flushed L2, its launch hidden behind a stalled stream.

Triton's do_bench spends 100 ms on every case, whatever it knows already. Here a case ends when the median is known as
well as was asked, and the host never stands between two samples.

A sample is the mean of eight calls, which together see every state that the device goes through from kernel to kernel
(`PIECES` in device_samples.py says more). Single calls of 5 us fall into up to four groups, 20 % apart: their median is
known to 1 % after 2,000 of them, and a loop that happens to see other states says another one. Means of eight need 128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from profkit.core.statistics import median
from profkit.core.types import SampleSet
from profkit.runtime.passes.device_samples import (
    FLUSH_PIECES,
    DeviceCalls,
    DeviceClock,
    DeviceSample,
    PipelinedBlocks,
)
from profkit.runtime.passes.device_timing import DeviceWatch, EventTimingError
from profkit.runtime.passes.timing import (
    DOUBTED_SAMPLES,
    FEW_SAMPLES,
    LEAST_SAMPLES,
    SampleAssessment,
    assess_samples,
    sample_until,
)

PROBES = 3
HURRIED = "the host waits for the device inside the call: launches are in these times"
# What a call may leave behind its last event: waiting for an idle device takes 10 µs on an H200, and more elsewhere.
LEFT_SECONDS, LEFT_SHARE = 200e-6, 0.5
DIGITS = 6  # of a time; what is behind them is of the events' single precision, and no noise of the device


def time_cold(
    fn: Callable[[], object],
    clock: DeviceClock,
    watch: DeviceWatch,
    *,
    precision: float,
    budget: float,
    cold: bool = True,
) -> SampleSet:
    """Samples until the median's 95 % interval is ±`precision` (a share) or `budget` seconds are gone.

    Sixteen at least where the budget allows; of calls that take so long that eight of them make no block, forty of
    one call. `fn` was called before: nothing is compiled in here. Raises EventTimingError where the work is elsewhere,
    DriverError, and what `fn` raises.
    """
    begin = perf_counter()
    calls = DeviceCalls(fn, clock, cold=cold)
    probes = [calls.back_to_back(1) for _ in range(PROBES)]
    _check_all_seen(probes)
    calls.fit_blocks(min(probes, key=lambda sample: sample.wall))
    each = len(FLUSH_PIECES) if calls.ahead >= len(FLUSH_PIECES) else 1
    blocks = PipelinedBlocks(calls)
    clocks: list[float] = []
    reasons: dict[str, None] = {}

    def take(wanted: int) -> Sequence[float]:
        seconds = group_means(blocks.next_block(wanted * each), each)
        state = watch.look()
        if state.clock is not None:
            clocks.append(state.clock)
        reasons.update(dict.fromkeys(state.words))
        return seconds

    def assess(samples: Sequence[float]) -> SampleAssessment:
        """Where each sample is of several calls, sixteen are enough of them for a drift to show."""
        return assess_samples(samples, precision, doubt=len(samples) * each < DOUBTED_SAMPLES)

    first_look = LEAST_SAMPLES if each > 1 else FEW_SAMPLES
    seconds = sample_until(take, assess, begin=begin, budget=budget, first_look=first_look)
    seconds += group_means(blocks.last_block(), each)
    assessment = assess(seconds)
    return SampleSet(
        tuple(seconds[assessment.warmup :]),
        each,
        precise=assessment.precise,
        clock="cuda-events",
        cache="cold" if cold else "warm",
        clocks=tuple(clocks),
        throttle_reasons=tuple(reasons),
        remarks=(HURRIED,) if calls.hurried else (),
    )


def _check_all_seen(probes: Sequence[DeviceSample]) -> None:
    """Raises EventTimingError where much is left to do when the last event has come: nobody would wait for it."""
    left, event_seconds = min(probe.rest for probe in probes), median([probe.device for probe in probes])
    if left > max(LEFT_SECONDS, LEFT_SHARE * event_seconds):
        share = event_seconds / (event_seconds + left)
        raise EventTimingError(
            f"CUDA events see {share:.0%} of it: the rest is on another stream, and nothing waits for that"
        )


def group_means(block: Sequence[float], each: int) -> list[float]:
    """Means of `each` calls that followed one another; of a block that is shorter, its own."""
    parts = [block[first : first + each] for first in range(0, max(1, len(block) - each + 1), each)]
    return [float(f"{sum(part) / len(part):.{DIGITS}g}") for part in parts if part]
