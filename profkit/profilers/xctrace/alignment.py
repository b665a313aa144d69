"""Finds the marked region in a trace: its entries, noted on the host's clock, in the time of the trace.

A trace counts nanoseconds from its begin. Its table `time-info` ties that to the clock of the host:
`mabs-epoch` is mach absolute time at the begin, in ticks, `timebase-info` ("125/3") the nanoseconds of a
tick. So

    host ns = mabs-epoch * numerator / denominator + trace ns

and `profkit.region` notes host ns. Metal System Trace has that table; Time Profiler and a recording of the
GPU counters alone lack it, so there the signposts of the region decide, which the instrument Points of
Interest records.

Where an entry does not lie in the trace, or the clock is not known, the signposts of the region decide if the
trace has them, else the whole trace counts; each is said in a note.

Of an unmarked trace all of the time counts for which the GPU's state is known, as that is what a share of the
whole recording speaks of; and in it the window of the process, from what it first asked of the GPU to the end
of its last work there. What lies around that is the start-up of a Python, and no use of a GPU.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.time_windows import merge_intervals
from profkit.core.types import Fact
from profkit.profilers.xctrace.metal_tables import ACTIVE, INTERVALS, STATES, UNKNOWN_LATENCY, MetalTableSet
from profkit.profilers.xctrace.spans import IntervalSet, empty_spans, spans_of, union
from profkit.profilers.xctrace.toc import Process, TraceRun, is_same_process, process_label
from profkit.runtime.region.mps import MARK
from profkit.runtime.region.record import RegionRecord

Window = tuple[int, int]  # begin and end in ns since the begin of the trace

CLOCK_TABLE = "time-info"
CLOCK_COLUMNS = ("mabs-epoch", "timebase-info")
SIGNPOST_TABLE = "kdebug-signpost-interval"
SIGNPOST_COLUMNS = ("start", "duration", "start-arg2")
LARGEST = 1 << 63
_TIMEBASE = re.compile(r"([0-9]{1,11})/([0-9]{1,11})")


@dataclass(frozen=True)
class TraceClock:
    """`epoch` ticks of mach absolute time at the begin of the trace, `numerator / denominator` ns each."""

    epoch: int
    numerator: int
    denominator: int

    def in_trace(self, host: int) -> int:
        """Convert host nanoseconds to nanoseconds since the begin of the trace; negative: before it."""
        return host - self.epoch * self.numerator // self.denominator


@dataclass(frozen=True)
class Alignment:
    """The part that counts: `windows`, sorted and apart; empty where the whole trace does.

    `entries` is how many entries of the region they are of. `notes` say what was left out, and why.
    """

    windows: tuple[Window, ...] = ()
    entries: int = 0
    notes: tuple[Fact, ...] = ()

    @property
    def loss(self) -> Fact | None:
        """Return why the whole trace counts although a region was entered; None if none was, or it was found."""
        return self.notes[0] if self.notes and not self.windows else None


def read_clock(rows: Iterable[Sequence[object]]) -> TraceClock | Fact:
    """Read the clock of a trace from the rows of `time-info`, or return why there is none.

    Each row has the cells of CLOCK_COLUMNS. Several rows are fine where they are equal. The timebase is a text
    ("125/3").
    """
    anchors = set()
    for epoch, timebase in rows:
        if epoch is None or timebase is None:
            continue
        if type(epoch) is not int or not 0 <= epoch < LARGEST:
            return Fact.of("odd-begin", table=CLOCK_TABLE, value=str(epoch)[:40])
        match = _TIMEBASE.fullmatch(str(timebase))
        if match is None or 0 in (int(match[1]), int(match[2])):
            return Fact.of("odd-timebase", table=CLOCK_TABLE, value=str(timebase)[:40])
        anchors.add(TraceClock(epoch, int(match[1]), int(match[2])))
    if len(anchors) > 1:
        return Fact.of("several-clocks", table=CLOCK_TABLE, count=len(anchors))
    return anchors.pop() if anchors else Fact.of("no-row", table=CLOCK_TABLE)


def read_signposts(rows: Iterable[Sequence[object]]) -> tuple[Window, ...]:
    """Return the signposts of profkit's regions among the rows of SIGNPOST_TABLE.

    Each row has the cells of SIGNPOST_COLUMNS.
    """
    windows = []
    for start, duration, mark in rows:
        if mark == MARK and isinstance(start, int) and isinstance(duration, int) and duration >= 0:
            windows.append((start, start + duration))
    return tuple(sorted(windows))


def align_regions(
    records: Iterable[RegionRecord],
    clock: TraceClock | Fact | None,
    length: int | None,
    signposts: Sequence[Window] = (),
) -> Alignment:
    """Return the part that counts of a trace in which processes left these records.

    The trace has `length` ns (None: not known). `clock` None: the trace has no `time-info`. `signposts` are in
    the time of the trace, sorted (`read_signposts`).
    """
    records = tuple(records)
    spans = sorted(span for record in records for span in record.spans)
    left_out = sum(record.spans_left_out for record in records)
    notes = []
    if left_out:
        notes.append(Fact.of("later-entries", count=left_out, kept=len(spans)))
    if isinstance(clock, TraceClock) and spans:
        inside, reason = _clip_to_trace([(clock.in_trace(a), clock.in_trace(b)) for a, b in spans], length)
        if inside:
            return Alignment(merge_intervals(inside), len(inside), (*notes, *([reason] if reason else ())))
    elif spans:
        none = Fact.of("it-has-no-table", table=CLOCK_TABLE)
        reason = Fact.of("no-clock", clock if isinstance(clock, Fact) else none)
    else:
        reason = Fact("untimed-entries") if records else None
    marked, _ = _clip_to_trace(signposts, length)
    if marked:
        # not cut to what was kept: signposts have no limit
        why = (Fact.of("by-signposts", reason),) if reason else ()
        return Alignment(merge_intervals(marked), len(marked), why)
    if reason is None:
        return Alignment()
    return Alignment(notes=(Fact.of("not-the-region", reason),))


def _clip_to_trace(windows: Sequence[Window], length: int | None) -> tuple[list[Window], Fact | None]:
    """Return the windows as far as they lie in the trace, and a remark on those that do not."""
    end = LARGEST if length is None else length
    inside = [(max(0, a), min(end, b)) for a, b in windows if b >= 0 and a <= end]
    if inside == list(windows):
        return inside, None
    outside = sum(a < 0 or b > end for a, b in windows)
    remark = Fact.of("entries-outside" if inside else "all-entries-outside", count=outside, of=len(windows))
    return inside, remark


@dataclass(frozen=True)
class TraceRecording:
    """One run of a recording, as far as its exports describe it.

    `run` is its entry in the table of contents (None if there is none), `target` the process that was
    profiled, `alignment` the part of it that counts. `exported` are the schemas that were exported with a table,
    whether it has rows or not. `pids` are the processes of the workload that said so themselves: what was
    launched may be a shell, and start them.
    """

    run: TraceRun | None = None
    target: Process | None = None
    alignment: Alignment = field(default_factory=Alignment)
    exported: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()

    @property
    def windows(self) -> tuple[Window, ...] | None:
        """Return the stretches of trace time, in ns, that count; None where the whole recording does."""
        return self.alignment.windows or None

    def includes(self, time: int | None) -> bool:
        """Return whether a time (ns) counts; without a time only where the whole recording does."""
        windows = self.alignment.windows
        if not windows or time is None:
            return not windows
        place = bisect_right(windows, (time, LARGEST)) - 1
        return place >= 0 and time < windows[place][1]


# It draws what others made, and is never what was profiled unless the recording says so.
COMPOSITOR = "WindowServer"


@dataclass(frozen=True)
class GpuTarget:
    """The processes whose work counts; `name` identifies them; `note` is a remark for the user.

    `guessed`: nothing says that it is what was profiled.
    """

    processes: frozenset[Process | None] = frozenset()
    name: str | None = None
    note: Fact | None = None
    guessed: bool = False


def choose_target(busy: Mapping[Process | None, int], recording: TraceRecording) -> GpuTarget:
    """Choose the target among processes, which used the GPU for `busy` ns each.

    In this order: those that said so themselves, the process that the table of contents names, and without one
    the busiest. A launched process that did nothing on the GPU stays the target: others' work is not the
    workload's.
    """
    launched = recording.run.target if recording.run is not None else None
    named = sorted((process for process in busy if process is not None), key=lambda process: -busy[process])
    targets = [process for process in named if process.pid in recording.pids]
    if not targets and launched is not None:
        targets = [process for process in named if is_same_process(process, launched)]
    if targets:
        return GpuTarget(frozenset(targets), process_label(targets[0]))
    if launched is not None:
        name = process_label(launched)
        return GpuTarget(frozenset((launched,)), name, Fact.of("launched-without-gpu", name=name))
    candidates = [process for process in named if process.name != COMPOSITOR] or named
    if not candidates:
        return GpuTarget()
    name = process_label(candidates[0])
    note = Fact.of("busiest-process", name=name)
    return GpuTarget(frozenset(candidates[:1]), name, note, guessed=True)


def submitted_work(work: Mapping[str, Any]) -> IntervalSet | None:
    """Return for all intervals the time from the commit of the command buffer to the end on the GPU.

    A command buffer is committed at the begin of its work less `start-latency`. None where no latency is known.
    """
    has_latency = work["latency"] != UNKNOWN_LATENCY
    if not has_latency.any():
        return None
    return union((work["start"] - work["latency"])[has_latency], work["end"][has_latency])


def look_up(keys: Any, known: Any, values: Any) -> Any:
    """Return for each of `keys` the first of `values` with that key in `known`; -1 if there is none."""
    import numpy as np

    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    return np.where(known[order[at]] == keys, values[order[at]].astype(np.int64), -1)


@dataclass(frozen=True)
class CountedPart:
    """`work` are the columns of all intervals on the GPU, `own` says which are the target's.

    `active` is when that GPU was (None: not known), `busy` when the target had it, `submitted` when work of it
    was committed and not done (None: not known), all in all of the recording; `counted` is what counts, `window`
    the part of it that is the target's.
    """

    gpu: str | None
    target: GpuTarget
    work: Mapping[str, Any]
    own: Any
    active: IntervalSet | None
    counted: IntervalSet
    window: IntervalSet
    busy: IntervalSet
    submitted: IntervalSet | None

    @property
    def own_work(self) -> Mapping[str, Any]:
        """Return the columns of the target's intervals."""
        return {name: column[self.own] for name, column in self.work.items()}


def part_that_counts(
    tables: MetalTableSet, recording: TraceRecording, sampled: tuple[int, int] | None
) -> CountedPart:
    """Return the part of the recording that counts.

    `sampled` is from the first to the last sample of the counters.
    """
    table, states = tables[INTERVALS], tables[STATES]
    work = table.arrays()
    target = choose_target(_busy_by_process(work, table.names["process"].all), recording)
    own = table.where("process", target.processes)
    own_work = {name: column[own] for name, column in work.items()}
    active = states.times(states.where("state", (ACTIVE,))) if len(states) else None
    busy, submitted = union(own_work["start"], own_work["end"]), submitted_work(own_work)
    if recording.windows is not None:
        counted = window = spans_of(recording.windows)
    else:
        # From the first commit that came to the GPU, or the first work there, to the end of the last.
        extent = (busy if submitted is None else busy | submitted).extent
        window = empty_spans() if extent is None else spans_of([extent])
        known = union(work["start"], work["end"]) if active is None else states.times(slice(None))
        extent = (known | window).extent
        if extent is None:  # of a recording of the counters alone
            length = recording.run.length if recording.run is not None else None
            extent = sampled if length is None else (0, length)
        counted = empty_spans() if extent is None else spans_of([extent])
    gpu = next(filter(None, (*states.names["gpu"].all, *table.names["gpu"].all)), None)
    return CountedPart(gpu, target, work, own, active, counted, window, busy, submitted)


def _busy_by_process(work: Mapping[str, Any], names: Sequence[Process | None]) -> dict[Process | None, int]:
    """Add up the time of the intervals by process: enough to tell which is the largest."""
    import numpy as np

    spent = np.bincount(work["process"], work["end"] - work["start"], len(names))
    return {name: int(ns) for name, ns in zip(names, spent.tolist(), strict=True)}
