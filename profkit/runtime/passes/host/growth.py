"""Looks at what each line holds, at moments spread over the run of a program that marks no region.

Nothing is judged here: the reader says which lines grew from each look to the next.
"""

from __future__ import annotations

import gc
import marshal
import time
import tracemalloc
from _thread import allocate_lock, start_new_thread
from collections.abc import Iterator

FIRST_PAUSE = 0.15  # seconds; doubled whenever there are as many looks as are kept
MOST_LOOKS = 8
COST_SHARE = 0.2  # of the time: a look at a million blocks takes half a second

MOST_TRACES = 100_000  # of each look: of more, every second, third or so, which stands for those left out


class GrowthWatch:
    """Keeps what was traced at some moments, packed, until it is stopped; in a thread of its own."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._stopped = False
        self._begin = time.perf_counter()
        self.seconds = 0.0  # for which it was watched
        self._looks: list[
            tuple[float, int, bytes]
        ] = []  # seconds since the start, blocks for each trace, traces
        # largest traced size before a look that was forgotten by it, and bytes of our own
        self.peak = self.held = 0

    def start(self) -> None:
        """From now on."""
        self._begin = time.perf_counter()
        start_new_thread(self._run, ())

    def stop(self) -> None:
        """No look is under way when this returns, and none comes after it."""
        with self._lock:
            if not self._stopped:
                self.seconds = time.perf_counter() - self._begin
            self._stopped = True

    def forget(self) -> None:
        """In a forked child, where the thread is not: its lock may be held for ever."""
        self._lock, self._stopped, self._looks = allocate_lock(), True, []

    def looks(self) -> Iterator[tuple[float, int, bytes]]:
        """Each look: seconds since the start, how many blocks each trace stands for, and the packed traces."""
        yield from self._looks

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            time.sleep(pause)
            with self._lock:
                if self._stopped or not tracemalloc.is_tracing():
                    return
                before = time.thread_time()
                collects = gc.isenabled()
                gc.disable()  # a tuple for each block: it would look through all of them again and again
                try:
                    self._look(time.perf_counter() - self._begin)
                except Exception:  # the program comes first
                    return
                finally:
                    if collects:
                        gc.enable()
                if len(self._looks) == MOST_LOOKS:
                    del self._looks[::2]
                    pause *= 2
                self.held = sum(len(packed) for _, _, packed in self._looks)
                pause = max(pause, (time.thread_time() - before) / COST_SHARE)

    def _look(self, seconds: float) -> None:
        self.peak = max(self.peak, tracemalloc.get_traced_memory()[1] - self.held)
        # see AllocationTracer: the raw traces, in one block of our own
        traces = list(tracemalloc.take_snapshot().traces._traces)  # type: ignore[attr-defined]
        stride = -(-len(traces) // MOST_TRACES) or 1
        self._looks.append((seconds, stride, marshal.dumps(traces[::stride])))
        del traces
        tracemalloc.reset_peak()  # what looking took is in no peak
