"""Which named ranges each launch lies in, of those that are open at its time on its thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from profkit.analysis.timeline.range_names import is_region, range_meaning
from profkit.analysis.timeline.records import Range

MAX_OPEN = 128  # ranges that are open at once; those that begin within so many are in no path
MAX_PATHS = 1 << 16  # distinct sets of names that are distinguished; what comes later is in none


class RangePaths:
    """Finds in which ranges many launches were made, at once.

    A path is a set of ranges by name and domain; its number is its index in `names`.

    A range of a thread holds what that thread launched. A range of profkit holds what its process launched,
    unless the launching thread is itself in one: autograd launches from threads of its own, and two regions in
    two threads are two. Operations are in a path without their shapes, and in `operations`; lines are not.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.operations: set[tuple[str, str | None]] = set()
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
        """Return the number of the path in which each launch was made.

        `times` are in ns; `threads` is -1 where the thread is not known.
        """
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
        """Join two paths of the same launches, with `only_outside` only where the first has no region of profkit."""
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
            if len(self.names) >= MAX_PATHS:
                return 0
            number = self._numbers[path] = len(self.names)
            self.names.append(path)
        return number

    def _steps_of(self, entries: Sequence[Range]) -> tuple[Any, Any]:
        """Return the times (ns) at which the set of open ranges changes, and the number of each new path."""
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
            elif len(open_now) < MAX_OPEN:
                open_now[number] = range_meaning(entries[number].name, entries[number].domain).key
            if at + 1 == len(moments) or moments[at + 1][0] != time:
                times.append(time)
                paths.append(self._number(tuple(dict.fromkeys(open_now.values()))))
        return np.array(times, dtype=np.int64), np.array(paths, dtype=np.int64)


def _look_up(steps: tuple[Any, Any] | None, times: Any) -> Any:
    import numpy as np

    if steps is None:
        return np.zeros(len(times), dtype=np.int64)
    return steps[1][np.searchsorted(steps[0], times, side="right") - 1]
