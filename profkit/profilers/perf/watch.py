"""Watches calls of a running program: the arguments of a function of the mathematics library one call after the other,
and the names of files in system calls.

A hardware breakpoint (x86-64) at the call instruction stops the thread for some 10 microseconds at each of a thousand
calls. How many arguments and names were different is kept, not what they were.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path

from profkit.core.files.regular import read_start

CALLS, SECONDS = 1000, 0.06  # that are watched together at most
MIN_CALLS = 200  # with fewer nothing is kept
SEEN = (3, 30)  # a place is watched when so many looks were below it
MAX_SITES = 6
MAX_REPORT = 1 << 16  # bytes
STACK = 512  # bytes that are searched for the place in the program that calls
ONE_CALL = 1_000_000  # nanoseconds: no look-up of a name computes for as long
MAX_NAME = 256  # bytes of a file's name
_CONTINUE, _POKE_USER, _INTERRUPT, _GET_FLOAT = 7, 6, 0x4207, 14
_DEBUG_REGISTER, _CONTROL = 848, 848 + 7 * 8  # offsets in struct user of sys/user.h
_WALL = 0x40000000
_XMM_AT, _FLOAT_BYTES = 160, 512
# System calls that look a file up by its name, and the argument that holds it (x86-64).
_BY_NAME = {
    **dict.fromkeys((2, 4, 6, 21), "rdi"),  # open, stat, lstat, access
    # openat, newfstatat, faccessat, statx, openat2, faccessat2
    **dict.fromkeys((257, 262, 269, 332, 437, 439), "rsi"),
}


@dataclass(frozen=True)
class WatchedCall:
    """Calls at one place of a program's file: how many were watched, and how many arguments differed.

    `first` and `pairs` count doubles, `first_float` and `pairs_float` floats. `second` is the second argument where it
    was the same number each time.
    """

    address: int
    calls: int
    first: int
    first_float: int
    pairs: int
    pairs_float: int
    second: float | None = None
    second_float: float | None = None


@dataclass(frozen=True)
class WatchReport:
    """What was watched in one run: calls, and `names` of which `different` ones were looked up."""

    calls: tuple[WatchedCall, ...] = ()
    names: int = 0
    different: int = 0


@dataclass
class Watcher:
    """Watches the threads of one process. `ask` is ptrace: request, thread, address, data; it raises OSError."""

    ask: Callable[[int, int, object, object], None]
    output: Path
    found: list[WatchedCall] = field(default_factory=list)
    _sites: dict[int, int] = field(default_factory=dict)
    _names: set[bytes] = field(default_factory=set)
    _looked_up: int = 0
    _ran: dict[int, int] = field(default_factory=dict)
    _salt: bytes = field(default_factory=lambda: os.urandom(16))

    def see(
        self,
        pid: int,
        thread: int,
        values: Mapping[str, int],
        code: tuple[int, int, int],
        libraries: list[tuple[int, int]],
    ) -> int | None:
        """Take the registers of a thread that is stopped, and return a call in the program that is to be watched."""
        argument = _BY_NAME.get(values["orig_rax"])
        with (
            contextlib.suppress(OSError, ValueError, OverflowError),
            open(f"/proc/{pid}/mem", "rb", 0) as memory,
        ):
            if argument is not None:
                self._name(thread, pid, _read(memory, values[argument], MAX_NAME))
            elif any(low <= values["rip"] < high for low, high in libraries):
                site = _caller(_read(memory, values["rsp"], STACK), code, lambda at: _read(memory, at - 6, 6))
                if site is not None and (site in self._sites or len(self._sites) < MAX_SITES):
                    self._sites[site] = self._sites.get(site, 0) + 1
                    return site if self._sites[site] in SEEN else None
        return None

    def _name(self, thread: int, pid: int, text: bytes) -> None:
        name, end, _ = text.partition(b"\0")
        ran = _nanoseconds(pid, thread)
        # A thread that waits for a processor is looked at several times in one call.
        again = ran - self._ran.get(thread, -ONE_CALL) < ONE_CALL
        if name and end and not again:  # an empty one is that of a file which is open
            self._ran[thread] = ran
            self._looked_up += 1
            self._names.add(hashlib.blake2b(name, digest_size=8, key=self._salt).digest())

    def watch(self, thread: int, site: int, base: int) -> None:
        """Stop a stopped thread at each of the next calls of a place, and leave it stopped. Raises OSError."""
        self.ask(_POKE_USER, thread, _DEBUG_REGISTER, site)
        self.ask(_POKE_USER, thread, _CONTROL, 1)
        try:
            arguments = list(self._arguments(thread))
        finally:
            self.ask(_POKE_USER, thread, _CONTROL, 0)
        if len(arguments) >= MIN_CALLS:
            self.found.append(counted(site - base, arguments))

    def _arguments(self, thread: int) -> Iterator[bytes]:
        """Yield the first two floating-point arguments of each call, 16 bytes each, until there were enough."""
        floating = ctypes.create_string_buffer(_FLOAT_BYTES)
        until, left, number = time.monotonic() + SECONDS, CALLS, 0
        while left:
            self.ask(_CONTINUE, thread, None, number)
            status, number = self._next_stop(thread, until), 0
            if status >> 16:
                return  # it was long enough
            if os.WSTOPSIG(status) != signal.SIGTRAP:
                number = os.WSTOPSIG(status)  # a signal that is passed on
                continue
            self.ask(_GET_FLOAT, thread, None, ctypes.addressof(floating))
            yield floating.raw[_XMM_AT : _XMM_AT + 32]
            left -= 1

    def _next_stop(self, thread: int, until: float) -> int:
        """Return the status of a thread's next stop, which comes at that time at the latest. Raises OSError."""
        stopped, status = os.waitpid(thread, _WALL | os.WNOHANG)
        while not stopped:
            if time.monotonic() > until:
                self.ask(_INTERRUPT, thread, None, None)
                _, status = os.waitpid(thread, _WALL)
                break
            stopped, status = os.waitpid(thread, _WALL | os.WNOHANG)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError
        return status

    def write(self) -> None:
        """Leave what was watched."""
        report = {
            "calls": [asdict(call) for call in self.found],
            "names": self._looked_up,
            "different": len(self._names),
        }
        with contextlib.suppress(OSError):
            self.output.write_text(json.dumps(report))


def _read(memory: FileIO, at: int, size: int) -> bytes:
    memory.seek(at)
    return memory.read(size)


def _caller(stack: bytes, code: tuple[int, int, int], read: Callable[[int], bytes]) -> int | None:
    """Return the address of the program's call whose return address is first on a stack; None if there is none."""
    low, high, _ = code
    for (value,) in struct.iter_unpack("<Q", stack[: len(stack) // 8 * 8]):
        if low + 6 <= value < high:
            before = read(value)
            if before[1:2] == b"\xe8":
                return int(value) - 5
            if before[:2] == b"\xff\x15":
                return int(value) - 6
    return None


def _nanoseconds(pid: int, thread: int) -> int:
    """Return for how long a thread had a processor. Raises OSError and ValueError."""
    return int(read_start(Path(f"/proc/{pid}/task/{thread}/schedstat"), 64).split()[0])


def mathematics(pid: int) -> list[tuple[int, int]]:
    """Return where the code of the mathematics library is in a process. Raises OSError."""
    found = []
    for row in read_start(Path(f"/proc/{pid}/maps"), 1 << 22).decode("utf-8", "replace").splitlines():
        words = row.split(maxsplit=5)
        if (
            len(words) == 6
            and "x" in words[1]
            and os.path.basename(words[5].strip()).startswith(("libm.", "libm-"))
        ):
            first, _, last = words[0].partition("-")
            found.append((int(first, 16), int(last, 16)))
    return found


def counted(address: int, arguments: list[bytes]) -> WatchedCall:
    """Count the different ones of arguments, of 16 bytes for the first and the second."""
    pairs, floats = (
        {(words[:8], words[16:24]) for words in arguments},
        {(words[:4], words[16:20]) for words in arguments},
    )
    seconds, seconds_float = {two for _, two in pairs}, {two for _, two in floats}
    return WatchedCall(
        address,
        len(arguments),
        len({first for first, _ in pairs}),
        len({first for first, _ in floats}),
        len(pairs),
        len(floats),
        _number("<d", seconds),
        _number("<f", seconds_float),
    )


def _number(form: str, values: set[bytes]) -> float | None:
    """Return the number that a single value is; None for several, or where it is no finite number."""
    if len(values) != 1:
        return None
    number = float(struct.unpack(form, next(iter(values)))[0])
    return number if abs(number) < float("inf") else None


def read_watched(path: Path) -> WatchReport:
    """Return what a run left in a file; nothing where it could not watch."""
    try:
        report = json.loads(read_start(path, MAX_REPORT))
        calls = tuple(WatchedCall(**call) for call in report["calls"])
        return WatchReport(calls, int(report["names"]), int(report["different"]))
    except (OSError, ValueError, TypeError, KeyError):
        return WatchReport()
