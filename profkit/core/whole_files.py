"""Text files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, pieces: Iterable[str], *, sync: bool = False) -> None:
    """Write the text; a former file stays as it was where anything fails, and so it does for whoever reads meanwhile.

    `sync`: on the disk before it takes the former one's place. A pipe or /dev/stdout, which cannot be replaced, is
    written through. Raises OSError, and what `pieces` raise.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(pieces)
        return
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(pieces)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # a Ctrl-C between the two leaves no litter
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
