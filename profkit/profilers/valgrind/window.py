"""Runs a program under callgrind and begins to simulate where it first reaches an address.

Until then valgrind runs it several times slower instead of sixty times. `vgdb` passes on what a debugger
would send: stop at this address, switch the simulation on, and let it go.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from profkit.core.files.regular import read_start

_POSITION_INDEPENDENT = 3  # e_type of an ELF file, ET_DYN: it is loaded anywhere
# Not by -m: modules of the workload's folder would come before the standard library's.
_START = (
    f"import sys; sys.path[:1] = [sys.argv.pop(1)]; from {__name__} import main; sys.exit(main(sys.argv[1:]))"
)
_ROOT = str(Path(__file__).parents[3])
_TRAP = "05"  # the signal of a stop at an address
MAX_MAPS = 1 << 22  # bytes
CONNECT_SECONDS = 20.0


def window_argv(
    callgrind: Sequence[str], program: str, address: int, prefix: str, vgdb: str
) -> tuple[str, ...]:
    """Return the command that simulates from `address` of `program` on.

    `callgrind` is the command of `callgrind_argv` with a region, which begins without a simulation. `prefix` is
    that of the pipes to `vgdb`.
    """
    at = next(place for place, word in enumerate(callgrind) if word == "--vgdb=no")
    debugged = ("--vgdb=yes", "--vgdb-error=0", f"--vgdb-prefix={prefix}")
    argv = (*callgrind[:at], *debugged, *callgrind[at + 1 :])
    return (sys.executable, "-c", _START, _ROOT, program, hex(address), prefix, vgdb, "--", *argv)


def is_window(argv: Sequence[str]) -> bool:
    """Return whether a command is one of `window_argv`."""
    return tuple(argv[1:3]) == ("-c", _START)


class _Debugger:
    """The remote protocol of gdb, as far as it is needed (sourceware.org/gdb, appendix E)."""

    def __init__(self, vgdb: str, prefix: str, pid: int) -> None:
        self._process = subprocess.Popen(
            [vgdb, f"--vgdb-prefix={prefix}", f"--pid={pid}", f"--wait={CONNECT_SECONDS:.0f}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def send(self, text: str) -> None:
        """Send a packet."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"${text}#{sum(text.encode()) % 256:02x}".encode())
        self._process.stdin.flush()

    def ask(self, text: str) -> str:
        """Send a packet, and return the answer that is no text for the console.

        Raises EOFError where the program has ended.
        """
        self.send(text)
        while (answer := self._packet()).startswith("O") and answer != "OK":
            pass
        return answer

    def monitor(self, command: str) -> None:
        """Have valgrind run a command of its own."""
        self.ask(f"qRcmd,{command.encode().hex()}")

    def run(self) -> str:
        """Let the program run until it stops at the address or ends; signals are passed on to it."""
        stopped = self.ask("c")
        while stopped.startswith("T") and not stopped.startswith(f"T{_TRAP}"):
            stopped = self.ask(f"C{stopped[1:3]}")
        return stopped

    def _packet(self) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        read = self._process.stdout.read
        while (sign := read(1)) != b"$":
            if not sign:
                raise EOFError
        text = b""
        while (sign := read(1)) != b"#":
            if not sign:
                raise EOFError
            text += sign
        read(2)
        self._process.stdin.write(b"+")
        self._process.stdin.flush()
        return text.decode("ascii", "replace")


def _base_of(program: str, pid: int) -> int:
    """Return the offset from addresses of a program's file to its memory; 0 where they are the same."""
    kind = int.from_bytes(read_start(Path(program), 18)[16:18], sys.byteorder)
    if kind != _POSITION_INDEPENDENT:
        return 0
    real = os.path.realpath(program)
    for row in read_start(Path(f"/proc/{pid}/maps"), MAX_MAPS).decode("utf-8", "replace").splitlines():
        words = row.split(maxsplit=5)
        if len(words) == 6 and words[5].strip() == real and int(words[2], 16) == 0:
            return int(words[0].partition("-")[0], 16)
    raise EOFError


def main(words: Sequence[str]) -> int:
    """Run the command, and return its exit code."""
    program, address, prefix, vgdb, _, *argv = words
    # The time limit ends valgrind, which then writes its report; this process waits for it.
    child = subprocess.Popen(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: child.send_signal(number))
    with contextlib.suppress(
        EOFError, OSError, ValueError
    ):  # it ended before it came there: nothing is counted
        _switch_on(program, int(address, 16), prefix, vgdb, child.pid)
    code = child.wait()
    for path in glob.glob(f"{glob.escape(prefix)}*"):
        os.unlink(path)
    return code if code >= 0 else 128 - code


def _switch_on(program: str, address: int, prefix: str, vgdb: str, pid: int) -> None:
    begin = time.monotonic()
    while not glob.glob(f"{glob.escape(prefix)}*-{pid}-*") and time.monotonic() < begin + CONNECT_SECONDS:
        time.sleep(0.02)
    debugger = _Debugger(vgdb, prefix, pid)
    debugger.ask("?")
    debugger.monitor(
        "v.set vgdb-error 999999"
    )  # else a fatal signal, as the end of the time, waits for a debugger
    where = f"{_base_of(program, pid) + address:x}"
    debugger.ask(f"Z0,{where},1")
    if not debugger.run().startswith(f"T{_TRAP}"):
        return
    debugger.ask(f"z0,{where},1")
    debugger.monitor("instrumentation on")
    debugger.ask("D")
