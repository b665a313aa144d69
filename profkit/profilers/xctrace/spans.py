"""Sets of time: unions of intervals, their intersections, and overlaps of intervals with them.

A set is two columns of ns, begins and ends, in order, with a gap before each: 16 bytes for each stretch,
however many intervals it is the union of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class IntervalSet:
    """A set of time. Stretches that touch are one."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Return its length in ns."""
        return int((self.ends - self.begins).sum())

    @property
    def extent(self) -> tuple[int, int] | None:
        """Return its first begin and its last end, in ns; None for an empty set."""
        return (int(self.begins[0]), int(self.ends[-1])) if len(self.begins) else None

    def __len__(self) -> int:
        return len(self.begins)

    def __and__(self, other: IntervalSet) -> IntervalSet:
        import numpy as np

        return _where(self, other, np.logical_and)

    def __sub__(self, other: IntervalSet) -> IntervalSet:
        return _where(self, other, lambda ours, theirs: ours & ~theirs)

    def __or__(self, other: IntervalSet) -> IntervalSet:
        import numpy as np

        return union(np.r_[self.begins, other.begins], np.r_[self.ends, other.ends])

    def holds(self, times: Any) -> Any:
        """Return for each time (ns) whether it is in the set: at or after a begin, before its end."""
        import numpy as np

        return np.searchsorted(self.begins, times, side="right") > np.searchsorted(
            self.ends, times, side="right"
        )


def empty_spans() -> IntervalSet:
    """Return the empty set."""
    import numpy as np

    return IntervalSet(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def spans_of(bounds: Iterable[tuple[int, int]]) -> IntervalSet:
    """Return the union of pairs of begin and end in ns, in any order."""
    import numpy as np

    pairs = list(bounds)
    return union(
        np.array([begin for begin, _ in pairs], dtype=np.int64),
        np.array([end for _, end in pairs], dtype=np.int64),
    )


def union(starts: Any, ends: Any) -> IntervalSet:
    """Return the union of intervals in any order. One that ends before it starts, or at once, is no time."""
    import numpy as np

    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    if not len(starts):
        return empty_spans()
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.r_[True, starts[1:] > reached[:-1]])
    return IntervalSet(starts[first], np.r_[reached[first[1:] - 1], reached[-1]])


def longest_span(spans: IntervalSet) -> int:
    """Return the longest stretch in ns, 0 without any."""
    import numpy as np

    return int(np.max(spans.ends - spans.begins)) if len(spans) else 0


def overlap_lengths(starts: Any, ends: Any, within: IntervalSet) -> Any:
    """Return for each interval the ns of it that are in `within`."""
    import numpy as np

    return _measure(within, ends) - _measure(within, np.minimum(starts, ends))


def _measure(spans: IntervalSet, times: Any) -> Any:
    """Return for each time the length of the set before it."""
    import numpy as np

    lengths = np.r_[0, np.cumsum(spans.ends - spans.begins)]
    at = np.searchsorted(spans.begins, times, side="right")
    ends = np.r_[0, spans.ends]
    return lengths[at] - np.maximum(np.where(at > 0, ends[at] - times, 0), 0)


def _where(own: IntervalSet, other: IntervalSet, rule: Callable[[Any, Any], Any]) -> IntervalSet:
    """Return the time for which the rule holds of both memberships."""
    import numpy as np

    # Columns in order, one behind the other: a stable sort merges them. np.unique makes a hash table of them instead.
    edges = np.sort(np.r_[own.begins, own.ends, other.begins, other.ends], kind="stable")
    if len(edges) < 2:
        return empty_spans()
    edges = edges[np.r_[True, edges[1:] != edges[:-1]]]
    holds = rule(own.holds(edges[:-1]), other.holds(edges[:-1]))
    return union(edges[:-1][holds], edges[1:][holds])
