"""The record of one typical step: what streams, copies and the host did in it, and why devices were idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from profkit.analysis.timeline.host_calls import CALL_KINDS, HostTime, call_kind
from profkit.analysis.timeline.joined_recordings import MODULE
from profkit.analysis.timeline.marks import (
    FINE,
    LabelTable,
    LaneMarks,
    Marks,
    bounded_lanes,
    finished_lane,
    lane_of,
)
from profkit.analysis.timeline.origins import OriginIndex
from profkit.analysis.timeline.placed import placed_idle
from profkit.analysis.timeline.range_names import SourceLine, is_region, range_meaning, region_name
from profkit.analysis.timeline.records import TRANSFER, Columns, Range, Recording, Spool
from profkit.analysis.timeline.shown_part import ShownPart
from profkit.core.types import ActivityBins, MarkKind, MarkLabel, Timeline

BINS = 300  # of the whole recording
MAX_UNMERGED = 50_000  # things in a part: more are merged while they are read
MAX_RANGES = 20_000  # of each kind that are looked at in the part
# ns: a call to copy that comes back at once may do so behind a copy of a few bytes, for which nothing waited.
SHORTEST_WAIT = 10_000
LONGEST_NAME = 200  # characters of a kernel's name: those of templates take thousands


def build_timeline(
    recording: Recording, activities: Spool, calls: Spool, part: ShownPart, origins: OriginIndex
) -> Timeline | None:
    """Build the timeline of a part; None where no kernel and no copy ran in it."""
    record = _Record(recording, part, origins)
    record.add_calls(calls)
    record.add_activities(activities)
    return record.timeline()


@dataclass
class _Device:
    """What one device did for one process in the part, before it is sorted into lanes."""

    streams: dict[int, list[Marks]] = field(default_factory=dict)
    copies: list[Marks] = field(default_factory=list)
    idle: list[Marks] = field(default_factory=list)
    reached: int = 0  # until when it had something to do
    pending: Any = None  # the rows of the last block


class _Record:
    def __init__(self, recording: Recording, part: ShownPart, origins: OriginIndex) -> None:
        self._recording, self._part, self._origins = recording, part, origins
        self._tables = recording.tables
        self._span = max(1, part.end - part.begin)
        self._labels = LabelTable()
        self._kinds = [call_kind(name) for name in self._tables.calls]
        self._devices: dict[tuple[int, int], _Device] = {}
        self._calls: dict[tuple[int, int], list[Marks]] = {}  # by process and thread; what they are:
        self._call_rows: list[tuple[int, int]] = []  # the number of the name, and the key
        self._wanted: Any = None  # keys of those
        self._host: dict[int, HostTime] = {}
        self._launched: dict[int, int] = {}  # key of a call -> number of the label of what it launched
        self._copied: dict[int, int] = {}  # key of a call -> when the copy that it started ended
        self._ends: tuple[int, int] = (part.begin, part.end)  # of the whole recording
        self._busy: dict[tuple[int, int], list[Marks]] = {}
        self._ranges = _ranges_in(recording, part)

    # ------------------------------------------------------------ what is read

    def add_calls(self, calls: Spool) -> None:
        """Add the host's calls that overlap the part."""
        import numpy as np

        self._kinds = [call_kind(name) for name in self._tables.calls]
        by_name = np.array([CALL_KINDS.index(kind) for kind in self._kinds] or [0])
        fine = self._fine(sum(int(np.count_nonzero(self._touches(block))) for block in calls))
        by_kind: dict[int, dict[MarkKind, list[Marks]]] = {}
        for block in calls:
            rows = block[self._touches(block)]
            for process in np.unique(rows["process"]).tolist():
                mine = rows[rows["process"] == process]
                numbers, kinds = by_name[mine["name"]], by_kind.setdefault(process, {})
                for number in np.unique(numbers).tolist():
                    alike = mine[numbers == number]
                    marks = Marks.of(alike["start"], alike["end"], alike["name"]).merged(fine)
                    kinds.setdefault(CALL_KINDS[number], []).append(marks)
                for thread in np.unique(mine["thread"]).tolist():
                    self._add_thread((process, thread), mine[mine["thread"] == thread], fine)
        self._wanted = np.unique(np.array([key for _, key in self._call_rows], dtype=np.int64))
        for process, kinds in by_kind.items():
            joined = {kind: Marks.joined(parts) for kind, parts in kinds.items()}
            self._host[process] = HostTime.of(joined)

    def _add_thread(self, thread: tuple[int, int], rows: Columns, fine: float) -> None:
        """Add calls of one thread; of those that are merged only the longest is kept, with what it launched."""
        import numpy as np

        marks = Marks.of(rows["start"], rows["end"], np.arange(len(rows))).merged(fine)
        kept = rows[marks.what]
        marks.what = len(self._call_rows) + np.arange(len(kept))
        self._call_rows += zip(kept["name"].tolist(), kept["key"].tolist(), strict=True)
        self._calls.setdefault(thread, []).append(marks)

    def _fine(self, inside: int) -> float:
        return self._span / FINE if inside > MAX_UNMERGED else 0.0

    def add_activities(self, activities: Spool) -> None:
        """Add what the devices did: mark by mark in the part, as busy shares in the whole recording."""
        import numpy as np

        first, last, inside = 1 << 62, -(1 << 62), 0
        for block in activities:
            first, last = min(first, int(block["start"].min())), max(last, int(block["end"].max()))
            inside += int(np.count_nonzero(self._touches(block)))
        if first <= last:
            self._ends = first, last
        fine = self._fine(inside)
        width = max(1, self._ends[1] - self._ends[0]) / BINS
        for block in activities:
            whose = (block["process"].astype("i8") << 16) | block["device"]
            for key in np.unique(whose).tolist():
                rows = block[whose == key]
                lane = key >> 16, key & 0xFFFF
                marks = Marks.of(rows["start"], rows["end"], np.zeros(len(rows), np.int64))
                self._busy.setdefault(lane, []).append(_covered(marks).merged(width / 20))
                rows = rows[self._touches(rows)]
                if len(rows):
                    self._add_rows(
                        self._devices.setdefault(lane, _Device(reached=self._part.begin)), lane, rows, fine
                    )

    def _touches(self, rows: Columns) -> Any:
        return (rows["start"] < self._part.end) & (rows["end"] > self._part.begin)

    def _add_rows(self, device: _Device, lane: tuple[int, int], rows: Columns, fine: float) -> None:
        """Add activities of one device, in the order of their starts."""
        import numpy as np

        labels = self._numbers_of(rows)
        moved = rows["kind"] == TRANSFER
        if moved.any():
            device.copies.append(
                Marks.of(rows["start"][moved], rows["end"][moved], labels[moved]).merged(fine)
            )
        for stream in np.unique(rows["stream"][~moved]).tolist():
            mine = ~moved & (rows["stream"] == stream)
            marks = Marks.of(rows["start"][mine], rows["end"][mine], labels[mine]).merged(fine)
            device.streams.setdefault(stream, []).append(marks)
        self._add_gaps(device, lane[0], rows, fine)

    def _add_gaps(self, device: _Device, process: int, rows: Columns, fine: float) -> None:
        """Add the stretches before these activities in which the device was idle."""
        import numpy as np

        reached = np.maximum.accumulate(np.r_[device.reached, rows["end"]])
        starts, ends = reached[:-1], np.maximum(rows["start"], reached[:-1])
        device.reached = int(reached[-1])
        known = rows["launch"] >= 0
        never = np.int64(1) << 62
        earliest = np.minimum.accumulate(np.where(known, rows["launch"], never)[::-1])[::-1]
        chosen = ends > starts
        if chosen.any():
            gaps = _gap_kinds(starts[chosen], ends[chosen], earliest[chosen], self._host.get(process))
            device.idle.append(Marks.of(starts[chosen], ends[chosen], gaps).merged(fine))

    def _numbers_of(self, rows: Columns) -> Any:
        """Return the label of each activity: its name, and what launched it where that was recorded."""
        import numpy as np

        when = np.where(rows["launch"] >= 0, rows["launch"], rows["start"])
        found = self._origins.find(when, rows["process"], rows["thread"])
        origin = np.maximum(found, 0) if found is not None else np.zeros(len(rows), dtype=np.int64)
        kind = (rows["kind"] == TRANSFER).astype(np.int64)
        keys = (origin << 33) | (kind << 32) | rows["what"]
        distinct, where = np.unique(keys, return_inverse=True)
        numbers = np.array([self._activity_label(int(key)) for key in distinct], dtype=np.int64)
        labels = numbers[where.reshape(-1)]
        requested = (rows["key"] >= 0) & np.isin(rows["key"], self._wanted)
        self._launched.update(zip(rows["key"][requested].tolist(), labels[requested].tolist(), strict=True))
        copied = requested & (rows["kind"] == TRANSFER)
        self._copied.update(zip(rows["key"][copied].tolist(), rows["end"][copied].tolist(), strict=True))
        return labels

    def _activity_label(self, key: int) -> int:
        origin, moves, what = self._origins.origins[key >> 33], bool(key >> 32 & 1), key & 0xFFFFFFFF
        file, line, function = origin.line or (None, None, None)
        if moves:
            label = MarkLabel("copy", self._tables.transfers[what].name)
        else:
            kernel = self._tables.configurations[what]
            label = MarkLabel("kernel", kernel.name[:LONGEST_NAME], shape=kernel.id)
        return self._labels.number(
            replace(label, operation=origin.operation, file=file, line=line, function=function)
        )

    # ------------------------------------------------------------ lanes

    def timeline(self) -> Timeline | None:
        """Return the timeline, with bounded lanes and marks; None where no kernel and no copy ran in it."""
        lanes = [*self._device_lanes(), *self._host_lanes()]
        kept, shortest, merged, left_out = bounded_lanes(lanes, self._span)
        if not any(lane_marks.lane.kind in ("kernels", "copies") for lane_marks in kept):
            return None
        part = self._part
        finished = [
            finished_lane(lane_marks, part.begin, part.end, self._label_of(lane_marks)) for lane_marks in kept
        ]
        used = sorted({number for lane in finished for number in lane.labels})
        place = {number: at for at, number in enumerate(used)}
        first, last = self._ends
        made = Timeline(
            part.kind,
            max(0, part.begin - first) / 1e9,
            self._span / 1e9,
            (last - first) / 1e9,
            tuple(self._labels.table[number] for number in used),
            tuple(replace(lane, labels=tuple(place[label] for label in lane.labels)) for lane in finished),
            tuple(self._activity()),
            part.of,
            part.name,
            merged,
            shortest / 1e9,
            left_out,
        )
        return placed_idle(made)

    def _device_lanes(self) -> Iterator[LaneMarks]:
        for (process, device), found in sorted(self._devices.items()):
            whose = {"process": process, "device": device}
            if found.reached < self._part.end:  # nothing more came of this part
                rest = self._calls_between(process, found.reached, self._part.end)
                found.idle.append(Marks.of([found.reached], [self._part.end], rest))
            for at, (stream, parts) in enumerate(sorted(found.streams.items())):
                lane = lane_of("kernels", number=stream if stream >= 0 else None, **whose)
                yield LaneMarks(lane, (process, 0, device, 0, at), Marks.joined(parts))
            if found.copies:
                yield LaneMarks(
                    lane_of("copies", **whose), (process, 0, device, 1, 0), Marks.joined(found.copies)
                )
            if found.idle:
                yield LaneMarks(
                    lane_of("idle", **whose), (process, 0, device, 2, 0), Marks.joined(found.idle)
                )

    def _calls_between(self, process: int, begin: int, end: int) -> Any:
        import numpy as np

        never = np.array([np.int64(1) << 62])
        return _gap_kinds(np.array([begin]), np.array([end]), never, self._host.get(process))

    def _host_lanes(self) -> Iterator[LaneMarks]:
        """Yield the ranges, lines, operations and calls of each thread as lanes.

        Threads are those that call the devices' library or are in a range.
        """
        import numpy as np

        for at, ((process, thread, kind), entries) in enumerate(sorted(self._ranges.items(), key=_by_thread)):
            starts, ends, names = zip(*entries, strict=True)
            numbers = [self._labels.number(name) for name in names]
            lane = lane_of(kind, process=process, number=thread)
            order = ("range", "line", "operation").index(kind)
            number = thread if thread is not None else -1
            yield LaneMarks(lane, (process, 1, number, order, at), Marks.of(starts, ends, numbers))
        for (process, thread), parts in sorted(self._calls.items()):
            marks = Marks.joined(parts)
            made = [self._call_rows[row] for row in marks.what.tolist()]
            copied = [self._copied.get(key, 1 << 62) for _, key in made]
            waits = (marks.end >= np.array(copied)) & (marks.end - marks.start >= SHORTEST_WAIT)
            marks.what = np.array(
                [
                    self._call_label(name, self._launched.get(key), waits=waited)
                    for (name, key), waited in zip(made, waits.tolist(), strict=True)
                ]
            )
            yield LaneMarks(
                lane_of("calls", process=process, number=thread), (process, 1, thread, 3, 0), marks
            )

    def _call_label(self, name: int, launched: int | None, *, waits: bool) -> int:
        """Return the number of a call's label, with what it launched and the line of that.

        `waits`: the call returned after its copy had ended.
        """
        kind = "wait" if waits and self._kinds[name] == "copy" else self._kinds[name]
        label = MarkLabel(kind, self._tables.calls[name][:LONGEST_NAME])
        if launched is not None:
            what = self._labels.table[launched]
            label = replace(what, kind=label.kind, name=label.name, what=what.name)
        return self._labels.number(label)

    def _label_of(self, lane_marks: LaneMarks) -> Callable[[int], int]:
        if lane_marks.lane.kind != "idle":
            return lambda number: number
        return lambda kind: self._labels.number(MarkLabel(_IDLE_KINDS[kind], ""))

    # ------------------------------------------------------------ the whole recording

    def _activity(self) -> Iterator[ActivityBins]:
        first, last = self._ends
        for (process, device), parts in sorted(self._busy.items()):
            marks = Marks.joined(parts)
            yield ActivityBins(busy_shares(marks, first, last), process, device)


# What an idle device waits for, by the number that a gap's mark has.
_IDLE_KINDS: tuple[MarkKind, ...] = (*CALL_KINDS, "program", "queued", "waiting")
_PROGRAM, _QUEUED, _UNKNOWN = (_IDLE_KINDS.index(kind) for kind in ("program", "queued", "waiting"))


def _gap_kinds(begin: Any, end: Any, launched: Any, host: HostTime | None) -> Any:
    """Return the kind of what the host did in most of each gap.

    `launched` is when (ns) the first of what ran after a gap was launched: where more than half of the gap lies
    after that, the work was queued. Where no call of the host was recorded, the kind is an unknown wait.
    """
    import numpy as np

    if host is None:  # no call was recorded: it is not known
        return np.full(len(begin), _UNKNOWN)
    until = np.clip(launched, begin, end)
    spent = host.between(begin, until)
    rest = np.maximum(until - begin - spent.sum(axis=0), 0)
    kinds = np.argmax(np.vstack([spent, rest]), axis=0)  # the last one is the program itself
    return np.where(2 * (end - until) > end - begin, _QUEUED, kinds)


def _covered(marks: Marks) -> Marks:
    """Cut from the marks what earlier ones cover: the rest adds up to the time in which anything ran."""
    import numpy as np

    order = np.argsort(marks.start, kind="stable")
    start, end = marks.start[order], marks.end[order]
    reached = np.maximum.accumulate(end)
    begin = np.maximum(start, np.r_[start[:1], reached[:-1]])
    return Marks.of(begin, np.maximum(end, begin), marks.what[order])


def busy_shares(marks: Marks, first: int, last: int) -> tuple[int, ...]:
    """Return the share in % of each of BINS equal parts from `first` to `last` (ns) that marks cover."""
    import numpy as np

    # From the first on: nanoseconds since 1970 are too large for halves of them.
    edges = np.linspace(0, max(last - first, 1), BINS + 1)
    # The busy time up to each edge: within a merged mark as if it were spread evenly.
    times = np.maximum.accumulate(np.stack([marks.start, marks.end], axis=1).reshape(-1)) - first
    busy = np.minimum(marks.busy, marks.end - marks.start)
    spent = np.cumsum(busy)
    sums = np.stack([spent - busy, spent], axis=1).reshape(-1)
    share = np.diff(np.interp(edges, times, sums)) / np.diff(edges) if len(marks) else np.zeros(BINS)
    return tuple(np.clip(np.rint(100 * share), 0, 100).astype(int).tolist())


# ------------------------------------------------------------ ranges

_Key = tuple[int, "int | None", Any]


def _by_thread(item: tuple[_Key, Any]) -> tuple[int, int, str]:
    process, thread, kind = item[0]
    return process, thread if thread is not None else -1, kind


def _ranges_in(recording: Recording, part: ShownPart) -> dict[_Key, list[tuple[int, int, MarkLabel]]]:
    """Return the outermost ranges, lines and operations of each thread in the part.

    Operations are left out of processes in which lines were recorded.
    """
    found: dict[_Key, list[tuple[int, int, MarkLabel]]] = {}
    reached: dict[_Key, int] = {}
    touching = [
        range_
        for range_ in (*recording.ranges, *recording.operations)
        if range_.start < part.end and (range_.end is None or range_.end > part.begin)
    ]
    touching.sort(key=lambda range_: (range_.start, -(range_.end or part.end)))
    for range_ in touching:
        end = min(part.end, range_.end if range_.end is not None else part.end)
        label = _range_label(range_)
        key = range_.process, range_.thread, label.kind
        if end <= reached.get(key, part.begin) or len(found.get(key, ())) >= MAX_RANGES:
            continue
        reached[key] = end
        found.setdefault(key, []).append((range_.start, end, label))
    lined = {key[0] for key in found if key[2] == "line"}
    return {key: entries for key, entries in found.items() if key[2] != "operation" or key[0] not in lined}


def _range_label(range_: Range) -> MarkLabel:
    meaning = range_meaning(range_.name, range_.domain)
    if meaning.line is not None:
        return line_label(meaning.line)
    if meaning.operation is not None:
        return MarkLabel("operation", meaning.key[0][:LONGEST_NAME])
    name = (
        region_name(range_.name, range_.domain)[0] if is_region(range_.name, range_.domain) else range_.name
    )
    module = MODULE.search(name)
    name = module[1] if module is not None else name
    return MarkLabel("range", name[:LONGEST_NAME])


def line_label(place: SourceLine) -> MarkLabel:
    """Return the label of a mark that stands for a line of the program."""
    file, line, function = place
    return MarkLabel("line", function or "", file=file, line=line, function=function)
