"""How long each group of counters is counted, by perf as by Instruments."""

from __future__ import annotations

NATIVE_SECONDS = 1.0  # of region for each group; of Instruments that is a thousand samples
MOST_ITERATIONS = 1_000_000


def iterations(seconds: float | None) -> int | None:
    """The same number in every group, so that the anchors can be compared; None where nothing was timed yet.

    `seconds` is what one iteration takes.
    """
    if seconds is None or seconds <= 0:
        return None
    return min(MOST_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))
