"""The part of a trace that counts: the entries of a region, or the times in which the profiler was on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.analysis.timeline.records import Range

OWN = "profkit"  # the NVTX domain of `profkit.region`
OWN_PREFIX = "profkit:"  # and how its ranges are named where a tool knows no domains
EVER = (-(1 << 62), 1 << 62)


@dataclass(frozen=True)
class Windows:
    """Times in ns, in order, none overlapping another. `tight`: their own ends say nothing, those of the activities do.

    What was launched in a window is in it, whenever the device came to it.
    """

    bounds: tuple[tuple[int, int], ...]
    marked: bool
    tight: bool

    def number(self, times: Any) -> Any:
        """For each time the number of the window it is in, -1 where it is in none."""
        import numpy as np

        begins = np.array([begin for begin, _ in self.bounds], dtype=np.int64)
        ends = np.array([end for _, end in self.bounds], dtype=np.int64)
        at = np.searchsorted(begins, times, side="right") - 1
        inside = (at >= 0) & (times <= ends[np.maximum(at, 0)])
        return np.where(inside, at, -1)

    def touched(self, start: int, end: int) -> bool:
        """Whether anything between `start` and `end` is in one of them."""
        at = bisect_left(self.bounds, start, key=_end)
        return at < len(self.bounds) and self.bounds[at][0] <= end

    @property
    def begin(self) -> int:
        """When the first one begins."""
        return self.bounds[0][0]


def _end(bound: tuple[int, int]) -> int:
    return bound[1]


def own(name: str, domain: str | None) -> bool:
    """Whether a range is a region of profkit."""
    return domain == OWN or name.startswith(OWN_PREFIX)


def region_named(name: str, domain: str | None) -> tuple[str, str | None]:
    """The name and the domain of a range; of a region that was marked without a domain those that it would have."""
    if domain is None and name.startswith(OWN_PREFIX) and name != OWN_PREFIX:
        return name.removeprefix(OWN_PREFIX), OWN
    return name, domain


def marked_windows(ranges: Iterable[Range], profiler: Sequence[tuple[int, int | None]]) -> Windows | None:
    """The regions of profkit where there are any, else where the profiler was on; None where nothing is marked."""
    regions = [(r.start, r.end) for r in ranges if own(r.name, r.domain)]
    chosen = regions or list(profiler)
    bounds = merged([(begin, EVER[1] if end is None else end) for begin, end in chosen])
    return Windows(bounds, marked=True, tight=False) if bounds else None


def merged(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The union of `intervals`, in order."""
    union: list[tuple[int, int]] = []
    for begin, end in sorted(pair for pair in intervals if pair[1] >= pair[0]):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return tuple(union)
