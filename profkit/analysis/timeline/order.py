"""The launches of the busiest device in their order, as a sequence of numbers in which repeats can be looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.records import TRANSFER, Columns
from profkit.analysis.timeline.spool import Spool


@dataclass(frozen=True)
class Order:
    """One entry per launch: the number of what was launched, and when. By number: mean ns, and whether it only fills.

    One launch of a CUDA graph is one entry, with a number of its own: its nodes come and go together.
    """

    sequence: Any
    times: Any
    weights: list[float]
    filling: list[bool]
    lanes: int = 1  # pairs of a process and a device that launched;
    lane: int = -1  # this is one of them


def launch_order(activities: Spool, filling: Sequence[bool]) -> Order:
    """The launches of the process and device with most kernel time. `filling` is by configuration.

    Of several processes or devices one is enough to know when the workload began.
    """
    import numpy as np

    busiest, graphs, lanes = _busiest(activities)
    numbers = list(filling)
    total, count = np.zeros(len(numbers)), np.zeros(len(numbers))
    parts: list[tuple[Any, ...]] = []
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        mine = kernels[_lanes(kernels) == busiest]
        if not len(mine):
            continue
        spent = mine["end"] - mine["start"]
        total += np.bincount(mine["what"], spent, minlength=len(numbers))
        count += np.bincount(mine["what"], minlength=len(numbers))
        when = np.where(mine["launch"] >= 0, mine["launch"], mine["start"])
        key = np.where(mine["graph"] & (mine["key"] >= 0), mine["key"], -1)
        parts.append((mine["what"].copy(), when, *((key, spent) if graphs else ())))
    if not parts:
        return Order(np.zeros(0, np.int32), np.zeros(0, np.int64), [], [])
    what, when, *more = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    if (when[1:] < when[:-1]).any():
        order = np.argsort(when, kind="stable")
        what, when, more = what[order], when[order], [column[order] for column in more]
    weights: list[float] = (total / np.maximum(count, 1)).tolist()
    if graphs:
        what, when, weights, numbers = _folded(what, when, more[1], more[0], weights, numbers)
    return Order(what, when, weights, numbers, lanes, busiest)


def _busiest(activities: Spool) -> tuple[int, bool, int]:
    """Which process and device it is, whether there are graphs, and of how many it is the busiest."""
    import numpy as np

    time: dict[int, int] = {}
    graphs = False
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        graphs = graphs or bool(kernels["graph"].any())
        lanes, spent = _lanes(kernels), kernels["end"] - kernels["start"]
        for lane in np.unique(lanes).tolist():
            time[lane] = time.get(lane, 0) + int(spent[lanes == lane].sum())
    return max(time, key=lambda lane: time[lane], default=-1), graphs, len(time)


def of_lane(rows: Columns, lane: int) -> Any:
    """Which of `rows` (columns ACTIVITY) are of the process and device of an `Order`."""
    return _lanes(rows) == lane


def _lanes(kernels: Columns) -> Any:
    return (kernels["process"].astype("i8") << 16) | kernels["device"]


def _folded(
    what: Any, when: Any, spent: Any, graph: Any, weights: list[float], filling: list[bool]
) -> tuple[Any, Any, list[float], list[bool]]:
    """The nodes of each launch of a graph as one entry; equal launches get equal numbers."""
    import numpy as np

    firsts = np.flatnonzero(np.r_[True, (graph[1:] != graph[:-1]) | (graph[1:] < 0)])
    whole = graph[firsts] >= 0
    with np.errstate(over="ignore"):
        # By the sum of a mixed number of each node, so that the order of parallel branches does not matter.
        mixed = (what.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.add.reduceat((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9), firsts)
    kinds, numbers = np.unique(sums[whole], return_inverse=True)
    numbers = numbers.reshape(-1)
    folded = what[firsts].astype(np.int32)
    folded[whole] = len(filling) + numbers
    times = np.add.reduceat(spent, firsts)[whole]
    mean: list[float] = (np.bincount(numbers, times) / np.bincount(numbers)).tolist() if len(kinds) else []
    return folded, when[firsts], [*weights, *mean], [*filling, *([False] * len(kinds))]
