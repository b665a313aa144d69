"""A stream of a CUDA device with its own clock: events, a stall, and a flush of the L2 between calls.

Events are recorded on the stream that the workload launches on, so their difference is the device's time between
them. It contains the host's, too, wherever the device waits for it. So a stream can be *stalled*: it is given a pause
to wait for, the host launches everything meanwhile, and what the events then enclose is the device alone. The pause is
a host function that is the C library's `usleep`: it touches neither the L2 nor Python's lock, and ends by itself, so
that a call which waits for the device inside cannot hang. Whether the host was done in time is not guessed: the first
event is still pending then.
"""

from __future__ import annotations

import ctypes
import sys
from types import TracebackType

from profkit.runtime.region.cuda_driver import L2_BYTES, NOT_READY, CudaDriver

# Times of the L2 that a flush writes. On an H200 twice its 60 MB and the 256 MiB of triton.testing.do_bench leave the
# same times of what follows, and the first is done in half the time.
FLUSH_TIMES = 2
DEFAULT_FLUSH_BYTES = 256 << 20  # bytes, where a driver does not tell the size of its L2
LONGEST_STALL = 0.5  # seconds
_PCI_ADDRESS = 32  # bytes


class DeviceClock:
    """Events on the stream that the workload uses now. Raises DriverError where the driver refuses."""

    def __init__(self, driver: CudaDriver, device: int, stream: int) -> None:
        self.driver = driver
        self._device = device
        self._stream = ctypes.c_void_p(stream)
        self._pause = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
        self._events: list[ctypes.c_void_p] = []
        self._buffer = ctypes.c_uint64()
        self._flushed = 0

    def __enter__(self) -> DeviceClock:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for event in self._events:
            self.driver.call("cuEventDestroy_v2", event)
        if self._buffer.value:
            self.driver.call("cuMemFree_v2", self._buffer)
        self._events, self._buffer = [], ctypes.c_uint64()

    def event(self, number: int) -> ctypes.c_void_p:
        """The event of that number, made when first asked for."""
        while len(self._events) <= number:
            event = ctypes.c_void_p()
            self.driver.check("cuEventCreate", ctypes.byref(event), 0)
            self._events.append(event)
        return self._events[number]

    def record(self, event: ctypes.c_void_p) -> None:
        """The event happens when all work before it in the stream is done."""
        self.driver.check("cuEventRecord", event, self._stream)

    def is_pending(self, event: ctypes.c_void_p) -> bool:
        """Whether it has not happened yet."""
        return self.driver.call("cuEventQuery", event) == NOT_READY

    def wait_for(self, event: ctypes.c_void_p) -> None:
        """Wait until it has happened."""
        self.driver.check("cuEventSynchronize", event)

    def seconds_between(self, first: ctypes.c_void_p, second: ctypes.c_void_p) -> float:
        """Seconds from one event to the other, both past; steps of about 0.5 µs (cuda.h)."""
        milliseconds = ctypes.c_float()
        self.driver.check("cuEventElapsedTime", ctypes.byref(milliseconds), first, second)
        return milliseconds.value / 1e3

    def stall(self, seconds: float) -> bool:
        """Let the stream wait that long before what is launched next; False where the driver cannot."""
        pause = ctypes.c_void_p(max(1, int(min(seconds, LONGEST_STALL) * 1e6)))
        return self.driver.call("cuLaunchHostFunc", self._stream, self._pause, pause) == 0

    @property
    def can_flush(self) -> bool:
        """Whether the buffer for it is there already."""
        return bool(self._buffer.value)

    def flush(self, pieces: int = 1) -> None:
        """Fill the L2 with a buffer of our own, so that what comes next finds nothing of its own there.

        It is written in so many `pieces`, a kernel of the driver's each.
        """
        if not self._buffer.value:
            self._flushed = self._allocate()
        step, zero = self._flushed // pieces, ctypes.c_ubyte(0)
        for piece in range(pieces):
            place = ctypes.c_uint64(self._buffer.value + piece * step)
            self.driver.check("cuMemsetD8Async", place, zero, ctypes.c_size_t(step), self._stream)

    def wait(self) -> None:
        """Until all devices of this process are idle."""
        self.driver.synchronize()

    def address(self) -> bytes | None:
        """The device's PCI address, by which NVML knows it."""
        buffer = ctypes.create_string_buffer(_PCI_ADDRESS)
        return (
            None
            if self.driver.call("cuDeviceGetPCIBusId", buffer, _PCI_ADDRESS, self._device)
            else buffer.value
        )

    def _allocate(self) -> int:
        l2 = ctypes.c_int()
        self.driver.call("cuDeviceGetAttribute", ctypes.byref(l2), L2_BYTES, self._device)
        size = FLUSH_TIMES * l2.value or DEFAULT_FLUSH_BYTES
        self.driver.check("cuMemAlloc_v2", ctypes.byref(self._buffer), ctypes.c_size_t(size))
        return size


def open_clock(driver: CudaDriver) -> DeviceClock:
    """The clock of the device that this thread uses, on torch's stream where torch is, else the default stream.

    Where the thread has no context (another one launches), it gets the first that is in use. Raises DriverError.
    """
    if driver.current is None:
        device = next(iter(driver.active_devices()), 0)
        context = ctypes.c_void_p()
        driver.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver.check("cuCtxSetCurrent", context)
    number = ctypes.c_int()
    driver.check("cuCtxGetDevice", ctypes.byref(number))
    return DeviceClock(driver, number.value, _current_stream())


def _current_stream() -> int:
    """torch's current stream, else the default stream."""
    torch = sys.modules.get("torch")
    try:
        return int(torch.cuda.current_stream().cuda_stream) if torch and torch.cuda.is_initialized() else 0
    except Exception:  # a torch without CUDA, or something else of that name
        return 0
