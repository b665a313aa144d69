"""Read profkit's standard input once, so that each run of a program can have it from its start.

A program that is profiled runs many times, and a pipe can be read once. Only a command that a user typed
takes it: where standard input is a protocol (the server of a coding agent, the far side of `--on`), it
belongs to that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shlex
import stat
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import Progress, UsageError, writing
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.types import Fact

MAX_BYTES = 64 << 20  # it is copied, to a disk that may be memory; beyond it a file is the better way
# Until the first byte, where no process is seen that could write one: a CI or an agent's shell leaves a pipe open that
# nobody ever writes to. What ssh or a parent process sends is there before profkit has started.
FIRST_SECONDS = 2.0
MAX_SECONDS = 120.0  # until its end, where something writes: `sort` of a large file says nothing for a while
_PIECE = 1 << 20
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "busybox")


@dataclass(frozen=True)
class StandardInput:
    """The standard input of each run of the program: `file` from its start, or nothing if that is None."""

    file: Path | None = None
    note: Fact | None = None  # what the user is to know of it


@contextlib.contextmanager
def given_input(caller: str, command: Sequence[str], progress: Progress) -> Iterator[StandardInput]:
    """Read standard input to its end, and keep it during the block; `caller` and `command` are for the fix of an error.

    Empty where it is a terminal or a device, closed, or an open pipe into which nobody writes. What a shell reads, too,
    is left to it: the rest of `while read` or of a script that is piped into `sh`. Raises UsageError where there is
    more than MAX_BYTES, or it does not end in MAX_SECONDS.
    """
    kind, line = _kind(), f"{caller} -- {_with_a_file(command)}"
    with contextlib.ExitStack() as last:
        if stat.S_ISREG(kind):
            pieces = _read_file()
        elif (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and not _is_read_by_a_shell():
            pieces = _read_pipe(line, progress)
        else:
            comes = waiting_bytes() or (stat.S_ISFIFO(kind) and _has_a_writer())
            yield StandardInput(note=Fact("input-not-given") if comes else None)
            return
        file = Path(last.enter_context(TemporaryFolder("input")), "input")
        with open(file, "wb") as copy:
            size = 0
            for piece in pieces:
                size += len(piece)
                if size > MAX_BYTES:
                    raise UsageError(
                        f"standard input has more than {MAX_BYTES >> 20} MiB, and is copied for each run to have it",
                        line,
                    )
                with writing(file, "TMPDIR=FOLDER profkit ..."):
                    copy.write(piece)
                    copy.flush()
        yield StandardInput(file, Fact.of("input-given", size=size)) if size else StandardInput()


def _read_file() -> Iterator[bytes]:
    """Yield the rest of a regular file; its offset stays where it is, since a shell may go on from there."""
    place = os.lseek(0, 0, os.SEEK_CUR)
    while piece := os.pread(0, _PIECE, place):
        place += len(piece)
        yield piece


def _read_pipe(line: str, progress: Progress) -> Iterator[bytes]:
    """Yield what is written into a pipe or a socket until its end, or nothing if no process writes.

    Raises UsageError where it does not end in MAX_SECONDS.
    """
    began, size, noted = time.monotonic(), 0, False
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        if not poll.poll(250):
            elapsed = time.monotonic() - began
            if size == 0 and elapsed > FIRST_SECONDS and not noted and not _has_a_writer():
                return
            if elapsed > MAX_SECONDS:
                raise UsageError(
                    f"standard input did not end within {MAX_SECONDS:.0f} s; it is read whole, since each run gets it",
                    line,
                )
            if elapsed > FIRST_SECONDS and not noted:
                noted = True
                progress.note(
                    "standard input is read to its end: each run of the program gets it from its start"
                )
            continue
        with contextlib.suppress(BlockingIOError):
            piece = os.read(0, _PIECE)
            if not piece:
                return
            size += len(piece)
            yield piece


def _kind() -> int:
    try:
        return os.fstat(0).st_mode
    except OSError:  # it is closed
        return 0


def _with_a_file(command: Sequence[str]) -> str:
    """Return the command that reads the file itself: by its name if standard input is a file, else as `FILE`."""
    name = "FILE"
    if stat.S_ISREG(_kind()):
        with contextlib.suppress(OSError):
            there = os.readlink("/proc/self/fd/0")
            name = shlex.quote(there) if os.path.exists(there) else name
    return f"sh -c {shlex.quote(f'{shlex.join(command)} < {name}')}"


def waiting_bytes() -> int:
    """Return how many bytes of a pipe or a regular file wait at standard input; they stay there."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(_kind()):
            return max(0, os.fstat(0).st_size - os.lseek(0, 0, os.SEEK_CUR))
        if stat.S_ISFIFO(_kind()):
            (waiting,) = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
            return int(waiting)
    return 0


# ------------------------------------------------------------ who else has the pipe (Linux tells)


def _is_read_by_a_shell() -> bool:
    """Return whether a shell above profkit has the same standard input, and would go on to read it."""
    ours = _target("self", "0")
    for pid in _ancestors():
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
            if name in _SHELLS and ours is not None and _target(pid, "0") == ours:
                return True
    return False


def _has_a_writer() -> bool:
    """Return whether a process that profkit was not started from holds the pipe's other end, as in `sort big |`."""
    ours = _target("self", "0")
    if ours is None:
        return False
    passed_over = {str(os.getpid()), *_ancestors()}
    for process in Path("/proc").glob("[0-9]*"):
        if process.name in passed_over:
            continue
        with contextlib.suppress(OSError, ValueError, StopIteration):  # another user's, or it has ended
            for number in os.listdir(process / "fd"):
                if _target(process.name, number) == ours:
                    lines = (process / "fdinfo" / number).read_text().splitlines()
                    flags = next(line.split()[1] for line in lines if line.startswith("flags:"))
                    if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


def _target(pid: str, number: str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return None


def _ancestors() -> list[str]:
    """Return the ids of the processes above profkit, the nearest first; none without Linux's /proc."""
    pids: list[str] = []
    pid = str(os.getppid())
    with contextlib.suppress(OSError, IndexError):
        while pid != "0" and sys.platform == "linux":
            pids.append(pid)
            # behind the name, which may hold blanks and brackets: state, then the parent
            pid = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    return pids
