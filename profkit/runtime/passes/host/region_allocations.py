"""tracemalloc from the region on: a program that imports torch under it takes three times as long to start.

What was allocated before is not in the peak, and of that only what the region frees is missed; growth is the same.
"""

from __future__ import annotations

import time
import tracemalloc

from . import allocations
from .session import Threads

LATE = "traced from the region's warm-up on: what Python held before it is not in these numbers"
NEVER = "no region was entered, so nothing was traced"


class Instrument(allocations.Instrument):
    """The switch of a tracemalloc pass that leaves the start-up alone."""

    _tracing = False

    def start(self) -> None:
        """Wait for the region."""
        self._threads = Threads()
        self._begin = time.perf_counter()
        self.notes.append(LATE)

    def prepare(self) -> None:
        """Trace from here: warm-up fills the caches that are no leak."""
        if not self._tracing:
            self._tracing = True
            tracemalloc.start(1)

    def enter(self, name: str) -> None:
        """Enter the region."""
        self.prepare()
        super().enter(name)

    def forget(self) -> None:
        """In a forked child: trace nothing, whatever it enters."""
        self._tracing = True
        super().forget()

    def finish(self) -> None:
        """Write what was seen; raises RuntimeError where nothing was."""
        if not self._tracing:
            raise RuntimeError(NEVER)
        super().finish()
