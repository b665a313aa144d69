"""Where launches come from: the operation of a framework, the one whose backward pass it is, and the line of Python.

PyTorch writes each operation as an NVTX range with a sequence number, and repeats the number of a forward operation in
the node of its backward pass. profkit's own ranges around calls of torch name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from profkit.analysis.timeline.records import Range
from profkit.core.types import GpuTrace, KernelTime


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


_OPERATION = re.compile(r"[a-z_]\w*::\w")
_SIZES = ", sizes = "
_SHAPE = re.compile(r"\[(\d[\d, ]*)\]")
_PRODUCT = re.compile(r"::_?(?:scaled_)?(?:(add|badd)?b?(?:mm|mv)|matmul)(?:_out|_)?$|::(add)bmm_?$")
_BACKWARD = re.compile(r"\w+Backward\w*")  # `MmBackward0`, and what users call a class of theirs
# of ranges that name a line; `profkit/runtime/passes/host/operation_lines.py` writes them
LINE_PREFIX = "profkit-at "
SourceLine: TypeAlias = tuple[str, int, "str | None"]  # file, line, function
MOST_SHAPES = 6  # of one operation that takes a list of tensors


def operation_name(name: str) -> str:
    """`aten::mm` of PyTorch's `aten::mm, sizes = [[4096, 768], [768, 50257]]`; of any other range its name."""
    return name.partition(_SIZES)[0]


def operation_text(name: str, domain: str | None) -> str | None:
    """`aten::mm [4096,768] x [768,50257]`: the operation that a range of this name is; None where it is none.

    Scalars have no shape and are left out.
    """
    operation, marked, sizes = name.partition(_SIZES)
    if domain is not None or not (marked or _OPERATION.match(name)):
        return None
    shapes = [f"[{shape.replace(' ', '')}]" for shape in _SHAPE.findall(sizes)]
    if len(shapes) > MOST_SHAPES:
        shapes = [*shapes[:MOST_SHAPES], "..."]
    product = _PRODUCT.search(operation)
    if product is None or len(shapes) < 2:
        return " ".join((operation, ", ".join(shapes))).rstrip()
    if len(shapes) == 3 and (product[1] or product[2]):
        return f"{operation} {shapes[0]} + {shapes[1]} x {shapes[2]}"
    return f"{operation} {' x '.join(shapes[:2])}"


def source_line(name: str) -> SourceLine | None:
    """`train.py`, 12, `step` of `profkit-at train.py:12:step`; None of any other range."""
    if not name.startswith(LINE_PREFIX):
        return None
    place, _, function = name.removeprefix(LINE_PREFIX).rpartition(":")
    file, _, line = place.rpartition(":")
    return (file, int(line), function or None) if file and line.isdecimal() else None


class RangeMeaning(NamedTuple):
    """What a range says of launches in it. `key`: its name, of an operation without shapes, and its domain."""

    key: tuple[str, str | None]
    operation: str | None = None  # with shapes
    backward: bool = False  # it is a node of a backward pass
    line: SourceLine | None = None


@lru_cache(maxsize=1 << 14)
def range_meaning(name: str, domain: str | None) -> RangeMeaning:
    """What a range of this name is."""
    line = source_line(name) if domain is None else None
    if line is not None:
        return RangeMeaning((name, None), line=line)
    operation = operation_text(name, domain)
    if operation is None:
        return RangeMeaning((name, domain))
    plain = operation_name(name)
    return RangeMeaning((plain, None), operation, _BACKWARD.fullmatch(plain) is not None)


def with_operations(trace: GpuTrace | None, launched: Sequence[KernelTime]) -> GpuTrace | None:
    """The trace with what `launched` says of the same configurations: operation, forward operation and line.

    `launched` is of another run of the same program: of its launches only shares count.
    """
    known = {
        time.kernel.scope: time for time in reversed(launched) if (time.operation or time.file) is not None
    }
    if trace is None or not known:
        return trace
    return replace(
        trace,
        kernels=tuple(_with_operation(time, known.get(time.kernel.scope)) for time in trace.kernels),
    )


def _with_operation(time: KernelTime, launched: KernelTime | None) -> KernelTime:
    if launched is None or time.operation is not None:
        return time
    share = launched.operation_launches / launched.launches if launched.launches else 0.0
    return replace(
        time,
        operation=launched.operation,
        operation_launches=round(share * time.launches),
        operations=launched.operations,
        backward_of=launched.backward_of,
        file=launched.file,
        line=launched.line,
        function=launched.function,
        flops=launched.flops,
    )
