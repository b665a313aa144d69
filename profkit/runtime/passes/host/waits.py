"""A thread of this process: its name, its clock, its signals, what it waits for, by its system call, and when.

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
from .values.frame_locals import let_go

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

    Call = Callable[..., Any]

MAX_LINES = 500  # at which the collector ran
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


def waits_for(native: int, process: str = "self", calls: SystemCalls | None = None) -> str:
    """Return the kind of what a thread waits for now, by its number; empty where it runs or where that is not known.

    `process`: the number of another process, whose memory we may read. `calls` read the files with the interpreter's
    lock held.
    """
    if not _CALLS:
        return ""
    calls = calls or _CALLS_OF_PYTHON
    try:
        words = calls.read(f"/proc/{process}/task/{native}/syscall").split()
        kind = _CALLS.get(int(words[0]), "")
        if kind == "file":
            target = calls.target_of(f"/proc/{process}/fd/{int(words[1], 16)}")
            return {"pipe": "pipe", "socket": "network"}.get(target.partition(":")[0], kind)
        if kind == "input" and int(words[0]) in (23, 270) and int(words[1], 16) == 0:
            return "sleep"  # select of nothing
        return kind
    except (OSError, ValueError, IndexError):
        return ""


def block_signals() -> None:
    """Leave signals to the threads of the workload: one that waits would not wake up by ours."""
    try:
        from _signal import SIG_BLOCK, pthread_sigmask, valid_signals  # type: ignore[import-not-found]

        pthread_sigmask(SIG_BLOCK, valid_signals())
    except (ImportError, OSError):
        pass


def name_thread() -> None:
    """Set the name by which perf's reader recognizes our thread; Linux cuts names after 15 bytes."""
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


# sched_setattr(2) on x86-64 and ARM; nanoseconds of the time for which a thread runs when it is its turn
_SET_SCHEDULING, SLICE = (314, 274), 100_000


READABLE = 256  # bytes of a small file of /proc


class SystemCalls:
    """Calls of the C library for this thread that Python does not have, or for which it gives its lock away.

    A thread that reads a file of /proc in Python gives the lock away three times, and has it back at the end of what
    the program does then, which may be a call of C that lasts for long: what is seen after it is the line that follows.
    `ctypes`, which could make these calls, would take 10 ms to import; its compiled part takes half of one. Until
    `begin`, and where that part is missing, they are Python's.
    """

    def __init__(self) -> None:
        self._calls: Mapping[str, Callable[..., int]] = {}
        self._buffer: Any = b""

    def begin(self) -> None:
        """Load what is called, and have Linux (from 6.12 on) run this thread soon after it wakes up: by short turns.

        Where programs compete for processors a thread that wakes up waits for the turn of another one to end, some
        milliseconds, in which the program goes on. It needs no permission; what else is set of the thread stays.
        """
        if _MACHINE is None or not sys.platform.startswith("linux"):
            return
        try:
            import _ctypes

            class Result(_ctypes._SimpleCData):  # type: ignore[type-arg]
                _type_ = "i"

            class Character(_ctypes._SimpleCData):  # type: ignore[type-arg]
                _type_ = "c"

            class Buffer(_ctypes.Array):  # type: ignore[type-arg]
                _type_, _length_ = Character, READABLE

            class LibraryCall(_ctypes.CFuncPtr):
                _flags_ = (
                    _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
                )  # with the interpreter's lock held
                _restype_ = Result

            library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
            names = ("usleep", "syscall", "open", "read", "close", "readlink")
            calls = {name: LibraryCall(_ctypes.dlsym(library, name)) for name in names}
            self._buffer, self._calls = Buffer(), calls
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                words = (48, 4), (os.SCHED_OTHER, 4), (0, 8), (os.getpriority(os.PRIO_PROCESS, 0), 4), (0, 4)
                attributes = [size.to_bytes(width, sys.byteorder, signed=True) for size, width in words]
                attributes += [size.to_bytes(8, sys.byteorder) for size in (SLICE, 0, 0)]
                calls["syscall"](_SET_SCHEDULING[_MACHINE], 0, b"".join(attributes), 0)
        except (ImportError, OSError, AttributeError):
            pass

    def keep_lock(self, microseconds: int) -> None:
        """Sleep with the interpreter's lock held: a thread that works without it has our processor meanwhile."""
        if self._calls:
            self._calls["usleep"](microseconds)

    def open(self, path: str, flags: int) -> int:
        """Open a file, and return its number; what is created may be read and written. Raises OSError."""
        if not self._calls:
            return os.open(path, flags, 0o666)
        return _checked(self._calls["open"](os.fsencode(path), flags | os.O_CLOEXEC, 0o666), path)

    def close(self, descriptor: int) -> None:
        """Close a file."""
        (self._calls["close"] if self._calls else os.close)(descriptor)

    def read(self, path: str) -> str:
        """Return the begin of a small file, at most `READABLE` bytes. Raises OSError."""
        descriptor = self.open(path, os.O_RDONLY)
        try:
            if not self._calls:
                return os.read(descriptor, READABLE).decode("ascii", "replace")
            count = _checked(self._calls["read"](descriptor, self._buffer, READABLE), path)
            return bytes(self._buffer)[:count].decode("ascii", "replace")
        finally:
            self.close(descriptor)

    def target_of(self, path: str) -> str:
        """Return what a link of /proc names, at most `READABLE` bytes. Raises OSError."""
        if not self._calls:
            return os.readlink(path)
        count = _checked(self._calls["readlink"](os.fsencode(path), self._buffer, READABLE), path)
        return os.fsdecode(bytes(self._buffer)[:count])


def _checked(result: int, path: str) -> int:
    if result < 0:  # why is not known: errno may be of another thread's call by now
        raise OSError(0, "the system refused it", path)
    return result


_CALLS_OF_PYTHON = SystemCalls()


def thread_clock(native: int) -> int | None:
    """Return the clock of a thread's processor time, by Linux's numbering.

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
        if place in self._seconds or len(self._seconds) < MAX_LINES:
            self._seconds[place] = self._seconds.get(place, 0.0) + seconds

    def clear(self) -> None:
        """Forget all: what counts begins now."""
        self._seconds.clear()

    def rows(self) -> list[list[object]]:
        """Return file, line and microseconds so far."""
        return [[*place, round(seconds * 1e6)] for place, seconds in list(self._seconds.items())]


def follow_collector(call: Callable[[str, object], None]) -> None:
    """Have the garbage collector say when it begins and ends; what an earlier process of ours added is removed."""
    gc.callbacks[:] = [
        callback for callback in gc.callbacks if getattr(callback, "__name__", "") != "_collected"
    ]
    gc.callbacks.append(call)


# ------------------------------------------------------------ what an event loop waits for

MIN_CALLBACK_SECONDS = 0.02  # a shorter callback is normal for an event loop
MAX_FILES, MAX_TIMERS = 64, 8
_RUN = ("asyncio/events.py", "asyncio\\events.py")
# Where a stack with a loop has a frame: uvloop's own are not of Python.
_LOOP = ("asyncio/base_events.py", "asyncio\\base_events.py", "asyncio/runners.py", "asyncio\\runners.py")


class HeldLoop:
    """How long each stack held the event loop of one thread while something else was ready to run."""

    __slots__ = ("_handle", "_seconds", "sums")

    def __init__(self) -> None:
        self._handle: Any = None  # a weak reference: an address is used again at once
        self._seconds: dict[int, float] = {}  # of this callback since it was seen first, by stack
        # By stack: callbacks of MIN_CALLBACK_SECONDS or more, their seconds, and all in which something was ready.
        self.sums: dict[int, list[float]] = {}

    def look(self, handle: Any, node: int, wall: float, call: Call) -> None:
        """Count `wall` seconds since the last look; the thread is in the callback `handle` now, its stack is `node`.

        `call` calls what gives the interpreter's lock away, with its arguments, and returns the result.
        """
        same = handle is not None and self._handle is not None and self._handle() is handle
        if not same:
            self.end()
            self._handle = sys.modules["_weakref"].ref(handle) if handle is not None else None
        if handle is None or not _is_awaited(handle._loop, call):
            return
        self.sums.setdefault(node, [0, 0.0, 0.0])[2] += wall
        if same:  # before the first look at it, others may have run
            self._seconds[node] = self._seconds.get(node, 0.0) + wall

    def end(self) -> None:
        """Keep what the last callback took, where that was long."""
        if self._seconds and sum(self._seconds.values()) >= MIN_CALLBACK_SECONDS:
            most = max(self._seconds, key=lambda node: self._seconds[node])
            for node, seconds in self._seconds.items():
                sums = self.sums.setdefault(node, [0, 0.0, 0.0])
                sums[0] += int(node == most)
                sums[1] += seconds
        self._seconds.clear()


def is_in_callback(frame: FrameType | None) -> bool:
    """Return whether an event loop runs a callback, or a task, in this stack: else the loop itself waits, or
    there is none.
    """
    while frame is not None:
        if frame.f_code.co_name == "_run" and frame.f_code.co_filename.endswith(_RUN):
            return True
        frame = frame.f_back
    return False


def is_in_loop(frame: FrameType | None) -> bool:
    """Return whether an event loop of asyncio runs in this stack."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(_LOOP):
            return True
        frame = frame.f_back
    return False


def callback_of(frame: FrameType | None) -> Any:
    """Return the handle of the callback that an event loop runs in this stack; None where none does."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_run" and code.co_filename.endswith(_RUN):
            known = frame.f_locals
            handle = known.get("self")
            let_go(frame, known)
            return handle
        frame = frame.f_back
    return None


def _is_awaited(loop: Any, call: Call) -> bool:
    """Return whether another callback, a timer or a file is ready, and only the loop has no time for it."""
    try:
        ready, timers = loop._ready, loop._scheduled[:MAX_TIMERS]
        if ready and not ready[0]._cancelled:
            return True
        now = loop.time()
        return any(timer._when <= now and not timer._cancelled for timer in timers) or _has_ready_file(
            loop._selector, call
        )
    except (AttributeError, IndexError, OSError, RuntimeError, ValueError):
        return False  # a loop of another kind, or one that went on meanwhile


def _has_ready_file(selector: Any, call: Call) -> bool:
    files = sys.modules["select"].poll()
    for key in list(selector.get_map().values())[:MAX_FILES]:
        # selectors: EVENT_READ 1, EVENT_WRITE 2; poll: POLLIN 1, POLLOUT 4
        files.register(key.fd, (key.events & 1) | (key.events & 2) << 1)
    return bool(call(files.poll, 0))


# ------------------------------------------------------------ what each thread did when

RUNS, QUEUES, UNKNOWN = "run", "queue", "rest"  # beside the kinds of `waits`; the rest: short waits
MAX_ROWS = 20_000  # rows between two writes
SAME = 0.95  # of a stretch: with more of it in one thing it is that


class Stretches:
    """Fed with each sample of each thread: stretches of some hundredths of a second, for lanes of a timeline.

    Within a stretch only sums are kept; stretches that follow each other with the same in them are one.
    """

    def __init__(self) -> None:
        self._now: dict[
            tuple[int, str], list[float]
        ] = {}  # by thread and kind: seconds, its stack, and of that
        self._begun = 0.0
        self._queued: dict[
            int, float
        ] = {}  # by thread the seconds that it has waited for a processor, at the last look
        self._rows: list[list[Any]] = []
        self._last: dict[
            int, tuple[list[Any], float]
        ] = {}  # by thread its last row and its end, if it may go on

    def add(self, thread: int, node: int, kind: str, wall: float, ran: float) -> None:
        """Count `wall` seconds of a thread, in which it waited (`kind`) or `ran` for a part of them."""
        if kind:
            self._count((thread, kind), node, wall)
            return
        if ran > 0:
            self._count((thread, RUNS), node, ran)
        if wall > ran:
            self._count((thread, UNKNOWN), node, wall - ran)

    def _count(self, key: tuple[int, str], node: int, seconds: float) -> None:
        sums = self._now.get(key)
        if sums is None:
            self._now[key] = [seconds, node, seconds]
            return
        sums[0] += seconds
        if sums[1] == node:
            sums[2] += seconds
        elif seconds > sums[2]:  # a stack that takes more: that of most samples, or nearly
            sums[1], sums[2] = node, seconds
        else:
            sums[2] -= seconds

    def is_due(self, now: float, pause: float) -> bool:
        """Return whether the stretch has lasted for `pause`, `now` seconds after the process began."""
        return now - self._begun >= pause

    def close(self, now: float) -> None:
        """End the stretch."""
        length = now - self._begun
        if length <= 0:
            return
        begun, lasted = round(self._begun * 1e6), round(length * 1e6)
        for (thread, kind), (seconds, node, _) in self._now.items():
            row, until = self._last.get(thread, (None, 0.0))
            whole = seconds >= SAME * length
            if row is not None and whole and (row[3], row[4]) == (kind, node) and until == self._begun:
                row[2] += lasted  # it goes on
                row[5] += round(seconds * 1e6)
                self._last[thread] = row, now
            elif len(self._rows) < MAX_ROWS:
                row = [thread, begun, lasted, kind, int(node), round(seconds * 1e6)]
                self._rows.append(row)
                self._last.pop(thread, None)
                if whole:
                    self._last[thread] = row, now
        self._now.clear()
        self._begun = now

    def taken(self, natives: Mapping[int, int], calls: SystemCalls) -> list[list[Any]]:
        """Return the rows since the last call: thread, begin and length in us, kind, stack, and us of the kind in it.

        `natives` are the system's numbers of the threads. It is asked here, for all rows together.
        """
        rows, self._rows = self._rows, []
        self._last.clear()
        unknown: dict[int, float] = {}
        for row in rows:
            if row[3] == UNKNOWN:
                unknown[row[0]] = unknown.get(row[0], 0.0) + row[5] * 1e-6
        for thread, seconds in unknown.items():
            queued = run_delay(natives[thread], calls) if thread in natives and seconds > 0 else None
            if queued is None:
                continue
            share = min(1.0, max(0.0, queued - self._queued.get(thread, 0.0)) / seconds)
            self._queued[thread] = queued
            for row in [row for row in rows if row[0] == thread and row[3] == UNKNOWN]:
                waited = round(share * row[5])
                row[5] -= waited
                if waited:
                    rows.append([*row[:3], QUEUES, row[4], waited])
        return [row for row in rows if row[5] > 0]


def run_delay(native: int, calls: SystemCalls) -> float | None:
    """Return the seconds that a thread could have run without a processor; None if the system does not say."""
    try:
        return int(calls.read(f"/proc/self/task/{native}/schedstat").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
