"""Which stacks keep an event loop of asyncio from what is ready to run: one callback, seen in sample after sample.

Of the loop its queues are read, and whether its files are ready. Nothing of it is called or changed.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

LEAST = 0.02  # seconds of one callback: a shorter one is how a loop works
MOST_FILES, MOST_TIMERS = 64, 8
_RUN = ("asyncio/events.py", "asyncio\\events.py")


class HeldLoop:
    """How long each stack held the event loop of one thread while something else was ready to run."""

    __slots__ = ("_handle", "_seconds", "sums")

    def __init__(self) -> None:
        self._handle: Any = None  # a weak reference: an address is used again at once
        self._seconds: dict[int, float] = {}  # of this callback since it was seen first, by stack
        # By stack: callbacks of LEAST or more, their seconds, and all in which something was ready.
        self.sums: dict[int, list[float]] = {}

    def look(self, frame: FrameType | None, node: int, wall: float) -> None:
        """Count `wall` seconds since the last look; the thread is in `frame` now, whose stack is `node`."""
        handle = _callback_of(frame)
        same = handle is not None and self._handle is not None and self._handle() is handle
        if not same:
            self.end()
            self._handle = sys.modules["_weakref"].ref(handle) if handle is not None else None
        if handle is None or not _is_awaited(handle._loop):
            return
        self.sums.setdefault(node, [0, 0.0, 0.0])[2] += wall
        if same:  # before the first look at it, others may have run
            self._seconds[node] = self._seconds.get(node, 0.0) + wall

    def end(self) -> None:
        """Keep what the last callback took, where that was long."""
        if self._seconds and sum(self._seconds.values()) >= LEAST:
            most = max(self._seconds, key=lambda node: self._seconds[node])
            for node, seconds in self._seconds.items():
                sums = self.sums.setdefault(node, [0, 0.0, 0.0])
                sums[0] += int(node == most)
                sums[1] += seconds
        self._seconds.clear()


def _callback_of(frame: FrameType | None) -> Any:
    """The handle of the callback that an event loop runs in this stack; None where none does."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_run" and code.co_filename.endswith(_RUN):
            known = frame.f_locals
            handle = known.get("self")
            if sys.version_info < (3, 13):
                known.clear()  # a copy that the frame keeps
            return handle
        frame = frame.f_back
    return None


def _is_awaited(loop: Any) -> bool:
    """Whether another callback, a timer or a file is ready, and only the loop has no time for it."""
    try:
        ready, timers = loop._ready, loop._scheduled[:MOST_TIMERS]
        if ready and not ready[0]._cancelled:
            return True
        now = loop.time()
        return any(one._when <= now and not one._cancelled for one in timers) or _has_ready_file(
            loop._selector
        )
    except (AttributeError, IndexError, OSError, RuntimeError, ValueError):
        return False  # a loop of another kind, or one that went on meanwhile


def _has_ready_file(selector: Any) -> bool:
    files = sys.modules["select"].poll()
    for key in list(selector.get_map().values())[:MOST_FILES]:
        # selectors: EVENT_READ 1, EVENT_WRITE 2; poll: POLLIN 1, POLLOUT 4
        files.register(key.fd, (key.events & 1) | (key.events & 2) << 1)
    return bool(files.poll(0))
