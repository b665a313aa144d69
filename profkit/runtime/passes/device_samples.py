"""A stream of a CUDA device with its own clock: events, a stall, and a flush of the L2 between calls.

Events are recorded on the stream that the workload launches on, so their difference is the device's time between
them. It contains the host's, too, wherever the device waits for it. So a stream can be *stalled*: it is given a pause
to wait for, the host launches everything meanwhile, and what the events then enclose is the device alone. The pause is
a host function that is the C library's `usleep`: it touches neither the L2 nor Python's lock, and ends by itself, so
that a call which waits for the device inside cannot hang. Whether the host was done in time is not guessed: the first
event is still pending then.

A function that leaves its work to the device is sampled in one of three ways.

- *Back to back*: events around calls as the workload makes them, the wall clock beside them.
- *Alone*: the same with the stream stalled until the host has launched every call, so that only the device is timed.
  Launch overhead is out of it without a CUDA graph: nothing is captured, no memory moves, the function is called as
  ever. Where the host cannot get that far ahead (it waits for the device inside), there is no such sample.
- *Singly*: one call between two events, many such calls behind one stall, with a flush of the L2 or a `setup` before
  each. So triton's do_bench and nvbench's cold measurement take theirs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from types import TracebackType
from typing import NamedTuple

from profkit.runtime.region.cuda import L2_BYTES, NOT_READY, CudaDriver

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


# A driver takes some 1,000 launches before it makes the host wait (between 1,000 and 1,500: H200, driver 580).
MOST_AHEAD = 200  # calls launched behind one stall, and
MOST_AHEAD_SECONDS = 10e-3  # what that may take the host
MOST_SINGLY, MOST_SINGLY_SECONDS = 32, 20e-3
# What a kernel takes depends on how many kernels ran before it, modulo four: GELU of 1 MB 4.75, 5.15, 5.15 or 5.86 us
# on an H200, the same at every fourth launch. A call of one kernel behind a flush of one sees two of the four; which
# two is chance. So a flush is written in 1 to 4 pieces, a kernel each: by these numbers eight calls one after the other
# see every state twice, however many kernels each of them launches. (The pieces beyond the first add up to triangular
# numbers, and j (j - 1) / 2 + j n modulo 4 takes each value twice over eight j, whatever n.)
FLUSH_PIECES = (1, 1, 2, 3, 4, 1, 2, 3)
STALL_LEAST, STALL_MARGIN = 200e-6, 1.5  # seconds; times what the host needed before
# A host that took so much longer than before was made to wait: by a full queue, or inside the call
SLOW_HOST_RATIO = 1.25
MOST_RETRIES = 12
MOST_UNSTALLED = 8  # calls in a block without a stall


class DeviceSample(NamedTuple):
    """Seconds per call: between the events, by the wall clock, and of the host until all was launched."""

    device: float
    wall: float
    host: float
    ahead: bool  # everything was launched before the device began
    rest: float = 0.0  # what else the devices still had to do after the last event: seconds, not per call


class DeviceCalls:
    """`fn`, timed by events on the stream of `clock`. `loops` calls make a sample back to back."""

    def __init__(
        self,
        fn: Callable[[], object],
        clock: DeviceClock,
        setup: Callable[[], object] | None = None,
        *,
        cold: bool = False,
    ) -> None:
        self.fn, self.setup, self.clock, self.cold = fn, setup, clock, cold
        self.loops = 1
        self.host = float("inf")  # seconds that a call takes the host, the least that was seen
        self.ahead = MOST_SINGLY  # calls in one block of `singly`
        self.stall_seconds = LONGEST_STALL  # what such a block waits for
        self._missed = 0  # blocks one after the other in which the host was too late
        self.hurried = False  # the host could not be kept out of `singly`
        self.queued = 1  # calls in one sample of `alone`

    def back_to_back(self, calls: int, stall: float = 0.0) -> DeviceSample:
        """One sample of that many calls; with a setup, which runs before them, of one."""
        fn, clock = self.fn, self.clock
        first, last = clock.event(0), clock.event(1)
        if self.setup is not None:
            self.setup()
        clock.wait()
        stalled = stall > 0 and clock.stall(stall)
        begin = perf_counter()
        clock.record(first)
        for _ in repeat(None, calls):
            fn()
        launched = perf_counter()
        clock.record(last)
        ahead = stalled and clock.is_pending(first)
        clock.wait_for(last)
        reached = perf_counter()
        clock.wait()
        end = perf_counter()
        return DeviceSample(
            device=clock.seconds_between(first, last) / calls,
            wall=(end - begin) / calls,
            host=(launched - begin) / calls,
            ahead=ahead,
            rest=end - reached,
        )

    def fit_blocks(self, like: DeviceSample) -> None:
        """Fit blocks and stalls to calls that take so long."""
        self.host = like.host
        within = min(MOST_SINGLY_SECONDS / max(like.wall, 1e-9), MOST_AHEAD_SECONDS / max(like.host, 1e-9))
        self.ahead = max(1, min(MOST_SINGLY, int(within)))
        if self.ahead > len(FLUSH_PIECES):
            self.ahead -= self.ahead % len(FLUSH_PIECES)
        self.stall_seconds = self._fitting_stall(self.ahead)

    def sample_alone(self, count: int) -> list[DeviceSample]:
        """`count` samples of the device alone; empty where there are none."""
        calls = max(1, min(MOST_AHEAD, self.loops, int(MOST_AHEAD_SECONDS / max(self.host, 1e-9))))
        stall = self._fitting_stall(calls)
        samples: list[DeviceSample] = []
        for _ in range(count + MOST_RETRIES):
            sample = self.back_to_back(calls, stall)
            if sample.ahead:
                samples.append(sample)
                if len(samples) == count:
                    break
                continue
            longer = self._longer_stall(calls, stall, sample.host)
            if longer is None and calls == 1:
                break
            calls, stall = (
                (calls // 2, self._fitting_stall(calls // 2)) if longer is None else (calls, longer)
            )
        self.queued = calls
        return samples

    def time_singly(self) -> list[float]:
        """Seconds of each call of one block; empty where the host did not get ahead of the device."""
        calls, clock = self.ahead, self.clock
        self.make_ready()
        stalled = not self.hurried and clock.stall(self.stall_seconds)
        host = self.launch()
        ahead = stalled and clock.is_pending(clock.event(0))
        clock.wait()
        seconds = self.read(calls)
        if ahead or self.hurried:
            self._missed = 0
            return seconds
        self._missed += 1
        longer = self._longer_stall(calls, self.stall_seconds, host)
        if not stalled or self._missed > MOST_RETRIES:
            self.hurried, self.ahead = True, MOST_UNSTALLED
            return seconds
        if longer is not None:
            self.stall_seconds = longer
        else:
            self.ahead = max(1, calls // 2)
            self.stall_seconds = self._fitting_stall(self.ahead)
        return []

    def make_ready(self) -> None:
        """Until the device is idle, with the buffer of the flush there."""
        self.clock.wait()
        if self.cold and not self.clock.can_flush:
            self.clock.flush()
            self.clock.wait()

    def launch(self) -> float:
        """A block of single calls, each between two events; seconds of the host for each."""
        clock, begin = self.clock, perf_counter()
        for index in range(self.ahead):
            if self.setup is not None:
                self.setup()
            if self.cold:
                clock.flush(FLUSH_PIECES[index % len(FLUSH_PIECES)])
            clock.record(clock.event(2 * index))
            self.fn()
            clock.record(clock.event(2 * index + 1))
        return (perf_counter() - begin) / self.ahead

    def read(self, calls: int) -> list[float]:
        """Seconds of each call of a block that is done."""
        pairs = range(0, 2 * calls, 2)
        return [self.clock.seconds_between(self.clock.event(at), self.clock.event(at + 1)) for at in pairs]

    # ------------------------------------------------------------ how long to stall

    def _fitting_stall(self, calls: int) -> float:
        return min(LONGEST_STALL, STALL_LEAST + STALL_MARGIN * calls * self.host)

    def _longer_stall(self, calls: int, stall: float, host: float) -> float | None:
        """A stall for a host that took that long per call; None where fewer calls would help, and no longer stall."""
        waited = host > SLOW_HOST_RATIO * self.host
        self.host = min(self.host, host)
        if waited or calls * host <= stall or stall >= LONGEST_STALL:
            return None
        return min(LONGEST_STALL, STALL_MARGIN * calls * host)
