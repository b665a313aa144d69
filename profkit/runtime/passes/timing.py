"""Times a function: loops until a sample is long enough for the clock, warms up, samples until it is known.

Imports only what timing needs: no profiler, no tracer and no library that starts threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from time import perf_counter

from profkit.core.types import SampleSet
from profkit.runtime.passes.processor_wait import ProcessorWatch
from profkit.runtime.passes.sampling import (
    TimingProgress,
    assess_samples,
    first_sample_count,
    sample_until,
)
from profkit.runtime.reference_loop import ReferenceLoop

# One sample lasts at least this. A clock reading costs 0.05 µs (Linux) to 0.1 µs (Windows): 1 ms keeps that
# below 0.02 %. Longer samples (pyperf's 100 ms) only average in what a median of many short ones throws out.
SAMPLE_SECONDS = 1e-3
CLOCK_STEPS = 1000  # and this many steps of the clock, where the clock is coarse
MOST_SAMPLES = 10_000  # in one budget: samples get longer instead
# so many times the samples that a first look takes, and each waited: then waiting is all there is
HOPELESS = 2
ALWAYS_WAITED = (
    "threads of it waited for a processor in every sample: other programs were busy, or it has more threads than there "
    "are processors; alone it may be far faster"
)
OFTEN_WAITED = (
    "most samples were thrown away: threads of it waited for a processor, since other programs were busy"
)
MUCH_THROWN = 0.5  # of all samples; less is not worth a word


class TimedCalls:
    """`fn`, timed. With a `setup`, which runs untimed before each call, a sample is always one call."""

    def __init__(
        self,
        fn: Callable[[], object],
        setup: Callable[[], object] | None = None,
        synchronize: Callable[[], object] | None = None,
    ) -> None:
        self.fn, self.setup, self._synchronize = fn, setup, synchronize
        self.loops = 1
        self.watch: ProcessorWatch | None = None
        self.reference: ReferenceLoop | None = None
        self.waited = False  # in the last sample, as the watch saw it

    def sample(self) -> float:
        """Seconds per call over `loops` calls, the work they left to a device included."""
        fn, wait = self.fn, self._synchronize
        if self.setup is not None:
            self.setup()
        if wait is not None:
            wait()
        watch = self.watch
        if watch is not None:
            watch.begin()
        begin = perf_counter()
        for _ in repeat(None, self.loops):
            fn()
        if wait is not None:
            wait()
        seconds = perf_counter() - begin
        self.waited = watch is not None and watch.waited(seconds)
        return seconds / self.loops

    def wait_for(self, synchronize: Callable[[], object]) -> None:
        """Wait for a device as well, in every sample from now on."""
        before = self._synchronize
        if before == synchronize:  # to wait twice costs twice
            return

        def both() -> None:
            if before is not None:
                before()
            synchronize()

        self._synchronize = both

    def wait(self) -> None:
        """Until the device has done what `fn` left it."""
        if self._synchronize is not None:
            self._synchronize()


def clock_step() -> float:
    """The smallest step the clock was seen to make, in seconds."""
    steps = []
    for _ in range(5):
        begin = end = perf_counter()
        while end == begin:
            end = perf_counter()
        steps.append(end - begin)
    return min(steps)


def calibrate_loops(calls: TimedCalls, least: float, most: float) -> list[float]:
    """Double `calls.loops` until a sample lasts `least` seconds; the samples on the way are warm-up.

    One long sample is no proof: a first call compiles, and another process may take the core for a while. So
    it is taken once more, unless it took more than `most` seconds.
    """
    samples = [calls.sample()]
    retaken = 0.0  # seconds of samples whose process waited for a processor
    while calls.setup is None:
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


def time_calls(
    calls: TimedCalls,
    *,
    precision: float,
    budget: float,
    warmup: int = 1,
    progress: TimingProgress | None = None,
    before: Sequence[float] = (),
    least: float = 0.0,
) -> SampleSet:
    """Samples of `calls` until the median's 95 % interval is ±`precision` (relative) or `budget` seconds are gone.

    The first call is never a sample, unless it alone takes the budget: then it is the only one. Asks first
    after SPREAD_SECONDS and 16 samples, then on a geometric schedule. A KeyboardInterrupt passes through.
    `before` are calls that the caller has timed already, and `least` how long a sample lasts at least (seconds).
    With a watch (`calls.watch`) samples in which the process waited for a processor are taken again; where all are
    such, they stay, and a remark says so. With a reference loop (`calls.reference`) that is timed between them.
    """
    begin = perf_counter()
    least = max(SAMPLE_SECONDS, least, CLOCK_STEPS * clock_step(), budget / MOST_SAMPLES)
    warm = [*before, *calibrate_loops(calls, least, budget / 4)]
    while len(warm) < warmup and perf_counter() - begin < budget / 2:
        warm.append(calls.sample())
    thrown: list[float] = []  # their process waited for a processor
    quiet = always_waits = False
    sample_seconds = warm[-1] * calls.loops
    first_look = first_sample_count(sample_seconds, budget)

    def take(_: int) -> Sequence[float]:
        nonlocal quiet, always_waits, thrown
        if calls.reference is not None:
            calls.reference.run_if_due()
        seconds = calls.sample()
        if not calls.waited or always_waits:
            quiet = True
            return (seconds,)
        thrown.append(seconds)
        is_over = perf_counter() - begin + seconds * calls.loops >= budget
        if quiet or (len(thrown) < HOPELESS * first_look and not is_over):
            return ()
        taken, thrown, always_waits = thrown, [], True
        return taken

    samples: list[float] = []
    if perf_counter() - begin + sample_seconds < budget:
        samples = sample_until(
            take,
            lambda samples: assess_samples(samples, precision),
            begin=begin,
            budget=budget,
            first_look=first_look,
            after_look=calls.sample,  # looking has emptied the caches: the call that fills them again is not counted
            progress=progress,
        )
    remarks = tuple(_waiting_remarks(len(samples), len(thrown), always_waits=always_waits))
    if not samples:
        samples, warm = [warm[-1]], warm[:-1]
    assessment = assess_samples(samples, precision)
    return SampleSet(
        seconds=tuple(samples[assessment.warmup :]),
        loops=calls.loops,
        warmup=(*warm, *samples[: assessment.warmup]),
        warm=assessment.warm and bool(warm),
        precise=assessment.precise and not always_waits,
        spent=perf_counter() - begin,
        remarks=remarks,
        reference_loop=() if calls.reference is None else tuple(calls.reference.seconds),
    )


def _waiting_remarks(count: int, thrown: int, *, always_waits: bool) -> Iterator[str]:
    if always_waits:
        yield ALWAYS_WAITED
    elif thrown > MUCH_THROWN * (thrown + count):
        yield OFTEN_WAITED
