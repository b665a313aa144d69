"""Limits of a worker process: it ends with its parent, is killed first where memory runs out, and has a memory limit.

Called in the worker's own process, before anything heavy is loaded. They are Linux features; on other systems a thread
notices that the parent is gone, and nothing limits the memory.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOOK_SECONDS = 1.0
MARGIN = 0.9  # of the free memory that a worker may take


def end_with(parent: int) -> None:
    """End this process, however busy it is, when the process `parent` that started it is gone."""
    if platform.system() == "Linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it went before this was asked
            os._exit(1)
        return
    threading.Thread(target=_watch, args=(parent,), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


def prefer_as_oom_victim() -> None:
    """Let the kernel kill this process before any other where memory runs out (proc(5): oom_score_adj)."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_memory(free: int | None, share: float = 1.0) -> None:
    """Let this process have `share` of `free` bytes beyond what it has: more is refused (setrlimit(2): RLIMIT_DATA).

    Without it Linux promises memory that it does not have, and kills some process when it is used.
    """
    used = data_bytes()
    if free is None or used is None:
        return
    import resource

    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = used + int(MARGIN * share * free)
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
        )


def data_bytes() -> int | None:
    """What RLIMIT_DATA counts of this process; None where it is not known."""
    if platform.system() != "Linux":
        return None
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None


def kills_for_memory() -> int | None:
    """How many processes the kernel has killed on this machine because memory ran out; None where it is not known."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None
