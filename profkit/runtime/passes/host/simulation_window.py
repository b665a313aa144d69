"""Begins callgrind's simulation some time into a program that marks nothing: past its start, in what it is about.

Until then valgrind runs the program several times slower instead of sixty times.
"""

from __future__ import annotations

import _thread
import importlib
import json
import os
import time
from typing import Any

START_SECONDS = 1.5  # what Python is thought to take under valgrind until it comes here
SOON = 0.02  # seconds that are not worth another look
START_INSTRUMENTATION = 0x43540004  # callgrind.h; it is global, so any thread may ask


class SimulationWindow:
    """An instrument of no output of its own: callgrind writes the report."""

    any_thread = writes = goes_on = False

    def __init__(self, out: str) -> None:  # noqa: ARG002
        """Ignore `out`, which all hosts take."""
        # a switch of regions, which is a module of this host too
        self._requests: Any = importlib.import_module(f"{__package__}.valgrind").ClientRequests

    def start(self) -> None:
        """Wait until the process has worked for as many seconds as the directive says, while the program runs.

        It waits no longer than what is left of them after the start that was planned for. The time for which the
        program waited for a processor does not count, up to as much again: on a busy machine it would not be past its
        start.
        """
        delay = float(json.loads(os.environ["PROFKIT_DIRECTIVE"])["delay"])
        _thread.start_new_thread(self._begin_after, (delay,))

    def finish(self, early: float | None = None) -> None:
        """Do nothing: nothing is left to do."""

    def forget(self) -> None:
        """Do nothing: a forked child is simulated from where its parent was."""

    def _begin_after(self, seconds: float) -> None:
        requests = self._requests()
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime of proc(5)
        started = ticks / os.sysconf("SC_CLK_TCK")
        # Valgrind itself takes some of the seconds since this process was started. Where Python started faster than
        # was thought, the program would end before its window began.
        until: float | None = None
        while True:
            age, queued = time.clock_gettime(time.CLOCK_BOOTTIME) - started, _queued_seconds()
            until = until if until is not None else min(seconds, age - queued + seconds - START_SECONDS)
            if (left := min(until - (age - queued), 2 * seconds - age)) <= SOON:
                break
            time.sleep(left)
        if requests.reason is None:
            requests.send(START_INSTRUMENTATION)


def _queued_seconds() -> float:
    """Return the seconds for which the main thread waited for a processor; 0 where the kernel does not say."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
