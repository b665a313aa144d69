"""What ran on the device while a function was called, by torch's own profiler (CUPTI).

It is asked in a process of its own: whoever was traced once launches a little more slowly from then on.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def trace_device(call: Callable[[], object]) -> dict[str, float]:
    """Seconds of the device by the names of kernels, copies and fills. `call` waits for the device itself."""
    call()  # what is compiled in the first call is no time of a kernel
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
    seconds: dict[str, float] = {}
    on_device = torch.autograd.DeviceType.CUDA
    for event in profile.profiler.kineto_results.events():
        if event.device_type() == on_device:
            seconds[event.name()] = seconds.get(event.name(), 0.0) + event.duration_ns() / 1e9
    return seconds
