"""What devices did with their time: idle or waiting for the host, and in NCCL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.timeline.kernel_sums import Durations
from profkit.analysis.timeline.records import Columns
from profkit.analysis.timeline.time_windows import TimeWindows
from profkit.core.types import Communication, DeviceCommunication, HostPauses, Kernel

_NEVER = 1 << 62
TOGETHER = 0.9  # of the calls of NCCL: so many overlap where the same ones of several devices are paired
MIN_CALLS = 10  # calls of one device: fewer are only paired with as many
PAUSE = 1_000_000  # ns without a launch: no loop that only launches takes as long for the next one


@dataclass
class Idle:
    """Accumulates the idle time of one device, fed with its activities in the order of their starts.

    All sums are in ns.
    """

    windows: TimeWindows
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)  # windows by number: begin and end
    idle: int = 0
    judged: int = 0  # of that, how much is known to have been waiting for the host or not
    starved: int = 0
    largest: int = 0
    pauses: list[int] = field(default_factory=list)  # of what is starved, the stretches over PAUSE
    stretches: list[Any] = field(default_factory=list)  # of what is starved: blocks of begin and end
    after_copies: int = 0  # of the pauses, those that begin when a large copy to the host ends
    _window: int = -1
    _begin: int = 0  # of this window, and
    _until: int = -_NEVER  # how far the device's work reached in it
    _returned: bool = False  # by a large copy to the host

    def add(self, start: Any, end: Any, launch: Any, window: Any, returned: Any = None) -> None:
        """Add activities by start, end and launch in ns, and count the gaps in front of them.

        `window` is the number of each activity's window; `launch` is -1 where it is not known; `returned` marks which
        activities are large copies to the host.

        The part of a gap before the first launch of this or any later activity was spent waiting for the host. The
        rest was not: work that is queued behind an event or a copy has been launched. Later activities are considered
        within one call of `add` only.
        """
        import numpy as np

        window = np.maximum.accumulate(np.maximum(window, self._window))
        cuts = np.flatnonzero(np.r_[True, window[1:] != window[:-1]])
        for at, stop in zip(cuts, np.r_[cuts[1:], len(window)], strict=True):
            self._enter(int(window[at]), int(start[at]))
            back = returned[at:stop] if returned is not None else np.zeros(stop - at, dtype=bool)
            self._within(start[at:stop], end[at:stop], launch[at:stop], back)

    def _enter(self, window: int, start: int) -> None:
        if window == self._window:
            return
        self._leave()
        self._window = window
        begin = start if self.windows.tight else self.windows.bounds[window][0]
        self._begin = self._until = max(begin, self._until)

    def _within(self, start: Any, end: Any, launch: Any, returned: Any) -> None:
        import numpy as np

        ends = np.r_[self._until, end]
        reached = np.maximum.accumulate(ends)
        gaps = np.maximum(start - reached[:-1], 0)
        self._until = int(reached[-1])
        self.idle += int(gaps.sum())
        self.largest = max(self.largest, int(gaps.max()))
        known = launch >= 0
        earliest = np.minimum.accumulate(np.where(known, launch, _NEVER)[::-1])[::-1]
        waited = np.clip(earliest - reached[:-1], 0, gaps)
        self.judged += int(gaps[known].sum())
        self.starved += int(waited[known].sum())
        paused = known & (waited > PAUSE)
        self.pauses += waited[paused].tolist()
        lacking = known & (waited > 0)
        begins = reached[:-1][lacking]
        self.stretches.append(np.stack([begins, begins + waited[lacking]], axis=1))
        # Of each moment the activity that ended last.
        last = np.maximum.accumulate(np.where(ends == reached, np.arange(len(ends)), 0))
        by_copy = np.r_[self._returned, returned][last]
        self.after_copies += int(waited[paused & by_copy[:-1]].sum())
        self._returned = bool(by_copy[-1])

    def _leave(self) -> None:
        if self._window < 0:
            return
        bound = self.windows.bounds[self._window][1]
        if not self.windows.tight and self._until < bound < _NEVER // 2:
            # Everything that was launched in it is done: until its end the device has nothing.
            import numpy as np

            self._lack([bound - self._until])
            self.stretches.append(np.array([[self._until, bound]]))
            self._until = bound
        self.seen[self._window] = self._begin, self._until

    def _lack(self, gaps: Sequence[int]) -> None:
        """Count gaps (in ns) before the first or after the last work, for which nothing was launched."""
        self.idle += sum(gaps)
        self.judged += sum(gaps)
        self.starved += sum(gaps)
        self.largest = max([self.largest, *gaps])
        self.pauses += [gap for gap in gaps if gap > PAUSE]

    def finish(self) -> dict[int, tuple[int, int]]:
        """Close the open window and return the begin and end of each window as this device saw it, in ns."""
        self._leave()
        self._window = -1
        return self.seen

    def worked(self) -> int:
        """Return for how many ns something ran. Call it once all activities have been added."""
        return sum(end - begin for begin, end in self.finish().values()) - self.idle

    def among(self, windows: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """Return `(span, busy)` in ns over `windows`, which several devices saw.

        Time in them that is not in this device's own windows is added to its sums as a lack of work.
        """
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
    """Return the windows as all devices saw them: from the earliest begin to the latest end, in ns."""
    windows: dict[int, tuple[int, int]] = {}
    for device in devices:
        for number, (begin, end) in device.finish().items():
            first, last = windows.get(number, (begin, end))
            windows[number] = (min(first, begin), max(last, end))
    return windows


def host_pauses(devices: Sequence[Idle]) -> HostPauses | None:
    """Return the pauses of over a millisecond each in which the host had launched nothing.

    The number is that of the device with most pauses, seconds are means over the devices. None where no gap could
    be attributed because launches are not known.
    """
    if not sum(device.judged for device in devices):
        return None
    every = [pause for device in devices for pause in device.pauses]
    return HostPauses(
        max(len(device.pauses) for device in devices),
        sum(every) / len(devices) / 1e9,
        median(every) / 1e9 if every else 0.0,
        sum(device.after_copies for device in devices) / len(devices) / 1e9,
    )


class CommunicationSums:
    """Sums up the NCCL kernels of each device, fed with all kernels in the order of their starts."""

    def __init__(self, configurations: list[Kernel], windows: TimeWindows) -> None:
        self._table, self._windows = configurations, windows
        self._is_nccl = [kernel_owner(configuration.name) == "nccl" for configuration in configurations]
        self._there = any(self._is_nccl)
        self._nccl: dict[int, Idle] = {}
        self._others: dict[int, Idle] = {}
        self._calls: dict[int, list[Any]] = {}  # by device blocks of start, end and configuration
        self._durations = Durations()  # by configuration

    def add(self, device: int, rows: Columns, window: Any) -> None:
        """Add kernels of one device, with the numbers of their windows.

        `rows` has the columns ACTIVITY; a CUDA graph that was traced as a whole is one row.
        """
        import numpy as np

        if not self._there:
            return
        chosen = np.array(self._is_nccl, dtype=bool)[rows["what"]]
        for mine, idles in ((chosen, self._nccl), (~chosen, self._others)):
            if mine.any():
                idle = idles.setdefault(device, Idle(self._windows))
                untold = np.full(np.count_nonzero(mine), -1)
                idle.add(rows["start"][mine], rows["end"][mine], untold, window[mine])
        if chosen.any():
            own = rows[chosen]
            self._calls.setdefault(device, []).append(
                np.stack([own["start"], own["end"], own["what"].astype(np.int64)])
            )
            self._durations.add(own["what"], own["end"] - own["start"])

    def summed(self, every: dict[int, Idle]) -> Communication | None:
        """Return the communication as means over the devices that ran NCCL; None where none did.

        `every` holds by device what all of its kernels did, which gives the part of NCCL's time that no other kernel
        overlapped.
        """
        if not self._nccl:
            return None
        import numpy as np

        devices = sorted(self._nccl)
        calls = [np.concatenate(self._calls[device], axis=1) for device in devices]
        waiting, spent = self._waiting(calls), self._durations.summed()
        each = []
        for number, device in enumerate(devices):
            beside = self._others[device].worked() if device in self._others else 0
            exposed = max(0, every[device].worked() - beside) / 1e9
            seconds = self._nccl[device].worked() / 1e9
            waits = waiting[number] * seconds if waiting is not None else None
            each.append(DeviceCommunication(device, seconds, exposed, waits))
        return Communication(
            fmean(communication.seconds for communication in each),
            fmean(communication.exposed for communication in each),
            fmean(communication.waiting or 0.0 for communication in each) if waiting is not None else None,
            calls=max(part.shape[1] for part in calls),
            kernel=self._table[max(spent, key=lambda what: spent[what].total)].name,
            devices=len(devices),
            by_device=tuple(each),
        )

    def _waiting(self, calls: list[Any]) -> list[float] | None:
        """Return the share (0..1) of each device's NCCL time in which it waits for the last device.

        A call ends on all devices at about the same time, which is how calls are paired. A host that is ahead has
        launched more of them by the end of what counts: those without a partner are assumed to be like the others.
        None where the calls cannot be paired.
        """
        import numpy as np

        counts = [part.shape[1] for part in calls]
        if len(calls) < 2 or (min(counts) < MIN_CALLS and min(counts) < max(counts)):
            return None
        fewest = calls[counts.index(min(counts))]
        paired = [part[:, _nearest(np.sort(part[1]), fewest[1])] for part in calls]
        names = [[self._table[what].name for what in part[2].tolist()] for part in paired]
        last = np.max([part[0] for part in paired], axis=0)
        alike = [all(name == row[0] for name in row) for row in zip(*names, strict=True)]
        together = (last <= np.min([part[1] for part in paired], axis=0)) & np.array(alike, dtype=bool)
        if np.mean(together) < TOGETHER:
            return None
        spent = [np.maximum(part[1] - part[0], 1) for part in paired]
        return [
            float(np.minimum(np.maximum(last - part[0], 0), time).sum() / time.sum())
            for part, time in zip(paired, spent, strict=True)
        ]


def _nearest(times: Any, wanted: Any) -> Any:
    """Return for each value of `wanted` the index of the nearest value in ascending `times`."""
    import numpy as np

    after = (
        np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
        if len(times) > 1
        else np.zeros_like(wanted)
    )
    before = np.maximum(after - 1, 0)
    return np.where(wanted - times[before] <= times[after] - wanted, before, after)
