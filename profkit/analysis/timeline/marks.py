"""Lanes of marks made from columns of times.

Their number is bounded: marks that no screen could show separately are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from profkit.core.types import Lane, LaneKind, MarkLabel

MAX_MARKS = 5000  # in all lanes: what a browser draws at once without a pause, in some 100 kB
MAX_LANES = 40  # more than that is a page of lines
FINE = 20_000  # of the length of a timeline: what is shorter is merged while a long trace is read
_COARSER = 1.3  # by so much each time that there are too many marks


@dataclass
class LabelTable:
    """A table of distinct labels, with the number of each."""

    table: list[MarkLabel] = field(default_factory=list)
    _numbers: dict[MarkLabel, int] = field(default_factory=dict)

    def number(self, label: MarkLabel) -> int:
        """Return the index of a label in the table, adding it where it is new."""
        number = self._numbers.get(label)
        if number is None:
            number = self._numbers[label] = len(self.table)
            self.table.append(label)
        return number


@dataclass
class Marks:
    """Marks of one lane as columns: begin and end (ns), label, number of things merged, and their time (ns)."""

    start: Any
    end: Any
    what: Any
    count: Any
    busy: Any

    @staticmethod
    def of(start: Any, end: Any, what: Any) -> Marks:
        """Build marks that stand for one thing each; times in ns."""
        import numpy as np

        start, end = np.asarray(start, dtype=np.int64), np.asarray(end, dtype=np.int64)
        count = np.ones(len(start), dtype=np.int64)
        return Marks(start, end, np.asarray(what, dtype=np.int64), count, end - start)

    def __len__(self) -> int:
        return len(self.start)

    def rows(self, chosen: Any) -> Marks:
        """Return the marks that `chosen`, an index or mask of NumPy, selects."""
        return Marks(*(column[chosen] for column in (self.start, self.end, self.what, self.count, self.busy)))

    @staticmethod
    def joined(parts: Sequence[Marks]) -> Marks:
        """Join several columns of marks into one, ordered by their starts."""
        import numpy as np

        columns = [
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("start", "end", "what", "count", "busy")
        ]
        return Marks(*columns).rows(np.argsort(columns[0], kind="stable"))

    def merged(self, shortest: float) -> Marks:
        """Merge neighbouring marks shorter than `shortest` ns that begin in the same stretch of that length.

        A merged mark has the label of its longest part.
        """
        import numpy as np

        if shortest <= 0 or len(self) < 2:
            return self
        short = self.end - self.start < shortest
        stretch = (self.start / shortest).astype(np.int64)
        alone = ~short[1:] | ~short[:-1] | (stretch[1:] != stretch[:-1])
        firsts = np.flatnonzero(np.r_[True, alone])
        if len(firsts) == len(self):
            return self
        group = np.repeat(np.arange(len(firsts)), np.diff(np.r_[firsts, len(self)]))
        # The longest of each group comes first in it, so that it is met first.
        longest = np.lexsort((self.start - self.end, group))[firsts]
        return Marks(
            self.start[firsts],
            np.maximum.reduceat(self.end, firsts),
            self.what[longest],
            np.add.reduceat(self.count, firsts),
            np.add.reduceat(self.busy, firsts),
        )


@dataclass
class LaneMarks:
    """A lane under construction. `lane` says whose it is, `rank` where it is among the others."""

    lane: Lane
    rank: tuple[int, ...]
    marks: Marks


def lane_of(kind: LaneKind, **whose: Any) -> Lane:
    """Return a lane of this kind without marks; `whose` sets fields of `Lane`, such as its process."""
    return Lane(kind, (), (), (), **whose)


def bounded_lanes(
    lanes: Iterable[LaneMarks], span: float, most: int = MAX_MARKS
) -> tuple[list[LaneMarks], float, int, int]:
    """Bound the number of lanes, and of their marks to `most` in all.

    Return the lanes in their order, below which length in ns marks were merged (0: none were), how many things
    have no mark of their own for it, and how many lanes were left out. `span` is the timeline's length in ns.
    """
    found = [lane for lane in lanes if len(lane.marks)]
    # Of too many lanes those with least time go: of a hundred streams most have a kernel or two.
    kept = sorted(found, key=lambda lane: -int(lane.marks.busy.sum()))[:MAX_LANES]
    kept.sort(key=lambda lane: lane.rank)
    shortest, merged = 0.0, kept
    while sum(len(lane.marks) for lane in merged) > most:
        shortest = max(_COARSER * shortest, span / FINE)
        merged = [replace(lane, marks=lane.marks.merged(shortest)) for lane in kept]
        if shortest > span:  # even one mark in each lane would be too many, or nothing is short
            merged = [replace(lane, marks=_longest(lane.marks, most // len(kept))) for lane in merged]
            break
    several = sum(int((lane.marks.count - 1).sum()) for lane in merged)
    return merged, shortest if several else 0.0, several, len(found) - len(kept)


def _longest(marks: Marks, most: int) -> Marks:
    import numpy as np

    if len(marks) <= most:
        return marks
    return marks.rows(np.sort(np.argsort(marks.start - marks.end, kind="stable")[:most]))


def finished_lane(lane_marks: LaneMarks, begin: int, end: int, label: Callable[[int], int]) -> Lane:
    """Return the lane with its marks cut to `begin` and `end` (ns); `label` maps to the final label numbers."""
    import numpy as np

    marks = lane_marks.marks
    start = np.clip(marks.start, begin, end)
    length = np.clip(marks.end, begin, end) - start
    several = bool((marks.count > 1).any())
    numbers = {what: label(what) for what in np.unique(marks.what).tolist()}
    return replace(
        lane_marks.lane,
        starts=tuple((start - begin).tolist()),
        lengths=tuple(length.tolist()),
        labels=tuple(numbers[what] for what in marks.what.tolist()),
        counts=tuple(marks.count.tolist()) if several else (),
        busy=tuple(np.where(marks.count > 1, marks.busy, length).tolist()) if several else (),
    )
