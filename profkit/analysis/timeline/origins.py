"""Where launches come from: the framework's operation, the forward operation of a backward pass, the line.

PyTorch writes each operation as an NVTX range with a sequence number, and repeats the number of a forward
operation in the node of its backward pass. profkit's own ranges around calls of torch name the line of
Python.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from profkit.analysis.necessary_work.calls import OperationCall, written_call
from profkit.analysis.necessary_work.formulas import operation_form, with_given
from profkit.analysis.timeline.range_names import RangeMeaning, SourceLine, range_meaning
from profkit.analysis.timeline.records import Range


class LaunchOrigin(NamedTuple):
    """What a launch was made for.

    `backward_of` is the forward operation, where the launch is part of its backward pass. `line` is that of the
    forward operation then, since backward passes run in threads of their own. `call` holds the operation's
    arguments.
    """

    operation: str | None = None
    backward_of: str | None = None
    line: SourceLine | None = None
    call: OperationCall | None = None
    below: SourceLine | None = None  # of a library, to which that line leads
    given: str = ""  # what the call of torch around it was given that does not follow from shapes


UNKNOWN = LaunchOrigin()


class OriginIndex:
    """Finds the origins of many launches at once. An origin's number is its index in `origins`; 0 is unknown."""

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
        self._entered: dict[tuple[int, int], Any] = {}  # as `_steps`: the calls of operations, numbered
        self._calls = 0
        self._steps = {key: self._steps_of(key, entries) for key, entries in by_thread.items()}
        ends = [_end(entry) for entries in by_thread.values() for entry in entries]
        self._until = max(ends, default=-(1 << 62))

    def find(self, times: Any, processes: Any, threads: Any) -> Any:
        """Return the number of each launch's origin, by its time (ns), process and thread.

        The number is -1 after the end of the last range: ranges were no longer recorded then. None where no range was
        ever recorded.
        """
        found = self.find_calls(times, processes, threads)
        return found[0] if found is not None else None

    def find_calls(self, times: Any, processes: Any, threads: Any) -> tuple[Any, Any] | None:
        """Return what `find` does, and for each launch the number of the operation's call it belongs to."""
        import numpy as np

        if not self._steps:
            return None
        found, calls = np.where(times > self._until, -1, 0), np.zeros(len(times), dtype=np.int64)
        for key, (moments, numbers) in self._steps.items():
            mine = (processes == key[0]) & (threads == key[1]) & (found == 0)
            if mine.any():
                at = np.searchsorted(moments, times[mine], side="right") - 1
                found[mine], calls[mine] = numbers[at], self._entered[key][at]
        return found, calls

    def steps(self) -> Iterator[tuple[tuple[int, int], Any, Any]]:
        """Yield for each process and thread when (ns) the origin changes, and the new origins' numbers."""
        for key, (moments, numbers) in self._steps.items():
            yield key, moments, numbers

    def _steps_of(self, key: tuple[int, int], entries: Sequence[Range]) -> tuple[Any, Any]:
        """Return the times (ns) at which the origin changes in a thread, and the new origins' numbers."""
        import numpy as np

        times, numbers, calls = [-(1 << 62)], [0], [0]
        seen: dict[
            int, tuple[int, LaunchOrigin]
        ] = {}  # by identity: a hash goes through all arguments of a call
        for time, origin, call, _ in _changes(entries, self._forward):
            times.append(time)
            calls.append(self._calls + call)
            if id(origin) not in seen:
                seen[id(origin)] = self._number(origin), origin
            numbers.append(seen[id(origin)][0])
        self._calls += len(entries)
        self._entered[key] = np.array(calls, dtype=np.int64)
        return np.array(times, dtype=np.int64), np.array(numbers, dtype=np.int64)

    def _number(self, origin: LaunchOrigin) -> int:
        number = self._numbers.get(origin)
        if number is None:
            number = self._numbers[origin] = len(self.origins)
            self.origins.append(origin)
        return number


# by process and sequence number
_Forward: TypeAlias = "dict[tuple[int, int], list[tuple[int, LaunchOrigin]]]"


_Change: TypeAlias = "tuple[int, LaunchOrigin, int, Range | None]"


def _changes(entries: Sequence[Range], forward: _Forward) -> Iterator[_Change]:
    """Yield each change of the innermost origin of a thread, in the order of time.

    A change is its time in ns, the origin from then on, the number of the open operation's call (from 1; 0
    outside of any), and the range that begins there (None where one ends).
    """
    open_now: list[tuple[int, LaunchOrigin, int]] = []  # until when, which, and its call
    # by name and what is around, which is kept: what is written alike has one origin
    made: dict[tuple[str, str | None, int], tuple[LaunchOrigin, LaunchOrigin]] = {}
    for number, entry in enumerate(entries, 1):
        while open_now and open_now[-1][0] < entry.start:
            yield _close(open_now)
        around = open_now[-1][1] if open_now else UNKNOWN
        until = min(_end(entry), open_now[-1][0]) if open_now else _end(entry)
        meaning, key = range_meaning(entry.name, entry.domain), (entry.name, entry.domain, id(around))
        if meaning.backward or entry.call is not None:
            origin = _origin(entry, meaning, around, forward)
        elif key in made:
            origin = made[key][0]
        else:
            origin = _origin(entry, meaning, around, forward)
            made[key] = origin, around
        # a line inside of an operation is a part of its call
        inside = number if meaning.line is None else open_now[-1][2] if open_now else 0
        open_now.append((until, origin, inside))
        yield entry.start, origin, inside, entry
    while open_now:
        yield _close(open_now)


def _close(open_now: list[tuple[int, LaunchOrigin, int]]) -> _Change:
    end, *_ = open_now.pop()
    _, origin, call = open_now[-1] if open_now else (0, UNKNOWN, 0)
    return end + 1, origin, call, None


def _origin(entry: Range, meaning: RangeMeaning, around: LaunchOrigin, forward: _Forward) -> LaunchOrigin:
    if meaning.line is not None:
        return around._replace(line=meaning.line, below=meaning.below, given=meaning.given)
    of = _forward_of(entry, forward) if meaning.backward else None
    placed = of if of is not None and of.line is not None else around
    backward_of = of.operation if of is not None else around.backward_of
    call = entry.call or _written_call(entry.name, placed.given)
    form = operation_form(call, placed.given) if call is not None else ""
    operation = f"{meaning.operation} {form}" if form else meaning.operation
    return LaunchOrigin(operation, backward_of, placed.line, call, placed.below, placed.given)


@lru_cache(maxsize=1 << 14)
def _written_call(name: str, given: str) -> OperationCall | None:
    call = written_call(name)
    return with_given(call, given) if call is not None else None


def _forward_of(entry: Range, forward: _Forward) -> LaunchOrigin | None:
    """Return the forward operation of a backward node: the last one before it with its sequence number."""
    candidates = forward.get((entry.process, entry.sequence), ()) if entry.sequence is not None else ()
    at = bisect_left(candidates, entry.start, key=lambda candidate: candidate[0])
    return candidates[at - 1][1] if at else None


def _is_forward(entry: Range) -> bool:
    return entry.sequence is not None and not range_meaning(entry.name, entry.domain).backward


def _forward_operations(by_thread: dict[tuple[int, int], list[Range]]) -> _Forward:
    """Return for each process and sequence number its forward operations, ordered by their starts.

    Of nested operations the innermost comes last.
    """
    forward: _Forward = {}
    for (process, _), entries in by_thread.items():
        if not any(map(_is_forward, entries)):
            continue
        for time, origin, _, entry in _changes(entries, {}):
            if entry is not None and entry.sequence is not None and _is_forward(entry):
                forward.setdefault((process, entry.sequence), []).append((time, origin))
    for candidates in forward.values():
        candidates.sort(key=lambda candidate: candidate[0])
    return forward


def _end(entry: Range) -> int:
    return 1 << 62 if entry.end is None else entry.end
