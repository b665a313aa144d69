"""Compiled programs kept on disk: a second sweep compiles nothing. What cannot be read or written is no error."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def folder() -> Path | None:
    """`$XDG_CACHE_HOME/profkit/kernels`, or that of `~/.cache`. None where there is no home."""
    base = os.environ.get(
        "XDG_CACHE_HOME"
    )  # by its specification a path that is not absolute counts as not set
    if base and os.path.isabs(base):
        return Path(base, "profkit", "kernels")
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "profkit" / "kernels"
    return None


def key(*parts: str | Sequence[str]) -> str:
    """A name for all that decides what is compiled: texts of sources and headers, options, the compiler's version."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """What was kept, if it is there and whole."""
    if (where := folder()) is None:
        return None
    with suppress(OSError):
        kept = (where / name).read_bytes()
        digest, program = kept[:32], kept[32:]
        if program and hashlib.sha256(program).digest() == digest:
            return program
    return None


def write(name: str, program: bytes) -> None:
    """Keep it: the file is there whole or not at all, whoever else writes it now."""
    if (where := folder()) is None:
        return
    with suppress(OSError):
        where.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(program).digest() + program)
            os.replace(temporary, where / name)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def forget(name: str) -> None:
    """What the driver would not load is compiled anew the next time."""
    if (where := folder()) is not None:
        with suppress(OSError):
            (where / name).unlink()
