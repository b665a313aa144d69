"""The launches of the busiest device in their order, as a sequence of numbers in which repeats can be looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profkit.timeline.records import TRANSFER, Columns
from profkit.timeline.spool import Spool


@dataclass(frozen=True)
class Order:
    """One entry per launch: the number of what was launched, and when. By number: mean ns, and whether it only fills.

    One launch of a CUDA graph is one entry, with a number of its own: its nodes come and go together.
    """

    sequence: Any
    times: Any
    weights: list[float]
    filling: list[bool]


def launch_order(activities: Spool, filling: Sequence[bool]) -> Order:
    """The launches of the process and device with most kernel time. `filling` is by configuration.

    Of several processes or devices one is enough to know when the workload began.
    """
    import numpy as np

    busiest = _busiest(activities)
    parts: list[tuple[Any, Any, Any, Any]] = []
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        mine = kernels[_lanes(kernels) == busiest]
        if len(mine):
            graph = np.where(mine["graph"] & (mine["key"] >= 0), mine["key"], -1)
            when = np.where(mine["launch"] >= 0, mine["launch"], mine["start"])
            parts.append((mine["what"].copy(), when, (mine["end"] - mine["start"]).astype(np.float32), graph))
    if not parts:
        return Order(np.zeros(0, np.int64), np.zeros(0, np.int64), [], [])
    what, when, spent, graph = (np.concatenate(column) for column in zip(*parts, strict=True))
    if (when[1:] < when[:-1]).any():
        order = np.argsort(when, kind="stable")
        what, when, spent, graph = what[order], when[order], spent[order], graph[order]
    numbers = list(filling)
    if (graph >= 0).any():
        what, when, spent, numbers = _folded(what, when, spent, graph, numbers)
    counts = np.maximum(np.bincount(what, minlength=len(numbers)), 1)
    weights: list[float] = (np.bincount(what, spent, minlength=len(numbers)) / counts).tolist()
    return Order(what, when, weights, numbers)


def _busiest(activities: Spool) -> int:
    import numpy as np

    time: dict[int, int] = {}
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        lanes, spent = _lanes(kernels), kernels["end"] - kernels["start"]
        for lane in np.unique(lanes).tolist():
            time[lane] = time.get(lane, 0) + int(spent[lanes == lane].sum())
    return max(time, key=lambda lane: time[lane], default=-1)


def _lanes(kernels: Columns) -> Any:
    return (kernels["process"].astype("i8") << 16) | kernels["device"]


def _folded(
    what: Any, when: Any, spent: Any, graph: Any, filling: list[bool]
) -> tuple[Any, Any, Any, list[bool]]:
    """The nodes of each launch of a graph as one entry; equal launches get equal numbers."""
    import numpy as np

    firsts = np.flatnonzero(np.r_[True, (graph[1:] != graph[:-1]) | (graph[1:] < 0)])
    whole = graph[firsts] >= 0
    with np.errstate(over="ignore"):
        # By the sum of a mixed number of each node, so that the order of parallel branches does not matter.
        mixed = (what.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.add.reduceat((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9), firsts)
    kinds, numbers = np.unique(sums[whole], return_inverse=True)
    folded = what[firsts].astype(np.int64)
    folded[whole] = len(filling) + numbers.reshape(-1)
    return folded, when[firsts], np.add.reduceat(spent, firsts), [*filling, *([False] * len(kinds))]
