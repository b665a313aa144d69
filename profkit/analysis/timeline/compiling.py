"""Just-in-time compilation, seen from outside: code handed to the driver, and the silence of the host before it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profkit.analysis.timeline.records import Columns

# What a compiler hands to the driver when it is done (Triton, NVRTC, Numba): the host has compiled until then.
_COMPILED = re.compile(
    r"^cu(?:ModuleLoadData|ModuleLoadDataEx|LinkComplete|LinkAddData)\b|^nvrtc", re.IGNORECASE
)
# Code that was compiled long ago and is loaded when first used; the time is that of the call alone.
_LOADED = re.compile(
    r"^cu(?:da)?(?:Library(?:Load|GetKernel)|Module(?:Load|GetFunction|LoadFatBinary))", re.IGNORECASE
)
_SILENCE = 1_000_000  # ns without any call; below it is the ordinary work between two calls


def loads_code(name: str) -> bool:
    """Whether a call of this name makes the driver load code."""
    return is_compiled(name) or _LOADED.search(name) is not None


def is_compiled(name: str) -> bool:
    """Whether a call of this name hands over what was compiled just now."""
    return _COMPILED.search(name) is not None


@dataclass
class Loading:
    """Fed with all calls in order. `moments` are `(when it began, ns it took, is compilation)` of every load."""

    names: list[str]  # the table of calls; it may grow
    moments: list[tuple[int, int, bool]] = field(default_factory=list)
    _last: dict[tuple[int, int], int] = field(default_factory=dict)  # when each thread was last in a call

    def add(self, calls: Columns) -> None:
        """Take note of the loads in a block of calls."""
        import numpy as np

        interesting = np.array([loads_code(name) for name in self.names] or [False])
        for at in np.flatnonzero(interesting[calls["name"]]).tolist():
            call = calls[at]
            thread = (int(call["process"]), int(call["thread"]))
            before = calls[:at]
            mine = before["end"][(before["thread"] == thread[1]) & (before["process"] == thread[0])]
            last = int(mine.max()) if len(mine) else self._last.get(thread)
            start, end = int(call["start"]), int(call["end"])
            compiled = is_compiled(self.names[int(call["name"])])
            silence = start - last if last is not None else 0
            began = start - silence if compiled and silence >= _SILENCE else start
            self.moments.append((start, end - began, compiled))
        lanes = (calls["process"].astype(np.int64) << 32) | (calls["thread"].astype(np.int64) & 0xFFFFFFFF)
        for lane in np.unique(lanes):
            row = calls[lanes == lane]
            key = (int(row["process"][0]), int(row["thread"][0]))
            self._last[key] = max(self._last.get(key, 0), int(row["end"].max()))

    def before(self, time: int) -> float | None:
        """Seconds that compilation and loading took before `time`; None where none was seen."""
        spent = [took for start, took, _ in self.moments if start < time]
        return sum(spent) / 1e9 if spent else None
