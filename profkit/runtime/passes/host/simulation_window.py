"""Begins callgrind's simulation some time into a program that marks nothing: past its start, in what it is about.

Until then valgrind runs the program several times slower instead of sixty times.
"""

from __future__ import annotations

import _thread
import importlib.util
import json
import os
import time

START_INSTRUMENTATION = 0x43540004  # callgrind.h; it is global, so any thread may ask


class SimulationWindow:
    """An instrument of no output of its own: callgrind writes the report."""

    def __init__(self, out: str) -> None:
        """`out` is not used: all hosts take one."""

    def start(self) -> None:
        """Wait until the process is as many seconds old as the directive says, while the program runs."""
        delay = float(json.loads(os.environ["PROFKIT_DIRECTIVE"])["delay"])
        _thread.start_new_thread(self._begin_after, (delay,))

    def finish(self) -> None:
        """Nothing is left to do."""

    def forget(self) -> None:
        """In a forked child: it is simulated from where its parent was."""

    def enter(self, name: str) -> None:
        """A region decides nothing here."""

    def exit(self, name: str) -> None:
        """A region decides nothing here."""

    def _begin_after(self, seconds: float) -> None:
        folder = os.path.dirname(os.path.abspath(__file__))
        path = os.path.normpath(os.path.join(folder, os.pardir, os.pardir, "region", "valgrind.py"))
        spec = importlib.util.spec_from_file_location(f"{__package__}.valgrind", path)
        if spec is None or spec.loader is None:
            return
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        requests = module.ClientRequests()
        time.sleep(max(0.0, seconds - _age()))
        if requests.reason is None:
            requests.send(START_INSTRUMENTATION)


def _age() -> float:
    """Seconds since this process was started: valgrind itself takes some of them."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime of proc(5)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
