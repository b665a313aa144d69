"""Removes what CPython and perf inject leave in the temporary folder for each recorded process."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

from profkit.profilers.perf.record_command import LEFTOVER_FOLDER

_LEFTOVER = re.compile(r"(?:perf|jit|jitted)-(\d{1,10})(?:\.map|\.dump|-\d+\.so)")


def leftovers(pids: Collection[int], since: float, folder: Path = LEFTOVER_FOLDER) -> tuple[Path, ...]:
    """The dumps, maps and images of `pids` written since `since` (seconds of the epoch), owned by this user.

    The process numbers come from the recording (data.recorded_pids): another profiler may be at work on the
    same machine, and its files have the same form. The time keeps an older file of a reused number.
    """
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            match = _LEFTOVER.fullmatch(entry.name)
            if match is None or int(match[1]) not in pids:
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                # Whole seconds: the clock of the file system is coarser than the one `since` was read from.
                if (
                    stat.S_ISREG(status.st_mode)
                    and status.st_uid == os.geteuid()
                    and status.st_mtime >= since - 1
                ):
                    found.append(Path(entry.path))
    return tuple(sorted(found))


def clean_up(pids: Collection[int], since: float, folder: Path = LEFTOVER_FOLDER) -> int:
    """Remove those files of `pids` that are younger than `since` (seconds since the epoch); how many were removed.

    One that cannot be removed stays: nothing depends on it.
    """
    removed = 0
    for path in leftovers(pids, since, folder):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed
