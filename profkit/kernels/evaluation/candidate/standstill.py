"""A kernel process stands still between two requests, with all that it has started: then nobody computes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from time import clock_gettime

from profkit.execution.child import ChildProcess

WAKING_SECONDS = 1e-4  # of processor time, that all processes elsewhere may take for being woken and stopped
MOST_LOOKS = 50  # for processes that start others
_CPU_CLOCK = 2  # of a process: what clock_getcpuclockid(3) makes of its number


class Standstill:
    """Stops and wakes a child's process group, and its members elsewhere: in groups and sessions of their own."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self._stopped: set[int] = set()  # members elsewhere
        self.elsewhere: set[int] = set()  # the same, as they were when it was stopped last
        self._others, self._busy = self.elsewhere, 0.0

    def forget(self) -> None:
        """It was killed."""
        self._stopped, self.elsewhere = set(), set()

    def begin(self) -> None:
        """What members elsewhere compute counts from now on."""
        self._others, self._busy = self.elsewhere, cpu_seconds(self.elsewhere)

    def has_computed_elsewhere(self) -> bool:
        """Whether any of them has, after it was stopped."""
        return bool(self._others - self._stopped) or cpu_seconds(self._stopped) - self._busy > WAKING_SECONDS

    def wake(self) -> None:
        """Let all go on."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGCONT)
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._stopped = set()

    def stop_group(self) -> None:
        """Stop the process itself, and those of its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGSTOP)

    def stop(self) -> bool:
        """Stop all; False where they start others faster than these can be stopped."""
        self.stop_group()
        for _ in range(MOST_LOOKS):
            running = set(self._child.members_elsewhere()) - self._stopped
            if not running:
                self.elsewhere = self._stopped
                return True
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            self._stopped |= running
        return False


def cpu_seconds(processes: Iterable[int]) -> float:
    """Processor time of all threads of the processes; one that has ended counts nothing."""
    seconds = 0.0
    for pid in processes:
        with suppress(OSError):
            seconds += clock_gettime(~pid << 3 | _CPU_CLOCK)
    return seconds
