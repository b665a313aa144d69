"""Runs a command, and looks now and then at the registers of the threads that compute in a program below it.

Samples tell where a program is, and registers what it works on there: numbers that are not normal, a divisor that
stays the same, an address that another thread writes to as well. A thread is stopped for some 50 microseconds, and
only while it runs: no system call is interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.files.regular import read_start
from profkit.profilers.perf.look_records import MAX_LOOKS, ORDER, RECORD, REGISTERS, watched_file
from profkit.profilers.perf.watch import Watcher, mathematics

_START = (
    f"import sys; sys.path[:1] = [sys.argv.pop(1)]; from {__name__} import main; sys.exit(main(sys.argv[1:]))"
)
_ROOT = str(Path(__file__).parents[3])
_SEIZE, _INTERRUPT, _DETACH, _GETREGS, _GETFPREGS = 0x4206, 0x4207, 17, 12, 14
_WALL = 0x40000000
_FLOAT_BYTES, _MXCSR_AT, _XMM_AT = 512, 24, 160
_USER_REGS = 27 * 8
MAX_MAPS = 1 << 22  # bytes
MAX_THREADS = 8  # that are looked at together
LATE = (4, 16, 64)  # looks after which the libraries are looked for again
SHORTEST, LOOKS = 0.004, 500  # seconds between looks, and how many there should be


def looks_argv(command: Sequence[str], program: str, output: Path, seconds: float) -> tuple[str, ...]:
    """Return the command that runs `command` and writes the registers of `program` into `output`.

    `seconds`: how long the program runs as a rule.
    """
    apart = max(SHORTEST, seconds / LOOKS)
    return (sys.executable, "-c", _START, _ROOT, program, str(output), f"{apart:.4f}", "--", *command)


class _Ptrace:
    """The system call, as far as it is needed (ptrace(2))."""

    def __init__(self) -> None:
        self._call = ctypes.CDLL(None, use_errno=True).ptrace
        self._call.restype = ctypes.c_long
        self._call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

    def ask(self, request: int, thread: int, data: object = None) -> None:
        """Send a request. Raises OSError."""
        self.ask_at(request, thread, None, data)

    def ask_at(self, request: int, thread: int, address: object, data: object) -> None:
        """Send a request with an address. Raises OSError."""
        if self._call(request, thread, address, data) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def registers(self, thread: int, stopped: Callable[[bytes], None]) -> tuple[bytes, bytes]:
        """Stop a thread, and return its general and its floating-point registers. Raises OSError.

        Meanwhile `stopped` is called with the general ones.
        """
        self.ask(_SEIZE, thread)
        self.ask(_INTERRUPT, thread)
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError
        general, floating = (ctypes.create_string_buffer(size) for size in (_USER_REGS, _FLOAT_BYTES))
        # A signal that came meanwhile is passed on.
        is_signal = not status >> 16 and os.WSTOPSIG(status) != signal.SIGTRAP
        try:
            self.ask(_GETREGS, thread, ctypes.addressof(general))
            self.ask(_GETFPREGS, thread, ctypes.addressof(floating))
            stopped(general.raw)
        finally:
            self.ask(_DETACH, thread, os.WSTOPSIG(status) if is_signal else None)
        return general.raw, floating.raw


def _find(program: str, pid: int) -> int | None:
    """Return the process that runs the program: this one, or one below it."""
    from profkit.core.process_tree import descendants  # late: it loads psutil, which a reader has no need of

    for process in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{process}/exe", program):
                return process
    return None


def _code_of(program: str, pid: int) -> tuple[int, int, int]:
    """Return where the code of the program begins and ends in memory, and what its addresses in the file lack."""
    elf_type = int.from_bytes(read_start(Path(program), 18)[16:18], sys.byteorder)
    real, base, low, high = os.path.realpath(program), None, 0, 0
    for row in read_start(Path(f"/proc/{pid}/maps"), MAX_MAPS).decode("utf-8", "replace").splitlines():
        words = row.split(maxsplit=5)
        if len(words) < 6 or words[5].strip() != real:
            continue
        first, _, last = words[0].partition("-")
        if int(words[2], 16) == 0:
            base = int(first, 16)
        if "x" in words[1]:
            low, high = low or int(first, 16), int(last, 16)
    if base is None or not high:
        raise OSError
    return low, high, base if elf_type == 3 else 0


def _running(pid: int) -> Iterator[int]:
    """Yield the threads of a process that run or could."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if read_start(task / "stat", 512).rpartition(b") ")[2][:1] == b"R":
                yield int(task.name)


def _values(general: bytes) -> Mapping[str, int]:
    return dict(zip(ORDER, struct.unpack_from(f"<{len(ORDER)}Q", general), strict=True))


@dataclass(frozen=True)
class _Process:
    """The process that runs the program, with its code and that of the mathematics library in memory."""

    pid: int
    code: tuple[int, int, int]
    mathematics: list[tuple[int, int]]


def _process_of(program: str, pid: int) -> _Process | None:
    """Return the process that runs a program, which is this one or one below it. Raises OSError."""
    found = _find(program, pid)
    return None if found is None else _Process(found, _code_of(program, found), mathematics(found))


def _look(ptrace: _Ptrace, program: str, child: subprocess.Popen[bytes], output: Path, apart: float) -> None:
    """Look until the command has ended. Raises OSError where looking is refused."""
    process, written = None, 0
    watcher = Watcher(ptrace.ask_at, watched_file(output))
    with open(output, "wb") as file, contextlib.ExitStack() as at_the_end:
        at_the_end.callback(watcher.write)
        while child.poll() is None and written < MAX_LOOKS:
            time.sleep(apart)
            try:
                if process is None or not os.path.exists(f"/proc/{process.pid}"):
                    process = _process_of(program, child.pid)
                    continue
                threads = list(_running(process.pid))[:MAX_THREADS]
            except OSError:
                process = None
                continue
            if not process.mathematics and written in LATE:
                process = replace(process, mathematics=mathematics(process.pid))
            for thread in threads:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended
                    file.write(_record(ptrace, watcher, process, thread))
                    written += 1


def _record(ptrace: _Ptrace, watcher: Watcher, process: _Process, thread: int) -> bytes:
    """Return the record of one look at a thread, and watch its calls where that is worth it. Raises OSError."""

    def stopped(general: bytes) -> None:
        site = watcher.see(process.pid, thread, _values(general), process.code, process.mathematics)
        if site is not None:
            with contextlib.suppress(OSError):  # breakpoints are refused here, or the thread has ended
                watcher.watch(thread, site, process.code[2])

    begin = time.monotonic()
    general, floating = ptrace.registers(thread, stopped)
    end = time.monotonic()
    values = _values(general)
    low, high, base = process.code
    address = values["rip"] - base if low <= values["rip"] < high else 0
    mxcsr = struct.unpack_from("<I", floating, _MXCSR_AT)[0]
    kept = [values[name] for name in REGISTERS]
    return RECORD.pack(thread, mxcsr, begin, end, address, *kept, floating[_XMM_AT : _XMM_AT + 256])


def main(words: Sequence[str]) -> int:
    """Run the command, and return its exit code."""
    program, output, apart, _, *argv = words
    child = subprocess.Popen(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: child.send_signal(number))
    with contextlib.suppress(OSError, ValueError):  # looking is refused here: the command runs all the same
        _look(_Ptrace(), program, child, Path(output), float(apart))
    code = child.wait()
    return code if code >= 0 else 128 - code
