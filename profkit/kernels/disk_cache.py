"""What is dear to make, kept on disk: compiled kernels, the list of a suite's tests.

What cannot be read or written there is no error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import replacing, user_cache

LAYOUT = 2  # of a file: it is what was kept, and nothing more


def cache_folder() -> Path | None:
    """Where it is kept; None where there is no home."""
    return user_cache("kernels")


def cache_key(*parts: str | Sequence[str]) -> str:
    """A name for all that decides what is kept: texts of sources, options, versions."""
    return hashlib.sha256(repr((LAYOUT, parts)).encode()).hexdigest()


def read_cached(name: str) -> bytes | None:
    """What was kept, if it is there."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            return read_bounded(where / name) or None
    return None


def write_cached(name: str, content: bytes) -> None:
    """Keep it: the file is there whole or not at all, whoever else writes it now."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            where.mkdir(parents=True, exist_ok=True)
            with replacing(where / name) as temporary:
                temporary.write_bytes(content)


def remove_cached(name: str) -> None:
    """What was of no use is made anew the next time."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            (where / name).unlink()
