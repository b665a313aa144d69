"""Kernels of several streams, and what the default stream does between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from profkit.analysis.timeline.records import KERNEL, TRANSFER, Columns, Tables
from profkit.core.types import StreamOrder

# CUPTI's number of a context's legacy default stream, in nsys and Kineto alike. It waits for all streams that are not
# created as cudaStreamNonBlocking, and they wait for it.
DEFAULT_STREAM = 7


@dataclass
class _Device:
    """What one device did in its streams, times in ns. `stream`, `end`, `reached`: of the kernels so far."""

    seconds: Counter[int] = field(default_factory=Counter)  # of kernels by stream
    kernels: Counter[int] = field(default_factory=Counter)  # the same by configuration
    between: Counter[tuple[bool, int]] = field(default_factory=Counter)  # transfer or not, its number
    union: int = 0
    switches: int = 0
    parted: int = 0
    queued: int = 0
    stream: int = -1
    end: int = 0
    reached: int = -(1 << 62)
    waiting: bool = False  # something of the default stream came behind the last kernel


class StreamSums:
    """Counts for each device how its streams follow each other, fed with all activities in the order of their starts.

    Nodes of CUDA graphs are left out: what waits for what is a part of the graph.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._devices: dict[int, _Device] = {}

    def add(self, device: int, rows: Columns) -> None:
        """Add activities of one device (columns ACTIVITY, joined with their launches)."""
        rows = rows[~rows["graph"] & (rows["stream"] >= 0)]
        default = rows["stream"] == DEFAULT_STREAM
        if len(rows) and (device in self._devices or not default.all()):
            self._add(self._devices.setdefault(device, _Device()), rows, default)

    def _add(self, device: _Device, rows: Columns, default: Any) -> None:
        import numpy as np

        at = np.flatnonzero(~default & (rows["kind"] == KERNEL))
        if len(at):
            kernels, before = rows[at], np.cumsum(default)[at]
            spent = kernels["end"] - kernels["start"]
            for counter, column in ((device.seconds, "stream"), (device.kernels, "what")):
                values, where = np.unique(kernels[column], return_inverse=True)
                sums = np.bincount(where.reshape(-1), spent).tolist()
                for value, total in zip(values.tolist(), sums, strict=True):
                    counter[value] += int(total)
            reached = np.maximum.accumulate(np.r_[device.reached, kernels["end"]])
            device.union += int(
                np.maximum(kernels["end"] - np.maximum(kernels["start"], reached[:-1]), 0).sum()
            )
            streams, ends = np.r_[device.stream, kernels["stream"]], np.r_[device.end, kernels["end"]]
            switched = (streams[1:] != streams[:-1]) & (streams[:-1] >= 0)
            parted = switched & (before > np.r_[-1 if device.waiting else 0, before[:-1]])
            queued = parted & (kernels["launch"] >= 0) & (kernels["launch"] < ends[:-1])
            device.switches += int(switched.sum())
            device.parted += int(parted.sum())
            device.queued += int(queued.sum())
            device.stream, device.end, device.reached = int(streams[-1]), int(ends[-1]), int(reached[-1])
            device.waiting = bool(default[at[-1] + 1 :].any())
        else:
            device.waiting = device.waiting or bool(default.any())
        own = rows[default]
        for number in np.unique(own["what"][own["kind"] != TRANSFER]).tolist():
            device.between[False, number] += int(
                np.count_nonzero((own["what"] == number) & (own["kind"] != TRANSFER))
            )
        for number in np.unique(own["what"][own["kind"] == TRANSFER]).tolist():
            device.between[True, number] += int(
                np.count_nonzero((own["what"] == number) & (own["kind"] == TRANSFER))
            )

    def summed(self) -> StreamOrder | None:
        """Return the sums of the device with most changes of the stream; None where no two streams ran kernels."""
        known = [device for device in self._devices.values() if len(device.seconds) > 1]
        if not known:
            return None
        most = max(known, key=lambda device: (device.switches, device.union))
        total = most.seconds.total()
        grids = self._tables.configurations
        blocks = sum(spent * prod(grids[what].grid) for what, spent in most.kernels.items()) / max(1, total)
        return StreamOrder(
            len(most.seconds),
            total / 1e9,
            max(most.seconds.values()) / 1e9,
            (total - most.union) / 1e9,
            most.switches,
            most.parted,
            most.queued,
            blocks,
            grids[most.kernels.most_common(1)[0][0]].name,
            self._operation(most.between),
            max(most.between.values(), default=0),
        )

    def _operation(self, between: Counter[tuple[bool, int]]) -> str:
        """Return the operation of the default stream that came most often: a kind of copy, or a kernel."""
        if not between:
            return ""
        moves, number = between.most_common(1)[0][0]
        names: Sequence[str] = (
            [kind.name for kind in self._tables.transfers]
            if moves
            else [kernel.name for kernel in self._tables.configurations]
        )
        return names[number]
