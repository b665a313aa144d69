"""NVIDIA's management library (NVML) by ctypes: what the driver reports of its devices.

It is also used inside a workload's process. The library comes with the driver, so it is there wherever a
device works; the Python package around it often is not, least of all in a workload's environment. Only
functions whose results are plain numbers and texts are used, and one structure of three words. A query
initialises neither CUDA nor a device. Names and numbers: nvml.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The second is where WSL keeps it, which is not on every loader's path.
LIBRARIES = ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1")

SM_CLOCK, MEMORY_CLOCK = 1, 2
# nvmlClocksEventReasons: those by which a device runs slower than it was set to.
REASONS = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "temperature, by the driver",
    0x40: "temperature, by the hardware",
    0x80: "power brake",
}
# The second is its name until 2023.
_REASONS_FUNCTIONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
FUNCTION_NOT_FOUND = 13  # also the answer of `Nvml.call` where the driver is older than the function


class NvmlError(Exception):
    """An NVML call failed; `code` is its nvmlReturn_t."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML error {code}")
        self.code = code


class _MemoryInfo(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """The initialised library, from `open_nvml()` or `nvml_session()`. What a driver does not report is None."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, name: str, *arguments: object) -> int:
        """Call a function and return its nvmlReturn_t; FUNCTION_NOT_FOUND where this driver has no such function."""
        function: Callable[..., int] | None = getattr(self._library, name, None)
        return FUNCTION_NOT_FOUND if function is None else int(function(*arguments))

    def number(self, name: str, *arguments: object, wide: bool = False) -> int | None:
        """Return the number that a function writes to its last argument; `wide` for 64 bits. None if it fails."""
        value = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        return None if self.call(name, *arguments, ctypes.byref(value)) else int(value.value)

    def text(self, name: str, *arguments: object) -> str | None:
        """Return the text that a function writes to a buffer; None if it fails."""
        buffer = ctypes.create_string_buffer(256)
        failed = self.call(name, *arguments, buffer, ctypes.c_uint(len(buffer)))
        return None if failed else buffer.value.decode("utf-8", "replace")

    # ------------------------------------------------------------ devices

    def handles(self) -> list[ctypes.c_void_p]:
        """Return the devices in the order of their PCI addresses; a lost device is left out."""
        handles = (self._handle("nvmlDeviceGetHandleByIndex_v2", index) for index in range(self._count()))
        return [handle for handle in handles if handle is not None]

    def _count(self) -> int:
        return self.number("nvmlDeviceGetCount_v2") or 0

    def first_error(self) -> int:
        """Return the error code of the first device; 0 where it answers or where there is no device."""
        if self._count() == 0:
            return 0
        return self.call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(ctypes.c_void_p()))

    def by_bus(self, address: bytes) -> ctypes.c_void_p | None:
        """Find the device at a PCI address such as `00000000:3B:00.0`, by which CUDA and NVML name the same device."""
        return self._handle("nvmlDeviceGetHandleByPciBusId_v2", address)

    def mig_devices(self, device: ctypes.c_void_p) -> list[ctypes.c_void_p]:
        """Return the instances that a device in MIG mode is divided into."""
        most = self.number("nvmlDeviceGetMaxMigDeviceCount", device) or 0
        handles = (
            self._handle("nvmlDeviceGetMigDeviceHandleByIndex", device, index)
            for index in range(min(most, 64))
        )
        return [handle for handle in handles if handle is not None]

    def memory(self, device: ctypes.c_void_p) -> int | None:
        """Return the bytes of device memory."""
        memory = _MemoryInfo()
        failed = self.call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return None if failed or not memory.total else int(memory.total)

    def capability(self, device: ctypes.c_void_p) -> tuple[int, int] | None:
        """Return the compute capability, such as (9, 0)."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        answer = self.call(
            "nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor)
        )
        return None if answer else (major.value, minor.value)

    def mig_mode(self, device: ctypes.c_void_p) -> bool | None:
        """Return whether the device is in MIG mode; None where it has no such mode."""
        now, pending = ctypes.c_uint(), ctypes.c_uint()
        answer = self.call("nvmlDeviceGetMigMode", device, ctypes.byref(now), ctypes.byref(pending))
        return None if answer else now.value == 1

    def slowdowns(self, device: ctypes.c_void_p) -> int:
        """Return the bits of REASONS that hold now; 0 where the driver does not report them."""
        for name in _REASONS_FUNCTIONS:
            if (bits := self.number(name, device, wide=True)) is not None:
                return bits & sum(REASONS)
        return 0

    def _handle(self, name: str, *arguments: object) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        return None if self.call(name, *arguments, ctypes.byref(handle)) else handle


def open_nvml() -> Nvml:
    """Initialise the library and return it. Raises OSError if there is none, NvmlError where it fails.

    It is never shut down, which costs nothing.
    """
    library = Nvml(_load_library())
    if code := library.call("nvmlInit_v2"):
        raise NvmlError(code)
    return library


@contextmanager
def nvml_session() -> Iterator[Nvml]:
    """Initialise the library for the block and shut it down after it.

    Raises OSError where there is no library, NvmlError where it fails.
    """
    library = open_nvml()
    try:
        yield library
    finally:
        library.call("nvmlShutdown")


def _load_library() -> ctypes.CDLL:
    problem: OSError | None = None
    for path in LIBRARIES:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            problem = problem or error
    raise problem or OSError("no NVML")
