"""Files that are written whole or not at all, and folders for a while."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.core.files.safe_folder import opened


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


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False) -> None:
    """Write the text; a former file stays as it was where anything fails, and so it does for whoever reads meanwhile.

    `sync`: on the disk before it takes the former one's place. Raises OSError, and what `pieces` raise.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device, which would be replaced
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    # `x`: made anew, so that no link that somebody put there is followed
    with replacing(path) as target, target.open("x", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
        if sync:
            file.flush()
            os.fsync(file.fileno())


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """As tempfile's: `with` gives its name, of which `purpose` is a part. What cannot be removed in the end stays."""

    def __init__(self, purpose: str = "") -> None:
        super().__init__(prefix=f"profkit-{purpose}-", ignore_cleanup_errors=True)
