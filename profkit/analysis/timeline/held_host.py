"""Calls that hold the host up, and launch nothing, while a device waits for its next launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.host_calls import holds_host
from profkit.analysis.timeline.records import Columns
from profkit.core.types import HoldingCall


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
