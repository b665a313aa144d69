"""A binary perf.data: its processes, and the files that a recording of them leaves in the temporary folder."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
from collections.abc import Collection
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular

_MAGIC = b"PERFILE2"
# One per process that ran with perf support. The folder is fixed in CPython; TMPDIR and JITDUMPDIR change nothing.
LEFTOVER_FOLDER = Path("/tmp")
_COMM, _FORK = 3, 7  # record types that name every process
_RECORD = struct.Struct("<IHH")


def is_perf_data(head: bytes) -> bool:
    """True for a recording of perf."""
    return head.startswith(_MAGIC)


def recorded_pids(path: Path) -> frozenset[int]:
    """The number of every process that the recording saw start or change its name.

    Raises UnreadableReport where the file is no perf.data or ends within its header; a recording that ends later gives
    what stands before its end.
    """
    pids = set()
    try:
        with open_regular(path) as file:
            head = file.read(104)
            if not is_perf_data(head) or len(head) < 104:
                raise UnreadableReport(f"{path} is no perf.data, or is cut off within its header")
            position, length = struct.unpack_from("<QQ", head, 40)
            size = file.seek(0, os.SEEK_END)
            # perf fills in the length when it ends; a killed perf leaves 0, and records up to the end of the file.
            end = min(position + length, size) if length else size
            file.seek(min(position, size))
            # Walked in large pieces: a record is 64 KiB at most, and a recording has millions of them.
            piece, at = b"", 0
            while position < end:
                if at + 65536 > len(piece):
                    piece, at = piece[at:] + file.read(1 << 22), 0
                if at + 12 > len(piece):
                    break
                kind, _, length = _RECORD.unpack_from(piece, at)
                if length < 8:
                    break
                if kind in (_COMM, _FORK):
                    pids.add(struct.unpack_from("<I", piece, at + 8)[0])
                at, position = at + length, position + length
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    return frozenset(pids)


_LEFTOVER = re.compile(r"(?:perf|jit|jitted)-(\d{1,10})(?:\.map|\.dump|-\d+\.so)")


def find_leftovers(pids: Collection[int], since: float, folder: Path = LEFTOVER_FOLDER) -> tuple[Path, ...]:
    """The dumps, maps and images of `pids` written since `since` (seconds of the epoch), owned by this user.

    The process numbers come from the recording (data.recorded_pids): another profiler may be at work on the
    same machine, and its files have the same form. The time keeps an older file of a reused number.
    """
    paths = []
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
                    paths.append(Path(entry.path))
    return tuple(sorted(paths))


def remove_leftovers(pids: Collection[int], since: float, folder: Path = LEFTOVER_FOLDER) -> int:
    """Remove those files of `pids` that are younger than `since` (seconds since the epoch); how many were removed.

    One that cannot be removed stays: nothing depends on it.
    """
    removed = 0
    for path in find_leftovers(pids, since, folder):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed
