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
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.files.regular import read_start
from profkit.profilers.perf.look_records import MAX_LOOKS, ORDER, RECORD, REGISTERS

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
        if self._call(request, thread, None, data) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def registers(self, thread: int) -> tuple[bytes, bytes]:
        """Stop a thread, and return its general and its floating-point registers. Raises OSError."""
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


def _look(ptrace: _Ptrace, program: str, child: subprocess.Popen[bytes], output: Path, apart: float) -> None:
    """Look until the command has ended. Raises OSError where looking is refused."""
    pid, code, written = None, None, 0
    with open(output, "wb") as file:
        while child.poll() is None and written < MAX_LOOKS:
            time.sleep(apart)
            if pid is None or not os.path.exists(f"/proc/{pid}"):
                pid, code = _find(program, child.pid), None
                continue
            try:
                code = code or _code_of(program, pid)
                threads = list(_running(pid))[:MAX_THREADS]
            except OSError:
                pid = None
                continue
            for thread in threads:
                begin = time.monotonic()
                try:
                    general, floating = ptrace.registers(thread)
                except (ProcessLookupError, ChildProcessError):
                    continue  # it has ended
                end = time.monotonic()
                values = dict(zip(ORDER, struct.unpack_from(f"<{len(ORDER)}Q", general), strict=True))
                low, high, base = code
                address = values["rip"] - base if low <= values["rip"] < high else 0
                mxcsr = struct.unpack_from("<I", floating, _MXCSR_AT)[0]
                kept = [values[name] for name in REGISTERS]
                xmm = floating[_XMM_AT : _XMM_AT + 256]
                file.write(RECORD.pack(thread, mxcsr, begin, end, address, *kept, xmm))
                written += 1


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
