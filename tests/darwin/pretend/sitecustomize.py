"""A Python that believes to run on a Mac: loaded by every Python that has this folder on its path.

What Linux has and macOS has not is taken away: names of `os`, `signal`, `time` and `select`, and the files of /proc
and /sys. It is no Mac: the C library, the shell and what psutil tells are those of Linux (psutil is loaded before, and
may read /proc).
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import platform
import select
import signal
import sys
import sysconfig
import time
import types
from typing import Any

with contextlib.suppress(ImportError):
    import psutil  # noqa: F401 - it chooses its platform when it is loaded

sysconfig.get_config_vars()  # kept by it: the file is named after the platform

_ABSENT = {
    os: "sched_getaffinity sched_setaffinity sched_getscheduler pidfd_open memfd_create eventfd posix_fallocate "
    "posix_fadvise waitid P_PID P_PGID P_ALL WEXITED WNOWAIT WSTOPPED getrandom pipe2 splice copy_file_range "
    "O_TMPFILE O_DIRECT O_PATH O_LARGEFILE getxattr setxattr listxattr unshare setns process_cpu_count getresuid "
    "preadv2 pwritev2 fdatasync",
    signal: "sigtimedwait sigwaitinfo pidfd_send_signal SIGPWR SIGSTKFLT SIGRTMIN SIGRTMAX SIGPOLL",
    time: "CLOCK_BOOTTIME CLOCK_TAI CLOCK_MONOTONIC_COARSE pthread_getcpuclockid",
    select: "epoll EPOLLIN",
}
_HIDDEN = ("/proc", "/sys")


def _take_away() -> None:
    for module, names in _ABSENT.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    time.CLOCK_UPTIME_RAW = time.CLOCK_MONOTONIC  # type: ignore[attr-defined]
    proxies: Any = types.ModuleType("_scproxy")  # which urllib asks
    proxies._get_proxy_settings = proxies._get_proxies = dict
    sys.modules["_scproxy"] = proxies
    sys.platform = "darwin"
    platform.system = lambda: "Darwin"
    platform.machine = lambda: "arm64"
    platform.release = lambda: "24.6.0"
    platform.mac_ver = lambda *_args, **_kwargs: ("15.6.1", ("", "", ""), "arm64")
    for module, name in (
        (builtins, "open"),
        (io, "open"),
        (os, "open"),
        (os, "stat"),
        (os, "listdir"),
        (os, "scandir"),
    ):
        setattr(module, name, _without_proc(getattr(module, name)))


def _without_proc(real: Any) -> Any:
    def function(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, (str, bytes, os.PathLike)):
            name = os.fsdecode(path)
            if name.startswith(_HIDDEN) and name.split("/")[1] in ("proc", "sys") and not _asked_by_psutil():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return real(path, *args, **kwargs)

    return function


def _asked_by_psutil() -> bool:
    frame: Any = sys._getframe(1)
    for _ in range(12):
        if frame is None:
            return False
        if frame.f_globals.get("__name__", "").startswith("psutil"):
            return True
        frame = frame.f_back
    return False


_take_away()
