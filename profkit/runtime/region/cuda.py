"""NVIDIA's driver API by ctypes, in the workload's own process, and the switch for ncu and nsys.

torch, Triton, CuPy, Numba and C++ extensions all come down to libcuda.so.1, and all use the primary context of a
device, so one set of calls serves them. Nothing is loaded, and CUDA is not initialised, before that is needed: a
process that initialises CUDA cannot fork children that use it.

Calls answer with a CUresult; `check` turns one that is not 0 into DriverError. Names and numbers: cuda.h.

The switch is cuProfilerStart and cuProfilerStop, and an NVTX range in profkit's own domain. ncu with
`--profile-from-start off` and nsys with `--capture-range=cudaProfilerApi` look at nothing outside of start and stop.
All devices of the process are waited for at both ends: the range on the host holds its kernels' execution, too.

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

import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from profkit.core.types import Fact

LIBRARY = "libcuda.so.1"
NOT_INITIALIZED = 3
NOT_READY = 600
L2_BYTES = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
# What shows that a process means to use CUDA although its driver is not loaded yet: the runtime library is linked.
_CUDA_LIBRARIES = (b"/libcudart", b"/libcuda.so", b"/libtorch_cuda", b"/libnvrtc")


class DriverError(RuntimeError):
    """A driver call that failed, by the names of the function and of its error."""


class CudaDriver:
    """The driver library of this process. Raises OSError where it cannot be loaded."""

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(library)

    def call(self, name: str, *arguments: object) -> int:
        """Return the function's CUresult; raises DriverError where this driver has no such function."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DriverError(f"this driver has no {name}") from None
        return int(function(*arguments))

    def check(self, name: str, *arguments: object) -> None:
        """Call it; raises DriverError with the name of the error."""
        if result := self.call(name, *arguments):
            raise DriverError(f"{name}: {self.error_name(result)}")

    def error_name(self, result: int) -> str:
        """Return `CUDA_ERROR_NO_DEVICE`, or the number where the driver has no name for it."""
        text = ctypes.c_char_p()
        if self.call("cuGetErrorName", result, ctypes.byref(text)) or not text.value:
            return f"error {result}"
        return text.value.decode("ascii", "replace")

    # ------------------------------------------------------------ contexts

    @property
    def initialised(self) -> bool:
        """Return whether this process has initialised CUDA; asking does not."""
        return self.call("cuCtxGetCurrent", ctypes.byref(ctypes.c_void_p())) != NOT_INITIALIZED

    @property
    def current(self) -> int | None:
        """Return the context of this thread."""
        context = ctypes.c_void_p()
        return None if self.call("cuCtxGetCurrent", ctypes.byref(context)) else context.value

    @property
    def devices(self) -> int:
        """Return how many this process may use; 0 before CUDA is initialised."""
        count = ctypes.c_int()
        return 0 if self.call("cuDeviceGetCount", ctypes.byref(count)) else count.value

    def active_devices(self) -> list[int]:
        """Return the visible devices (CUDA's own numbers) whose primary context is in use in this process."""
        devices = []
        for device in range(self.devices):
            flags, active = ctypes.c_uint(), ctypes.c_int()
            state = self.call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
            if state == 0 and active.value:
                devices.append(device)
        return devices

    @contextmanager
    def primary(self, device: int) -> Iterator[None]:
        """Make the primary context of `device` current in this thread, creating it if necessary. Raises DriverError."""
        context = ctypes.c_void_p()
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            self.check("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        finally:
            self.call("cuDevicePrimaryCtxRelease_v2", device)

    def synchronize(self) -> None:
        """Wait for all work of this process on all of its devices. Raises DriverError, as for a kernel that failed."""
        if self.current is not None:
            self.check("cuCtxSynchronize")  # also a context that is no primary one
        for device in self.active_devices():
            with self.primary(device):
                self.check("cuCtxSynchronize")


def uses_cuda() -> bool:
    """Return whether this process has CUDA's runtime or driver loaded, so that it can be expected to use it."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return any(sign in line for line in maps for sign in _CUDA_LIBRARIES)
    except OSError:
        return is_driver_loaded()


def is_driver_loaded() -> bool:
    """Return whether the driver library is in this process already."""
    try:
        ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (OSError, AttributeError):
        return False
    return True


def is_recording_graph() -> bool:
    """Return whether torch is recording a CUDA graph in this thread: to wait for the device would spoil it."""
    torch = sys.modules.get("torch")
    try:
        return bool(
            torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        )
    except Exception:  # a torch without CUDA, or one half imported
        return False


def driver_in_use() -> CudaDriver | None:
    """Return the driver, where this process has initialised CUDA and made a context; nothing is loaded that is not."""
    if not is_driver_loaded():
        return None
    try:
        driver = CudaDriver()
        used = driver.initialised and (driver.current is not None or bool(driver.active_devices()))
    except (OSError, DriverError):
        return None
    return driver if used else None


# ------------------------------------------------------------ the switch

DOMAIN = "profkit"


class CudaSwitch:
    """Restricts ncu and nsys to regions. `reason` is what went wrong; `remarks` are harmless but worth knowing."""

    def __init__(self) -> None:
        self.reason: Fact | None = None
        self.remarks: list[Fact] = []
        self._driver: CudaDriver | None = None
        self._nvtx: Any = None
        self._range: Any = None
        self._started = False
        self._off = False

    def prepare(self) -> None:
        """Load what an entry needs, before anything counts."""
        if self._off:
            return
        if self._nvtx is None and Fact("no-nvtx") not in self.remarks:
            try:
                self._nvtx = importlib.import_module("nvtx")
            except Exception:  # absent, or broken: the range is a convenience
                self.remarks.append(Fact("no-nvtx"))
        if self._driver is None and uses_cuda():
            self._load()

    def enter(self, name: str) -> None:
        """Wait for the devices, start the profiler, begin the range."""
        if self._off:
            return
        if is_recording_graph():
            self._remark(Fact("region-in-a-graph"))
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
            self._remark(Fact("late-cuda" if uses_cuda() else "no-cuda-in-region"))

    def forget(self) -> None:
        """Forget CUDA in a forked child: it is the parent's."""
        self._range, self._started = None, False
        if self._driver is not None:
            self._off = True

    # ------------------------------------------------------------ inside

    def _load(self) -> None:
        try:
            driver = CudaDriver()
        except OSError as error:
            self._fail(Fact.of("driver-not-loaded", said=str(error)))
            return
        if not driver.initialised and (result := driver.call("cuInit", 0)):
            self._fail(Fact.of("cuda-not-initialised", said=driver.error_name(result)))
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
                # the start holds as long as its context lives
                driver.check("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), devices[0])
            with driver.primary(devices[0]):
                result = driver.call(function)
        if result:
            self._fail(Fact.of("driver-refused", name=function, said=driver.error_name(result)))

    def _fail(self, reason: Fact) -> None:
        self.reason, self._off = reason, True

    def _remark(self, remark: Fact) -> None:
        if remark not in self.remarks:
            self.remarks.append(remark)


def _expected_device(driver: CudaDriver) -> int:
    """Return the device that this process will use: that of its rank if a launcher numbers them, else the first."""
    rank = os.environ.get("LOCAL_RANK", "")
    return int(rank) if rank.isdecimal() and int(rank) < driver.devices else 0
