"""cProfile, with what is in a region apart from what is not.

OUT (`x.prof`) is the region's profile and `x.setup.prof` the rest, where a region was entered; else OUT
has it all. `x.json` has the notes: threads that were not seen, an early end; and the exceptions in a part of the run.
`x.lines.json` has the executions of lines.
"""

from __future__ import annotations

import atexit
import cProfile
import gc
import marshal
import os
import sys
import threading
from _thread import get_ident, start_new_thread
from bisect import bisect_left
from contextlib import suppress
from itertools import pairwise
from time import sleep, thread_time
from typing import Any

from .line_counts import LineCounter
from .raises import RaiseCounter
from .session import directive, fact, is_own, write_atomically, write_json

SCHEMA, LINES_SCHEMA = "profkit.cprofile/2", "profkit.lines/1"
# Before 3.12 a profiler belongs to a thread; from 3.12 on (sys.monitoring) there is one for the interpreter.
PER_THREAD = sys.version_info < (3, 12)

# Events of functions of the program, among which exceptions are counted: some 20 ms of a run that is counted.
RAISE_EVENTS = 30_000
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
        # Where so many calls are made that lines are not counted, exceptions may be what takes the time.
        self._raises = RaiseCounter(RAISE_EVENTS)
        self._lines = LineCounter(directive("lines") or [], self._raises.start)
        self._pid = os.getpid()

    @property
    def goes_on(self) -> bool:
        """Return whether lines are still counted, or a region may be entered again: that leaves its own record."""
        return self._lines.is_counting or self._entered

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
        self._raises.stop()
        self._growth.stop()
        if self._ended:
            return
        (self._region if self._inside else self._setup).disable()

    def finish(self, early: float | None = None) -> None:
        """Write both profiles and the notes, and profile no more."""
        if early is not None:
            self._notes.append(fact("ended-early", "cProfile", seconds=early))
        self._ended = True
        self._raises.stop()
        (self._region if self._inside else self._setup).disable()
        growth = self._growth.rows() if not self._entered else []
        if early is not None and self._lines.is_counting:  # of the rest of the program too: it costs little
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
                "raises": self._raises.rows(),
            },
        )

    def _write_lines(self) -> None:
        """Count no more, and write the executions of the wanted lines."""
        self._lines.stop()
        if self._lines.is_wanted and os.getpid() == self._pid:
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


# ------------------------------------------------------------ how the time of a call changes
#
# Before Python 3.12 alone: from then on a profiler is one for all threads, and a thread of ours would be in it.

PAUSE = 0.05  # seconds between two looks, at first
MAX_LOOKS = 48  # then every second one is forgotten, and the pauses are twice as long
LOOK_SHARE = 0.05  # of the time, for looking: where a program has imported much, a look takes some 20 ms
WORTH = 0.05  # of the time: a function with less is not looked at
PARTS, FEW_PARTS, MIN_CALLS = 8, 4, 16  # fewer where the looks are few
LONGER, STEADY = 3.0, 0.85  # times as long in the last part as in the first; of the part before, at least
# Of what calls take longer in the end, the most that may come from one part to the next. Of four parts a third does
# where calls grow evenly, and half where they grow with the square of their number; another caller, a cache that no
# longer fits, a busy machine or the collector of garbage adds most of it at once.
MAX_STEP = 0.6

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
Look = dict[object, tuple[int, float]]  # by code: calls that have ended, and their seconds


class CallGrowth:
    """Looks at a profile from time to time, from `start` to `stop`."""

    def __init__(self, profile: cProfile.Profile) -> None:
        self._profile = profile
        self._looks: list[Look] = []
        self._thread = get_ident()
        self._on = False

    def start(self) -> None:
        """Begin to look, in a thread that `threading` knows nothing of."""
        if PER_THREAD:
            self._on = True
            start_new_thread(self._run, ())

    def stop(self) -> None:
        """Look no more."""
        self._on = False

    def _run(self) -> None:
        pause = PAUSE
        while True:
            sleep(pause)
            if not self._on:
                return
            if self._imports():
                continue
            begun = thread_time()
            # A finalizer would let the program go on, and its profile change meanwhile. `gc.disable` is the program's:
            # what it switches off meanwhile would be switched on again.
            threshold = gc.get_threshold()[0]
            gc.set_threshold(0)
            try:
                self._looks.append(_look(self._profile))
            finally:
                if not gc.get_threshold()[0]:
                    gc.set_threshold(threshold)
            pause = max(pause, (thread_time() - begun) / LOOK_SHARE)
            if len(self._looks) > MAX_LOOKS:
                self._looks = self._looks[1::2]
                pause *= 2

    def _imports(self) -> bool:
        """Return whether the thread that is profiled imports a module, which is no work of the program."""
        frame = sys._current_frames().get(self._thread)
        while frame is not None:
            if frame.f_code.co_filename == _IMPORT_SYSTEM:
                return True
            frame = frame.f_back
        return False

    def rows(self) -> list[list[object]]:
        """Return the functions whose calls took longer and longer: file, line, name, and seconds of a call by part."""
        self._on = False
        looks = [*self._looks, _look(self._profile)]
        longest = max((seconds for _, seconds in looks[-1].values()), default=0.0)
        found: list[list[object]] = []
        for code, (calls, seconds) in looks[-1].items():
            if calls < MIN_CALLS or seconds < WORTH * longest:
                continue
            sums = [look.get(code, (0, 0.0)) for look in looks]
            parts = parts_of(sums) or parts_of(sums, FEW_PARTS)
            if grows(parts):
                found.append([*_label(code), parts])
        return found


def _look(profile: cProfile.Profile) -> Look:
    entries: Any = profile.getstats()  # the stubs say nothing of what it returns
    return {
        entry.code: (entry.callcount, entry.totaltime)
        for entry in entries
        if entry.callcount and not entry.reccallcount
    }


def _label(code: Any) -> FunctionKey:
    return ("~", 0, code) if isinstance(code, str) else (code.co_filename, code.co_firstlineno, code.co_name)


def parts_of(sums: list[tuple[int, float]], parts: int = PARTS) -> list[float]:
    """Return the mean seconds of a call in each eighth, say, of the calls; empty where looks were too few.

    `sums`: calls and seconds so far, at each look.
    """
    counts = [calls for calls, _ in sums]
    ends = [bisect_left(counts, part * counts[-1] / parts) for part in range(1, parts + 1)]
    first = next((at for at, calls in enumerate(counts) if calls), len(counts)) - 1
    ends = [first, *ends]
    if first < 0:
        sums, ends = [(0, 0.0), *sums], [0, *(end + 1 for end in ends[1:])]
    if any(after <= before for before, after in pairwise(ends)):
        return []
    return [
        (sums[after][1] - sums[before][1]) / (sums[after][0] - sums[before][0])
        for before, after in pairwise(ends)
    ]


def grows(parts: list[float]) -> bool:
    """Return whether calls took longer and longer, and not longer from one time on."""
    if not parts or parts[-1] < LONGER * parts[0] or parts[0] <= 0:
        return False
    step = MAX_STEP * (parts[-1] - parts[0])
    return all(STEADY * before <= after <= before + step for before, after in pairwise(parts))
