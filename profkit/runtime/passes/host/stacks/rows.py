"""The stack of a thread as rows of code and offset, innermost first, read in one call of C.

CPython gives its lock away between two operations of Python, never within a call of C such as `list.extend`. So the
rows are of one moment, whatever the thread does next; its frames, which go on with it, are not.
"""

from __future__ import annotations

import gc
import sys
from _operator import attrgetter, not_
from itertools import accumulate, chain, compress, repeat, starmap

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, FrameType

    Row = tuple[CodeType, int]

_row_of = attrgetter("f_code", "f_lasti")
_TESTS = (114, 115)  # the jumps at a test, forward: POP_JUMP_IF_FALSE and its other, of 3.10 and 3.11
_RELATIVE = sys.version_info >= (3, 11)  # their targets


def rows_of(frame: FrameType) -> list[Row]:
    """Return the rows of a frame, and of those that called it."""
    return _rows((frame,))


def rows_of_thread(ident: int) -> list[Row]:
    """Return the rows of what a thread does now; none where it runs no Python."""
    # The call that looks for the thread's innermost frame is part of the one call, too.
    return _rows(map(dict.get, starmap(sys._current_frames, ((),)), (ident,)))


def rows_after(
    call: Callable[..., object],
    arguments: tuple[object, ...],
    results: list[object],
    ident: int,
    collector: list[tuple[int, int, int]] | None = None,
) -> list[Row]:
    """Make a call that gives the interpreter's lock away, and return the rows of a thread as we have the lock again.

    On a busy machine we may lose our processor just then, and the program asks for the lock back meanwhile: we would
    give it away before the next operation of Python. So the call is a part of the one call, too. What it returns is
    added to `results`. `collector`: the thresholds of the garbage collector are added to this list, and none begins
    from then on. Raises what the call raises.
    """
    # Each of these calls returns None, of which `not_` is True: `compress` lets the empty arguments pass after it.
    awake: Iterable[tuple[()]] = compress(((),), map(not_, map(results.append, starmap(call, (arguments,)))))
    if collector is not None:
        awake = compress(awake, map(not_, map(collector.append, starmap(gc.get_threshold, ((),)))))
        awake = compress(awake, map(not_, starmap(gc.set_threshold, ((0,),))))
    return _rows(map(dict.get, starmap(sys._current_frames, awake), (ident,)))


def _rows(frame: Iterable[FrameType | None]) -> list[Row]:
    rows: list[Row] = []
    try:
        callers: Iterable[object] = chain(frame, repeat("f_back"))
        rows.extend(map(_row_of, accumulate(callers, getattr)))  # type: ignore[arg-type]
    except AttributeError:  # the outermost frame has nobody who called it
        pass
    return rows


def line_at(code: CodeType, at: int) -> int:
    """Return the line of the instruction at an offset: what `f_lineno` is of a frame that has come there."""
    if at < 0:  # it has not begun
        return code.co_firstlineno
    line = next((line for begin, end, line in code.co_lines() if begin <= at < end), None)
    return line or _line_of_jump(code, at)


def _line_of_jump(code: CodeType, at: int) -> int:
    """Return the line from which a jump without a line is reached: before 3.12 that back to the head of a loop.

    First that of a test whose other way ends there, else the line before it.
    """
    text, tests = code.co_code, []
    for offset in range(0, at, 2):
        if text[offset] in _TESTS:
            target = 2 * text[offset + 1] + (offset + 2 if _RELATIVE else 0)
            tests += [offset] if target == at else []
    last = code.co_firstlineno
    for begin, end, line in code.co_lines():
        if line and begin < at and (not tests or begin <= tests[-1] < end):
            last = line
    return last
