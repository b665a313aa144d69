"""The switch for ncu and nsys: cuProfilerStart and cuProfilerStop, and an NVTX range in profkit's own domain.

ncu with `--profile-from-start off` and nsys with `--capture-range=cudaProfilerApi` look at nothing outside of
start and stop. All devices of the process are waited for at both ends, so that what was launched before the region is
over when it begins, and what it launched is over before it ends: the range on the host holds its kernels' execution,
too.

- The range is a start/end range, not a push/pop one: it belongs to the process, so that it also holds what other
  threads launch (torch's backward pass does) and may end in another thread than it began in. In ncu's filter
  its name is `profkit@NAME`, without a slash.
- The range begins after the start and ends before the stop: a trace that begins at the start has it whole.
- A region is often entered many times. `nsys --capture-range-end=stop` ends its trace at the first exit, `repeat`
  writes a report for each entry; with `none` one report holds them all, and the ranges say what lies inside.
- CUDA is initialised by the switch where the process is about to use it anyway and has not begun: the start needs it.
- A forked child cannot use the CUDA of its parent: there the switch is off.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

from profkit.runtime.region.cuda_driver import (
    CudaDriver,
    DriverError,
    driver_in_use,
    is_recording_graph,
    uses_cuda,
)

DOMAIN = "profkit"
NO_NVTX = "no NVTX range marks the region: this Python has no nvtx (fix: pip install nvtx)"
LATE_CUDA = (
    "CUDA was first used inside the region, so the profiler did not see it: use the device once before"
)
NO_CUDA = "the region used no CUDA in this process"
IN_GRAPH = "a region inside the recording of a CUDA graph is not marked: nothing runs there"


class CudaSwitch:
    """Restricts ncu and nsys to regions. `reason` says what went wrong, `remarks` what is only worth knowing."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.remarks: list[str] = []
        self._driver: CudaDriver | None = None
        self._nvtx: Any = None
        self._range: Any = None
        self._started = False
        self._off = False

    def prepare(self) -> None:
        """Load what an entry needs, before anything counts."""
        if self._off:
            return
        if self._nvtx is None and NO_NVTX not in self.remarks:
            try:
                self._nvtx = importlib.import_module("nvtx")
            except Exception:  # absent, or broken: the range is a convenience
                self.remarks.append(NO_NVTX)
        if self._driver is None and uses_cuda():
            self._load()

    def enter(self, name: str) -> None:
        """Wait for the devices, start the profiler, begin the range."""
        if self._off:
            return
        if is_recording_graph():
            self._remark(IN_GRAPH)
            return
        self.prepare()
        if self._driver is not None:
            self._driver.synchronize()
            self._profiler("cuProfilerStart")
            self._started = True
        if self._nvtx is not None:
            self._range = self._nvtx.start_range(message=name, domain=DOMAIN)

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Wait for the region's own work, end the range, stop the profiler."""
        if self._off:
            return
        if self._driver is not None and self._started and not is_recording_graph():
            self._driver.synchronize()
        if self._range is not None:
            self._nvtx.end_range(self._range)
            self._range = None
        if self._started and self._driver is not None:
            self._started = False
            self._profiler("cuProfilerStop")
        elif self._driver is None:
            self._remark(LATE_CUDA if uses_cuda() else NO_CUDA)

    def forget(self) -> None:
        """In a forked child: CUDA is the parent's."""
        self._range, self._started = None, False
        if self._driver is not None:
            self._off = True

    # ------------------------------------------------------------ inside

    def _load(self) -> None:
        try:
            driver = CudaDriver()
        except OSError as error:
            self._fail(f"NVIDIA's driver library cannot be loaded: {error}")
            return
        if not driver.initialised and (result := driver.call("cuInit", 0)):
            self._fail(f"CUDA cannot be initialised: {driver.error_name(result)}")
            return
        self._driver = driver

    def _profiler(self, function: str) -> None:
        """Start or stop, in the context of this thread, else in one that is in use."""
        driver = self._driver
        assert driver is not None
        if driver.current is not None:
            result = driver.call(function)
        else:
            if not (devices := driver.active_devices()):
                devices = [_expected_device(driver)]
                driver.keep(devices[0])  # the start holds as long as its context lives
            with driver.primary(devices[0]):
                result = driver.call(function)
        if result:
            self._fail(f"{function}: {driver.error_name(result)}")

    def _fail(self, reason: str) -> None:
        self.reason, self._off = reason, True

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)


def _expected_device(driver: CudaDriver) -> int:
    """The device this process will use: one per rank where a launcher numbers them, else the first."""
    rank = os.environ.get("LOCAL_RANK", "")
    return int(rank) if rank.isdecimal() and int(rank) < driver.devices else 0


class DeviceWaitSwitch:
    """The switch of the timing pass: a region's seconds are those of its work, also of what it left to a device.

    `wait` is called at both ends of every region, nested ones too. Until the process uses CUDA it does nothing. What a
    device answers is the workload's business: an error of one of its kernels is met there again.
    """

    def __init__(self) -> None:
        self._driver: CudaDriver | None = None
        self._off = False

    def enter(self, name: str) -> None:
        """Nothing is switched."""

    def exit(self, name: str) -> None:
        """Nothing is switched."""

    def wait(self) -> None:
        """Until the devices have done what this process gave them."""
        if self._off or is_recording_graph():
            return
        if self._driver is None:
            self._driver = driver_in_use()
        if self._driver is not None:
            with contextlib.suppress(DriverError):
                self._driver.synchronize()

    def forget(self) -> None:
        """In a forked child: CUDA is the parent's."""
        self._off = self._driver is not None
