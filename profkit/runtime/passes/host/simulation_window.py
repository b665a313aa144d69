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
START_INSTRUMENTATION = 0x43540004  # callgrind.h; it is global, so any thread may ask


class SimulationWindow:
    """An instrument of no output of its own: callgrind writes the report."""

    any_thread = writes = False

    def __init__(self, out: str) -> None:  # noqa: ARG002
        """Ignore `out`, which all hosts take."""
        # a switch of regions, which is a module of this host too
        self._requests: Any = importlib.import_module(f"{__package__}.valgrind").ClientRequests

    def start(self) -> None:
        """Wait until the process is as many seconds old as the directive says, while the program runs.

        It waits no longer than what is left of them after the start that was planned for.
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
        # Valgrind itself takes some of the seconds since this process was started.
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        # Where Python started faster than was thought, the program would end before its window began.
        time.sleep(max(0.0, min(seconds - age, seconds - START_SECONDS)))
        if requests.reason is None:
            requests.send(START_INSTRUMENTATION)
