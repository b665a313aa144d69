"""What a host does while a device is idle: it is in calls that launch, wait or allocate, or in none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.marks import Marks
from profkit.core.types import MarkKind

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
