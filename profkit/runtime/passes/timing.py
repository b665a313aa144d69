"""Times a function: loops until a sample is long enough for the clock, warms up, samples until the time is known.

Imports only what timing needs: no profiler, no tracer and no library that starts threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from profkit.core import statistics
from profkit.core.types import Fact, SampleSet
from profkit.runtime.passes.processor import MAX_WAITING_SHARE, ProcessorWatch, ReferenceLoop

if TYPE_CHECKING:
    from profkit.runtime.passes.device_samples import DeviceState, DeviceWatch

# One sample lasts at least this. A clock reading costs 0.05 µs (Linux) to 0.1 µs (Windows): 1 ms keeps that
# below 0.02 %. Longer samples (pyperf's 100 ms) only average in what a median of many short ones throws out.
SAMPLE_SECONDS = 1e-3
MAX_SAMPLES = 10_000  # in one process: samples get longer instead
# Times the samples before the first check: if nearly all of so many waited for a processor, the others would, too.
HOPELESS = 2
ALWAYS_WAITED = Fact("nearly-every-sample-waited-for-a-processor")
WAITED_IN_MOST_SAMPLES = Fact("most-samples-waited-for-a-processor")
MIN_FREE_SHARE = 0.05  # of samples that did not wait for a processor; with fewer, the times show only waiting
MOSTLY_FREE_SHARE = 0.5  # if more samples than this share did not wait, the others are not reported


class TimedCalls:
    """`fn`, timed. The work that it leaves to a device is included if the device is waited for."""

    def __init__(self, fn: Callable[[], object]) -> None:
        self.fn = fn
        self.loops = 1
        self.wait: Callable[[], object] = bool  # until the device has done what `fn` left it
        self.watch: ProcessorWatch | None = None
        self.device: DeviceWatch | None = None
        self.reference: ReferenceLoop | None = None
        self.waited = False  # in the last sample, as the watch saw it

    def sample(self) -> float:
        """Return the seconds per call over `loops` calls, including the work that they left to a device."""
        fn, wait, watch = self.fn, self.wait, self.watch
        wait()
        if watch is not None:
            watch.begin()
        begin = perf_counter()
        for _ in repeat(None, self.loops):
            fn()
        wait()
        seconds = perf_counter() - begin
        self.waited = watch is not None and watch.longest_wait() > MAX_WAITING_SHARE * seconds
        return seconds / self.loops


def calibrate_loops(calls: TimedCalls, least: float, most: float) -> list[float]:
    """Double `calls.loops` until a sample lasts `least` seconds; the samples on the way are warm-up.

    One long sample is no proof: the first call may compile, and another process may take the core for a while. So it
    is taken again, unless it took more than `most` seconds.
    """
    samples = [calls.sample()]
    retaken = 0.0  # seconds of samples whose process waited for a processor
    while True:
        if samples[-1] * calls.loops < least:
            calls.loops *= 2
        elif samples[-1] * calls.loops > most:
            break
        samples.append(calls.sample())
        while calls.waited and retaken < most:
            retaken += samples[-1] * calls.loops
            samples.append(calls.sample())
        if min(samples[-1], samples[-2]) * calls.loops >= least:
            break
    return samples


@dataclass
class _SampleLog:
    """Samples with their circumstances: whether the process waited for a processor, and the state of the device."""

    samples: list[tuple[float, bool, DeviceState | None]] = field(default_factory=list)

    @property
    def waiting(self) -> float:
        """Return the share of them in which the process waited."""
        return sum(waited for _, waited, _ in self.samples) / max(1, len(self.samples))

    @property
    def always_waits(self) -> bool:
        return self.waiting > 1 - MIN_FREE_SHARE

    def kept(self) -> list[tuple[float, bool, DeviceState | None]]:
        """Return the samples that count: those of a process that did not wait, on a device that did not slow down."""
        free = self.samples if self.always_waits else [sample for sample in self.samples if not sample[1]]
        unhindered = [sample for sample in free if sample[2] is None or not sample[2].throttle]
        return unhindered if 2 * len(unhindered) >= len(free) else free

    def clocks(self) -> tuple[float, ...]:
        return tuple(state.clock for _, _, state in self.kept() if state is not None and state.clock)

    def reasons(self) -> tuple[str, ...]:
        """Return why the device slowed down."""
        known = (state.words for _, _, state in self.samples if state is not None)
        return tuple(dict.fromkeys(word for words in known for word in words))

    def throttled(self) -> int:
        """Return the number of samples that do not count although the process did not wait."""
        free = len(self.samples) if self.always_waits else sum(not waited for _, waited, _ in self.samples)
        return free - len(self.kept())


def time_calls(
    calls: TimedCalls,
    *,
    precision: float,
    max_seconds: float,
    warmup: int = 1,
    before: Sequence[float] = (),
    least: float = 0.0,
) -> SampleSet:
    """Take samples of `calls` until the median's 95 % interval is ±`precision` (relative) or `max_seconds` are over.

    The first call is never a sample, unless it alone takes all of that time: then it is the only one. The precision is
    checked first after SPREAD_SECONDS and 16 samples, then on a geometric schedule. A KeyboardInterrupt passes through.
    `before` are calls that the caller has timed already, and `least` how long a sample lasts at least (seconds).
    With a watch (`calls.watch`), samples in which the process waited for a processor are taken again; if all are
    such samples, they are kept, and a remark says so. Samples in which a watched device slowed itself down are left
    out. A reference loop (`calls.reference`) is timed between the samples.
    """
    begin = perf_counter()
    least = max(SAMPLE_SECONDS, least, max_seconds / MAX_SAMPLES)
    warm = [*before, *calibrate_loops(calls, least, max_seconds / 4)]
    while len(warm) < warmup and perf_counter() - begin < max_seconds / 2:
        warm.append(calls.sample())
    log = _SampleLog()
    sample_seconds = warm[-1] * calls.loops
    first_look = first_sample_count(sample_seconds, max_seconds)

    def take(_: int) -> Sequence[float]:
        if calls.reference is not None:
            calls.reference.run_if_due()
        seconds = calls.sample()
        log.samples.append((seconds, calls.waited, calls.device.look() if calls.device is not None else None))
        return (seconds,)

    def assess(_: object = None) -> SampleAssessment:
        assessment = assess_samples([seconds for seconds, _, _ in log.kept()], precision)
        hoping = log.always_waits and len(log.samples) < HOPELESS * first_look
        return assessment._replace(done=assessment.done and not hoping)

    if perf_counter() - begin + sample_seconds < max_seconds:
        sample_until(
            take,
            assess,
            begin=begin,
            max_seconds=max_seconds,
            first_look=first_look,
            after_look=calls.sample,  # the check has emptied the caches: the call that fills them is not counted
        )
    if not log.samples:
        log.samples.append((warm.pop(), False, None))
    samples, assessment = [seconds for seconds, _, _ in log.kept()], assess()
    often = (WAITED_IN_MOST_SAMPLES,) if log.waiting > 1 - MOSTLY_FREE_SHARE else ()
    return SampleSet(
        seconds=tuple(samples[assessment.warmup :]),
        loops=calls.loops,
        warmup=(*warm, *samples[: assessment.warmup]),
        warm=assessment.warm and bool(warm),
        precise=assessment.precise and not log.always_waits,
        spent=perf_counter() - begin,
        clocks=log.clocks(),
        throttled=log.throttled(),
        throttle_reasons=log.reasons(),
        remarks=(ALWAYS_WAITED,) if log.always_waits else often,
        reference_loop=() if calls.reference is None else tuple(calls.reference.seconds),
    )


# ------------------------------------------------------------ the one sampling loop, for calls and for processes

# Below 16 samples an autocorrelation cannot be distinguished from noise, and 16 independent ones are required because
# the interval's coverage falls to 60 % without that on AR(1) noise of 0.9.
MIN_SAMPLES = 16
MIN_INDEPENDENT_SAMPLES = 15.5
# A first call is slow if it is longer than the median by both: so many sigma of the noise, and this share of it.
SLOW_SIGMAS, SLOW_SHARE = 5.0, 0.05
FEW_SAMPLES = 40  # runs of one mode are often 20 long (a page's placement, a clock step): two of them
MAX_HIDDEN_DRIFT = 0.6  # share of the requested precision that an undetected drift may have
DOUBTED_SAMPLES = 96  # with more, a drift of the size of the interval shows by itself
LOOK_GROWTH = 1.41  # each check is a chance to stop too early: there are two until the samples have doubled
# Samples are spread over at least this long, and at most a quarter of the time for all: an interval from 16 ms of a
# processor that is still raising its frequency is narrow and wrong.
SPREAD_SECONDS = 0.2
DRIFT_SHARE = 0.1  # of the wanted precision: a drift that moves the median by less is ignored


class SampleAssessment(NamedTuple):
    """An assessment of the samples so far. The first `warmup` of them are warm-up."""

    warmup: int
    warm: bool
    precise: bool  # the interval of the median of the rest is as small as wanted
    done: bool  # and there are enough samples to trust that


def assess_samples(samples: Sequence[float], precision: float, *, doubt: bool = True) -> SampleAssessment:
    """Return where warm-up ends, how well the median of the rest is known, and whether that is enough.

    With `doubt`, a few samples without a visible drift are not enough as long as they could hide one.
    """
    start = statistics.settling_index(samples, precision * DRIFT_SHARE)
    warmup = start or 0
    warmup += _count_slow_start(samples[warmup:])
    steady = samples[warmup:]
    bounds = statistics.median_interval(steady)
    half = statistics.relative_half_width(steady)
    precise = half is not None and half <= precision
    believable = (
        len(steady) >= MIN_SAMPLES and bounds is not None and bounds.effective >= MIN_INDEPENDENT_SAMPLES
    )
    settled = start is not None and not (doubt and _may_hide_drift(steady, precision))
    return SampleAssessment(warmup, start is not None, precise, precise and believable and settled)


def sample_until(
    take_block: Callable[[int], Sequence[float]],
    assess: Callable[[Sequence[float]], SampleAssessment],
    *,
    begin: float,
    max_seconds: float,
    first_look: int = 0,
    after_look: Callable[[], object] = lambda: None,
) -> list[float]:
    """Take samples in blocks until `assess` says that they are enough, or `max_seconds` since `begin` are over.

    `take_block` gets the number of samples wanted before the next check; it may return fewer, or none. At least one
    sample is taken, whatever it costs. The first check comes after `first_look` samples (0: as many as fill
    SPREAD_SECONDS); later ones follow on a geometric schedule, and `after_look` is called after each.
    """
    samples: list[float] = []
    block_seconds, ask, now = 0.0, first_look, perf_counter()
    while not samples or now - begin + block_seconds < max_seconds:
        block = take_block(max(1, ask - len(samples)))
        before, now = now, perf_counter()
        block_seconds = now - before
        if not block:
            continue
        samples += block
        ask = ask or first_sample_count(block_seconds / len(block), max_seconds)
        if len(samples) < ask:
            continue
        assessment = assess(samples)
        if assessment.done:
            break
        ask = max(MIN_SAMPLES, len(samples) + 1, int(len(samples) * LOOK_GROWTH))
        after_look()
        now = perf_counter()
    return samples


def first_sample_count(sample_seconds: float, max_seconds: float) -> int:
    """Return how many samples of that length are needed before a first check makes sense."""
    return max(MIN_SAMPLES, ceil(min(SPREAD_SECONDS, max_seconds / 4) / max(sample_seconds, 1e-9)))


def _count_slow_start(samples: Sequence[float]) -> int:
    """Return how many samples at the very beginning are far slower than the rest: first calls, too few for a
    drift.
    """
    if not samples:
        return 0
    centre, sigma = statistics.median(samples), statistics.mad_sigma(samples)
    limit = centre + max(SLOW_SIGMAS * sigma, SLOW_SHARE * centre)
    slow = 0
    while slow < len(samples) // 4 and samples[slow] > limit:
        slow += 1
    return slow


def _may_hide_drift(steady: Sequence[float], precision: float) -> bool:
    """Return whether a drift or a second mode that would move the median could hide in these few samples."""
    if len(steady) >= DOUBTED_SAMPLES:
        return False
    bound = statistics.drift_bound(steady)
    return len(steady) < FEW_SAMPLES or (bound is not None and bound > precision * MAX_HIDDEN_DRIFT)


def is_enough(samples: Sequence[float], precision: float, elapsed: float, max_seconds: float) -> bool:
    """Return whether the median is known to ±`precision` (relative, 0.01 is 1 %) or `max_seconds` are over.

    Call it on a geometric schedule, not after each sample.
    """
    return elapsed >= max_seconds or (
        len(samples) >= MIN_SAMPLES and assess_samples(samples, precision, doubt=False).done
    )
