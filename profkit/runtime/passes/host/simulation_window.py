"""Begins callgrind's simulation some time into a program that marks nothing: past its start, in what it is about.

That is where the line that takes most of its time is met again and again, or after some seconds where it is not. Until
then valgrind runs the program several times slower instead of sixty times. Once enough is simulated the program ends.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import os
import sys
import time
from typing import Any

from .session import directive, write_json

START_SECONDS = 1.5  # what Python is thought to take under valgrind until it comes here
SOON = 0.02  # seconds that are not worth another look
LOOK, MET = (
    0.1,
    4,
)  # seconds between two looks at where the program is, and how often it has to be at the line
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
START_INSTRUMENTATION = 0x43540004  # callgrind.h; it is global, so any thread may ask


class SimulationWindow:
    """An instrument whose only output is when the window began: callgrind writes the report."""

    any_thread = writes = goes_on = False

    def __init__(self, out: str) -> None:
        """Write to `out` when the window begins."""
        self._out = out
        # a switch of regions, which is a module of this host too
        self._requests: Any = importlib.import_module(f"{__package__}.valgrind").ClientRequests

    def start(self) -> None:
        """Wait until the process has worked for as many seconds as the directive says, while the program runs.

        It waits no longer than what is left of them after the start that was planned for. The time for which the
        program waited for a processor does not count, up to as much again: on a busy machine it would not be past its
        start.
        """
        delay, longest = float(directive("delay")), directive("longest")
        lines = directive("lines") or []
        place = _HotLine(lines[0], _thread.get_ident()) if lines else None
        _thread.start_new_thread(self._simulate, (delay, place, longest))

    def finish(self, early: float | None = None) -> None:
        """Do nothing: nothing is left to do."""

    def forget(self) -> None:
        """Do nothing: a forked child is simulated from where its parent was."""

    def _simulate(self, delay: float, place: _HotLine | None, longest: float | None) -> None:
        self._begin_after(delay, place)
        if longest is not None:
            self._end_after(longest)

    def _begin_after(self, seconds: float, place: _HotLine | None = None) -> None:
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
            if place is not None and place.is_met():
                break
            time.sleep(left if place is None else min(left, LOOK))
        self._note(age)
        if requests.reason is None:
            requests.send(START_INSTRUMENTATION)

    def _note(self, age: float) -> None:
        with contextlib.suppress(OSError):
            write_json(self._out, {"began": round(age, 2)})

    def _end_after(self, seconds: float) -> None:
        """End the program once it was simulated for so many seconds, without those for which it waited."""
        begun, queued = time.monotonic(), _queued_seconds()
        while (gone := time.monotonic() - begun) < 2 * seconds:
            if (left := seconds - gone + _queued_seconds() - queued) <= SOON:
                break
            time.sleep(left)
        if not _has_children():
            os._exit(0)  # callgrind writes its report


class _HotLine:
    """A line of the program, which its main thread is at or below again and again."""

    def __init__(self, wanted: dict[str, Any], thread: int) -> None:
        self._file, self._line, self._thread = wanted["file"], wanted["line"], thread
        self._left = MET

    def is_met(self) -> bool:
        """Look where the program is; return whether it was at the line often enough."""
        frame, here = sys._current_frames().get(self._thread), False
        while frame is not None:
            code = frame.f_code
            if code.co_filename == _IMPORT_SYSTEM:
                return False  # what is loaded at the first call is no part of the work
            here = here or (frame.f_lineno == self._line and code.co_filename == self._file)
            frame = frame.f_back
        self._left -= here
        return self._left <= 0


def _has_children() -> bool:
    """Return whether other processes of the program would be left without their reports."""
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                if file.read().split():
                    return True
    except OSError:  # a thread has ended meanwhile, or the kernel does not say
        return True
    return False


def _queued_seconds() -> float:
    """Return the seconds for which the main thread waited for a processor; 0 where the kernel does not say."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
