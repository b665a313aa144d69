"""Times one function on a CUDA device, cold: each call finds a flushed L2, its launch hidden behind a held stream.

Triton's do_bench spends 100 ms on every case, whatever it knows already. Here a case ends when the median is known as
well as was asked, and the host never stands between two samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from profkit.passes import sampling
from profkit.passes.device_clock import DeviceClock
from profkit.passes.device_flight import Flight
from profkit.passes.device_samples import DeviceCalls
from profkit.passes.device_watch import Watch

PROBES = 3


@dataclass(frozen=True)
class Timed:
    """Samples of single calls in seconds, and what must be known to believe them."""

    seconds: tuple[float, ...]
    precise: bool
    clocks: tuple[float, ...] = ()
    throttled: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def time_cold(
    fn: Callable[[], object],
    clock: DeviceClock,
    watch: Watch,
    *,
    precision: float,
    budget: float,
    cold: bool = True,
) -> Timed:
    """Samples until the median's 95 % interval is ±`precision` (a share) or `budget` seconds are gone; 40 at least
    where the budget allows.

    `fn` was called before: nothing is compiled in here. Raises DriverError, and what `fn` raises.
    """
    begin = perf_counter()
    calls = DeviceCalls(fn, clock, cold=cold)
    probes = [calls.back_to_back(1) for _ in range(PROBES)]
    calls.expect(min(probes, key=lambda sample: sample.wall))
    flight = Flight(calls)
    seconds: list[float] = []
    clocks: list[float] = []
    reasons: dict[str, None] = {}
    ask = sampling.FEW_SAMPLES  # with fewer nobody believes that there is no drift
    while True:
        seconds += flight.block(ask - len(seconds))
        state = watch.look()
        if state.clock is not None:
            clocks.append(state.clock)
        reasons |= dict.fromkeys(state.words)
        over = perf_counter() - begin >= budget
        if not seconds or (len(seconds) < ask and not over):
            continue
        seen = sampling.look(seconds, precision)
        if seen.done or over:
            break
        ask = sampling.next_look(len(seconds))
    if rest := flight.rest():
        seconds += rest
        seen = sampling.look(seconds, precision)
    remarks = (
        ("the host waits for the device inside the call: launches are in these times",)
        if calls.hurried
        else ()
    )
    return Timed(tuple(seconds[seen.warmup :]), seen.precise, tuple(clocks), tuple(reasons), remarks)
