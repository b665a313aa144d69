"""Which clock times a function: CUDA events where it leaves its work to a CUDA device, else the wall clock.

On torch's MPS device that is the wall clock, too, with the device waited for.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

from profkit.core.types import SampleSet
from profkit.runtime.passes.timing import Calls, Progress, time_calls
from profkit.runtime.region import mps
from profkit.runtime.region.cuda_driver import Driver, DriverError, driver_in_use, uses_cuda

Device = Literal["cuda", "mps", "cpu"]
NO_DEVICE = "no CUDA device is in use in this process"
NO_MPS = "no MPS device is in use in this process"
NO_GRAPH = "not timed in a graph: torch records none for MPS"


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

    `device` None looks for itself: whether this process has a CUDA context or memory on torch's MPS device, before the
    first call or after it.
    """
    asked = {"precision": precision, "budget": budget}
    driver, first = _driver(calls, device) if device != "mps" else (None, None)
    on_mps: Any = None
    if driver is None and device != "cuda":
        on_mps, first = _mps(calls, device, first)
    if on_mps is not None:
        from profkit.runtime.passes.mps_timing import time_on_mps

        samples = time_on_mps(
            calls, on_mps, first=first, cold=cold, warmup=warmup, progress=progress, **asked
        )
        return replace(samples, remarks=(*samples.remarks, NO_GRAPH)) if graph else samples
    if first is not None and first >= budget:  # a call that takes the budget alone is the only one
        return SampleSet((first,), precise=False, warm=False, spent=first)
    missing, cache = (NO_MPS, "caches were") if device == "mps" else (NO_DEVICE, "L2 was")
    remark = f"{missing}: the {cache} not flushed" if cold else missing if device in ("cuda", "mps") else None
    if driver is not None:
        from profkit.runtime.passes.device_clock import open_clock
        from profkit.runtime.passes.device_samples import DeviceCalls
        from profkit.runtime.passes.device_timing import NotByEvents, time_on_device
        from profkit.runtime.passes.device_watch import Watch

        try:
            with open_clock(driver) as clock:
                timed = DeviceCalls(calls.fn, clock, calls.setup, cold=cold, graph=graph)
                return time_on_device(
                    timed, Watch(clock.address()), warmup=warmup, progress=progress, **asked
                )
        except (NotByEvents, DriverError) as error:
            remark = f"by the wall clock, the L2 as it is: {error}" if cold else f"by the wall clock: {error}"
        calls.wait_for(driver.synchronize)
    # what a device was given by the first call is not in its seconds: then that is no first time
    before = () if first is None or driver is not None else (first,)
    samples = time_calls(calls, warmup=warmup, progress=progress, before=before, **asked)
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


def _mps(calls: Calls, device: Device | None, first: float | None) -> tuple[Any, float | None]:
    """The module torch.mps where the calls use its device, and the seconds of the first call where one was made.

    `first` is of one that was made already, and not waited for.
    """
    if device == "cpu":
        return None, first
    found = mps.device()
    if found is not None and first is None:
        return found, None
    if first is None:
        if not mps.could_be_used():
            return None, None
        first = calls.sample()
    begin = perf_counter()
    found = found or mps.device()
    if found is not None:
        found.synchronize()  # what the first call left there is part of it
        first += perf_counter() - begin
    return found, first
