"""The segments of a series: a value may be compared with those of its own machine since the last accepted change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from profkit.core.types import AcceptedChange, Point, Segment, Series
from profkit.regression.times import microseconds


def accepted_cuts(series: Series, accepted: Sequence[AcceptedChange]) -> dict[int, AcceptedChange]:
    """Index of the first point of every segment that an accepted change of this series begins.

    A change that lies before the first point, or after the last, begins none. Of two that begin the same, the later.
    """
    key, cuts = series.key, {}
    ours = [a for a in accepted if a.workload == key.workload and a.metric in (None, key.metric)]
    if not ours:
        return {}
    times = [microseconds(point.started) for point in series.points]
    for change in sorted(ours, key=lambda a: microseconds(a.since)):
        index = bisect_left(times, microseconds(change.since))
        if 0 < index < len(times):
            cuts[index] = change
    return cuts


def segments_of(series: Series, accepted: Sequence[AcceptedChange] = ()) -> tuple[Segment, ...]:
    """The stretches of the series in order, from its first to its last point; none for an empty series.

    An accepted change begins one, and so does a machine that was not there before, if none of those before it comes
    again: machines that alternate (a pool of runners) share a segment, and each is compared with its own past.
    """
    if not series.points:
        return ()
    begins = [Segment(0, 0, "begin")]
    by_word = accepted_cuts(series, accepted)
    for first, end in pairwise([0, *sorted(by_word), len(series.points)]):
        if first:
            begins.append(Segment(first, first, "accepted", by_word[first].word, by_word[first].by))
        begins += [Segment(index, index, "machine") for index in _machine_cuts(series.points, first, end)]
    ends = [*(segment.first for segment in begins[1:]), len(series.points)]
    return tuple(replace(segment, last=end - 1) for segment, end in zip(begins, ends, strict=True))


def _machine_cuts(points: Sequence[Point], first: int, end: int) -> Iterator[int]:
    """Indices at which all machines before are others than all after."""
    last_seen = {points[i].machine: i for i in range(first, end) if points[i].valid}
    reach, before = first, None
    for i in range(first, end):
        if points[i].valid:
            machine = points[i].machine
            if before is not None and i > reach and machine != before:
                yield i
            reach, before = max(reach, last_seen[machine]), machine
