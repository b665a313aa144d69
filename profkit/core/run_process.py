"""Which process carries a run out, and whether it still does: one that was killed leaves `running` behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from pathlib import Path

from profkit.core.types import RunProcess

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_CLOSE = 2.0  # seconds by which the start of one process may differ from itself where it is told by the clock


def own_process() -> RunProcess:
    """This process, as other processes of this machine can find it."""
    pid = os.getpid()
    return RunProcess(pid, _start_of(pid) or 0.0, _boot(), _host())


def has_died(process: RunProcess) -> bool:
    """Whether it is certain that the process is gone: its number is nobody's or another's now, or this machine started
    again since. False for one of another machine or container, which cannot be asked from here.
    """
    if process.host != _host():
        return False
    if process.boot != _boot():
        return True
    start = _start_of(process.pid)
    return start is None or abs(start - process.start) > _CLOSE


def _boot() -> str:
    """The start of this system."""
    with contextlib.suppress(OSError):
        return _BOOT.read_text(encoding="ascii").strip()
    import psutil

    return f"{psutil.boot_time():.0f}"


def _host() -> str:
    """This machine, or this container of it: who has the digest does not learn the name."""
    namespace = ""  # of process numbers: the same boot id holds in all containers of a machine
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:12]


def _start_of(pid: int) -> float | None:
    """When a process started, in seconds of a clock of this machine; None where there is none."""
    import psutil

    with contextlib.suppress(
        OSError, ValueError, IndexError
    ):  # since the boot: no change of the clock moves it
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        state, *fields = text.rpartition(")")[2].split()
        return None if state in "ZX" else int(fields[18]) / os.sysconf("SC_CLK_TCK")
    with contextlib.suppress(psutil.Error):
        there = psutil.Process(pid)
        return None if there.status() == psutil.STATUS_ZOMBIE else there.create_time()
    return None
