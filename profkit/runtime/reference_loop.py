"""How fast this processor is just now: one fixed piece of arithmetic, timed now and then between samples.

A shared machine changes its speed under a program: another guest on the same core, a lower clock. Nothing tells a guest
so, but a loop that is always the same takes longer then, too. What two runs differ by may be that.
"""

from __future__ import annotations

from time import perf_counter

STEPS = 4000  # of the loop: about 0.1 ms at 3 GHz
PAUSE = 0.02  # seconds between two of them: about 1 % of the time
MOST = 2048  # kept; beyond, every second one is dropped and the pause doubled


class ReferenceLoop:
    """The seconds of all of its turns so far, in their order."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._pause, self._due = PAUSE, 0.0

    def run_if_due(self) -> None:
        """One turn, if the last one is long enough ago."""
        if perf_counter() >= self._due:
            self.run()

    def run(self) -> None:
        """One turn, now."""
        begin, total = perf_counter(), 0
        for step in range(STEPS):
            total += step
        end = perf_counter()
        self.seconds.append(end - begin)
        if len(self.seconds) > MOST:
            del self.seconds[1::2]
            self._pause *= 2
        self._due = end + self._pause
