"""Files that are written whole or not at all, and folders that go away with their process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.core.files.safe_folder import opened, remove


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name of a temporary file that takes the place of `path` at the end of the block: whole or not at all.

    Where the block raises, a Ctrl-C too, the former file stays and the temporary one is removed.
    """
    with opened(path.parent) as folder:
        temporary = folder / f".{path.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        try:
            yield temporary
            os.replace(temporary, folder / path.name)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def user_cache(name: str) -> Path | None:
    """`$XDG_CACHE_HOME/profkit/NAME`, or that of `~/.cache`, there or not. None where there is no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # by its specification a path that is not absolute counts as not set
        return Path(base, "profkit", name)
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "profkit" / name
    return None


def is_stream(path: Path) -> bool:
    """/dev/stdout, a pipe: written through, since it cannot be replaced."""
    try:
        mode = path.stat().st_mode  # asked once: in between it may become another file
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False) -> None:
    """Write the text; a former file stays as it was where anything fails, and so it does for whoever reads meanwhile.

    `sync`: on the disk before it takes the former one's place. Raises OSError, and what `pieces` raise.
    """
    if is_stream(path):
        with open(path, "w", encoding="utf-8", errors="replace", opener=_open_stream) as file:
            file.writelines(pieces)
        return
    # `x`: made anew, so that no link that somebody put there is followed
    with replacing(path) as target, target.open("x", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _open_stream(path: str, _: int) -> int:
    """Nothing is made and nothing cut off: where it is a file by now, that is somebody's."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ESTALE, "it was no file, and is one now", path)
    return handle


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
