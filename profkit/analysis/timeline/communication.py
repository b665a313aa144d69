"""What devices spend in kernels of NCCL: how much of it nothing else hides, and how much is waiting for each other."""

from __future__ import annotations

from typing import Any

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.timeline.idle import Idle
from profkit.analysis.timeline.records import Columns, Configuration
from profkit.analysis.timeline.windows import TimeWindows
from profkit.core.types import Communication


class CommunicationSums:
    """Fed with the kernels of each device, in the order of their starts."""

    def __init__(self, configurations: list[Configuration], windows: TimeWindows) -> None:
        self._table, self._windows = configurations, windows
        self._is_nccl = [kernel_owner(configuration.name) == "nccl" for configuration in configurations]
        self._there = any(self._is_nccl)
        self._nccl: dict[int, Idle] = {}
        self._others: dict[int, Idle] = {}
        self._calls: dict[int, list[Any]] = {}  # by device blocks of start, end and configuration
        self._time: dict[int, int] = {}  # ns by configuration

    def add(self, device: int, rows: Columns, window: Any) -> None:
        """Kernels of one device (columns ACTIVITY; a graph as a whole is one), with the numbers of their windows."""
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
            for what in np.unique(own["what"]).tolist():
                spent = own[own["what"] == what]
                self._time[what] = self._time.get(what, 0) + int((spent["end"] - spent["start"]).sum())

    def summed(self, every: dict[int, Idle]) -> Communication | None:
        """Means over the devices that ran any; `every` is what all their kernels did. None: there are none."""
        if not self._nccl:
            return None
        import numpy as np

        devices = sorted(self._nccl)
        seconds = sum(self._nccl[device].worked() for device in devices)
        exposed = sum(
            every[device].worked() - (self._others[device].worked() if device in self._others else 0)
            for device in devices
        )
        calls = [np.concatenate(self._calls[device], axis=1) for device in devices]
        waiting = self._waiting(calls)
        scale = 1e9 * len(devices)
        return Communication(
            seconds / scale,
            max(0, exposed) / scale,
            waiting / scale if waiting is not None else None,
            calls=max(part.shape[1] for part in calls),
            kernel=self._table[max(self._time, key=lambda what: self._time[what])].name,
            devices=len(devices),
        )

    def _waiting(self, calls: list[Any]) -> int | None:
        """For how long calls wait for the last device to begin the same one; None where they cannot be paired."""
        import numpy as np

        names = [[self._table[what].name for what in part[2].tolist()] for part in calls]
        if len(calls) < 2 or any(other != names[0] for other in names[1:]):
            return None
        last = np.max([part[0] for part in calls], axis=0)
        return int(sum(np.clip(last - part[0], 0, part[1] - part[0]).sum() for part in calls))
