"""Fits a cache to what valgrind can simulate: the number of its sets must be a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from profkit.core.types import Cache

DEFAULT_WAYS = 16  # where the machine does not say; most last levels have 16 (Zen) to 20 (Xeon)
_MIN_LINE = 16  # valgrind refuses smaller lines (cg_arch.c, MIN_LINE_SIZE)
_SIZE_WEIGHT = 4  # a wrong size moves misses more than wrong ways: 1 % of size weighs as much as 4 % of ways


@dataclass(frozen=True)
class Geometry:
    """A legal geometry, size and line in bytes; `note` says what was changed, None where nothing was."""

    size: int
    ways: int
    line: int
    note: str | None = None

    @property
    def sets(self) -> int:
        """Number of sets, a power of two."""
        return self.size // (self.ways * self.line)

    def option(self) -> str:
        """As valgrind's `--D1=` and its siblings take it."""
        return f"{self.size},{self.ways},{self.line}"


def fit_geometry(cache: Cache) -> Geometry:
    """The legal geometry nearest to `cache`: the one of least 4·|log2 size ratio| + |log2 ways ratio|.

    Raises ValueError for a cache of no size.
    """
    if cache.size <= 0:
        raise ValueError(f"a level {cache.level} cache of {cache.size} bytes cannot be simulated")
    line = _power_of_two(cache.line if cache.line >= _MIN_LINE else 64)
    ways = cache.ways if cache.ways > 0 else DEFAULT_WAYS
    candidates = []
    sets = 1
    while sets * line <= max(cache.size, line):
        near = max(1, round(cache.size / (sets * line)))
        size = near * sets * line
        distance = _SIZE_WEIGHT * abs(log2(size / cache.size)) + abs(log2(near / ways))
        candidates.append((distance, Geometry(size, near, line)))
        sets *= 2
    best = min(candidates, key=lambda pair: pair[0])[1]
    if (best.size, best.ways, best.line) == (cache.size, cache.ways, cache.line):
        return best
    note = (
        f"L{cache.level} of {_size(cache.size)}, {cache.ways}-way, {cache.line} B lines is simulated as "
        f"{_size(best.size)}, {best.ways}-way, {best.line} B lines: valgrind needs a power of two of sets"
    )
    return Geometry(best.size, best.ways, best.line, note)


def _power_of_two(number: int) -> int:
    return 1 << round(log2(number))


def _size(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"
