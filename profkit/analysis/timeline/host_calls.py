"""What a host does while a device is idle: it is in calls that launch, wait or allocate, or in none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.marks import Marks
from profkit.analysis.timeline.records import Columns
from profkit.core.types import HoldingCall, MarkKind

# By the names of calls of CUDA and HIP, and what JAX's reader calls its own. A wait of a stream for an event
# (cudaStreamWaitEvent) only queues it: the host goes on.
_KINDS: tuple[tuple[MarkKind, re.Pattern[str]], ...] = (
    ("launch", re.compile(r"Launch")),
    ("wait", re.compile(r"Synchronize|^cu(?:da)?Memcpy(?:DtoH)?(?:_v\d+|_ptds)*$|^hipMemcpy(?:DtoH)?$")),
    ("copy", re.compile(r"Mem(?:cpy|set)")),
    ("memory", re.compile(r"Malloc|Mem(?:Alloc|Host|Map|Create|Pool|Release|Address)|Free|Host(?:Alloc|Register)")),
)  # fmt: skip
# Calls of CUDA that take the host long by themselves, and neither launch nor wait for what was launched.
_KEEPS_HOST = re.compile(
    r"cu(da)?(Malloc|Mem(Alloc|Free|Host|Map|Create)|Free|Host(Alloc|Register|Unregister)|(Module|Library)(Load|Unload)|"
    r"Graph(Instantiate|ExecUpdate)|(Event|Stream)(Create|Destroy))|JAX (compiles|calls the program)"
)
CALL_KINDS: tuple[MarkKind, ...] = ("launch", "wait", "copy", "memory", "call")


def call_kind(name: str) -> MarkKind:
    """Return what a call of a device's library is for, by its name.

    >>> call_kind("cudaStreamSynchronize"), call_kind("cuLaunchKernel"), call_kind("cudaMemcpyAsync")
    ('wait', 'launch', 'copy')
    >>> call_kind("cudaMemcpy"), call_kind("cudaStreamWaitEvent")
    ('wait', 'call')
    """
    return next((kind for kind, sign in _KINDS if sign.search(name)), "call")


def keeps_host(name: str) -> bool:
    """Return whether a call takes the host long by itself, and neither launches nor waits for what was launched.

    >>> keeps_host("cuModuleLoadData"), keeps_host("cudaLaunchKernel"), keeps_host("cudaStreamSynchronize")
    (True, False, False)
    """
    return _KEEPS_HOST.match(name) is not None


def holds_host(name: str) -> bool:
    """Return whether a call keeps the host from launching: it takes long by itself, or waits.

    >>> holds_host("cudaFree"), holds_host("cudaDeviceSynchronize"), holds_host("cudaMemcpyAsync")
    (True, True, False)
    """
    return keeps_host(name) or call_kind(name) == "wait"


@dataclass
class HostTime:
    """How long a host had been in calls of each kind by any moment.

    Where calls of several threads overlap, the time counts once.
    """

    _points: dict[MarkKind, tuple[Any, Any]]

    @staticmethod
    def of(calls: Mapping[MarkKind, Marks]) -> HostTime:
        """Build the sums from the calls of each kind, which are ordered by their starts."""
        import numpy as np

        points: dict[MarkKind, tuple[Any, Any]] = {}
        for kind, mine in calls.items():
            # Where each begins anew behind all before it: what overlaps is cut.
            reached = np.maximum.accumulate(mine.end)
            begin = np.maximum(mine.start, np.r_[mine.start[:1], reached[:-1]])
            end = np.maximum(mine.end, begin)
            spent = np.minimum(mine.busy, end - begin)
            sums = np.cumsum(spent)
            times = np.stack([begin, end], axis=1).reshape(-1)
            points[kind] = times, np.stack([sums - spent, sums], axis=1).reshape(-1)
        return HostTime(points)

    def between(self, begin: Any, end: Any) -> Any:
        """Return the ns in calls of each of CALL_KINDS (rows) for each stretch from `begin` to `end` (columns)."""
        import numpy as np

        rows = np.zeros((len(CALL_KINDS), len(begin)))
        for number, kind in enumerate(CALL_KINDS):
            if kind in self._points:
                times, sums = self._points[kind]
                rows[number] = np.interp(end, times, sums) - np.interp(begin, times, sums)
        return rows


class StretchTimes:
    """Says how much of any time lies in stretches that do not overlap, in ns."""

    def __init__(self, stretches: Iterable[Any], at_least: int = 0) -> None:
        """Take blocks of `(begin, end)` in ns (arrays of two columns); shorter stretches are left out."""
        import numpy as np

        pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *stretches])
        pairs = pairs[pairs[:, 1] - pairs[:, 0] > at_least]
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        sums = np.cumsum(pairs[:, 1] - pairs[:, 0])
        self._times = pairs.reshape(-1)
        self._sums = np.stack([np.r_[0, sums[:-1]], sums], axis=1).reshape(-1) if len(pairs) else pairs

    def within(self, begin: Any, end: Any) -> Any:
        """Return for each time from `begin` to `end` (arrays, ns) how much of it lies in a stretch."""
        import numpy as np

        if not len(self._times):
            return np.zeros(len(begin))
        return np.interp(end, self._times, self._sums) - np.interp(begin, self._times, self._sums)


@dataclass
class HeldHost:
    """Sums up the holding calls of the thread that launches, by name, fed with calls in the order of their starts.

    `starving` and `pauses` hold, of each device, the stretches without a launch, and the long ones among them.
    `middle`: of what counts, in ns.
    """

    names: Sequence[str]
    starving: Sequence[StretchTimes]
    pauses: Sequence[StretchTimes]
    middle: int
    _sums: dict[int, list[float]] = field(
        default_factory=dict
    )  # calls, later ones, ns starving, ns in pauses
    _reached: int = -(1 << 62)

    def add(self, rows: Columns) -> None:
        """Add calls of that thread (columns CALL). Where one call is made within another, its time counts once."""
        import numpy as np

        holds = np.array([holds_host(name) for name in self.names] or [False])
        rows = rows[holds[rows["name"]]]
        if not len(rows):
            return
        reached = np.maximum.accumulate(np.r_[self._reached, rows["end"]])
        begin = np.maximum(rows["start"], reached[:-1])
        end = np.maximum(rows["end"], begin)
        self._reached = int(reached[-1])
        values = np.stack(
            [
                np.ones(len(rows)),
                rows["start"] > self.middle,
                sum(device.within(begin, end) for device in self.starving) / len(self.starving),
                sum(device.within(begin, end) for device in self.pauses) / len(self.pauses),
            ]
        )
        for name in np.unique(rows["name"]).tolist():
            own = values[:, rows["name"] == name].sum(axis=1)
            self._sums[name] = [*map(sum, zip(self._sums.get(name, [0.0] * 4), own.tolist(), strict=True))]

    def summed(self) -> tuple[HoldingCall, ...]:
        """Return the calls by name, those first for which a device waits longest."""
        ranked = sorted(self._sums.items(), key=lambda item: -item[1][2])
        return tuple(
            HoldingCall(self.names[name], int(calls), int(later), starving / 1e9, paused / 1e9)
            for name, (calls, later, starving, paused) in ranked
        )
