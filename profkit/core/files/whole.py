"""Files that are written whole or not at all, and folders for a while."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.core.files.safe_folder import check_links, is_shared, opened


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
    check_links(Path(path))
    flags = os.O_NOFOLLOW if is_shared(Path(path).parent) else 0
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | flags)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ESTALE, "it was no file, and is one now", path)
    return handle


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """As tempfile's: `with` gives its name, of which `purpose` is a part. What cannot be removed in the end stays."""

    def __init__(self, purpose: str = "") -> None:
        super().__init__(prefix=f"profkit-{purpose}-", ignore_cleanup_errors=True)
