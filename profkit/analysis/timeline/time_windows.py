"""Sets of time on the clock of a trace: what counts of it, as regions or the profiler's own ranges mark it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.range_names import is_region
from profkit.analysis.timeline.records import Range

EVER = (-(1 << 62), 1 << 62)


@dataclass(frozen=True)
class TimeWindows:
    """Stretches of time in ns, in order, none overlapping another.

    Whatever was launched in a window belongs to it, no matter when the device ran it. `tight`: the bounds do not
    measure anything, the begin and end of the activities in them do.
    """

    bounds: tuple[tuple[int, int], ...]
    marked: bool
    tight: bool

    def number(self, times: Any) -> Any:
        """Return for each time (ns) the number of the window that it is in, -1 where it is in none."""
        import numpy as np

        begins = np.array([begin for begin, _ in self.bounds], dtype=np.int64)
        ends = np.array([end for _, end in self.bounds], dtype=np.int64)
        at = np.searchsorted(begins, times, side="right") - 1
        inside = (at >= 0) & (times <= ends[np.maximum(at, 0)])
        return np.where(inside, at, -1)

    def touched(self, start: int, end: int) -> bool:
        """Return whether the stretch from `start` to `end` (ns) overlaps any window."""
        at = bisect_left(self.bounds, start, key=lambda bound: bound[1])
        return at < len(self.bounds) and self.bounds[at][0] <= end

    @property
    def begin(self) -> int:
        """Return when the first window begins, in ns."""
        return self.bounds[0][0]


def marked_windows(ranges: Iterable[Range], profiler: Sequence[tuple[int, int | None]]) -> TimeWindows | None:
    """Return the regions of profkit as windows, without regions the times when the profiler was on.

    None where neither was recorded.
    """
    regions = [(r.start, r.end) for r in ranges if is_region(r.name, r.domain)]
    chosen = regions or list(profiler)
    bounds = merge_intervals([(begin, EVER[1] if end is None else end) for begin, end in chosen])
    return TimeWindows(bounds, marked=True, tight=False) if bounds else None


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the union of `intervals` as disjoint intervals, in order.

    Intervals that end before they begin are dropped.
    """
    union: list[tuple[int, int]] = []
    for begin, end in sorted(pair for pair in intervals if pair[1] >= pair[0]):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return tuple(union)
