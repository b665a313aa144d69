"""Whether a run can be written down: the output folder and the temporary folder, tried by writing a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from profkit.core.types import Check, CheckState

MIB, GIB = 1 << 20, 1 << 30

# perf record with 16 KiB of stack at 997 Hz wrote 4.25 MB for 0.26 s: a minute is 1 GB.
ROOM_LEAST = 1 * GIB
ROOM_NONE = 64 * MIB


def storage_checks(output: Path = Path("reports")) -> Iterator[Check]:
    """The folder that runs are written to (or will be made in), and the temporary folder."""
    yield folder_check("output folder", output, "profkit profile --output DIR, with a folder you may write")
    yield folder_check(
        "temporary folder", Path(tempfile.gettempdir()), "export TMPDIR=DIR, with a folder you may write"
    )


def folder_check(name: str, folder: Path, fix: str) -> Check:
    """Write a small file into `folder` (or where it would be made) and look at the room left."""
    place = folder.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".profkit-") as file:
            file.write(b"\0" * 65536)
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(place).free
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(name, "refused", f"{place} cannot be written: {reason}", fix, str(place))
    told = f"{place} can be written, {free / GIB:.1f} GiB free"
    if free < ROOM_LEAST:
        state: CheckState = "refused" if free < ROOM_NONE else "limited"
        return Check(name, state, f"{told}: a trace of a minute may take 1 GiB", fix, str(place))
    return Check(name, "ok", told, path=str(place))
