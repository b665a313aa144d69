"""Memory over time: the looks at it as a short series that keeps the highest of those it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from profkit.core.types import MemorySeries, MemorySeriesKind

MAX_LOOKS = 240  # more than a chart has pixels, and some kB of run.json


def memory_series(
    kind: MemorySeriesKind, looks: Sequence[tuple[float, float]], peak: float | None = None
) -> MemorySeries | None:
    """Return samples of memory as (seconds, bytes) in their order; None for fewer than two.

    Of neighbours that are too many the highest stays, at its own time, so that no peak is lost.
    """
    if len(looks) < 2:
        return None
    if len(looks) > MAX_LOOKS:
        ends = [len(looks) * n // MAX_LOOKS for n in range(MAX_LOOKS + 1)]
        parts = (looks[begin:end] for begin, end in pairwise(ends))
        looks = [max(part, key=lambda look: look[1]) for part in parts]
    seconds, sizes = zip(*looks, strict=True)
    return MemorySeries(kind, tuple(round(time, 4) for time in seconds), tuple(map(float, sizes)), peak)
