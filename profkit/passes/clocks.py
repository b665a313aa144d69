"""Which clock times a function: CUDA events where it leaves its work to a CUDA device, else the wall clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from profkit.model import SampleSet
from profkit.passes.timing import Calls, Progress, time_calls
from profkit.region.cuda_driver import Driver, DriverError, driver_in_use, uses_cuda

Device = Literal["cuda", "cpu"]
NO_DEVICE = "no CUDA device is in use in this process"


def time_function(
    calls: Calls,
    *,
    device: Device | None,
    cold: bool,
    graph: bool = False,
    precision: float,
    budget: float,
    warmup: int = 1,
    progress: Progress | None = None,
) -> SampleSet:
    """Samples of `calls` by the clock that fits it; `remarks` say why it is not the one that was asked for.

    `device` None looks for itself: whether this process has a CUDA context, before the first call or after it.
    """
    asked = {"precision": precision, "budget": budget}
    driver, first = _driver(calls, device)
    if first is not None and first >= budget:  # a call that takes the budget alone is the only one
        return SampleSet((first,), precise=False, warm=False, spent=first)
    remark = f"{NO_DEVICE}: the L2 was not flushed" if cold else NO_DEVICE if device == "cuda" else None
    if driver is not None:
        from profkit.passes.device_clock import open_clock
        from profkit.passes.device_samples import DeviceCalls
        from profkit.passes.device_timing import NotByEvents, time_on_device
        from profkit.passes.device_watch import Watch

        try:
            with open_clock(driver) as clock:
                timed = DeviceCalls(calls.fn, clock, calls.setup, cold=cold, graph=graph)
                return time_on_device(
                    timed, Watch(clock.address()), warmup=warmup, progress=progress, **asked
                )
        except (NotByEvents, DriverError) as error:
            remark = f"by the wall clock, the L2 as it is: {error}" if cold else f"by the wall clock: {error}"
        calls.wait_for(driver.synchronize)
    samples = time_calls(calls, warmup=warmup, progress=progress, **asked)
    return replace(samples, remarks=(remark,)) if remark is not None else samples


def _driver(calls: Calls, device: Device | None) -> tuple[Driver | None, float | None]:
    """The driver that the calls use, and the seconds of the first call where it took that to find out."""
    if device == "cpu":
        return None, None
    driver = driver_in_use()
    if driver is not None or not (device == "cuda" or uses_cuda()):
        return driver, None
    first = calls.sample()
    return driver_in_use(), first
