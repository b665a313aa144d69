"""One run of profkit at a time on each GPU of a host: a lock by the device's UUID, which all users of the host share.

It is flock(2) on a file that nobody writes to: it ends with the process that has it, and the kernel says who that is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from profkit.core.errors import MachineError, Progress

LOCKS = "/tmp/profkit-locks"  # whatever TMPDIR says: all users must mean one folder
FOLDER = "PROFKIT_LOCKS"  # names another folder; empty: nothing is locked
HELD = "PROFKIT_GPUS_HELD"  # what a process above this one has: it waits for this one, and not the other way round
WAIT_SECONDS = 3600.0
LOOK_SECONDS = 0.5
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for


@contextlib.contextmanager
def lock_gpus(uuids: Sequence[str], progress: Progress, patience: float = WAIT_SECONDS) -> Iterator[None]:
    """Inside the block no other run of profkit has these devices; what is had already above is not asked for.

    It has all of them or none, and says whom it waits for. Without a folder that all users can use, it says so and goes
    on. Raises MachineError after `patience` seconds.
    """
    folder = os.environ.get(FOLDER, LOCKS)
    had = os.environ.get(HELD, "")
    named = sorted((_plain(uuid), uuid) for uuid in uuids if uuid)
    wanted = {name: uuid for name, uuid in named if name not in had.split(",")}
    if not wanted or not folder:
        yield
        return
    try:
        descriptors = _wait_for(folder, wanted, progress, patience)
    except OSError as error:
        progress.note(f"no GPU is locked: {folder}: {error.strerror}; other runs of profkit may use it, too")
        yield
        return
    os.environ[HELD] = ",".join(filter(None, (had, *wanted)))
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        os.environ.pop(HELD, None)
        if had:
            os.environ[HELD] = had


def _wait_for(folder: str, wanted: Mapping[str, str], progress: Progress, patience: float) -> list[int]:
    """The locked files. While one is busy none is kept, so that two runs never wait for each other."""
    begun, shown = time.monotonic(), ""
    while not isinstance(found := _try_all(folder, wanted), list):
        waited = time.monotonic() - begun
        if waited >= patience:
            raise MachineError(
                found + (f", and was waited for {waited:.0f} s" if waited > 1 else ""),
                f"another GPU: CUDA_VISIBLE_DEVICES=1, or --gpus 1; {FOLDER}= (empty) takes it all the same",
            )
        if not shown:
            progress.begin("wait", found)
        elif found != shown:
            progress.move(found)
        shown = found
        progress.tick(waited)
        time.sleep(min(LOOK_SECONDS, max(0.0, patience - waited)))
    if shown:
        progress.end(f"the GPU is free after {time.monotonic() - begun:.0f} s")
    return found


def _try_all(folder: str, wanted: Mapping[str, str]) -> list[int] | str:
    """The locked files; or, where another process has one, its device and its holder in words."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)  # for all users; as in /tmp nobody removes another user's file
        os.chmod(folder, 0o1777)
    descriptors: list[int] = []
    asked = ""
    at = os.open(folder, _OPEN | os.O_DIRECTORY)  # no link is followed
    try:
        for name, uuid in wanted.items():
            descriptors.append(_open_file(at, f"gpu-{name}.lock"))
            asked = uuid
            fcntl.flock(descriptors[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptors
    except OSError as error:
        holder = _holder(descriptors[-1]) if isinstance(error, BlockingIOError) else None
        for descriptor in descriptors:
            os.close(descriptor)
        if holder is None:
            raise
        return f"{asked} is in use by {holder}"
    finally:
        os.close(at)


def _open_file(folder: int, name: str) -> int:
    """A regular file in it; whoever made it, all may read it, and thus lock it. Raises OSError."""
    try:  # only what is not there is created: Linux refuses that of another user's file (protected_regular)
        descriptor = os.open(name, _OPEN | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        os.fchmod(descriptor, 0o644)
    except FileExistsError:
        descriptor = os.open(name, _OPEN, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "a lock in it is no regular file")
    return descriptor


def _plain(uuid: str) -> str:
    """As CUDA and NVML both call it, and as a file may be called."""
    return re.sub(r"[^0-9a-z-]", "", uuid.lower()).removeprefix("gpu-").removeprefix("mig-")


def _holder(descriptor: int) -> str:
    """Who has the lock on this file, as far as the kernel tells."""
    inode = str(os.fstat(descriptor).st_ino)
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            _, kind, _, _, pid, place, *_ = [word for word in line.split() if word != "->"]
            if kind == "FLOCK" and place.rpartition(":")[2] == inode and int(pid) > 0:
                return f"another run of profkit (pid {pid})"
    return "another run of profkit, in another container"
