"""Memory bandwidth with numpy: three kernels over arrays that no cache holds, best of many rounds.

Bytes are counted as STREAM counts them (McCalpin): what the kernel reads and writes, copy 2N, add 3N. A
plain store of a line that is not in the cache first reads that line (write-allocate), so copy and add really
move up to 3N and 4N. `update` (b += a) reads what it then writes: its 3N is all it moves. That makes it the
honest figure for a comparison with counted DRAM traffic, and on most machines the largest of the three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profkit.core.errors import MachineError

if TYPE_CHECKING:
    import numpy

MIB = 1024 * 1024
LEAST_ARRAY = 64 * MIB
MOST_ARRAY = 2048 * MIB  # only a server with hundreds of MiB of cache gets here, and touches it in parallel
CACHE_FACTOR = 4  # STREAM's rule: each array at least four times the last-level caches together
MEMORY_SHARE = 0.25  # of what is available, for the three arrays together
TOO_SMALL = 4 * MIB


@dataclass(frozen=True)
class Bandwidth:
    """The best rate in bytes/s, the kernel that reached it, and the bytes of each array."""

    best: float
    kernel: str
    array_bytes: int
    rates: tuple[tuple[str, float], ...]
    note: str | None = None  # what makes the figure doubtful


def array_bytes(cache: int, available: int | None) -> tuple[int, str | None]:
    """Bytes of one of the three arrays for `cache` bytes of last-level cache, and what is wrong with it.

    Raises MachineError where the memory available leaves no array worth measuring.
    """
    wanted = min(max(LEAST_ARRAY, CACHE_FACTOR * cache), MOST_ARRAY)
    possible = wanted if available is None else int(available * MEMORY_SHARE / 3)
    size = min(wanted, possible)
    if size < max(TOO_SMALL, cache // 2):
        raise MachineError(
            f"{(available or 0) // MIB} MiB of free memory are too few to measure the memory bandwidth "
            f"behind {cache // MIB} MiB of cache",
            "free memory, or raise the container's memory limit",
        )
    if size < 2 * cache:
        return (
            size,
            f"arrays of {size // MIB} MiB, of which a cache of {cache // MIB} MiB holds a part: too high",
        )
    return size, None


def measure_bandwidth(seconds: float, threads: int, cache: int, available: int | None) -> Bandwidth:
    """Best of as many rounds as fit in `seconds` (at least 3 per kernel), on `threads` threads at once.

    `cache` is the last-level cache that these threads reach, `available` the free memory, both in bytes.
    A round lasts until its slowest thread is done. Raises MachineError when memory is too small.
    """
    import numpy

    size, note = array_bytes(cache, available)
    count = size // 4 // threads
    parts = [_Part(count) for _ in range(threads)]
    kernels: tuple[tuple[str, int, Callable[[_Part], object]], ...] = (
        ("copy", 2, lambda part: numpy.copyto(part.b, part.a)),
        ("add", 3, lambda part: numpy.add(part.a, part.b, out=part.c)),
        ("update", 3, lambda part: numpy.add(part.b, part.a, out=part.b)),
    )
    rates: dict[str, float] = {}
    with _Team(parts) as team:
        team.run(lambda part: part.touch())  # each thread its own pages, where it will use them
        deadline = time.perf_counter() + seconds
        rounds = 0
        while rounds < 3 or time.perf_counter() < deadline:
            for name, arrays, kernel in kernels:
                spent = team.run(kernel)
                rates[name] = max(rates.get(name, 0.0), arrays * 4 * count * threads / spent)
            rounds += 1
    best = max(rates, key=lambda name: rates[name])
    return Bandwidth(rates[best], best, 4 * count * threads, tuple(rates.items()), note)


class _Part:
    """One thread's share of the three arrays."""

    def __init__(self, count: int) -> None:
        import numpy

        self.a: numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]] = numpy.empty(count, numpy.float32)
        self.b = numpy.empty_like(self.a)
        self.c = numpy.empty_like(self.a)

    def touch(self) -> None:
        self.a.fill(1.0)
        self.b.fill(0.0)
        self.c.fill(0.0)


class _Team:
    """Threads that do the same at the same time; numpy lets go of the interpreter lock in its loops."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    def __enter__(self) -> _Team:
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier

        # A pool of one per part: the thread that touched the pages first, on its memory node, keeps them.
        self._pools = [ThreadPoolExecutor(1) for _ in self._parts]
        self._barrier = Barrier(len(self._parts))
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.shutdown()

    def run(self, kernel: Callable[[_Part], object]) -> float:
        """Seconds from the moment all threads are ready until the last is done."""
        pairs = zip(self._pools, self._parts, strict=True)
        spans = [future.result() for future in [pool.submit(self._one, part, kernel) for pool, part in pairs]]
        return max(end for _, end in spans) - min(start for start, _ in spans)

    def _one(self, part: _Part, kernel: Callable[[_Part], object]) -> tuple[float, float]:
        self._barrier.wait(timeout=60)
        start = time.perf_counter()
        kernel(part)
        return start, time.perf_counter()
