"""`profkit.benchmark`: one function for every pass, so that every instrument sees the same work.

Run by hand it measures and prints. Under profkit's timing pass it measures and records. Under an instrument it warms up
outside the region and runs the function inside it as often as the pass asks.

The wall clock times it, many calls to a sample; what the function leaves to a CUDA device or to torch's MPS device is
waited for at both ends of each.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING, Any

from profkit.core import statistics
from profkit.core.formatting import format_quantity, plural
from profkit.core.statistics import median
from profkit.core.types import Clock, Directive, SampleSet, message_of
from profkit.runtime.passes.host.own_library import own_library
from profkit.runtime.passes.processor import ProcessorWatch, ReferenceLoop
from profkit.runtime.passes.timing import TimedCalls, time_calls
from profkit.runtime.region import DIRECTIVE_VARIABLE, HOST_MODULE, mps
from profkit.runtime.region.cuda import CudaDriver, driver_in_use, uses_cuda

if TYPE_CHECKING:
    from profkit.runtime.passes.device_samples import DeviceWatch
    from profkit.runtime.region.active import RegionSession


DEFAULT_PRECISION = 0.01
DEFAULT_BUDGET = 10.0  # seconds, by hand; under profkit the directive says
MIN_SINGLE_CALLS = 12  # iterations for an instrument that compares them with each other, even if they need
SINGLE_CALLS_BUDGET = 5  # times the seconds that were meant
# What a sample lasts at least, so that what one wait and the first launch cost it does not show: together some 25 µs
# on an H200; on a Mac a wait takes 100 µs and more (220 in github.com/pytorch/pytorch/pull/152199).
CUDA_SECONDS, MPS_SECONDS = 0.01, 0.04
MIN_BENCHMARK_SAMPLES = 60  # a sample lasts at most this fraction (1/60) of the time for all


def time_function(calls: TimedCalls, *, precision: float, max_seconds: float, warmup: int = 1) -> SampleSet:
    """Return samples of `calls`, waiting for the device that this process uses before the first call or after it."""
    driver, on_mps, first = _find_device(calls)
    least = CUDA_SECONDS if driver is not None else MPS_SECONDS if on_mps is not None else 0.0
    clock: Clock = "cuda-synchronized" if driver is not None else "mps-synchronized" if least else "wall"
    if (device := driver or on_mps) is not None:
        calls.wait = device.synchronize
    else:
        calls.reference = ReferenceLoop()
    calls.device = _device_watch(driver) if driver is not None else None
    if first is not None and first >= max_seconds:  # a call that takes all of the time is the only one
        return SampleSet((first,), precise=False, warm=False, spent=first, clock=clock)
    before = () if first is None else (first,)
    least = min(least, max_seconds / MIN_BENCHMARK_SAMPLES)
    with ProcessorWatch() as calls.watch:
        samples = time_calls(
            calls, precision=precision, max_seconds=max_seconds, warmup=warmup, before=before, least=least
        )
    return replace(samples, clock=clock)


def _device_watch(driver: CudaDriver) -> DeviceWatch | None:
    with own_library:
        from profkit.runtime.passes.device_samples import watch_device

    return watch_device(driver)


def _find_device(calls: TimedCalls) -> tuple[CudaDriver | None, Any, float | None]:
    """Return the driver or the module torch.mps that the calls use, and the seconds of a first call made to find out.

    The work that this call left to the device is part of its seconds.
    """
    driver, on_mps = _look()
    if driver is not None or on_mps is not None or not (uses_cuda() or mps.mps_is_available()):
        return driver, on_mps, None
    first = calls.sample()
    begin = perf_counter()
    driver, on_mps = _look()
    device = driver or on_mps
    if device is not None:
        device.synchronize()
        first += perf_counter() - begin
    return driver, on_mps, first


def _look() -> tuple[CudaDriver | None, Any]:
    driver = driver_in_use()
    return driver, mps.mps_in_use() if driver is None else None


def describe_device(samples: SampleSet) -> Iterator[str]:
    """Yield which device is waited for, and what it did during that time."""
    if samples.clock != "wall":
        yield f"{samples.clock.partition('-')[0].upper()}, waited for"
    if samples.clocks:
        yield f"SM clock {median(samples.clocks) / 1e9:.3g} GHz"
    if samples.throttle_reasons:
        why = ", ".join(samples.throttle_reasons)
        held = (
            f"{samples.throttled} throttled samples left out" if samples.throttled else "throttled all along"
        )
        yield f"{held}: {why}"
    yield from (message_of(remark) or remark.code.replace("-", " ") for remark in samples.remarks)


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of a measurement. Under an instrument the times include its cost."""

    name: str
    samples: SampleSet  # seconds per call
    precision: float
    flops: float | None = None  # per call
    bytes: float | None = None

    @property
    def median(self) -> float:
        """Return the median seconds per call."""
        return statistics.median(self.samples.seconds)

    @property
    def interval(self) -> statistics.MedianInterval | None:
        """Return the 95 % interval of the median; None from fewer than 6 independent samples."""
        return statistics.median_interval(self.samples.seconds)

    @property
    def flops_per_second(self) -> float | None:
        """Return the FLOP/s; None if the workload does not declare its FLOP."""
        return self.flops / self.median if self.flops is not None and self.median > 0 else None

    @property
    def bytes_per_second(self) -> float | None:
        """Return the bytes/s; None if the workload does not declare its bytes."""
        return self.bytes / self.median if self.bytes is not None and self.median > 0 else None

    def __str__(self) -> str:
        half, loops = statistics.relative_half_width(self.samples.seconds), self.samples.loops
        known = f" ± {100 * half:.2g} %" if half is not None else " (no interval: too few samples)"
        each = f" of {loops} calls" if loops > 1 else ""
        parts = [f"{self.name}: {format_quantity(self.median, 's')}{known}"]
        parts.append(plural(len(self.samples.seconds), "sample") + each)
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


def benchmark(
    fn: Callable[[], object],
    *,
    name: str,
    flops: float | None = None,
    bytes: float | None = None,
    precision: float = DEFAULT_PRECISION,
    budget: float = DEFAULT_BUDGET,
) -> BenchmarkResult:
    """Measure `fn()`, or give it to the instrument of the present pass.

    `flops` and `bytes` are per call, and are shown as GFLOP/s and GB/s. `samples.seconds` is the time of a call when
    calls follow each other without a pause. If this process has a CUDA context, or memory on torch's MPS device,
    profkit waits for that device, once for all calls of a sample; `fn` itself has to wait for any other device.

    `precision` is the wanted relative half-width of the median's 95 % interval, and `budget` the limit in seconds of a
    run by hand; under profkit the pass decides both. Garbage collection stays on, since it costs time in production,
    too.

    Prints one line when run by hand; quiet under profkit. What `fn` raises passes through.
    Raises ValueError for flops, bytes, precision or budget that are no positive finite numbers.
    """
    words = ("flops", "bytes", "precision", "budget")
    for word, value in zip(words, (flops, bytes, precision, budget), strict=True):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}: {word} must be a positive finite number, not {value!r}")
    calls = TimedCalls(fn)
    if DIRECTIVE_VARIABLE not in os.environ and HOST_MODULE not in sys.modules:
        samples = time_function(calls, precision=precision, max_seconds=budget)
        result = BenchmarkResult(name, samples, precision, flops, bytes)
        print(result)
        return result
    with own_library:
        from profkit.runtime.region.active import session

    directive = session.directive or Directive("cprofile", "", seconds=1.0)
    if directive.pass_name == "timing":
        with session.quiet():
            samples = time_function(
                calls, precision=directive.precision, max_seconds=directive.sampling, warmup=directive.warmup
            )
        samples = replace(samples, pid=os.getpid())
        session.add_benchmark(name, samples, flops, bytes)
    else:
        samples = _run_under_instrument(calls, name, directive, session)
    return BenchmarkResult(name, samples, directive.precision, flops, bytes)


def _run_under_instrument(
    calls: TimedCalls, name: str, directive: Directive, session: RegionSession
) -> SampleSet:
    """Run `fn` in one entry of the region for the instrument: a number of calls, or as many as fit the seconds."""
    session.prepare()
    with session.quiet():
        warm = [calls.sample() for _ in range(directive.warmup)]
    driver, on_mps = _look()
    if (device := driver or on_mps) is not None:
        calls.wait = device.synchronize
    hooks, done = session.iteration_hooks(), 0
    session.enter(name)
    begin = perf_counter()
    try:
        while (wanted := _next_block(done, perf_counter() - begin, directive, bool(hooks))) > 0:
            for _ in repeat(None, wanted):
                calls.fn()
            done += wanted
            if directive.iterations is None:
                calls.wait()  # otherwise the clock would only measure the host's launches
            for hook in hooks:
                hook(done - 1)
    finally:
        spent = perf_counter() - begin
        calls.wait()
        session.exit(name, done)
    return SampleSet((spent / max(1, done),), done, tuple(warm), precise=False, spent=spent)


def _next_block(done: int, elapsed: float, directive: Directive, singly: bool) -> int:
    """Return how many calls to make next: blocks double, so that the clock is rarely read inside the region."""
    if directive.iterations is not None:
        left = max(1, directive.iterations) - done
        return min(1, left) if singly else left
    if done == 0:
        return 1
    seconds = directive.seconds or 0.0
    if singly and done < MIN_SINGLE_CALLS and elapsed < SINGLE_CALLS_BUDGET * seconds:
        return 1
    fit = int((seconds - elapsed) / max(elapsed / done, 1e-9))
    return min(1 if singly else done, fit)
