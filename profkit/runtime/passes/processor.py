"""Detects whether a process waited for a processor during a sample, which then measures how busy the machine is.

Linux counts for each thread how long it was ready to run and had no processor, and how often it got one
(/proc/self/task/*/schedstat). Other systems do not report this.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import perf_counter

MAX_WAITING_SHARE = 0.05  # of a sample's time; below it, the median of many samples removes the effect
# A thread that is woken gets even an idle processor only after some time: such waits belong to the program itself.
WAKING_NS = 50_000
_Waits = dict[int, tuple[int, int]]  # thread -> nanoseconds waited, times that it got a processor


class ProcessorWatch:
    """Measures waits during a sample, by reading counts before and after it: 10 µs, and 2 µs for each thread."""

    def __init__(self, pid: int | None = None) -> None:
        """Observe the process `pid`, or this one."""
        self._tasks = f"/proc/{pid or 'self'}/task"
        self._files: dict[int, int] = {}  # thread -> its open file
        self._before: _Waits = {}

    def __enter__(self) -> ProcessorWatch:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def begin(self) -> None:
        """Begin a sample."""
        self._before = self._read_waits()

    def longest_wait(self, only: int | None = None) -> float:
        """Return the seconds of the sample in which a thread was ready to run and did not; 0 if not known.

        This is the longest wait of any thread, or that of the thread `only`: a process that continues after a stop
        wakes all of its threads, also those with nothing to do.
        """
        after = self._read_waits()
        if only is not None:
            after = {thread: waits for thread, waits in after.items() if thread == only}
        longest = 0
        for thread, (waited, times) in after.items():
            waited_before, times_before = self._before.get(thread, (0, 0))
            longest = max(longest, waited - waited_before - WAKING_NS * (times - times_before))
        return longest * 1e-9

    def _read_waits(self) -> _Waits:
        """Return the system's counts for each thread; empty if it has none."""
        try:
            threads = {int(name) for name in os.listdir(self._tasks)}
        except OSError:
            return {}
        for thread in self._files.keys() - threads:
            os.close(self._files.pop(thread))
        waits: _Waits = {}
        for thread in threads:
            with suppress(
                OSError, ValueError, IndexError
            ):  # it has ended by now, or this kernel does not count
                if thread not in self._files:
                    self._files[thread] = os.open(f"{self._tasks}/{thread}/schedstat", os.O_RDONLY)
                fields = os.pread(self._files[thread], 96, 0).split()
                waits[thread] = int(fields[1]), int(fields[2])
        return waits


# ------------------------------------------------------------ how fast it is

STEPS = 4000  # of the loop: about 0.1 ms at 3 GHz
PAUSE = 0.02  # seconds between two of them: about 1 % of the time
MAX_SAMPLES = 2048  # beyond it, every second one is dropped and the pause is doubled


class ReferenceLoop:
    """The seconds of all turns so far of one fixed piece of arithmetic, timed now and then between samples.

    The speed of a shared machine changes while a program runs: another guest uses the same core, or the clock is lower.
    A guest has no counter for that, but a fixed loop then takes longer, too. It may explain why two runs differ.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._pause, self._due = PAUSE, 0.0

    def run_if_due(self) -> None:
        """Run one turn, if the last one is long enough ago."""
        if perf_counter() >= self._due:
            self.run()

    def run(self) -> None:
        """Run one turn now."""
        begin, total = perf_counter(), 0
        for step in range(STEPS):
            total += step
        end = perf_counter()
        self.seconds.append(end - begin)
        if len(self.seconds) > MAX_SAMPLES:
            del self.seconds[1::2]
            self._pause *= 2
        self._due = end + self._pause
