"""Temporary folders that are gone when their process is: at its end, or when the next one finds that it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import time
import weakref
from pathlib import Path

from profkit.core.files.safe_folder import remove

_YOUNG = 60.0  # seconds: another process may have made the folder and not locked it yet
_NAME = re.compile(r"profkit-[a-z]*~\w{8}")  # as nobody calls a folder of his own


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """As tempfile's: `with` gives its name. It is locked meanwhile, so that others know whether it is used.

    `purpose`: small letters of its name. Those of this user that nobody uses any more are taken away first.
    """

    def __init__(self, purpose: str = "") -> None:
        remove_abandoned()
        super().__init__(prefix=f"profkit-{purpose}~", ignore_cleanup_errors=True)
        handle = _lock(Path(self.name))
        self._unlock = weakref.finalize(self, os.close, handle) if handle is not None else lambda: None

    def cleanup(self) -> None:
        """Remove it."""
        super().cleanup()
        self._unlock()


def remove_abandoned() -> None:
    """Take away what processes of this user left that were killed."""
    here = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(here)):
            with contextlib.suppress(OSError):
                found = (here / name).lstat()
                mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
                if (
                    mine
                    and time.time() - found.st_mtime >= _YOUNG
                    and (handle := _lock(here / name)) is not None
                ):
                    remove(here / name)
                    os.close(handle)


def _lock(folder: Path) -> int | None:
    """A handle that holds the folder while it is open, in this process alone; None where another one has it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
