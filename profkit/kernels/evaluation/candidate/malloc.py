"""What the C library's malloc does in this process (glibc's mallopt(3); elsewhere nothing changes)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_PERTURB, _MMAP_MAX, _TRIM_THRESHOLD = -6, -4, -1
_FILLED = 1  # new memory has bytes of its complement then, 0xFE: large negative numbers, or NaN
_KEPT = 1 << 30  # bytes that malloc keeps rather than gives back
GARBAGE = 0xFE


@contextmanager
def fill_new_memory(*, filled: bool = True) -> Iterator[None]:
    """Memory that malloc gives holds GARBAGE at first, so that what nobody writes shows."""
    _set(_PERTURB, _FILLED if filled else 0)
    try:
        yield
    finally:
        _set(_PERTURB, 0)


def keep_freed_memory() -> None:
    """Memory that is freed stays here: no later call is charged with new pages."""
    _set(_MMAP_MAX, 0)
    _set(_TRIM_THRESHOLD, _KEPT)


@cache
def _load_mallopt() -> Any:
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).mallopt
    return None


def _set(parameter: int, value: int) -> None:
    if (mallopt := _load_mallopt()) is not None:
        mallopt(parameter, value)
