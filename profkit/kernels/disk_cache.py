"""What is dear to make, kept on disk: compiled kernels, the list of a suite's tests.

What cannot be read or written there is no error.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from profkit.core.files.regular import read_bounded
from profkit.core.whole_files import user_cache


def cache_folder() -> Path | None:
    """Where it is kept; None where there is no home."""
    return user_cache("kernels")


def cache_key(*parts: str | Sequence[str]) -> str:
    """A name for all that decides what is kept: texts of sources, options, versions."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def read_cached(name: str) -> bytes | None:
    """What was kept, if it is there and whole."""
    if (where := cache_folder()) is None:
        return None
    with suppress(OSError):
        kept = read_bounded(where / name)
        digest, content = kept[:32], kept[32:]
        if content and hashlib.sha256(content).digest() == digest:
            return content
    return None


def write_cached(name: str, content: bytes) -> None:
    """Keep it: the file is there whole or not at all, whoever else writes it now."""
    if (where := cache_folder()) is None:
        return
    with suppress(OSError):
        where.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, where / name)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def remove_cached(name: str) -> None:
    """What was of no use is made anew the next time."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            (where / name).unlink()
