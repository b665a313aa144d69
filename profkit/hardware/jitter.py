"""How steady this processor does the same small work: the clock under every timing."""

from __future__ import annotations

import time
from dataclasses import dataclass

_WORK_SECONDS = 1e-3


@dataclass(frozen=True)
class Jitter:
    """Durations in seconds of a piece of work that is the same every time."""

    fastest: float
    median: float
    p90: float
    rounds: int

    @property
    def spread(self) -> float:
        """The 90th percentile above the fastest, as a share: 0.05 is 5 % slower."""
        return self.p90 / self.fastest - 1.0


def measure_jitter(rounds: int = 200, limit: float = 1.0) -> Jitter:
    """Time `rounds` pieces of about 1 ms of arithmetic on this thread, for at most `limit` seconds."""
    steps = 2000
    once = min(_spin(steps) for _ in range(5))
    steps = max(1, int(steps * _WORK_SECONDS / once))
    deadline = time.perf_counter() + limit
    spans: list[float] = []
    while len(spans) < rounds and (len(spans) < 10 or time.perf_counter() < deadline):
        spans.append(_spin(steps))
    ordered = sorted(spans)
    count = len(ordered)
    return Jitter(ordered[0], ordered[count // 2], ordered[min(count - 1, (count * 9) // 10)], count)


def _spin(steps: int) -> float:
    """Seconds of a loop that touches no memory and asks the system for nothing."""
    start = time.perf_counter()
    total = 0
    for step in range(steps):
        total += step
    return max(time.perf_counter() - start, 1e-9)
