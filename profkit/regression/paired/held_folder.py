"""A temporary folder that is gone when its process is: at its end, or when the next one finds that it was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from profkit.core.signals import defer_interrupts
from profkit.regression.paired.builds import LOCK, lock_folder

_YOUNG = 60.0  # seconds: another process may have made the folder and not locked it yet


@contextlib.contextmanager
def held_folder(prefix: str) -> Iterator[Path]:
    """A new folder whose name begins with `prefix`, locked while this process uses it; gone behind the block.

    Folders of that name that nobody holds any more are taken away first.
    """
    _remove_abandoned(prefix)
    place = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    held = lock_folder(place)
    try:
        yield place
    finally:
        with defer_interrupts():  # an impatient second Ctrl-C must not leave it lying about
            shutil.rmtree(place, ignore_errors=True)
            if held is not None:
                os.close(held)


def _remove_abandoned(prefix: str) -> None:
    """Take away the folders of this user whose process was killed: nobody holds their lock."""
    for place in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            found = place.lstat()
            mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if not mine or time.time() - found.st_mtime < _YOUNG or not (place / LOCK).is_file():
                continue
            held = lock_folder(place)
            if held is not None:
                shutil.rmtree(place, ignore_errors=True)
                os.close(held)
