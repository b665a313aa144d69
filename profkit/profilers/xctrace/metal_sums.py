"""GPU time by name within the part that counts: encoders, channels, shaders, processes. Columns in ns, sums in s."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from profkit.analysis.timeline.spans import Spans, overlap_lengths, union
from profkit.core.types import Kernel, KernelTime, MetalProcess, MetalWork, Spread
from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.metal_target import told

MOST_TOLD = 512  # names of one kind that are told apart in a result
REST = "[more]"
_DIGITS = re.compile(r"\d+")
_MIDDLE, _NEARLY_ALL = 50, 95


@dataclass(frozen=True)
class Summed:
    """All work of one name. Times in ns; `busy` is the union, `each` one value per instance."""

    name: str
    busy: int
    each: Any

    @property
    def total(self) -> int:
        """What may have run side by side, added up."""
        return int(self.each.sum())

    def work(self, kind: Literal["encoder", "shader", "channel"]) -> MetalWork:
        """The same as the model has it."""
        import numpy as np

        return MetalWork(
            self.name,
            kind,
            len(self.each),
            self.total / 1e9,
            self.busy / 1e9,
            float(np.median(self.each)) / 1e9,
            int(self.each.max()) / 1e9,
        )

    def kernel(self) -> KernelTime:
        """The same as other tools' traces have kernels."""
        import numpy as np

        return KernelTime(
            Kernel(self.name, (), ()),
            len(self.each),
            self.total / 1e9,
            float(np.median(self.each)) / 1e9,
            int(self.each.min()) / 1e9,
            int(self.each.max()) / 1e9,
        )


def by_name(
    names: Sequence[str], which: Any, start: Any, end: Any, part: Spans, instance: Any | None = None
) -> tuple[Summed, ...]:
    """Work by name, largest first: `which` is the number of each interval's name.

    Intervals of one name with the same `instance` other than 0 are one (an encoder in several pieces, or with a vertex
    and a fragment part). Numbers in names are folded where there are more names than anybody reads.
    """
    import numpy as np

    inside = overlap_lengths(start, end, part)
    kept = inside > 0
    which, start, end, inside = which[kept], start[kept], end[kept], inside[kept]
    if not len(which):
        return ()
    names, which = _folded(names, which, inside)
    own = np.arange(len(which), dtype=np.int64) + (1 << 62)  # a piece without an id is an instance of its own
    instance = own if instance is None else np.where(instance[kept] == 0, own, instance[kept])
    order = np.argsort(which, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(which[order]) != 0, True])
    found = []
    for first, last in pairwise(cuts.tolist()):
        rows = order[first:last]
        _, of = np.unique(instance[rows], return_inverse=True)
        each = np.bincount(of, inside[rows]).astype(np.int64)
        found.append(Summed(names[int(which[rows[0]])], (union(start[rows], end[rows]) & part).total, each))
    return tuple(sorted(found, key=lambda one: (-one.total, one.name)))


def _folded(names: Sequence[str], which: Any, inside: Any) -> tuple[list[str], Any]:
    """Names as they are; of too many those that differ in numbers alone are one, and of still too many the largest."""
    import numpy as np

    used = np.flatnonzero(np.bincount(which))
    if len(used) <= MOST_TOLD:
        return list(names), which
    table: dict[str, int] = {}
    place = np.zeros(len(names), dtype=np.int64)
    for number in used.tolist():
        place[number] = table.setdefault(_DIGITS.sub("#", names[number]), len(table))
    which = place[which]
    if len(table) <= MOST_TOLD:
        return list(table), which
    spent = np.bincount(which, inside, len(table))
    rank = np.empty(len(table), dtype=np.int64)
    rank[np.argsort(-spent, kind="stable")] = np.arange(len(table))
    ordered = sorted(table, key=lambda name: int(rank[table[name]]))
    return [*ordered[: MOST_TOLD - 1], REST], np.minimum(rank[which], MOST_TOLD - 1)


def processes_in(
    processes: Sequence[Process | None],
    which: Any,
    start: Any,
    end: Any,
    part: Spans,
    target: Collection[int],
) -> tuple[MetalProcess, ...]:
    """What each process had on the GPU in the part that counts, busiest first."""
    return tuple(
        sorted(
            _processes(processes, which, start, end, part, target),
            key=lambda one: (-one.busy, one.name, one.pid or 0),
        )
    )


def _processes(
    processes: Sequence[Process | None],
    which: Any,
    start: Any,
    end: Any,
    part: Spans,
    target: Collection[int],
) -> Iterator[MetalProcess]:
    for number, process in enumerate(processes):
        rows = which == number
        inside = overlap_lengths(start[rows], end[rows], part) > 0
        count = int(inside.sum())
        if count or number in target:
            busy = (union(start[rows], end[rows]) & part).total
            name = told(process) if process is None else process.name
            pid = None if process is None else process.pid
            yield MetalProcess(name, pid, busy / 1e9, count, number in target)


def spread(values: Any) -> Spread | None:
    """Many times in ns, as seconds; None of none."""
    import numpy as np

    if not len(values):
        return None
    median, p95 = np.percentile(values, (_MIDDLE, _NEARLY_ALL))
    return Spread(
        len(values), float(median) / 1e9, float(p95) / 1e9, int(values.max()) / 1e9, int(values.sum()) / 1e9
    )
