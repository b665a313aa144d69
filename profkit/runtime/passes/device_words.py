"""What a person is told of samples that a device took: one clause each."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.statistics import median
from profkit.core.types import SampleSet

TELLING = 1.05  # host and device are two numbers from here on


def device_words(samples: SampleSet) -> Iterator[str]:
    """Which clock, which cache, who is waited for, and what the device did meanwhile."""
    if samples.clock == "cuda-events":
        yield f"CUDA events, {samples.cache} L2"
    if samples.clock == "mps-synchronized":
        yield "MPS, waited for" + (", cold caches" if samples.cache == "cold" else "")
    if samples.single_seconds is not None:
        yield f"a single call, waited for, takes {duration(samples.single_seconds)}"
    if samples.seconds and samples.cache != "cold":
        yield from _sides(samples, median(samples.seconds))
    if samples.graph_seconds is not None:
        yield f"in a CUDA graph {duration(samples.graph_seconds)}"
    if samples.clocks:
        yield f"SM clock {median(samples.clocks) / 1e9:.3g} GHz"
    if samples.throttle_reasons:
        why = ", ".join(samples.throttle_reasons)
        held = (
            f"{samples.throttled} throttled samples left out" if samples.throttled else "throttled all along"
        )
        yield f"{held}: {why}"
    yield from samples.remarks


def _sides(samples: SampleSet, seconds: float) -> Iterator[str]:
    device, host = samples.device_seconds, samples.host_seconds
    if device is not None and seconds > TELLING * device:
        alone = f", to launch it takes the host {duration(host)}" if host is not None else ""
        yield f"launch-bound: the device alone needs {duration(device)}{alone}"


def duration(seconds: float) -> str:
    """Seconds in the unit people read: 1.234 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
