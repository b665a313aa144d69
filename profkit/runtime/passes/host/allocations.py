"""tracemalloc: peak, what each iteration of the region leaves behind, and the lines that hold and grow most.

Raw numbers go out, after a garbage collection each, so that cyclic garbage is not taken for a leak; what
grows is judged by the reader. What this module itself holds while tracing is measured and taken off.
"""

from __future__ import annotations

import _thread
import gc
import marshal
import os
import platform
import sys
import time
import tracemalloc
from array import array

from .raises import RaiseCounter
from .session import fact, is_own, write_json

SCHEMA = "profkit.tracemalloc/2"
MAX_POINTS = 2048  # beyond that, every second point is dropped and the stride doubled
MAX_LINES = 50
SNAPSHOT_GROWTH = 1.5  # a snapshot of a million blocks takes seconds, so few are taken
# Less than this left at the program's end: what the region held is gone, the older snapshot counts
FREED_SHARE = 0.8
COLLECT_SHARE = 0.5
_UNTRACED_MEMORY = {"torch": "torch tensors", "jax": "jax arrays", "cupy": "cupy arrays"}


LineSizes = list[tuple[str, int, int, int]]  # file, line, bytes, blocks


class AllocationTracer:
    """The switch of the tracemalloc pass."""

    any_thread = True

    def __init__(self, out: str) -> None:
        self._out = out
        self.notes: list[dict[str, object]] = []
        self._points = array("q", bytes(16 * MAX_POINTS))  # iteration, bytes; made before tracing begins
        self._count, self._stride, self._seen = 0, 1, 0
        self._entries, self._iterations_given = 0, False
        self._depth = 0
        self._ended = False
        self._held = 0  # traced bytes that are our own
        self._peak = self._region_peak = 0
        self._end = 0
        self._base: bytes | None = None
        self._last: bytes | None = None
        self._base_at = self._last_at = 0
        self._collect_seconds = 0.0
        self._raises = RaiseCounter()
        self._lock = _thread.RLock()  # else another thread could end the tracing within a snapshot

    @property
    def goes_on(self) -> bool:
        """Return whether a region was entered, whose record is written at the program's end."""
        return self._entries > 0

    def start(self) -> None:
        """Begin to trace, before the program's imports."""
        self._begin = time.perf_counter()
        tracemalloc.start(1)
        self._raises.start()

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Enter the region, whose growth is measured from the memory that is held now."""
        if not self._ended:
            with self._lock:
                self._enter()

    def _enter(self) -> None:
        if self._ended:  # meanwhile
            return
        self._note_peak()
        if self._entries == 0:
            gc.collect()
            # What there is now is not looked through again: after `import torch` each collection would take 0.1 s.
            gc.freeze()
            self._base = self._snapshot()
        self._entries += 1
        self._depth += 1
        self._iterations_given = False
        tracemalloc.reset_peak()

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Leave it; an entry without iterations of its own is one."""
        if not self._ended:
            with self._lock:
                self._exit()

    def _exit(self) -> None:
        if self._ended:  # meanwhile
            return
        self._note_peak(region=True)
        self._depth -= 1
        due = self._iterations_given or self._seen % self._stride == 0
        if self._iterations_given:
            gc.collect()
        else:
            self._point()
        if due:  # else nothing was collected: a region entered a million times cannot pay for that
            self._end = self._now()
            self._snapshot_last()

    def iteration(self, index: int) -> None:  # noqa: ARG002
        """Record the end of an iteration inside the region."""
        if not self._ended:
            with self._lock:
                self._iteration()

    def _iteration(self) -> None:
        if self._ended:  # meanwhile
            return
        self._note_peak(region=True)
        self._iterations_given = True
        self._point()
        tracemalloc.reset_peak()

    def forget(self) -> None:
        """Stop tracing in a forked child."""
        self._ended = True
        self._raises.stop()
        tracemalloc.stop()

    def finish(self, early: float | None = None) -> None:
        """Write what was seen, and trace no more; raises RuntimeError where the workload stopped the tracing."""
        with self._lock:
            self._finish(early)

    def _finish(self, early: float | None) -> None:
        if early is not None:
            self.notes.append(fact("ended-early", "tracemalloc", seconds=early))
        self._ended = True
        self._raises.stop()
        if not tracemalloc.is_tracing():
            raise RuntimeError("the workload stopped tracemalloc")
        self._note_peak(region=self._depth > 0)
        gc.unfreeze()
        gc.collect()
        if self._last is None or (self._last_at < self._seen and self._now() > FREED_SHARE * self._end):
            self._last = self._snapshot()
            self._last_at = self._seen
        tracemalloc.stop()
        base = _sum_lines(self._base)
        last = _sum_lines(self._last)
        marked = self._entries > 0
        write_json(
            self._out,
            {
                "schema": SCHEMA,
                "python": platform.python_version(),
                "peak": self._peak,
                "region": {"peak": self._region_peak} if marked else None,
                "points": [[self._points[2 * i], self._points[2 * i + 1]] for i in range(self._count)],
                "top": _largest_lines(last),
                "growth": _largest_lines(_find_growth(base, last)) if marked else [],
                "raises": self._raises.rows(),
                "notes": [
                    *self.notes,
                    *(
                        fact("allocated-outside-python", words)
                        for module, words in _UNTRACED_MEMORY.items()
                        if module in sys.modules
                    ),
                ],
            },
        )

    # ------------------------------------------------------------ inside

    def _now(self) -> int:
        return max(0, tracemalloc.get_traced_memory()[0] - self._held)

    def _note_peak(self, region: bool = False) -> None:
        peak = max(0, tracemalloc.get_traced_memory()[1] - self._held)
        self._peak = max(self._peak, peak)
        if region:
            self._region_peak = max(self._region_peak, peak)

    def _point(self) -> None:
        """Record what is held after this iteration; if collecting garbage is expensive, only after some."""
        index = self._seen
        self._seen += 1
        if index % self._stride:
            return
        begin = time.perf_counter()
        gc.collect()
        self._points[2 * self._count], self._points[2 * self._count + 1] = index, self._now()
        self._count += 1
        self._collect_seconds += time.perf_counter() - begin
        if (
            index == self._stride and self._base_at == 0
        ):  # the first iteration fills caches: growth counts now
            self._base, self._base_at = None, self._seen
            self._base = self._snapshot()
        dear = self._collect_seconds > 1 and self._collect_seconds > COLLECT_SHARE * (begin - self._begin)
        if self._count == MAX_POINTS or (dear and self._count > 64):
            self._thin()

    def _thin(self) -> None:
        for i in range((self._count + 1) // 2):
            self._points[2 * i], self._points[2 * i + 1] = self._points[4 * i], self._points[4 * i + 1]
        self._count = (self._count + 1) // 2
        self._stride *= 2
        self._collect_seconds = 0.0

    def _snapshot_last(self) -> None:
        if self._last is None or self._seen >= self._last_at * SNAPSHOT_GROWTH:
            self._last = None
            self._last = self._snapshot()
            self._last_at = self._seen

    def _snapshot(self) -> bytes:
        """Return the lines of the workload that hold memory, packed: one block of our own instead of a million."""
        old = len(self._base or b"") + len(self._last or b"")
        peak_before = tracemalloc.get_traced_memory()[1]
        self._peak = max(self._peak, peak_before - self._held)
        # The raw traces: grouping them by line allocates, which is dear as long as allocations are traced. The
        # attribute is private, and the same from 3.4 to 3.14.
        packed = marshal.dumps(tracemalloc.take_snapshot().traces._traces)  # type: ignore[attr-defined]
        self._held = old + len(packed)
        tracemalloc.reset_peak()
        return packed


def _sum_lines(packed: bytes | None) -> LineSizes:
    """Return what each line of the workload held, from the traces (domain, bytes, frames, number of frames)."""
    held: dict[tuple[str, int], list[int]] = {}
    for _, size, frames, *_ in marshal.loads(packed) if packed is not None else ():
        entry = held.setdefault(frames[0], [0, 0])
        entry[0] += size
        entry[1] += 1
    return [
        (file, line, size, count)
        for (file, line), (size, count) in held.items()
        if not is_own(file) and file != tracemalloc.__file__
    ]


def _find_growth(before: LineSizes, after: LineSizes) -> LineSizes:
    held = {(file, line): (size, count) for file, line, size, count in before}
    grown = []
    for file, line, size, count in after:
        old_size, old_count = held.get((file, line), (0, 0))
        if size > old_size:
            grown.append((file, line, size - old_size, count - old_count))
    return grown


def _largest_lines(lines: LineSizes) -> list[dict[str, object]]:
    ordered = sorted(lines, key=lambda entry: -entry[2])[:MAX_LINES]
    return [
        {"file": os.fspath(file), "line": line, "size": size, "count": count}
        for file, line, size, count in ordered
    ]
