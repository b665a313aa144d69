"""How the time of a function's calls changes from the first of them to the last, by looks at cProfile while it counts.

Before Python 3.12 alone: from then on a profiler is one for all threads, and a thread of ours would be in it.
"""

from __future__ import annotations

import cProfile
import gc
import sys
from _thread import get_ident, start_new_thread
from bisect import bisect_left
from itertools import pairwise
from time import sleep, thread_time
from typing import Any

PAUSE = 0.05  # seconds between two looks, at first
MOST_LOOKS = 48  # then every second one is forgotten, and the pauses are twice as long
LOOK_SHARE = 0.05  # of the time, for looking: where a program has imported much, a look takes some 20 ms
WORTH = 0.05  # of the time: a function with less is not looked at
PARTS, FEW_PARTS, LEAST_CALLS = 8, 4, 16  # fewer where the looks are few
LONGER, STEADY = 3.0, 0.85  # times as long in the last part as in the first; of the part before, at least

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
FunctionKey = tuple[str, int, str]  # pstats: file, line, name
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
        if sys.version_info < (3, 12):
            self._on = True
            start_new_thread(self._run, ())

    def stop(self) -> None:
        """Look no more."""
        self._on = False

    def _run(self) -> None:
        pause = PAUSE
        while self._on:
            sleep(pause)
            if not self._on:
                return
            if self._imports():
                continue
            begun = thread_time()
            collects = (
                gc.isenabled()
            )  # a finalizer would let the program go on, and its profile change meanwhile
            gc.disable()
            try:
                self._looks.append(_look(self._profile))
            finally:
                if collects:
                    gc.enable()
            pause = max(pause, (thread_time() - begun) / LOOK_SHARE)
            if len(self._looks) > MOST_LOOKS:
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
            if calls < LEAST_CALLS or seconds < WORTH * longest:
                continue
            sums = [one.get(code, (0, 0.0)) for one in looks]
            parts = parts_of(sums) or parts_of(sums, FEW_PARTS)
            if grows(parts):
                found.append([*_label(code), parts])
        return found


def _look(profile: cProfile.Profile) -> Look:
    entries: Any = profile.getstats()  # the stubs say nothing of what it returns
    return {
        one.code: (one.callcount, one.totaltime) for one in entries if one.callcount and not one.reccallcount
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
    """Return whether calls took longer and longer."""
    steady = all(after >= STEADY * before for before, after in pairwise(parts))
    return bool(parts) and steady and parts[-1] >= LONGER * parts[0] > 0
