"""Whether a process waited for a processor while a sample was taken: then its time is that of a busy machine.

Linux counts for each thread how long it could have run and did not, and how often it then ran
(/proc/self/task/*/schedstat). Other systems do not say.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import perf_counter

MAX_WAITING_SHARE = 0.05  # of a sample's time; below it, the median of many samples removes the effect
# A thread that was woken gets even an idle processor only after some time: such waits are the program's own.
WAKING_NS = 50_000
_Waits = dict[int, tuple[int, int]]  # thread -> nanoseconds waited, times that it got a processor


class ProcessorWatch:
    """Looked at before and after a sample, outside of what is timed. That takes 10 µs, and 2 µs for each thread."""

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
        """Return the seconds of the sample in which one thread could have run and did not; 0 if not known.

        `only`: of this thread alone. A process that is stopped and goes on wakes all of its threads, to no purpose.
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
        """Return what the system counts for each thread; nothing where it does not count."""
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

    A shared machine changes its speed under a program: another guest on the same core, a lower clock. Nothing tells a
    guest so, but a loop that is always the same takes longer then, too. What two runs differ by may be that.
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
