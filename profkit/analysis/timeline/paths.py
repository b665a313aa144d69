"""In which marked ranges a thread was at a time: its stack of ranges as steps on the clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from profkit.analysis.timeline.records import Range
from profkit.analysis.timeline.windows import own

MOST_PATHS = 1 << 16  # distinct sets of names that are told apart; what comes later is in none


class Paths:
    """Answers for many launches at once. A path is a set of ranges by name and domain; its number points to `names`.

    A range of a thread holds what that thread launched. A range of profkit holds what its process launched, unless
    the launching thread is itself in one: autograd launches from threads of its own, and two regions in two threads
    are two.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.names: list[tuple[tuple[str, str | None], ...]] = [()]
        self._numbers: dict[tuple[tuple[str, str | None], ...], int] = {(): 0}
        by_thread: dict[tuple[int, int | None], list[Range]] = {}
        regions: dict[int, list[Range]] = {}
        for entry in ranges:
            by_thread.setdefault((entry.process, entry.thread), []).append(entry)
            if own(entry.name, entry.domain):
                regions.setdefault(entry.process, []).append(entry)
        self._steps = {key: self._steps_of(entries) for key, entries in by_thread.items()}
        self._regions = {key: self._steps_of(entries) for key, entries in regions.items()}

    def __bool__(self) -> bool:
        return bool(self._steps)

    def find(self, times: Any, processes: Any, threads: Any) -> Any:
        """The number of the path in which each launch was made. `threads` is -1 where it is not known."""
        import numpy as np

        found = np.zeros(len(times), dtype=np.int64)
        for process in np.unique(processes):
            of_process = processes == process
            for thread in np.unique(threads[of_process]):
                mine = of_process & (threads == thread)
                found[mine] = _look_up(self._steps.get((int(process), int(thread))), times[mine])
            for steps, only in (
                (self._steps.get((int(process), None)), False),
                (self._regions.get(int(process)), True),
            ):
                if steps is not None:
                    self._add(found, of_process, _look_up(steps, times[of_process]), only_outside=only)
        return found

    def _add(self, found: Any, rows: Any, more: Any, *, only_outside: bool) -> None:
        """Join two paths of the same launches; with `only_outside` only where the first has no region of profkit."""
        import numpy as np

        pairs = (found[rows] << 32) | more
        distinct, where = np.unique(pairs, return_inverse=True)
        joined = np.empty(len(distinct), dtype=np.int64)
        for number, pair in enumerate(distinct):
            first, second = self.names[int(pair) >> 32], self.names[int(pair) & 0xFFFFFFFF]
            if only_outside and any(own(*name) for name in first):
                joined[number] = int(pair) >> 32
            else:
                joined[number] = self._number((*first, *(name for name in second if name not in first)))
        found[rows] = joined[where]

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
            if opens:
                open_now[number] = (entries[number].name, entries[number].domain)
            else:
                open_now.pop(number, None)
            if at + 1 == len(moments) or moments[at + 1][0] != time:
                times.append(time)
                paths.append(self._number(tuple(dict.fromkeys(open_now.values()))))
        return np.array(times, dtype=np.int64), np.array(paths, dtype=np.int64)


def _look_up(steps: tuple[Any, Any] | None, times: Any) -> Any:
    import numpy as np

    if steps is None:
        return np.zeros(len(times), dtype=np.int64)
    return steps[1][np.searchsorted(steps[0], times, side="right") - 1]
