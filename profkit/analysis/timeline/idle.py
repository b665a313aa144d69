"""For how long a device had nothing to do, and how much of that it waited for the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from profkit.analysis.timeline.windows import TimeWindows
from profkit.core.types import HostPauses

_NEVER = 1 << 62
PAUSE = 1_000_000  # ns without a launch: no loop that only launches takes as long for the next one


@dataclass
class Idle:
    """Fed with what one device did, in the order of the starts. All sums in ns."""

    windows: TimeWindows
    begins: list[int] = field(default_factory=list)  # of the windows seen so far, and
    ends: list[int] = field(default_factory=list)  # until when each was worked at
    numbers: list[int] = field(default_factory=list)  # which windows these are
    idle: int = 0
    judged: int = 0  # of that, how much is known to have been waiting for the host or not
    starved: int = 0
    largest: int = 0
    pauses: list[int] = field(default_factory=list)  # of what is starved, the stretches over PAUSE
    _window: int = -1
    _until: int = 0  # how far the device's work reached in this window

    def add(self, start: Any, end: Any, launch: Any, window: Any) -> None:
        """`window` is the number of each activity's window; `launch` -1 where it is not known.

        A gap that an activity ends was waiting for the host until the first launch of anything that began later: work
        that was queued behind an event or a copy is no want of work. Looked for within one call of `add`.
        """
        import numpy as np

        window = np.maximum.accumulate(np.maximum(window, self._window))
        cuts = np.flatnonzero(np.r_[True, window[1:] != window[:-1]])
        for at, stop in zip(cuts, np.r_[cuts[1:], len(window)], strict=True):
            self._enter(int(window[at]), int(start[at]))
            self._within(start[at:stop], end[at:stop], launch[at:stop])

    def _enter(self, window: int, start: int) -> None:
        if window == self._window:
            return
        self._leave()
        self._window = window
        begin = start if self.windows.tight else self.windows.bounds[window][0]
        self._until = max(begin, self.ends[-1]) if self.ends else begin
        self.begins.append(self._until)
        self.ends.append(self._until)
        self.numbers.append(window)

    def _within(self, start: Any, end: Any, launch: Any) -> None:
        import numpy as np

        reached = np.maximum.accumulate(np.r_[self._until, end])
        gaps = np.maximum(start - reached[:-1], 0)
        self._until = int(reached[-1])
        self.idle += int(gaps.sum())
        self.largest = max(self.largest, int(gaps.max()))
        known = launch >= 0
        earliest = np.minimum.accumulate(np.where(known, launch, _NEVER)[::-1])[::-1]
        waited = np.clip(earliest - reached[:-1], 0, gaps)
        self.judged += int(gaps[known].sum())
        self.starved += int(waited[known].sum())
        self.pauses += waited[known & (waited > PAUSE)].tolist()

    def _leave(self) -> None:
        if self._window < 0:
            return
        end = self._until
        bound = self.windows.bounds[self._window][1]
        if not self.windows.tight and end < bound < _NEVER // 2:
            # Everything that was launched in it is done: until its end the device has nothing.
            gap = bound - end
            self._lack([gap])
            end = bound
        self.ends[-1] = end

    def _lack(self, gaps: Sequence[int]) -> None:
        """Time before the first and after the last work, for which nothing was launched."""
        self.idle += sum(gaps)
        self.judged += sum(gaps)
        self.starved += sum(gaps)
        self.largest = max([self.largest, *gaps])
        self.pauses += [gap for gap in gaps if gap > PAUSE]

    def finish(self) -> dict[int, tuple[int, int]]:
        """Begin and end of each window as this device saw it, in ns, once all has been added."""
        self._leave()
        self._window = -1
        return {n: (b, e) for n, b, e in zip(self.numbers, self.begins, self.ends, strict=True)}

    def worked(self) -> int:
        """For how long something ran, in ns, once all has been added."""
        return sum(end - begin for begin, end in self.finish().values()) - self.idle

    def among(self, windows: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """`(span, busy)` in ns over windows that other devices saw, too: what is not its own it had nothing to do."""
        own = self.finish()
        gaps = [
            gap
            for number, (begin, end) in windows.items()
            for gap in ((own[number][0] - begin, end - own[number][1]) if number in own else (end - begin,))
        ]
        self._lack(gaps)
        span = sum(end - begin for begin, end in windows.values())
        return span, span - self.idle


def common_windows(devices: Iterable[Idle]) -> dict[int, tuple[int, int]]:
    """The windows as the devices together saw them: from the earliest begin to the latest end."""
    windows: dict[int, tuple[int, int]] = {}
    for device in devices:
        for number, (begin, end) in device.finish().items():
            first, last = windows.get(number, (begin, end))
            windows[number] = (min(first, begin), max(last, end))
    return windows


def host_pauses(devices: Sequence[Idle]) -> HostPauses | None:
    """What was idle for over a millisecond each time because the host had launched nothing; None: that is not known."""
    if not sum(device.judged for device in devices):
        return None
    every = [pause for device in devices for pause in device.pauses]
    return HostPauses(
        max(len(device.pauses) for device in devices),
        sum(every) / len(devices) / 1e9,
        median(every) / 1e9 if every else 0.0,
    )
