"""Times one function on a CUDA device, cold: each call finds a flushed L2, its launch hidden behind a stalled stream.

Triton's do_bench spends 100 ms on every case, whatever it knows already. Here a case ends when the median is known as
well as was asked, and the host never stands between two samples.

A sample is the mean of eight calls, which together see every state that the device goes through from kernel to kernel
(`PIECES` in device_samples.py says more). Single calls of 5 us fall into up to four groups, 20 % apart: their median is
known to 1 % after 2,000 of them, and a loop that happens to see other states says another one. Means of eight need 128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from profkit.core.statistics import median
from profkit.runtime.passes import sampling
from profkit.runtime.passes.device_clock import DeviceClock
from profkit.runtime.passes.device_samples import FLUSH_PIECES, DeviceCalls, DeviceSample, PipelinedBlocks
from profkit.runtime.passes.device_timing import DeviceWatch, EventTimingError

PROBES = 3
# What a call may leave behind its last event: waiting for an idle device takes 10 µs on an H200, and more elsewhere.
LEFT_SECONDS, LEFT_SHARE = 200e-6, 0.5
DIGITS = 6  # of a time; what is behind them is of the events' single precision, and no noise of the device


@dataclass(frozen=True)
class ColdTiming:
    """Samples in seconds per call, each of that many `calls`, and what must be known to believe them."""

    seconds: tuple[float, ...]
    precise: bool
    calls: int = 1
    clocks: tuple[float, ...] = ()
    throttled: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def time_cold(
    fn: Callable[[], object],
    clock: DeviceClock,
    watch: DeviceWatch,
    *,
    precision: float,
    budget: float,
    cold: bool = True,
) -> ColdTiming:
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
    seconds: list[float] = []
    clocks: list[float] = []
    reasons: dict[str, None] = {}
    ask = sampling.LEAST_SAMPLES if each > 1 else sampling.FEW_SAMPLES
    while True:
        seconds += group_means(blocks.next_block((ask - len(seconds)) * each), each)
        state = watch.look()
        if state.clock is not None:
            clocks.append(state.clock)
        reasons |= dict.fromkeys(state.words)
        over = perf_counter() - begin >= budget
        if not seconds or (len(seconds) < ask and not over):
            continue
        assessment = _assess(seconds, each, precision)
        if assessment.done or over:
            break
        ask = sampling.next_sample_count(len(seconds))
    if rest := group_means(blocks.last_block(), each):
        seconds += rest
        assessment = _assess(seconds, each, precision)
    remarks = (
        ("the host waits for the device inside the call: launches are in these times",)
        if calls.hurried
        else ()
    )
    settled = tuple(seconds[assessment.warmup :])
    return ColdTiming(settled, assessment.precise, each, tuple(clocks), tuple(reasons), remarks)


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


def _assess(seconds: Sequence[float], each: int, precision: float) -> sampling.SampleAssessment:
    """Where each sample is of several calls, sixteen are enough of them for a drift to show."""
    return sampling.assess_samples(seconds, precision, doubt=len(seconds) * each < sampling.DOUBTED_SAMPLES)
