"""The segments of a series: a value may be compared with those of its own machine since the last accepted change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from profkit.core.types import AcceptedChange, Point, Segment, Series
from profkit.core.types.history import SegmentCause
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
    cuts: list[tuple[int, SegmentCause, str]] = [(0, "begin", "the first night")]
    by_word = accepted_cuts(series, accepted)
    edges = [0, *sorted(by_word), len(series.points)]
    for first, end in pairwise(edges):
        if first:
            change = by_word[first]
            by = f" by {change.by}" if change.by else ""
            cuts.append((first, "accepted", f"accepted{by}: {change.word}"))
        cuts += [
            (index, "machine", f"another machine: {short_machine(before)}, then {short_machine(after)}")
            for index, before, after in _machine_cuts(series.points, first, end)
        ]
    ends = [index for index, _, _ in cuts[1:]] + [len(series.points)]
    return tuple(
        Segment(index, end - 1, cause, reason) for (index, cause, reason), end in zip(cuts, ends, strict=True)
    )


def _machine_cuts(points: Sequence[Point], first: int, end: int) -> list[tuple[int, str, str]]:
    """Indices at which all machines before are others than all after, with the two that meet there."""
    last_seen = {points[i].machine: i for i in range(first, end) if points[i].valid}
    cuts: list[tuple[int, str, str]] = []
    reach = first
    before: str | None = None
    for i in range(first, end):
        machine = points[i].machine
        if not points[i].valid:
            continue
        if before is not None and i > reach and machine != before:
            cuts.append((i, before, machine))
        reach, before = max(reach, last_seen[machine]), machine
    return cuts


def short_machine(machine: str) -> str:
    """A fingerprint's id as people read it: enough of it to tell two apart."""
    return machine[:12] if machine else "unknown"
