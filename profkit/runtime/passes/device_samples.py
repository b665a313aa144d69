"""Times single calls with events on a stream of a CUDA device: a stall, a flush of the L2, and the device's state.

Events are recorded on the stream that the workload launches on, so their difference is the device's time between
them. It contains the host's, too, wherever the device waits for it. So a stream can be *stalled*: it is given a pause
to wait for, the host launches everything meanwhile, and what the events then enclose is the device alone. The pause is
a host function that is the C library's `usleep`: it touches neither the L2 nor Python's lock, and ends by itself, so
that a call which waits for the device inside cannot hang. Whether the host was done in time is not guessed: the first
event is still pending then.

One call is timed between two events, many such calls behind one stall, with a flush of the L2 before each. So
triton's do_bench and nvbench's cold measurement take theirs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from types import TracebackType
from typing import NamedTuple

from profkit.hardware.nvml import REASONS, SM_CLOCK, Nvml, NvmlError, open_nvml
from profkit.runtime.region.cuda import L2_BYTES, NOT_READY, CudaDriver, DriverError

# Times of the L2 that a flush writes. On an H200 twice its 60 MB and the 256 MiB of triton.testing.do_bench leave the
# same times of what follows, and the first is done in half the time.
FLUSH_TIMES = 2
DEFAULT_FLUSH_BYTES = 256 << 20  # bytes, where a driver does not tell the size of its L2
LONGEST_STALL = 0.5  # seconds
_PCI_ADDRESS = 32  # bytes


class DeviceState(NamedTuple):
    """The state of a device at one moment: SM clock in Hz, and the bits of REASONS that are set."""

    clock: float | None = None
    throttle: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """Return the reasons in words."""
        return tuple(word for bit, word in REASONS.items() if self.throttle & bit)


class DeviceWatch:
    """Reads the state of one device; it is empty if the driver does not report it."""

    def __init__(self, address: bytes | None) -> None:
        self._device: ctypes.c_void_p | None = None
        try:
            self._library: Nvml = open_nvml()
        except (OSError, NvmlError):
            return
        self._device = self._library.by_bus(address) if address is not None else None

    def look(self) -> DeviceState:
        """Return the present state of the device; takes some tens of microseconds."""
        if self._device is None:
            return DeviceState()
        clock = self._library.number("nvmlDeviceGetClockInfo", self._device, SM_CLOCK)
        return DeviceState(clock * 1e6 if clock else None, self._library.slowdowns(self._device))


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
        """Return the event with that number, which is created when it is first used."""
        while len(self._events) <= number:
            event = ctypes.c_void_p()
            self.driver.check("cuEventCreate", ctypes.byref(event), 0)
            self._events.append(event)
        return self._events[number]

    def record(self, event: ctypes.c_void_p) -> None:
        """Record the event: it happens when all work before it in the stream is done."""
        self.driver.check("cuEventRecord", event, self._stream)

    def is_pending(self, event: ctypes.c_void_p) -> bool:
        """Return whether the event has not happened yet."""
        return self.driver.call("cuEventQuery", event) == NOT_READY

    def wait_for(self, event: ctypes.c_void_p) -> None:
        """Wait until the event has happened."""
        self.driver.check("cuEventSynchronize", event)

    def seconds_between(self, first: ctypes.c_void_p, second: ctypes.c_void_p) -> float:
        """Return the seconds from one past event to the other, in steps of about 0.5 µs (cuda.h)."""
        milliseconds = ctypes.c_float()
        self.driver.check("cuEventElapsedTime", ctypes.byref(milliseconds), first, second)
        return milliseconds.value / 1e3

    def stall(self, seconds: float) -> bool:
        """Let the stream wait that long before what is launched next; False where the driver cannot."""
        pause = ctypes.c_void_p(max(1, int(min(seconds, LONGEST_STALL) * 1e6)))
        return self.driver.call("cuLaunchHostFunc", self._stream, self._pause, pause) == 0

    @property
    def can_flush(self) -> bool:
        """Return whether the buffer for a flush exists already."""
        return bool(self._buffer.value)

    def flush(self, pieces: int = 1) -> None:
        """Fill the L2 with a buffer of our own, so that the next call finds none of its data there.

        The buffer is written in so many `pieces`, each by one kernel of the driver.
        """
        if not self._buffer.value:
            self._flushed = self._allocate()
        step, zero = self._flushed // pieces, ctypes.c_ubyte(0)
        for piece in range(pieces):
            place = ctypes.c_uint64(self._buffer.value + piece * step)
            self.driver.check("cuMemsetD8Async", place, zero, ctypes.c_size_t(step), self._stream)

    def wait(self) -> None:
        """Wait until all devices of this process are idle."""
        self.driver.synchronize()

    def address(self) -> bytes | None:
        """Return the device's PCI address, by which NVML knows it."""
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
    """Return the clock of the device that this thread uses, on torch's stream where torch is, else the default stream.

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


def watch_device(driver: CudaDriver) -> DeviceWatch | None:
    """Return the watch of the device that this thread uses; None if the driver refuses it."""
    with suppress(DriverError), open_clock(driver) as clock:
        return DeviceWatch(clock.address())
    return None


def _current_stream() -> int:
    """Return torch's current stream, else the default stream."""
    torch = sys.modules.get("torch")
    try:
        return int(torch.cuda.current_stream().cuda_stream) if torch and torch.cuda.is_initialized() else 0
    except Exception:  # a torch without CUDA, or something else of that name
        return 0


MAX_AHEAD_SECONDS = 10e-3  # of the host, for the calls behind one stall
MAX_SINGLE_CALLS, MAX_SINGLE_CALLS_SECONDS = 32, 20e-3
# What a kernel takes depends on how many kernels ran before it, modulo four: GELU of 1 MB 4.75, 5.15, 5.15 or 5.86 us
# on an H200, the same at every fourth launch. A call of one kernel behind a flush of one sees two of the four; which
# two is chance. So a flush is written in 1 to 4 pieces, a kernel each: by these numbers eight calls one after the other
# see every state twice, however many kernels each of them launches. (The pieces beyond the first add up to triangular
# numbers, and j (j - 1) / 2 + j n modulo 4 takes each value twice over eight j, whatever n.)
FLUSH_PIECES = (1, 1, 2, 3, 4, 1, 2, 3)
MIN_STALL_SECONDS, STALL_MARGIN = 200e-6, 1.5  # seconds; times what the host needed before
SLOW_HOST_RATIO = 1.25
MAX_RETRIES = 12
MAX_UNSTALLED_CALLS = 8  # calls in a block without a stall


class DeviceSample(NamedTuple):
    """Seconds of a call: between the events, by the wall clock, and of the host until it was launched."""

    device: float
    wall: float
    host: float
    rest: float  # what else the devices still had to do after the last event


class DeviceCalls:
    """`fn`, timed by events on the stream of `clock`; with `cold` each call finds a flushed L2."""

    def __init__(self, fn: Callable[[], object], clock: DeviceClock, *, cold: bool = False) -> None:
        self.fn, self.clock, self.cold = fn, clock, cold
        self.host = float("inf")  # seconds that a call takes the host, the least that was seen
        self.ahead = MAX_SINGLE_CALLS  # calls in one block
        self.stall_seconds = LONGEST_STALL  # what such a block waits for
        self._missed = 0  # blocks one after the other in which the host was too late
        self.hurried = False  # whether times of the host could not be kept out of the samples

    def probe(self) -> DeviceSample:
        """Time one call without a stall, with events around it and by the wall clock."""
        clock = self.clock
        first, last = clock.event(0), clock.event(1)
        clock.wait()
        begin = perf_counter()
        clock.record(first)
        self.fn()
        launched = perf_counter()
        clock.record(last)
        clock.wait_for(last)
        reached = perf_counter()
        clock.wait()
        end = perf_counter()
        return DeviceSample(clock.seconds_between(first, last), end - begin, launched - begin, end - reached)

    def fit_blocks(self, like: DeviceSample) -> None:
        """Choose the size of blocks and the length of stalls for calls that take so long."""
        self.host = like.host
        within = min(
            MAX_SINGLE_CALLS_SECONDS / max(like.wall, 1e-9), MAX_AHEAD_SECONDS / max(like.host, 1e-9)
        )
        self.ahead = max(1, min(MAX_SINGLE_CALLS, int(within)))
        if self.ahead > len(FLUSH_PIECES):
            self.ahead -= self.ahead % len(FLUSH_PIECES)
        self.stall_seconds = self._fitting_stall()

    def time_singly(self) -> list[float]:
        """Return the seconds of each call of one block; empty if the host did not get ahead of the device."""
        calls, clock = self.ahead, self.clock
        clock.wait()
        if self.cold and not clock.can_flush:
            clock.flush()
            clock.wait()
        stalled = not self.hurried and clock.stall(self.stall_seconds)
        host = self._launch()
        ahead = stalled and clock.is_pending(clock.event(0))
        clock.wait()
        pairs = range(0, 2 * calls, 2)
        seconds = [clock.seconds_between(clock.event(at), clock.event(at + 1)) for at in pairs]
        if ahead or self.hurried:
            self._missed = 0
            return seconds
        self._missed += 1
        if not stalled or self._missed > MAX_RETRIES:
            self.hurried, self.ahead = True, MAX_UNSTALLED_CALLS
            return seconds
        # A host that took much longer than before was made to wait, by a full queue or inside the call: fewer calls
        # help. One that is as slow as it was needs a longer stall.
        fewer = host > SLOW_HOST_RATIO * self.host or self.stall_seconds >= LONGEST_STALL
        self.host = min(self.host, host)
        if fewer:
            self.ahead = max(1, calls // 2)
        self.stall_seconds = self._fitting_stall() if fewer else min(LONGEST_STALL, 2 * self.stall_seconds)
        return []

    def _launch(self) -> float:
        """Return a block of single calls, each between two events; seconds of the host for each."""
        clock, begin = self.clock, perf_counter()
        for index in range(self.ahead):
            if self.cold:
                clock.flush(FLUSH_PIECES[index % len(FLUSH_PIECES)])
            clock.record(clock.event(2 * index))
            self.fn()
            clock.record(clock.event(2 * index + 1))
        return (perf_counter() - begin) / self.ahead

    def _fitting_stall(self) -> float:
        return min(LONGEST_STALL, MIN_STALL_SECONDS + STALL_MARGIN * self.ahead * self.host)
