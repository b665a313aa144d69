"""The device of a worker: its description, its ceilings, its free memory, and the memory and time of a call.

Only the process that measures imports this.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from time import perf_counter
from typing import Any

import torch

from profkit.core.formatting import plural
from profkit.core.statistics import median
from profkit.core.types import Fact, MeasuredCeilings, SampleSet
from profkit.kernels.operations.definitions import FactError, Tensor
from profkit.runtime.passes.device_samples import (
    FLUSH_PIECES,
    DeviceCalls,
    DeviceClock,
    DeviceSample,
    DeviceWatch,
)
from profkit.runtime.passes.timing import (
    DOUBTED_SAMPLES,
    FEW_SAMPLES,
    MIN_SAMPLES,
    SampleAssessment,
    assess_samples,
    sample_until,
)

# at 5 its messages would be the last words of a worker that dies
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

COPY_BYTES = 1 << 30  # far more than any cache
PRODUCT = 4096  # rows and columns of a float32 matrix product
REPEATS = 15
CPU_COPY_BYTES, CPU_PRODUCT, CPU_REPEATS = 1 << 28, 1024, 7


def describe_device(device: torch.device) -> dict[str, Any]:
    """Return the device in words, and the versions that decide its speed."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with suppress(ImportError):
        import triton

        versions["triton"] = triton.__version__
    if device.type == "cuda":
        versions["cuda"] = str(torch.version.cuda)
        return {"device": torch.cuda.get_device_properties(device).name, "versions": versions}
    from profkit.hardware.machine import read_machine

    threads = plural(torch.get_num_threads(), "thread")
    return {"device": f"{read_machine().cpu}, {threads}", "versions": versions}


def measure_ceilings(device: torch.device, dtype: torch.dtype | None = None) -> MeasuredCeilings:
    """Measure bytes/s of a copy (read and written) and FLOP/s of a matrix product (2 n^3): medians of some calls.

    `dtype` is that of the product, float32 by default. TF32 stays off: the operations compute in float32.
    """
    dtype = dtype or torch.float32
    cuda = device.type == "cuda"
    size = COPY_BYTES if cuda else CPU_COPY_BYTES
    repeats = REPEATS if cuda else CPU_REPEATS
    size = min(size, (free_memory(device) or 1 << 30) // 8)
    source = torch.empty(size, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    bandwidth = 2 * size / _median_seconds(partial(target.copy_, source), device)
    del source, target
    n = PRODUCT if cuda else CPU_PRODUCT
    left, right = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        flops = 2 * n**3 / _median_seconds(lambda: left @ right, device)
    finally:
        torch.set_float32_matmul_precision(before)
    name = str(dtype).removeprefix("torch.")
    method = Fact.of("copy-and-product", mebibytes=size / 2**20, dtype=name, rows=n, repeats=repeats)
    return MeasuredCeilings(bandwidth, flops, method)


def _median_seconds(call: Callable[[], object], device: torch.device) -> float:
    """Return the median seconds of some calls, on the device's clock."""
    for _ in range(3 if device.type == "cuda" else 1):
        call()
    durations = []
    for _ in range(REPEATS if device.type == "cuda" else CPU_REPEATS):
        if device.type == "cuda":
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            call()
            last.record()
            last.synchronize()
            durations.append(first.elapsed_time(last) / 1e3)
        else:
            wait_for(device)
            begin = perf_counter()
            call()
            wait_for(device)
            durations.append(perf_counter() - begin)
    return median(durations)


def wait_for(device: torch.device) -> None:
    """Wait until the device has done its work. Raises what torch raises where the device has failed."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_memory(device: torch.device) -> int | None:
    """Return the bytes that can still be allocated; None where that is not known."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + cached)
    from profkit.hardware.machine import available_memory

    return available_memory()


def call_memory(
    call: Callable[[], object],
    inputs: Sequence[Tensor],
    device: torch.device,
    wait: Callable[[], None],
) -> int | None:
    """Return the bytes of the inputs plus the peak that one call allocates; None where it is not known.

    As torch's allocator counts them: its statistics on a CUDA device, the events of its profiler on the CPU. What
    code allocates by other means is not included.
    """
    before = sum(int(t.untyped_storage().nbytes()) for t in inputs)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        held = torch.cuda.memory_allocated(device)
        call()
        wait()
        return before + int(torch.cuda.max_memory_allocated(device)) - int(held)
    peak = _peak_allocation(call)
    return None if peak is None else before + peak


def _peak_allocation(call: Callable[[], object]) -> int | None:
    """Return the peak bytes that a call allocates on the CPU, by torch's profiler; None without it."""
    with suppress(RuntimeError, AttributeError):  # another profiler is on, or none was built in
        with torch.autograd.profiler.profile(profile_memory=True) as profile:
            call()
        events = [event for event in profile.kineto_results.events() if event.name() == "[memory]"]
        steps = [int(event.nbytes()) for event in sorted(events, key=lambda event: event.start_ns())]
        return max((0, *accumulate(steps)))
    return None


PROBES = 3
HURRIED = Fact("host-waits-inside-the-call")
# What a call may leave behind its last event: waiting for an idle device takes 10 µs on an H200, and more elsewhere.
LEFT_SECONDS, LEFT_SHARE = 200e-6, 0.5
DIGITS = 6  # of a time; what is behind them is of the events' single precision, and no noise of the device


def time_cold(
    fn: Callable[[], object],
    clock: DeviceClock,
    watch: DeviceWatch,
    *,
    precision: float,
    max_seconds: float,
) -> SampleSet:
    """Sample until the median's 95 % interval is ±`precision` (a share) or `max_seconds` have passed.

    Each call finds a flushed L2. At least sixteen samples where that time allows; of calls that take so long
    that eight of them make no block, forty of one call. `fn` was called before: nothing is compiled in here.
    Raises FactError where the work is elsewhere, DriverError, and what `fn` raises.
    """
    begin = perf_counter()
    calls = DeviceCalls(fn, clock, cold=True)
    probes = [calls.probe() for _ in range(PROBES)]
    _check_all_seen(probes)
    calls.fit_blocks(min(probes, key=lambda sample: sample.wall))
    each = len(FLUSH_PIECES) if calls.ahead >= len(FLUSH_PIECES) else 1
    clocks: list[float] = []
    reasons: dict[str, None] = {}

    def take(_: int) -> Sequence[float]:
        block = calls.time_singly()
        # Means of `each` calls that followed one another; of a block that is shorter, its own.
        parts = [block[first : first + each] for first in range(0, max(1, len(block) - each + 1), each)]
        seconds = [float(f"{sum(part) / len(part):.{DIGITS}g}") for part in parts if part]
        state = watch.look()
        if state.clock is not None:
            clocks.append(state.clock)
        reasons.update(dict.fromkeys(state.words))
        return seconds

    def assess(samples: Sequence[float]) -> SampleAssessment:
        """Assess the samples: where each is of several calls, sixteen suffice for a drift to show."""
        return assess_samples(samples, precision, doubt=len(samples) * each < DOUBTED_SAMPLES)

    first_look = MIN_SAMPLES if each > 1 else FEW_SAMPLES
    seconds = sample_until(take, assess, begin=begin, max_seconds=max_seconds, first_look=first_look)
    assessment = assess(seconds)
    return SampleSet(
        tuple(seconds[assessment.warmup :]),
        each,
        precise=assessment.precise,
        clock="cuda-events",
        clocks=tuple(clocks),
        throttle_reasons=tuple(reasons),
        remarks=(HURRIED,) if calls.hurried else (),
    )


def _check_all_seen(probes: Sequence[DeviceSample]) -> None:
    """Raise FactError where much work is left after the last event: the time would miss it."""
    left, event_seconds = min(probe.rest for probe in probes), median([probe.device for probe in probes])
    if left > max(LEFT_SECONDS, LEFT_SHARE * event_seconds):
        raise FactError(Fact.of("work-elsewhere", share=event_seconds / (event_seconds + left)))
