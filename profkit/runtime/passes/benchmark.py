"""`profkit.benchmark`: one function for every pass, so that every instrument sees the same work.

Run by hand it measures and prints. Under profkit's timing pass it measures and records. Under an instrument it warms up
outside the region and runs the function inside it as often as the pass asks.

Three clocks: CUDA events where the function leaves its work to a CUDA device; on torch's MPS device the wall clock,
with the device waited for; else the wall clock.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from profkit.core import statistics
from profkit.core.statistics import median
from profkit.core.types import Directive, SampleSet
from profkit.runtime.passes.host.own_library import own_library
from profkit.runtime.passes.processor import ProcessorWatch, ReferenceLoop
from profkit.runtime.passes.timing import TimedCalls, time_calls, time_on_mps
from profkit.runtime.region import DIRECTIVE_VARIABLE, HOST_MODULE, mps
from profkit.runtime.region.cuda import CudaDriver, DriverError, driver_in_use, uses_cuda

if TYPE_CHECKING:
    from profkit.runtime.region.active import RegionSession


DeviceChoice = Literal["cuda", "mps", "cpu"]
NO_DEVICE = "no CUDA device is in use in this process"
NO_MPS = "no MPS device is in use in this process"
NO_COLD_MPS = "the caches are as they were: they are flushed on CUDA alone"
LAUNCH_BOUND_RATIO = 1.05  # host and device are two numbers from here on
DEFAULT_PRECISION = 0.01
DEFAULT_BUDGET = 10.0  # seconds, by hand; under profkit the directive says
LEAST_SINGLE_CALLS = 12  # iterations for an instrument that compares them with each other, even if they need
SINGLE_CALLS_BUDGET = 5  # times the seconds that were meant


def time_function(
    calls: TimedCalls,
    *,
    device: DeviceChoice | None,
    cold: bool,
    precision: float,
    budget: float,
    warmup: int = 1,
) -> SampleSet:
    """Samples of `calls` by the clock that fits it; `remarks` say why it is not the one that was asked for.

    `device` None looks for itself: whether this process has a CUDA context or memory on torch's MPS device, before the
    first call or after it.
    """
    overrides = {"precision": precision, "budget": budget}
    driver, on_mps, first = _find_device(calls, device)
    if on_mps is not None:
        samples = time_on_mps(calls, on_mps.synchronize, first=first, warmup=warmup, **overrides)
        return replace(samples, remarks=(NO_COLD_MPS, *samples.remarks)) if cold else samples
    if first is not None and first >= budget:  # a call that takes the budget alone is the only one
        return SampleSet((first,), precise=False, warm=False, spent=first)
    missing, cache = (NO_MPS, "caches were") if device == "mps" else (NO_DEVICE, "L2 was")
    remark = f"{missing}: the {cache} not flushed" if cold else missing if device in ("cuda", "mps") else None
    if driver is not None:
        with own_library:
            from profkit.runtime.passes.device_samples import DeviceCalls, open_clock
            from profkit.runtime.passes.device_timing import DeviceWatch, EventTimingError, time_on_device

        try:
            with open_clock(driver) as clock:
                timed = DeviceCalls(calls.fn, clock, calls.setup, cold=cold)
                return time_on_device(timed, DeviceWatch(clock.address()), warmup=warmup, **overrides)
        except (EventTimingError, DriverError) as error:
            remark = f"by the wall clock, the L2 as it is: {error}" if cold else f"by the wall clock: {error}"
        calls.wait_for(driver.synchronize)
    # what a device was given by the first call is not in its seconds: then that is no first time
    before = () if first is None or driver is not None else (first,)
    calls.reference = ReferenceLoop()
    with ProcessorWatch() as calls.watch:
        samples = time_calls(calls, warmup=warmup, before=before, **overrides)
    return replace(samples, remarks=(remark, *samples.remarks)) if remark is not None else samples


def _find_device(
    calls: TimedCalls, device: DeviceChoice | None
) -> tuple[CudaDriver | None, Any, float | None]:
    """The driver or the module torch.mps that the calls use, and the seconds of a first call where it took one to see.

    The work that this call left to MPS is part of its seconds.
    """
    cuda_may_be, mps_may_be = device in (None, "cuda"), device in (None, "mps")

    def look() -> tuple[CudaDriver | None, Any]:
        driver = driver_in_use() if cuda_may_be else None
        return driver, mps.mps_in_use() if driver is None and mps_may_be else None

    driver, on_mps = look()
    may_begin = device == "cuda" or (cuda_may_be and uses_cuda()) or (mps_may_be and mps.mps_is_available())
    if driver is not None or on_mps is not None or not may_begin:
        return driver, on_mps, None
    first = calls.sample()
    begin = perf_counter()
    driver, on_mps = look()
    if on_mps is not None:
        on_mps.synchronize()
        first += perf_counter() - begin
    return driver, on_mps, first


def describe_device(samples: SampleSet) -> Iterator[str]:
    """Which clock, which cache, who is waited for, and what the device did meanwhile."""
    if samples.clock == "cuda-events":
        yield f"CUDA events, {samples.cache} L2"
    if samples.clock == "mps-synchronized":
        yield "MPS, waited for"
    if samples.seconds and samples.cache != "cold":
        yield from _describe_launches(samples, median(samples.seconds))
    if samples.clocks:
        yield f"SM clock {median(samples.clocks) / 1e9:.3g} GHz"
    if samples.throttle_reasons:
        why = ", ".join(samples.throttle_reasons)
        held = (
            f"{samples.throttled} throttled samples left out" if samples.throttled else "throttled all along"
        )
        yield f"{held}: {why}"
    yield from samples.remarks


def _describe_launches(samples: SampleSet, seconds: float) -> Iterator[str]:
    device, host = samples.device_seconds, samples.host_seconds
    if device is not None and seconds > LAUNCH_BOUND_RATIO * device:
        alone = f", to launch it takes the host {format_duration(host)}" if host is not None else ""
        yield f"launch-bound: the device alone needs {format_duration(device)}{alone}"


def format_duration(seconds: float) -> str:
    """Seconds in the unit people read: 1.234 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


@dataclass(frozen=True)
class BenchmarkResult:
    """What was measured. Under an instrument (`instrument` names the pass) the times are not the workload's own."""

    name: str
    samples: SampleSet  # seconds per call
    precision: float
    flops: float | None = None  # per call
    bytes: float | None = None
    instrument: str | None = None

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.samples.seconds)

    @property
    def interval(self) -> statistics.MedianInterval | None:
        """The 95 % interval of the median; None from fewer than 6 independent samples."""
        return statistics.median_interval(self.samples.seconds)

    @property
    def flops_per_second(self) -> float | None:
        """FLOP/s, where the workload says what it computes."""
        return self.flops / self.median if self.flops is not None and self.median > 0 else None

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes/s, where the workload says what it moves."""
        return self.bytes / self.median if self.bytes is not None and self.median > 0 else None

    def __str__(self) -> str:
        parts = [f"{self.name}: {format_duration(self.median)}{self._plus_minus()}", self._taken()]
        if self.flops_per_second is not None:
            parts.append(f"{self.flops_per_second / 1e9:.4g} GFLOP/s")
        if self.bytes_per_second is not None:
            parts.append(f"{self.bytes_per_second / 1e9:.4g} GB/s")
        remarks = []
        if not self.samples.precise:
            remarks.append(f"±{100 * self.precision:g} % was not reached within {self.samples.spent:.1f} s")
        if not self.samples.warm:
            remarks.append("it was still drifting")
        remarks += describe_device(self.samples)
        return ", ".join(parts) + (f" ({'; '.join(remarks)})" if remarks else "")

    def _plus_minus(self) -> str:
        half = statistics.relative_half_width(self.samples.seconds)
        return f" ± {100 * half:.2g} %" if half is not None else " (no interval: too few samples)"

    def _taken(self) -> str:
        count, loops = len(self.samples.seconds), self.samples.loops
        each = f" of {loops} calls" if loops > 1 else ""
        return f"{count} sample{'s' if count != 1 else ''}{each}"


def benchmark(
    fn: Callable[[], object],
    *,
    name: str,
    flops: float | None = None,
    bytes: float | None = None,
    setup: Callable[[], object] | None = None,
    synchronize: Callable[[], object] | None = None,
    device: DeviceChoice | None = None,
    cold: bool = False,
    first: float | None = None,
    precision: float = DEFAULT_PRECISION,
    budget: float = DEFAULT_BUDGET,
) -> BenchmarkResult:
    """Measure `fn()`, or give it to the instrument of the present pass.

    `flops` and `bytes` are per call, and show as GFLOP/s and GB/s. `setup()` runs before every call, outside what
    is measured. `synchronize()` waits for work that `fn` leaves to a device: it is called before the wall clock is
    read. CUDA and torch's MPS need none.

    CUDA: where this process has a CUDA context, events on the current stream are the clock (`device="cuda"` says so
    where there is none, `device="cpu"` keeps to the wall clock), checked against the wall clock. Then
    `samples.seconds` are what a call costs back to back, `samples.device_seconds` what it costs the device without
    the launches, and with `cold` each call finds a flushed L2.

    MPS: where this process has memory on torch's MPS device (`device="mps"` says so where it has none), the device is
    waited for. `samples.seconds` are calls back to back with one wait for many; `cold` changes nothing there.

    `first` are the seconds of a first call that was made already, to check its result for one: it is told as the
    first time. `precision` is the relative half-width asked of the median's 95 % interval, `budget` the seconds that
    may be spent by hand; under profkit the pass decides both. Garbage collection stays on: a workload that pays for it
    in production pays for it here.

    Prints one line when run by hand; quiet under profkit. What `fn` raises passes through.
    Raises ValueError for flops, bytes, first, precision or budget that are no positive finite numbers, and for another
    device.
    """
    words = ("flops", "bytes", "first", "precision", "budget")
    for word, value in zip(words, (flops, bytes, first, precision, budget), strict=True):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}: {word} must be a positive finite number, not {value!r}")
    if device not in (None, "cuda", "mps", "cpu"):
        raise ValueError(f"{name}: device must be 'cuda', 'mps', 'cpu' or None, not {device!r}")
    calls = TimedCalls(fn, setup, synchronize)
    if DIRECTIVE_VARIABLE not in os.environ and HOST_MODULE not in sys.modules:
        samples = time_function(calls, device=device, cold=cold, precision=precision, budget=budget)
        result = BenchmarkResult(name, _add_first_call(first, samples), precision, flops, bytes)
        print(result)
        return result
    with own_library:
        from profkit.runtime.region.active import session

    directive = session.directive or Directive("cprofile", "", seconds=1.0)
    if directive.pass_name == "timing":
        with session.quiet():
            samples = time_function(
                calls,
                device=device,
                cold=cold or directive.cold,
                precision=directive.precision,
                budget=directive.budget,
                warmup=directive.warmup,
            )
        samples = replace(_add_first_call(first, samples), pid=os.getpid())
        session.add_benchmark(name, samples, flops, bytes)
        return BenchmarkResult(name, samples, directive.precision, flops, bytes)
    samples = _run_under_instrument(calls, device, name, directive, session)
    return BenchmarkResult(name, samples, directive.precision, flops, bytes, directive.pass_name)


def _add_first_call(first: float | None, samples: SampleSet) -> SampleSet:
    return samples if first is None else replace(samples, warmup=(first, *samples.warmup))


def _run_under_instrument(
    calls: TimedCalls, device: DeviceChoice | None, name: str, directive: Directive, session: RegionSession
) -> SampleSet:
    """Run `fn` in the region for the instrument: a given number of calls, or as many as fit the seconds."""
    session.prepare()
    with session.quiet():
        warm = [calls.sample() for _ in range(directive.warmup)]
    if device != "cpu" and (driver := driver_in_use()) is not None:
        calls.wait_for(driver.synchronize)
    if device in (None, "mps") and (backend := mps.mps_in_use()) is not None:
        calls.wait_for(backend.synchronize)
    region = _BenchmarkRegion(session, name, calls)
    hooks = session.iteration_hooks()
    with region:
        begin = perf_counter()
        while (wanted := _next_block(region.iterations, perf_counter() - begin, directive, bool(hooks))) > 0:
            region.run(wanted)
            if directive.iterations is None:
                calls.wait()  # else the clock would only see what the host has launched
            for hook in hooks:
                hook(region.iterations - 1)
        spent = perf_counter() - begin
    return SampleSet(
        (spent / max(1, region.iterations),), region.iterations, tuple(warm), precise=False, spent=spent
    )


class _BenchmarkRegion:
    """One entry of the region around all calls; with a setup one entry for each, since setup does not
    count."""

    def __init__(self, session: RegionSession, name: str, calls: TimedCalls) -> None:
        self._session, self._name, self._calls = session, name, calls
        self.iterations = 0

    def __enter__(self) -> _BenchmarkRegion:
        if self._calls.setup is None:
            self._session.enter(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._calls.setup is None:
            self._calls.wait()
            self._session.exit(self._name, self.iterations)

    def run(self, count: int) -> None:
        """`count` calls, counted as they end, so that a failing one leaves the right number."""
        fn, setup = self._calls.fn, self._calls.setup
        if setup is None:
            for _ in repeat(None, count):
                fn()
            self.iterations += count
            return
        for _ in repeat(None, count):
            setup()
            self._session.enter(self._name)
            try:
                fn()
                self._calls.wait()
            finally:
                self._session.exit(self._name)
            self.iterations += 1


def _next_block(done: int, elapsed: float, directive: Directive, singly: bool) -> int:
    """How many calls to make next: blocks that double, so that the clock is read seldom inside the region."""
    if directive.iterations is not None:
        left = max(1, directive.iterations) - done
        return min(1, left) if singly else left
    if done == 0:
        return 1
    seconds = directive.seconds or 0.0
    if singly and done < LEAST_SINGLE_CALLS and elapsed < SINGLE_CALLS_BUDGET * seconds:
        return 1
    fit = int((seconds - elapsed) / max(elapsed / done, 1e-9))
    return min(1 if singly else done, fit)
