"""A thread of this process: its name, its clock, its signals, and what it waits for, by its system call.

The last is known on Linux on x86-64 and ARM. The garbage collector says itself when a thread waits for it. Of an event
loop of asyncio its queues are read, and whether its files are ready; nothing of it is called or changed.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from _thread import get_native_id

from .own_library import is_foreign

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

MOST_LINES = 500  # at which the collector ran
# kind -> numbers of its calls: x86-64, and ARM of 64 bits
_KINDS = {
    "sleep": ((35, 230), (101, 115)),  # nanosleep, clock_nanosleep
    "lock": ((202,), (98,)),  # futex
    "input": ((7, 23, 232, 270, 271, 281), (22, 72, 73)),  # poll, select, epoll_wait
    "network": ((42, 43, 44, 45, 46, 47, 288), (202, 203, 206, 207, 211, 212, 242)),  # connect to recvmsg
    "child": ((61, 247), (95, 260)),  # wait4, waitid
    "file": ((0, 1, 17, 18, 19, 20), (63, 64, 65, 66, 67, 68)),  # read to writev
    "sync": ((74, 75, 162), (82, 83, 81)),  # fsync, fdatasync, sync
}
_MACHINE = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine) if hasattr(os, "uname") else None
_CALLS = {
    number: kind
    for kind, numbers in _KINDS.items()
    for number in (numbers[_MACHINE] if _MACHINE is not None else ())
}


def waits_for(native: int, process: str = "self") -> str:
    """The kind of what a thread waits for now, by its number; empty where it runs or where that is not known.

    `process`: the number of another process, whose memory we may read.
    """
    if not _CALLS:
        return ""
    try:
        words = _read(f"/proc/{process}/task/{native}/syscall").split()
        kind = _CALLS.get(int(words[0]), "")
        if kind == "file":
            target = os.readlink(f"/proc/{process}/fd/{int(words[1], 16)}")
            return {"pipe": "pipe", "socket": "network"}.get(target.partition(":")[0], kind)
        if kind == "input" and int(words[0]) in (23, 270) and int(words[1], 16) == 0:
            return "sleep"  # select of nothing
        return kind
    except (OSError, ValueError, IndexError):
        return ""


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 256).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def block_signals() -> None:
    """Leave signals to the threads of the workload: one that waits would not wake up by ours."""
    try:
        from _signal import SIG_BLOCK, pthread_sigmask, valid_signals  # type: ignore[import-not-found]

        pthread_sigmask(SIG_BLOCK, valid_signals())
    except (ImportError, OSError):
        pass


def name_thread() -> None:
    """The name by which perf's reader knows our thread; Linux cuts names after 15 bytes."""
    try:
        with open(f"/proc/self/task/{get_native_id()}/comm", "wb", 0) as file:
            file.write(b"profkit-sampler")
    except OSError:
        pass


def wake_in_time() -> None:
    """Have Linux end this thread's waits when they are over, and not up to 50 µs later."""
    try:
        with open(f"/proc/{get_native_id()}/timerslack_ns", "wb", 0) as file:
            file.write(b"1")
    except OSError:
        pass


def thread_clock(native: int) -> int | None:
    """The clock of a thread's processor time, by Linux's numbering.

    It is an error to ask it for a thread that has ended, where pthread_getcpuclockid would crash.
    """
    if not sys.platform.startswith("linux"):
        return None
    clock = ~native << 3 | 6
    try:
        time.clock_gettime(clock)
    except (OSError, OverflowError):
        return None
    return clock


class CollectedLines:
    """Seconds that the program waited for the garbage collector, by file and line of what ran when it began.

    Called by the collector: nothing may be raised here.
    """

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, int], float] = {}
        self._foreign: dict[str, bool] = {}

    def add(self, frame: FrameType | None, seconds: float) -> None:
        """Count them to the innermost line that is the program's own; there may be no frame at all."""
        while frame is not None:
            file = frame.f_code.co_filename
            foreign = self._foreign.get(file)
            if foreign is None:
                foreign = self._foreign[file] = is_foreign(file)
            if not foreign:
                break
            frame = frame.f_back
        place = (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)
        if place in self._seconds or len(self._seconds) < MOST_LINES:
            self._seconds[place] = self._seconds.get(place, 0.0) + seconds

    def clear(self) -> None:
        """Forget all: what counts begins now."""
        self._seconds.clear()

    def rows(self) -> list[list[object]]:
        """File, line and microseconds so far."""
        return [[*place, round(seconds * 1e6)] for place, seconds in list(self._seconds.items())]


def follow_collector(call: Callable[[str, object], None]) -> None:
    """Have the garbage collector say when it begins and ends; what an earlier process of ours asked for, goes."""
    gc.callbacks[:] = [one for one in gc.callbacks if getattr(one, "__name__", "") != "_collected"]
    gc.callbacks.append(call)


# ------------------------------------------------------------ what an event loop waits for

LEAST = 0.02  # seconds of one callback: a shorter one is how a loop works
MOST_FILES, MOST_TIMERS = 64, 8
_RUN = ("asyncio/events.py", "asyncio\\events.py")


class HeldLoop:
    """How long each stack held the event loop of one thread while something else was ready to run."""

    __slots__ = ("_handle", "_seconds", "sums")

    def __init__(self) -> None:
        self._handle: Any = None  # a weak reference: an address is used again at once
        self._seconds: dict[int, float] = {}  # of this callback since it was seen first, by stack
        # By stack: callbacks of LEAST or more, their seconds, and all in which something was ready.
        self.sums: dict[int, list[float]] = {}

    def look(self, frame: FrameType | None, node: int, wall: float) -> None:
        """Count `wall` seconds since the last look; the thread is in `frame` now, whose stack is `node`."""
        handle = _callback_of(frame)
        same = handle is not None and self._handle is not None and self._handle() is handle
        if not same:
            self.end()
            self._handle = sys.modules["_weakref"].ref(handle) if handle is not None else None
        if handle is None or not _is_awaited(handle._loop):
            return
        self.sums.setdefault(node, [0, 0.0, 0.0])[2] += wall
        if same:  # before the first look at it, others may have run
            self._seconds[node] = self._seconds.get(node, 0.0) + wall

    def end(self) -> None:
        """Keep what the last callback took, where that was long."""
        if self._seconds and sum(self._seconds.values()) >= LEAST:
            most = max(self._seconds, key=lambda node: self._seconds[node])
            for node, seconds in self._seconds.items():
                sums = self.sums.setdefault(node, [0, 0.0, 0.0])
                sums[0] += int(node == most)
                sums[1] += seconds
        self._seconds.clear()


def is_in_callback(frame: FrameType | None) -> bool:
    """Whether an event loop runs a callback, or a task, in this stack: else the loop itself waits, or there is none."""
    while frame is not None:
        if frame.f_code.co_name == "_run" and frame.f_code.co_filename.endswith(_RUN):
            return True
        frame = frame.f_back
    return False


def _callback_of(frame: FrameType | None) -> Any:
    """The handle of the callback that an event loop runs in this stack; None where none does."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_run" and code.co_filename.endswith(_RUN):
            known = frame.f_locals
            handle = known.get("self")
            if sys.version_info < (3, 13):
                known.clear()  # a copy that the frame keeps
            return handle
        frame = frame.f_back
    return None


def _is_awaited(loop: Any) -> bool:
    """Whether another callback, a timer or a file is ready, and only the loop has no time for it."""
    try:
        ready, timers = loop._ready, loop._scheduled[:MOST_TIMERS]
        if ready and not ready[0]._cancelled:
            return True
        now = loop.time()
        return any(one._when <= now and not one._cancelled for one in timers) or _has_ready_file(
            loop._selector
        )
    except (AttributeError, IndexError, OSError, RuntimeError, ValueError):
        return False  # a loop of another kind, or one that went on meanwhile


def _has_ready_file(selector: Any) -> bool:
    files = sys.modules["select"].poll()
    for key in list(selector.get_map().values())[:MOST_FILES]:
        # selectors: EVENT_READ 1, EVENT_WRITE 2; poll: POLLIN 1, POLLOUT 4
        files.register(key.fd, (key.events & 1) | (key.events & 2) << 1)
    return bool(files.poll(0))
