"""A cache on disk for what is expensive to make: compiled kernels, the list of a suite's tests.

A failure to read or write it is no error.
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
    """Return the folder of the cache; None where the user has no home."""
    return user_cache("kernels")


def cache_key(*parts: str | Sequence[str]) -> str:
    """Return a name (SHA-256) for everything that decides the content: texts of sources, options, versions."""
    return hashlib.sha256(repr((LAYOUT, parts)).encode()).hexdigest()


def read_cached(name: str) -> bytes | None:
    """Read what was kept under the name; None where there is nothing."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            return read_bounded(where / name) or None
    return None


def write_cached(name: str, content: bytes) -> None:
    """Keep the content: the file is there whole or not at all, whoever else writes it now."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            where.mkdir(parents=True, exist_ok=True)
            with replacing(where / name) as temporary:
                temporary.write_bytes(content)


def remove_cached(name: str) -> None:
    """Remove what proved useless, so that it is made again the next time."""
    if (where := cache_folder()) is not None:
        with suppress(OSError):
            (where / name).unlink()
