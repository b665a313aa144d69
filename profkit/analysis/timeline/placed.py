"""A timeline with the program's lines: of kernels, of the calls that launched them, and of idle stretches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from profkit.analysis.timeline.marks import LabelTable
from profkit.core.types import KernelTime, Lane, MarkLabel, Timeline

DOMINANT_SHARE = (
    0.9  # of the launches of a configuration: a line, or an operation, that has fewer is one of several
)
COVERS = 0.5  # of an idle stretch: what the host did in less of it is not said to be what it waits for
_PLACES = (
    "line",
    "operation",
    "range",
)  # kinds of lanes that show where the host is, the most exact first


def placed_timeline(timeline: Timeline | None, kernels: Iterable[KernelTime]) -> Timeline | None:
    """Return the timeline with the lines and operations that are known of each launch configuration.

    `kernels` may come from another run of the same program. None if there is no timeline.
    """
    if timeline is None:
        return None
    known = {(time.kernel.name, time.kernel.id): time for time in kernels}
    labels = [_placed_label(label, known) for label in timeline.labels]
    lanes = timeline.lanes
    if not any(lane.kind == "line" for lane in lanes):
        table = LabelTable()
        for label in labels:  # equal ones have one place now
            table.number(label)
        numbers = [table.number(label) for label in labels]
        lanes = tuple(replace(lane, labels=tuple(numbers[label] for label in lane.labels)) for lane in lanes)
        lanes = tuple(_with_lines(lanes, table))
        labels = table.table
    return placed_idle(replace(timeline, labels=tuple(labels), lanes=lanes))


def _placed_label(label: MarkLabel, known: dict[tuple[str, str], KernelTime]) -> MarkLabel:
    time = known.get((label.name if label.kind == "kernel" else label.what, label.shape))
    if time is None or label.file is not None:
        return label
    most = max((line.launches for line in time.lines), default=time.launches)
    if time.file is not None and most >= DOMINANT_SHARE * time.launches:
        label = replace(label, file=time.file, line=time.line, function=time.function)
    if label.operation is None and time.operation_launches >= DOMINANT_SHARE * time.launches:
        label = replace(label, operation=time.operation)
    return label


def _with_lines(lanes: Sequence[Lane], table: LabelTable) -> Iterator[Lane]:
    """Yield the lanes, and in front of a thread's calls a lane of the lines from which it launches."""
    for lane in lanes:
        if lane.kind == "calls":
            lines = _lines_of(lane, table)
            if lines.starts:
                yield lines
        yield lane


def _lines_of(calls: Lane, table: LabelTable) -> Lane:
    """Return a lane of lines: consecutive launches from one line are one mark, with the calls between them."""
    starts: list[int] = []
    ends: list[int] = []
    labels: list[int] = []
    for start, length, number in zip(calls.starts, calls.lengths, calls.labels, strict=True):
        label = table.table[number]
        if label.file is None or not label.what:
            continue
        line = MarkLabel(
            "line", label.function or "", file=label.file, line=label.line, function=label.function
        )
        at = table.number(line)
        if labels and labels[-1] == at:
            ends[-1] = max(ends[-1], start + length)
        else:
            starts.append(start)
            ends.append(start + length)
            labels.append(at)
    lengths = tuple(end - start for start, end in zip(starts, ends, strict=True))
    return replace(
        calls, kind="line", starts=tuple(starts), lengths=lengths, labels=tuple(labels), counts=(), busy=()
    )


def placed_idle(timeline: Timeline) -> Timeline:
    """Label each idle stretch with the host's line or operation around it, and the call that fills most of it."""
    table = LabelTable()
    for label in timeline.labels:
        table.number(label)
    numbers = [table.number(label) for label in timeline.labels]
    lanes = [replace(lane, labels=tuple(numbers[label] for label in lane.labels)) for lane in timeline.lanes]
    for place, lane in enumerate(lanes):
        if lane.kind != "idle":
            continue
        hosts = [other for other in lanes if other.process == lane.process]
        calls = [other for other in hosts if other.kind == "calls"]
        where = next(
            (found for kind in _PLACES if (found := [other for other in hosts if other.kind == kind])), []
        )
        marks = zip(lane.starts, lane.lengths, lane.labels, strict=True)
        labels = tuple(
            table.number(_idle_label(table.table[number], start, start + length, where, calls, table.table))
            for start, length, number in marks
        )
        lanes[place] = replace(lane, labels=labels)
    return replace(timeline, labels=tuple(table.table), lanes=tuple(lanes))


def _idle_label(
    label: MarkLabel,
    start: int,
    end: int,
    where: Sequence[Lane],
    calls: Sequence[Lane],
    table: Sequence[MarkLabel],
) -> MarkLabel:
    if label.kind in ("queued", "waiting"):
        return label
    around = _longest_in(where, start, end)
    if around is not None and around[1] >= COVERS * (end - start):
        place = table[around[0]]
        named = place.operation or place.name
        operation = named if place.kind in ("operation", "range") else None
        label = replace(label, operation=operation, file=place.file, line=place.line, function=place.function)
    call = _longest_in(calls, start, end) if label.kind != "program" else None
    return replace(label, what=table[call[0]].name) if call is not None else label


def _longest_in(lanes: Sequence[Lane], start: int, end: int) -> tuple[int, int] | None:
    """Return the label that covers most of a stretch, and for how many ns; None where none does.

    The marks of a lane must not overlap.
    """
    most: dict[int, int] = {}
    for lane in lanes:
        at = max(0, bisect_right(lane.starts, start) - 1)
        while at < len(lane.starts) and lane.starts[at] < end:
            overlap = min(end, lane.starts[at] + lane.lengths[at]) - max(start, lane.starts[at])
            if overlap > 0:
                most[lane.labels[at]] = most.get(lane.labels[at], 0) + overlap
            at += 1
    return max(most.items(), key=lambda item: item[1]) if most else None
