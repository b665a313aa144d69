"""Where launches come from: the operation of a framework, the one whose backward pass it is, and the line of Python.

PyTorch writes each operation as an NVTX range with a sequence number, and repeats the number of a forward operation in
the node of its backward pass. profkit's own ranges around calls of torch name the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from profkit.analysis.timeline.operations import SourceLine, range_meaning
from profkit.analysis.timeline.records import Range


class LaunchOrigin(NamedTuple):
    """What asked for a launch. `backward_of`: the forward operation, where this is a part of its backward pass.

    `line` is that of the forward operation there: backward passes run in threads of their own.
    """

    operation: str | None = None
    backward_of: str | None = None
    line: SourceLine | None = None


UNKNOWN = LaunchOrigin()


class LaunchOrigins:
    """The origins of launches, for many of them at once. Their numbers point to `origins`; 0 is unknown."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.origins: list[LaunchOrigin] = [UNKNOWN]
        self._numbers: dict[LaunchOrigin, int] = {UNKNOWN: 0}
        by_thread: dict[tuple[int, int], list[Range]] = {}
        for entry in ranges:
            meaning = range_meaning(entry.name, entry.domain)
            if entry.thread is not None and (meaning.operation or meaning.line) is not None:
                by_thread.setdefault((entry.process, entry.thread), []).append(entry)
        for entries in by_thread.values():  # of two that begin at once the longer one is around the other
            entries.sort(key=lambda entry: (entry.start, -_end(entry)))
        self._forward = _forward_operations(by_thread)
        self._steps = {key: self._steps_of(entries) for key, entries in by_thread.items()}
        ends = [_end(entry) for entries in by_thread.values() for entry in entries]
        self._until = max(ends, default=-(1 << 62))

    def find(self, times: Any, processes: Any, threads: Any) -> Any:
        """The number of the origin of each launch, -1 where none was written any more; None where none ever was."""
        import numpy as np

        if not self._steps:
            return None
        found = np.where(times > self._until, -1, 0)
        for (process, thread), (moments, numbers) in self._steps.items():
            mine = (processes == process) & (threads == thread) & (found == 0)
            if mine.any():
                found[mine] = numbers[np.searchsorted(moments, times[mine], side="right") - 1]
        return found

    def _steps_of(self, entries: Sequence[Range]) -> tuple[Any, Any]:
        """Times at which the origin changes in a thread, and its number from each on."""
        import numpy as np

        times, numbers = [-(1 << 62)], [0]
        for time, origin, _ in _changes(entries, self._forward):
            times.append(time)
            number = self._numbers.get(origin)
            if number is None:
                number = self._numbers[origin] = len(self.origins)
                self.origins.append(origin)
            numbers.append(number)
        return np.array(times, dtype=np.int64), np.array(numbers, dtype=np.int64)


# by process and sequence number
_Forward: TypeAlias = "dict[tuple[int, int], list[tuple[int, LaunchOrigin]]]"


def _changes(entries: Sequence[Range], forward: _Forward) -> Iterator[tuple[int, LaunchOrigin, Range | None]]:
    """Each time at which the innermost origin of a thread changes, the origin from then on, and what begins there."""
    open_now: list[tuple[int, LaunchOrigin]] = []  # until when, and which
    for entry in entries:
        while open_now and open_now[-1][0] < entry.start:
            yield _close(open_now)
        around = open_now[-1][1] if open_now else UNKNOWN
        until = min(_end(entry), open_now[-1][0]) if open_now else _end(entry)
        open_now.append((until, _origin(entry, around, forward)))
        yield entry.start, open_now[-1][1], entry
    while open_now:
        yield _close(open_now)


def _close(open_now: list[tuple[int, LaunchOrigin]]) -> tuple[int, LaunchOrigin, None]:
    end, _ = open_now.pop()
    return end + 1, open_now[-1][1] if open_now else UNKNOWN, None


def _origin(entry: Range, around: LaunchOrigin, forward: _Forward) -> LaunchOrigin:
    _, operation, backward, line = range_meaning(entry.name, entry.domain)
    if line is not None:
        return LaunchOrigin(around.operation, around.backward_of, line)
    of = _forward_of(entry, forward) if backward else None
    if of is None:
        return LaunchOrigin(operation, around.backward_of, around.line)
    return LaunchOrigin(operation, of.operation, of.line or around.line)


def _forward_of(entry: Range, forward: _Forward) -> LaunchOrigin | None:
    """The forward operation of a node of the backward pass: the last one before it with its number."""
    candidates = forward.get((entry.process, entry.sequence), ()) if entry.sequence is not None else ()
    return next((origin for start, origin in reversed(candidates) if start < entry.start), None)


def _is_forward(entry: Range) -> bool:
    return entry.sequence is not None and not range_meaning(entry.name, entry.domain).backward


def _forward_operations(by_thread: dict[tuple[int, int], list[Range]]) -> _Forward:
    """Of each number the operations that had it, in the order of their starts: of nested ones the innermost is last."""
    forward: _Forward = {}
    for (process, _), entries in by_thread.items():
        if not any(map(_is_forward, entries)):
            continue
        for time, origin, entry in _changes(entries, {}):
            if entry is not None and entry.sequence is not None and _is_forward(entry):
                forward.setdefault((process, entry.sequence), []).append((time, origin))
    for candidates in forward.values():
        candidates.sort(key=lambda candidate: candidate[0])
    return forward


def _end(entry: Range) -> int:
    return 1 << 62 if entry.end is None else entry.end
