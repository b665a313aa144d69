"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name of a temporary file that takes the place of `path` at the end of the block: whole or not at all.

    Where the block raises, a Ctrl-C too, the former file stays and the temporary one is removed.
    """
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
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
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False) -> None:
    """Write the text; a former file stays as it was where anything fails, and so it does for whoever reads meanwhile.

    `sync`: on the disk before it takes the former one's place. Raises OSError, and what `pieces` raise.
    """
    there = contextlib.nullcontext(path) if is_stream(path) else replacing(path)
    with there as target, target.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
        if sync and target != path:
            file.flush()
            os.fsync(file.fileno())
