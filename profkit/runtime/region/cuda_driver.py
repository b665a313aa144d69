"""NVIDIA's driver API by ctypes, in the workload's own process: what every CUDA program has loaded in the end.

torch, Triton, CuPy, Numba and C++ extensions all come down to libcuda.so.1, and all use the primary context of a
device, so one set of calls serves them. Nothing is loaded and CUDA is not initialised before it is asked for: a
process that initialises CUDA cannot fork children that use it.

Calls answer with a CUresult; `check` turns one that is not 0 into DriverError. Names and numbers: cuda.h.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
        """The function's CUresult; raises DriverError where this driver has no such function."""
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
        """`CUDA_ERROR_NO_DEVICE`, or the number where the driver has no name for it."""
        text = ctypes.c_char_p()
        if self.call("cuGetErrorName", result, ctypes.byref(text)) or not text.value:
            return f"error {result}"
        return text.value.decode("ascii", "replace")

    # ------------------------------------------------------------ contexts

    @property
    def initialised(self) -> bool:
        """Whether this process has initialised CUDA; asking does not."""
        return self.call("cuCtxGetCurrent", ctypes.byref(ctypes.c_void_p())) != NOT_INITIALIZED

    @property
    def current(self) -> int | None:
        """The context of this thread."""
        context = ctypes.c_void_p()
        return None if self.call("cuCtxGetCurrent", ctypes.byref(context)) else context.value

    @property
    def devices(self) -> int:
        """How many this process may use; 0 before CUDA is initialised."""
        count = ctypes.c_int()
        return 0 if self.call("cuDeviceGetCount", ctypes.byref(count)) else count.value

    def active_devices(self) -> list[int]:
        """The visible devices (CUDA's own numbers) whose primary context is in use in this process."""
        devices = []
        for device in range(self.devices):
            flags, active = ctypes.c_uint(), ctypes.c_int()
            state = self.call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
            if state == 0 and active.value:
                devices.append(device)
        return devices

    @contextmanager
    def primary(self, device: int) -> Iterator[None]:
        """The primary context of `device` as this thread's; made where it is not in use yet. Raises DriverError."""
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

    def keep(self, device: int) -> None:
        """Make the device's primary context, as its first use would; it stays. Raises DriverError."""
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), device)

    def synchronize(self) -> None:
        """Wait for all work of this process on all of its devices. Raises DriverError, as for a kernel that failed."""
        if self.current is not None:
            self.check("cuCtxSynchronize")  # also a context that is no primary one
        for device in self.active_devices():
            with self.primary(device):
                self.check("cuCtxSynchronize")


def uses_cuda() -> bool:
    """Whether this process has CUDA's runtime or driver loaded, so that it can be expected to use it."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return any(sign in line for line in maps for sign in _CUDA_LIBRARIES)
    except OSError:
        return is_driver_loaded()


def is_driver_loaded() -> bool:
    """Whether the driver library is in this process already."""
    try:
        ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (OSError, AttributeError):
        return False
    return True


def is_recording_graph() -> bool:
    """Whether torch is recording a CUDA graph in this thread: to wait for the device would spoil it."""
    torch = sys.modules.get("torch")
    try:
        return bool(
            torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        )
    except Exception:  # a torch without CUDA, or one half imported
        return False


def driver_in_use() -> CudaDriver | None:
    """The driver, where this process has initialised CUDA and made a context; nothing is loaded that is not."""
    if not is_driver_loaded():
        return None
    try:
        driver = CudaDriver()
        used = driver.initialised and (driver.current is not None or bool(driver.active_devices()))
    except (OSError, DriverError):
        return None
    return driver if used else None
