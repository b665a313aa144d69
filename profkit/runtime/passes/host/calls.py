"""cProfile, with what is in a region apart from what is not.

OUT (`x.prof`) is the region's profile and `x.setup.prof` the rest, where a region was entered; else OUT
has it all. `x.json` has the notes: threads that were not seen, an early end.
`x.lines.json` has the executions of lines.
"""

from __future__ import annotations

import atexit
import cProfile
import marshal
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from .call_growth import CallGrowth
from .line_counts import LineCounter
from .session import fact, is_own, told, write_atomically, write_json

SCHEMA, LINES_SCHEMA = "profkit.cprofile/2", "profkit.lines/1"
# Before 3.12 a profiler belongs to a thread; from 3.12 on (sys.monitoring) there is one for the interpreter.
PER_THREAD = sys.version_info < (3, 12)

OWN_CALLERS = ("run", "sample")  # those of ours that call the function being benchmarked
EXEC = "<built-in method builtins.exec>"

FunctionKey = tuple[str, int, str]  # pstats: file, line, name
CallCost = tuple[int, int, float, float]  # primitive calls, calls, own seconds, cumulative seconds
ProfileStats = dict[FunctionKey, tuple[int, int, float, float, dict[FunctionKey, CallCost]]]


class CallProfiler:
    """The switch of the cprofile pass."""

    any_thread = False

    def __init__(self, out: str) -> None:
        self._out = out
        self._stem = out[: -len(".prof")] if out.endswith(".prof") else out
        self._setup, self._region = cProfile.Profile(), cProfile.Profile()
        self._growth = CallGrowth(self._setup)
        self._thread = threading.get_ident()
        self._inside = False
        self._ended = self._entered = False
        self._notes: list[dict[str, object]] = []
        self._threads = 0  # that the `threading` module started
        self._lines = LineCounter(told("lines") or [])
        self._pid = os.getpid()

    def start(self) -> None:
        """Profile from here; the imports come next."""
        threading.setprofile(self._begin_thread)
        self._lines.start()
        self._growth.start()
        self._setup.enable()

    def _begin_thread(self, *_: object) -> None:
        """Handle the first event of a thread, and ask for no more."""
        sys.setprofile(None)
        self._threads += 1

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Count in the region's profile."""
        self._lines.enter()
        self._growth.stop()  # what is before a region is no part of it
        if self._ended:
            return
        if self._thread == threading.get_ident() or not PER_THREAD:
            self._setup.disable()
        self._inside = True
        self._entered = True
        self._region.enable()

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Count in the rest's."""
        self._lines.exit()
        if self._ended:
            return
        self._region.disable()
        self._inside = False
        if self._thread == threading.get_ident() or not PER_THREAD:
            self._setup.enable()

    def forget(self) -> None:
        """Profile nothing in a forked child."""
        self._lines.stop()
        self._growth.stop()
        if self._ended:
            return
        (self._region if self._inside else self._setup).disable()

    def finish(self, early: float | None = None) -> None:
        """Write both profiles and the notes, and profile no more."""
        if early is not None:
            self._notes.append(fact("ended-early", "cProfile", seconds=early))
        self._ended = True
        (self._region if self._inside else self._setup).disable()
        growth = self._growth.rows() if not self._entered else []
        if early is not None:  # the program goes on, and what is counted of all of it costs little
            atexit.register(self._write_lines)
        else:
            self._write_lines()
        setup, region = _read_stats(self._setup), _read_stats(self._region)
        if self._entered:
            write_atomically(self._out, marshal.dumps(region))
            write_atomically(f"{self._stem}.setup.prof", marshal.dumps(setup))
        else:
            write_atomically(self._out, marshal.dumps(setup))
        if self._threads:
            code = "threads-not-profiled" if PER_THREAD else "threads-mixed"
            self._notes.append(fact(code, count=self._threads))
        write_json(
            f"{self._stem}.json",
            {
                "schema": SCHEMA,
                "notes": self._notes,
                "partial": early is not None,
                "growth": growth,
            },
        )

    def _write_lines(self) -> None:
        """Count no more, and write the executions of the lines that were asked for."""
        self._lines.stop()
        if self._lines.asked and os.getpid() == self._pid:
            with suppress(OSError):  # the profile's own result says it
                write_json(f"{self._stem}.lines.json", {"schema": LINES_SCHEMA, **self._lines.result()})


def _read_stats(profile: cProfile.Profile) -> ProfileStats:
    profile.create_stats()
    stats: Any = profile.stats  # the stubs say int where pstats has seconds
    return remove_own(stats)


def remove_own(stats: ProfileStats) -> ProfileStats:
    """Return the profile without the functions that measure, and without the built-ins that these called."""
    own_removed: ProfileStats = {}
    for function, (primitive, calls, own, total, callers) in stats.items():
        if is_own(function[0]) or function[2] == "<method 'disable' of '_lsprof.Profiler' objects>":
            continue
        if function[0] == "~":
            for cost in [
                cost for caller, cost in callers.items() if is_own(caller[0]) and caller[2] not in OWN_CALLERS
            ]:
                if function[2] == EXEC:
                    continue  # that is the workload itself
                primitive, calls = primitive - cost[1], calls - cost[0]
                own, total = max(0.0, own - cost[2]), max(0.0, total - cost[3])
        if calls > 0:
            foreign = {caller: cost for caller, cost in callers.items() if not is_own(caller[0])}
            own_removed[function] = (primitive, calls, own, total, foreign)
    return own_removed
