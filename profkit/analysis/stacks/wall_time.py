"""One flame graph of wall time: threads, their Python stacks, what native code ran below, and what they waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profkit.analysis.stacks.merge import FrameTable, StackMerger
from profkit.core.types import Frame, Stacks

TITLE = "Wall time of all threads"
THREAD, WAIT = "[thread]", "[wait]"  # libraries of frames that are none: a thread, and what is waited for
_WAITS = {
    "lock": "waits for a lock",
    "network": "waits for the network",
    "input": "waits for input or a timer",
    "file": "waits for a file",
    "pipe": "waits for a pipe",
    "sync": "waits until a device has stored",
    "sleep": "sleeps",
    "child": "waits for a child process",
    "queue": "waits for a processor",
    "rest": "waits; for what is not known",
}
OTHER = "rest"


@dataclass
class WallStack:
    """One stack of a thread, outermost first: seconds that it ran, and waited by kind; `native` ran innermost."""

    frames: tuple[Frame, ...]
    ran: float = 0.0
    waits: dict[str, float] = field(default_factory=dict)
    native: Mapping[Frame, float] = field(default_factory=dict)  # any weights


@dataclass
class WallThread:
    """The stacks of one thread, or of all that are called alike."""

    name: str
    stacks: list[WallStack] = field(default_factory=list)


def wall_time(threads: Sequence[WallThread]) -> Stacks | None:
    """Return all threads as stacks, each below a frame with its name; None where none has a time."""
    merger = StackMerger(table := FrameTable())
    for thread in threads:
        outer = Frame(thread.name, THREAD)
        for stack in thread.stacks:
            for frames, seconds in _parts(stack):
                if seconds > 0:
                    merger.add(table.stack(reversed((outer, *frames))), seconds)
    return merger.stacks(TITLE, "s") if merger.samples else None


def _parts(stack: WallStack) -> Iterable[tuple[tuple[Frame, ...], float]]:
    """Yield the stack while it ran, by what native code did, and with each wait as its innermost frame."""
    whole = sum(stack.native.values())
    if whole <= 0:
        yield stack.frames, stack.ran
    for frame, weight in stack.native.items() if whole > 0 else ():
        # Inside the interpreter Python runs: its own functions add nothing.
        frames = stack.frames if is_interpreter(frame) else (*stack.frames, frame)
        yield frames, stack.ran * weight / whole
    for kind, seconds in stack.waits.items():
        yield (*stack.frames, wait_frame(kind)), seconds


def wait_frame(kind: str) -> Frame:
    """Return the innermost frame of a stack that waits."""
    return Frame(_WAITS.get(kind, _WAITS[OTHER]), WAIT)


def is_interpreter(frame: Frame) -> bool:
    """Return whether native code is CPython's own.

    >>> is_interpreter(Frame("PyDict_GetItem", "libpython3.12.so.1.0")), is_interpreter(Frame("read", "libc.so.6"))
    (True, False)
    """
    library = (frame.library or "").rpartition("/")[2]
    return library.startswith(("libpython", "python"))


def is_wall_time(stacks: Stacks) -> bool:
    """Return whether stacks are those of `wall_time`, as a file keeps them: each begins with a thread."""
    first = next(iter(stacks.weights), ())
    return bool(first) and first[0].library == THREAD
