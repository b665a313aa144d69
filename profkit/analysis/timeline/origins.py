"""Where launches come from: the framework's operation, the forward operation of a backward pass, the line.

PyTorch writes each operation as an NVTX range with a sequence number, and repeats the number of a forward
operation in the node of its backward pass. profkit's own ranges around calls of torch name the line of
Python.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.necessary_work.calls import OperationCall, written_call
from profkit.analysis.necessary_work.formulas import operation_form, with_given
from profkit.analysis.timeline.placed import placed_timeline
from profkit.analysis.timeline.records import Range
from profkit.core.types import GpuLine, GpuTrace, KernelTime


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
    given: str = ""  # what the call of torch around it was given that no shape tells


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


_OPERATION = re.compile(r"[a-z_]\w*::\w")
_SIZES = ", sizes = "
_SHAPE = re.compile(r"\[(\d{1,12}(?:, ?\d{1,12}){0,9})\]")  # any program may write a range
_PRODUCT = re.compile(r"::_?(?:scaled_)?(?:(add|badd)?b?(?:mm|mv)|matmul)(?:_out|_)?$|::(add)bmm_?$")
_BACKWARD = re.compile(r"\w+Backward\w*")  # `MmBackward0`, and what users call a class of theirs
# of ranges that name a line; `profkit/runtime/passes/host/operation_lines.py` writes them
LINE_PREFIX = "profkit-at "
_BELOW = "\t"
SourceLine: TypeAlias = tuple[str, int, "str | None"]  # file, line, function
MAX_SHAPES = 6  # of one operation that takes a list of tensors


def operation_name(name: str) -> str:
    """Return the name of an operation without its sizes; the name of any other range as it is.

    `aten::mm, sizes = [[4096, 768], [768, 50257]]` of PyTorch is `aten::mm`.
    """
    return name.partition(_SIZES)[0]


def plain_operation(operation: str) -> str:
    """Return an operation's text without its shapes.

    `aten::mm [4096,768] x [768,50257]` is `aten::mm`, and `mul, tanh [4096,2048]` is `mul, tanh`.
    """
    return operation.partition(" " if "::" in operation else " [")[0]


def operation_text(name: str, domain: str | None) -> str | None:
    """Return the operation with its shapes that a range stands for; None where the range is no operation.

    The text is like `aten::mm [4096,768] x [768,50257]`. Scalars have no shape and are left out.
    """
    operation, marked, sizes = name.partition(_SIZES)
    if domain is not None or not (marked or _OPERATION.match(name)):
        return None
    shapes = [f"[{shape.replace(' ', '')}]" for shape in _SHAPE.findall(sizes)]
    if len(shapes) > MAX_SHAPES:
        shapes = [*shapes[:MAX_SHAPES], "..."]
    product = _PRODUCT.search(operation)
    if product is None or len(shapes) < 2:
        return " ".join((operation, ", ".join(shapes))).rstrip()
    if len(shapes) == 3 and (product[1] or product[2]):
        return f"{operation} {shapes[0]} + {shapes[1]} x {shapes[2]}"
    return f"{operation} {' x '.join(shapes[:2])}"


def source_line(name: str) -> SourceLine | None:
    """Return file, line and function from the name of a range that profkit wrote; None for any other range.

    `profkit-at train.py:12:step` is `train.py`, 12, `step`.
    """
    return (
        _placed(name.partition(_BELOW)[0].removeprefix(LINE_PREFIX)) if name.startswith(LINE_PREFIX) else None
    )


def _line_below(name: str) -> tuple[SourceLine | None, str]:
    """Return the library's line that the program's line leads to, None without one, and the call's arguments.

    The arguments are those of the call of torch that no shape tells.
    """
    below, _, given = name.partition(_BELOW)[2].partition(_BELOW)
    return _placed(below), given


def _placed(text: str) -> SourceLine | None:
    place, _, function = text.rpartition(":")
    file, _, line = place.rpartition(":")
    return (file, int(line), function or None) if file and line.isdecimal() and len(line) < 10 else None


class RangeMeaning(NamedTuple):
    """What a range says about launches in it.

    `key` is its name (of an operation without shapes) and its domain.
    """

    key: tuple[str, str | None]
    operation: str | None = None  # with shapes
    backward: bool = False  # it is a node of a backward pass
    line: SourceLine | None = None
    below: SourceLine | None = None
    given: str = ""


@lru_cache(maxsize=1 << 14)
def range_meaning(name: str, domain: str | None) -> RangeMeaning:
    """Return what a range of this name and domain says about launches in it."""
    line = source_line(name) if domain is None else None
    if line is not None:
        below, given = _line_below(name)
        return RangeMeaning((name, None), line=line, below=below, given=given)
    operation = operation_text(name, domain)
    if operation is None:
        return RangeMeaning((name, domain))
    plain = operation_name(name)
    return RangeMeaning((plain, None), operation, _BACKWARD.fullmatch(plain) is not None)


def with_operations(trace: GpuTrace | None, launched: GpuTrace | None) -> GpuTrace | None:
    """Return the trace with operations and lines that `launched` knows of the same launch configurations.

    `launched` is from another run of the same program, so only the shares of its launches are used. Where it
    covers less than KNOWN of the kernels' time, other configurations of the same kernel names help out. `trace`
    is returned unchanged if either is None.
    """
    if trace is None or launched is None:
        return trace
    known = {
        time.kernel.scope: time
        for time in reversed(launched.kernels)
        if time.operation is not None or time.lines
    }
    told = sum(time.total for time in trace.kernels if time.kernel.scope in known)
    named = _by_name(known.values()) if told < KNOWN * sum(time.total for time in trace.kernels) else {}
    placed = tuple(
        with_operation(time, known.get(time.kernel.scope) or named.get(time.kernel.name))
        for time in trace.kernels
    )
    return replace(
        trace,
        kernels=placed,
        timeline=placed_timeline(trace.timeline, placed),
        lines=launched.lines or trace.lines,
        work=launched.work or trace.work,
        line_span=launched.line_span or trace.line_span,
        lines_of=launched.span if launched.lines else trace.lines_of,
    )


KNOWN = 0.5  # of the kernels' time: with less in configurations that were launched there, names tell


def _by_name(launched: Iterable[KernelTime]) -> dict[str, KernelTime]:
    """Return one entry for each kernel name that joins all of its configurations.

    It serves configurations that were not launched in that run: a sequence that grows has other grids later.
    Their shapes are not known, so operations have only their names.
    """
    own: dict[str, list[KernelTime]] = {}
    for time in launched:
        own.setdefault(time.kernel.name, []).append(time)
    return {name: _together(times) for name, times in own.items()}


def _together(times: Sequence[KernelTime]) -> KernelTime:
    operations, lines = Counter[tuple[str, "str | None"]](), Counter[SourceLine]()
    for time in times:
        if time.operation is not None:
            backward = plain_operation(time.backward_of) if time.backward_of is not None else None
            operations[plain_operation(time.operation), backward] += time.operation_launches
        for one in time.lines:
            lines[one.file, one.line, one.function] += one.launches
    (operation, backward), most = next(iter(operations.most_common(1)), ((None, None), 0))
    file, line, function = next((place for place, _ in lines.most_common(1)), (None, None, None))
    return replace(
        times[0],
        launches=sum(time.launches for time in times),
        operation=operation,
        operation_launches=most,
        operations=len(operations),
        backward_of=backward,
        file=file,
        line=line,
        function=function,
        flops=None,
        lines=tuple(GpuLine(*place, launches=count) for place, count in lines.items()),
    )


_TOLD = ("operation", "operations", "backward_of", "file", "line", "function", "flops")


def with_operation(time: KernelTime, launched: KernelTime | None) -> KernelTime:
    """Return the kernel with the operation and lines of `launched`, the same configuration in another run.

    Counts are scaled by the ratio of the launches. The kernel is returned unchanged if it has an operation, or
    `launched` is None.
    """
    if launched is None or time.operation is not None:
        return time
    share = time.launches / launched.launches if launched.launches else 0.0
    lines = tuple(replace(one, launches=round(share * one.launches)) for one in launched.lines)
    most = round(share * launched.operation_launches)
    told = {name: getattr(launched, name) for name in _TOLD}
    return replace(time, **told, operation_launches=most, lines=lines)


MODULE = re.compile(r"hlo_module=([^,#]+)")
# How XLA calls what a library does, whose kernels have names of their own, by whose they are.
_OF_LIBRARIES = {"cublas": "__cublas", "cutlass": "__cublas", "nccl": "__nccl"}


def with_compiled_lines(trace: GpuTrace | None, lines: Sequence[tuple[str, str, GpuLine]]) -> GpuTrace | None:
    """Return the trace with the program's lines that a compiler gives for its kernels.

    `lines` holds kernel name, module and line. Where several modules have a kernel of the same name, the module
    around the launch decides; where that leaves several lines, the kernel gets none.
    """
    if trace is None or not lines:
        return trace
    known: dict[tuple[str, str | None], set[SourceLine]] = {}
    for kernel, module, one in lines:
        for key in ((kernel, module), (kernel, None)):
            known.setdefault(key, set()).add((one.file, one.line, one.function))

    def lined(time: KernelTime) -> KernelTime:
        module = next((found[1] for name in time.ranges if (found := MODULE.search(name))), None)
        name = time.kernel.name.partition("(")[0]
        library = _OF_LIBRARIES.get(kernel_owner(time.kernel.name), "")
        keys = ((name, module), (name, None), (library, module))
        places = next((known[key] for key in keys if key in known), set[SourceLine]())
        if time.file is not None or len(places) != 1:
            return time
        file, line, function = next(iter(places))
        return replace(time, file=file, line=line, function=function)

    kernels = tuple(map(lined, trace.kernels))
    return replace(trace, kernels=kernels, timeline=placed_timeline(trace.timeline, kernels))


OWN = "profkit"  # the NVTX domain of `profkit.region`
OWN_PREFIX = "profkit:"  # and how its ranges are named where a tool knows no domains
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


def is_region(name: str, domain: str | None) -> bool:
    """Return whether a range is a region that was marked with profkit."""
    return domain == OWN or name.startswith(OWN_PREFIX)


def region_name(name: str, domain: str | None) -> tuple[str, str | None]:
    """Return the name and domain of a range, the same for a region whether or not its tool knows domains."""
    if domain is None and name.startswith(OWN_PREFIX) and name != OWN_PREFIX:
        return name.removeprefix(OWN_PREFIX), OWN
    return name, domain


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


MAX_OPEN = 128  # ranges that are open at once; those that begin within so many are in no path
MAX_PATHS = 1 << 16  # distinct sets of names that are told apart; what comes later is in none


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
