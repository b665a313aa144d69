"""Marked ranges: the times of a trace that count (`TimeWindows`), and the ranges of each launch (`RangePaths`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.origins import range_meaning
from profkit.analysis.timeline.records import Range

OWN = "profkit"  # the NVTX domain of `profkit.region`
OWN_PREFIX = "profkit:"  # and how its ranges are named where a tool knows no domains
EVER = (-(1 << 62), 1 << 62)


@dataclass(frozen=True)
class TimeWindows:
    """Times in ns, in order, none overlapping another. `tight`: their own ends say nothing, those of the activities do.

    What was launched in a window is in it, whenever the device came to it.
    """

    bounds: tuple[tuple[int, int], ...]
    marked: bool
    tight: bool

    def number(self, times: Any) -> Any:
        """For each time the number of the window it is in, -1 where it is in none."""
        import numpy as np

        begins = np.array([begin for begin, _ in self.bounds], dtype=np.int64)
        ends = np.array([end for _, end in self.bounds], dtype=np.int64)
        at = np.searchsorted(begins, times, side="right") - 1
        inside = (at >= 0) & (times <= ends[np.maximum(at, 0)])
        return np.where(inside, at, -1)

    def touched(self, start: int, end: int) -> bool:
        """Whether anything between `start` and `end` is in one of them."""
        at = bisect_left(self.bounds, start, key=_end)
        return at < len(self.bounds) and self.bounds[at][0] <= end

    @property
    def begin(self) -> int:
        """When the first one begins."""
        return self.bounds[0][0]


def _end(bound: tuple[int, int]) -> int:
    return bound[1]


def is_region(name: str, domain: str | None) -> bool:
    """Whether a range is a region of profkit."""
    return domain == OWN or name.startswith(OWN_PREFIX)


def region_name(name: str, domain: str | None) -> tuple[str, str | None]:
    """The name and the domain of a range; of a region that was marked without a domain those that it would have."""
    if domain is None and name.startswith(OWN_PREFIX) and name != OWN_PREFIX:
        return name.removeprefix(OWN_PREFIX), OWN
    return name, domain


def marked_windows(ranges: Iterable[Range], profiler: Sequence[tuple[int, int | None]]) -> TimeWindows | None:
    """The regions of profkit where there are any, else where the profiler was on; None where nothing is marked."""
    regions = [(r.start, r.end) for r in ranges if is_region(r.name, r.domain)]
    chosen = regions or list(profiler)
    bounds = merge_intervals([(begin, EVER[1] if end is None else end) for begin, end in chosen])
    return TimeWindows(bounds, marked=True, tight=False) if bounds else None


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The union of `intervals`, in order."""
    union: list[tuple[int, int]] = []
    for begin, end in sorted(pair for pair in intervals if pair[1] >= pair[0]):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return tuple(union)


MOST_OPEN = 128  # ranges that are open at once; those that begin within so many are in no path
MOST_PATHS = 1 << 16  # distinct sets of names that are told apart; what comes later is in none


class RangePaths:
    """In which ranges launches were made, for many of them at once.

    A path is a set of ranges by name and domain; its number points to `names`.

    A range of a thread holds what that thread launched. A range of profkit holds what its process launched, unless
    the launching thread is itself in one: autograd launches from threads of its own, and two regions in two threads
    are two. Operations are in it without their shapes, and in `operations`; lines are not.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.operations: set[tuple[str, str | None]] = set()
        self.too_deep = 0  # ranges that no path has
        self.names: list[tuple[tuple[str, str | None], ...]] = [()]
        self._numbers: dict[tuple[tuple[str, str | None], ...], int] = {(): 0}
        by_thread: dict[tuple[int, int | None], list[Range]] = {}
        regions: dict[int, list[Range]] = {}
        for entry in ranges:
            meaning = range_meaning(entry.name, entry.domain)
            if meaning.line is not None:
                continue
            by_thread.setdefault((entry.process, entry.thread), []).append(entry)
            if meaning.operation is not None:
                self.operations.add(meaning.key)
            if is_region(entry.name, entry.domain):
                regions.setdefault(entry.process, []).append(entry)
        self._steps = {key: self._steps_of(entries) for key, entries in by_thread.items()}
        self._regions = {key: self._steps_of(entries) for key, entries in regions.items()}

    def __bool__(self) -> bool:
        return bool(self._steps)

    def find(self, times: Any, processes: Any, threads: Any) -> Any:
        """The number of the path in which each launch was made. `threads` is -1 where it is not known."""
        import numpy as np

        paths = np.zeros(len(times), dtype=np.int64)
        for process in np.unique(processes):
            of_process = processes == process
            for thread in np.unique(threads[of_process]):
                mine = of_process & (threads == thread)
                paths[mine] = _look_up(self._steps.get((int(process), int(thread))), times[mine])
            for steps, only in (
                (self._steps.get((int(process), None)), False),
                (self._regions.get(int(process)), True),
            ):
                if steps is not None:
                    self._add(paths, of_process, _look_up(steps, times[of_process]), only_outside=only)
        return paths

    def _add(self, paths: Any, rows: Any, more: Any, *, only_outside: bool) -> None:
        """Join two paths of the same launches; with `only_outside` only where the first has no region of profkit."""
        import numpy as np

        pairs = (paths[rows] << 32) | more
        distinct, where = np.unique(pairs, return_inverse=True)
        joined = np.empty(len(distinct), dtype=np.int64)
        for number, pair in enumerate(distinct):
            first, second = self.names[int(pair) >> 32], self.names[int(pair) & 0xFFFFFFFF]
            if only_outside and any(is_region(*name) for name in first):
                joined[number] = int(pair) >> 32
            else:
                joined[number] = self._number((*first, *(name for name in second if name not in first)))
        paths[rows] = joined[where]

    def _number(self, path: tuple[tuple[str, str | None], ...]) -> int:
        number = self._numbers.get(path)
        if number is None:
            if len(self.names) >= MOST_PATHS:
                return 0
            number = self._numbers[path] = len(self.names)
            self.names.append(path)
        return number

    def _steps_of(self, entries: Sequence[Range]) -> tuple[Any, Any]:
        """Times at which the set of open ranges changes, and the path from each on."""
        import numpy as np

        moments: list[tuple[int, int, int]] = []
        for number, entry in enumerate(entries):
            end = 1 << 62 if entry.end is None else entry.end
            if end >= entry.start:
                moments += [(entry.start, 1, number), (end + 1, 0, number)]
        moments.sort()
        times, paths = [-(1 << 62)], [0]
        open_now: dict[int, tuple[str, str | None]] = {}
        for at, (time, opens, number) in enumerate(moments):
            if not opens:
                open_now.pop(number, None)
            elif len(open_now) < MOST_OPEN:
                open_now[number] = range_meaning(entries[number].name, entries[number].domain).key
            else:
                self.too_deep += 1
            if at + 1 == len(moments) or moments[at + 1][0] != time:
                times.append(time)
                paths.append(self._number(tuple(dict.fromkeys(open_now.values()))))
        return np.array(times, dtype=np.int64), np.array(paths, dtype=np.int64)


def _look_up(steps: tuple[Any, Any] | None, times: Any) -> Any:
    import numpy as np

    if steps is None:
        return np.zeros(len(times), dtype=np.int64)
    return steps[1][np.searchsorted(steps[0], times, side="right") - 1]
