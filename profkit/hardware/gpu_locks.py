"""Locks that let only one run of profkit at a time use each GPU of a host; all users of the host share them.

A lock is flock(2) on a file named after the device's UUID. Nobody writes to the file, and the lock ends with
the process that holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence

from profkit.core.errors import MachineError, Progress

LOCKS = "/tmp/profkit-locks"  # whatever TMPDIR says: all users must mean one folder
FOLDER = "PROFKIT_LOCKS"  # names another folder; empty: nothing is locked
# What a parent process holds: it waits for this process, which must not wait for it.
HELD = "PROFKIT_GPUS_HELD"
WAIT_SECONDS = 3600.0
LOOK_SECONDS = 0.5
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for


@contextlib.contextmanager
def lock_gpus(uuids: Sequence[str], progress: Progress, patience: float = WAIT_SECONDS) -> Iterator[None]:
    """Keep these devices for this run of profkit inside the block; those a parent process holds are left out.

    All runs lock in the same order, so that no two wait for each other. Without a folder that all users can use,
    it reports that and goes on without locks. Raises MachineError after `patience` seconds.
    """
    folder = os.environ.get(FOLDER, LOCKS)
    had = os.environ.get(HELD, "")
    named = sorted((_plain(uuid), uuid) for uuid in uuids if uuid)
    wanted = {name: uuid for name, uuid in named if name not in had.split(",")}
    if not wanted or not folder:
        yield
        return
    with contextlib.ExitStack() as until_end:
        try:
            for name, uuid in wanted.items():
                descriptor = _open_file(folder, f"gpu-{name}.lock")
                until_end.callback(os.close, descriptor)
                _wait_for(descriptor, f"{uuid} is in use by another run of profkit", progress, patience)
        except OSError as error:
            progress.note(
                f"no GPU is locked: {folder}: {error.strerror}; other runs of profkit may use it, too"
            )
        else:
            os.environ[HELD] = ",".join(filter(None, (had, *wanted)))
            if had:
                until_end.callback(os.environ.__setitem__, HELD, had)
            until_end.callback(os.environ.pop, HELD)  # comes first
        yield


def _wait_for(descriptor: int, busy: str, progress: Progress, patience: float) -> None:
    """Lock the file, waiting up to `patience` seconds; `busy` is the sentence to show meanwhile.

    Raises MachineError if the lock is not free by then.
    """
    begun, shown = time.monotonic(), False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        waited = time.monotonic() - begun
        if waited >= patience:
            raise MachineError(
                busy + (f"; profkit waited for it for {waited:.0f} s" if waited > 1 else ""),
                f"use another GPU: CUDA_VISIBLE_DEVICES=1, or --gpus 1; {FOLDER}= (empty) uses it without a lock",
            )
        if not shown:
            progress.begin("wait", busy)
        shown = True
        progress.tick(waited)
        time.sleep(min(LOOK_SECONDS, max(0.0, patience - waited)))
    if shown:
        progress.end(f"the GPU is free after {time.monotonic() - begun:.0f} s")


def _open_file(folder: str, name: str) -> int:
    """Open a regular file in `folder`, created if absent, that every user may read and thus lock. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)  # for all users; as in /tmp nobody removes another user's file
        os.chmod(folder, 0o1777)
    at = os.open(folder, _OPEN | os.O_DIRECTORY)  # no link is followed
    try:  # only what is not there is created: Linux refuses that of another user's file (protected_regular)
        descriptor = os.open(name, _OPEN | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=at)
        os.fchmod(descriptor, 0o644)
    except FileExistsError:
        descriptor = os.open(name, _OPEN, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "a lock in it is not a regular file")
    return descriptor


def _plain(uuid: str) -> str:
    """Return the part of a UUID that CUDA and NVML agree on, as a valid file name."""
    return re.sub(r"[^0-9a-z-]", "", uuid.lower()).removeprefix("gpu-").removeprefix("mig-")
