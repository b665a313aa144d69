"""Counts of the guided modes of CPU Counters: of each thread, in stretches of some milliseconds, a row for each metric.

Table `MetricAggregationForThread`, known from what others read of it (Xcode 16 to 26, M1 to M4). No export of it is at
hand, so its columns are told by their types and not by their names. Every stretch is there twice, exact (`is-precise`,
ended by context switches) and in steps of 10 ms, with the same sums; the exact ones count where there are any.

`cycle` counts core cycles, other whole numbers count events. The four of the mode CPU Bottlenecks (useful, delivery,
processing, discarded) are shares of what the pipeline could have done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from profkit.core.types import Counter
from profkit.profilers.xctrace.cells import Process, Thread
from profkit.profilers.xctrace.recording import Recording
from profkit.profilers.xctrace.tables import Table

SCHEMA = "MetricAggregationForThread"
SHARES = ("useful", "delivery", "processing", "discarded")
MOST_METRICS = 200
_TYPES = ("start-time", "duration", "thread", "string", "uint64", "fixed-decimal", "boolean")


class GuidedTally:
    """Sums of each metric over the threads of the profiled process, in the part of the recording that counts."""

    def __init__(self, recording: Recording) -> None:
        self._target = recording.target
        self._windows = recording.windows
        self._sums: dict[bool, dict[str, float]] = {True: {}, False: {}}
        self.others = 0  # rows of other processes

    def read(self, table: Table) -> None:
        """Take all rows. Raises UnreadableReport as they do."""
        names = [next((c.mnemonic for c in table.columns if c.type == kind), "") for kind in _TYPES]
        single = table.attributes.get("target-pid") == "SINGLE"
        for start, duration, thread, metric, whole, part, precise in table.rows(names):
            if not (isinstance(start, int) and isinstance(duration, int) and isinstance(metric, str)):
                continue
            if not (single or self._counts(thread.process if isinstance(thread, Thread) else None)):
                self.others += 1
                continue
            value = part if isinstance(part, float) and part else whole
            if not isinstance(value, int | float):
                continue
            sums = self._sums[bool(precise)]
            if metric in sums or len(sums) < MOST_METRICS:
                sums[metric] = sums.get(metric, 0.0) + value * self._share(start, start + duration)

    def _counts(self, process: Process | None) -> bool:
        target = self._target
        if target is None or process is None:
            return True
        return process.pid == target.pid if target.pid is not None else process.name == target.name

    def _share(self, begin: int, end: int) -> float:
        """How much (0..1) of a stretch lies in what counts."""
        windows = self._windows
        if windows is None:
            return 1.0
        if end <= begin:
            return 1.0 if any(a <= begin < b for a, b in windows) else 0.0
        return _covered(windows, begin, end) / (end - begin)

    def counters(self) -> tuple[Counter, ...]:
        """A counter for each metric that was more than nothing."""
        sums = self._sums[True] or self._sums[False]
        return tuple(
            Counter(name, value, "measured", unit="share" if name in SHARES else "")
            for name, value in sorted(sums.items())
            if value > 0
        )


def _covered(windows: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """How many ns of [begin, end) lie in `windows`, which are sorted and apart."""
    total = 0
    place = max(0, bisect_left(windows, (begin, begin)) - 1)
    for a, b in windows[place:]:
        if a >= end:
            break
        total += max(0, min(b, end) - max(a, begin))
    return total
