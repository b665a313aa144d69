"""How the workload itself ended, told through a file: profilers hide it (perf returns 0 when its child is killed).

And whether the process that carries a run out still does: one that was killed leaves `running` behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from profkit.core.files.regular import read_start
from profkit.core.types import RunProcess

# `"$@"` and not `exec`: the shell has to live on to see how the workload ended. The file is written whole
# before it gets its name, so that a reader never sees half of it. The shell's own exit repeats the status for perf.
_SCRIPT = (
    'out=$1; shift; trap : INT TERM; "$@"; status=$?; '
    'printf "%s\\n" "$status" > "$out.part" && mv -f "$out.part" "$out"; exit "$status"'
)


def status_wrapper(argv: Sequence[str], status_file: Path | str) -> tuple[str, ...]:
    """`argv` run by a shell that writes how it ended to `status_file`.

    SIGINT and SIGTERM reach the workload and not only the shell, since they are sent to the whole group.
    """
    return ("sh", "-c", _SCRIPT, "sh", str(status_file), *argv)


def without_wrapper(argv: Sequence[str]) -> tuple[str, ...]:
    """The workload in a command line that a profiler recorded, without the shell of `status_wrapper` around it."""
    words = tuple(argv)
    return words[5:] if words[:4] == ("sh", "-c", _SCRIPT, "sh") else words


def read_status(path: Path | str) -> int | None:
    """The workload's status as subprocess gives it: negative is the signal that ended it.

    None where the file is missing or holds no status: the wrapper itself was killed.
    A shell says 128 + n for a child that died by signal n; its own exit with such a number looks the same.
    """
    try:
        text = read_start(path, 32).decode("ascii").strip()
        status = int(text)
    except (OSError, ValueError):
        return None
    if not 0 <= status <= 255:
        return None
    return 128 - status if 128 < status <= 128 + 64 else status


# ---------------------------------------------------------------- the process of a run


# Seconds by which the start of one process may differ from itself: the clock may be set meanwhile
_CLOSE = 5.0


def own_process() -> RunProcess:
    """This process, as other processes of this machine can find it."""
    pid = os.getpid()
    return RunProcess(pid, _start_of(pid) or 0.0, _host())


def has_died(process: RunProcess) -> bool:
    """Whether it is certain that the process is gone: its number is nobody's or another's now.

    False for one of another machine or container, which cannot be asked from here.
    """
    if process.host != _host():
        return False
    start = _start_of(process.pid)
    return start is None or abs(start - process.start) > _CLOSE


def _host() -> str:
    """This machine, or this container of it: who has the digest does not learn the name."""
    namespace = ""  # of process numbers
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:12]


def _start_of(pid: int) -> float | None:
    """When a process started, in seconds since the epoch; None where there is none."""
    import psutil

    with contextlib.suppress(psutil.Error):
        there = psutil.Process(pid)
        return None if there.status() == psutil.STATUS_ZOMBIE else there.create_time()
    return None
