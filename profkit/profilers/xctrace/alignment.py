"""Where the marked region lies in a trace: its entries, noted on the host's clock, as windows in the time of the trace.

A trace counts nanoseconds from its begin. Its table `time-info` ties that to the clock of the host: `mabs-epoch` is
mach absolute time at the begin, in ticks, `timebase-info` ("125/3") the nanoseconds of a tick. So

    host ns = mabs-epoch * numerator / denominator + trace ns

and `profkit.region` notes host ns. Metal System Trace has that table; Time Profiler and a recording of the GPU counters
alone lack it, so there the signposts of the region decide, which the instrument Points of Interest records.

Where an entry does not lie in the trace, or the clock is not known, the signposts of the region decide if the trace has
them, else the whole trace counts; each is said in a note.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profkit.analysis.timeline.origins import merge_intervals
from profkit.core.formatting import plural
from profkit.profilers.xctrace.toc import Process, TraceRun
from profkit.runtime.region.mps import MARK
from profkit.runtime.region.record import RegionRecord

Window = tuple[int, int]  # begin and end in ns since the begin of the trace

CLOCK_TABLE = "time-info"
CLOCK_COLUMNS = ("mabs-epoch", "timebase-info")
SIGNPOST_TABLE = "kdebug-signpost-interval"
SIGNPOST_COLUMNS = ("start", "duration", "start-arg2")
LARGEST = 1 << 63
_TIMEBASE = re.compile(r"([0-9]{1,11})/([0-9]{1,11})")


class NoClock(ValueError):
    """The trace does not say how its time goes with the host's; the sentence says why."""


@dataclass(frozen=True)
class TraceClock:
    """`epoch` ticks of mach absolute time at the begin of the trace, `numerator / denominator` ns each."""

    epoch: int
    numerator: int
    denominator: int

    def in_trace(self, host: int) -> int:
        """Host nanoseconds as nanoseconds since the begin of the trace; negative: before it."""
        return host - self.epoch * self.numerator // self.denominator


@dataclass(frozen=True)
class Alignment:
    """What counts: `windows`, sorted and apart; empty where the whole trace does.

    `entries` is how many entries of the region they are of. `notes` say what was left out, and why.
    """

    windows: tuple[Window, ...] = ()
    entries: int = 0
    notes: tuple[str, ...] = ()

    @property
    def loss(self) -> str | None:
        """Why all of the trace counts although a region was entered; None where none was, or it was found."""
        return self.notes[0] if self.notes and not self.windows else None


def read_clock(rows: Iterable[Sequence[object]]) -> TraceClock:
    """The clock of a trace from the rows of `time-info`, each with the cells of CLOCK_COLUMNS. Raises NoClock.

    Several rows are fine where they say the same. The timebase is a text ("125/3").
    """
    anchors = set()
    for epoch, timebase in rows:
        if epoch is None or timebase is None:
            continue
        if type(epoch) is not int or not 0 <= epoch < LARGEST:
            raise NoClock(f"its {CLOCK_TABLE} has {str(epoch)[:40]!r} for the begin")
        anchors.add((epoch, *_parse_timebase(timebase)))
    if not anchors:
        raise NoClock(f"it has no row in {CLOCK_TABLE}")
    if len(anchors) > 1:
        raise NoClock(f"its {CLOCK_TABLE} begins the clock anew: {plural(len(anchors), 'row')} that differ")
    return TraceClock(*anchors.pop())


def _parse_timebase(cell: object) -> tuple[int, int]:
    match = _TIMEBASE.fullmatch(str(cell))
    if match is None or 0 in (int(match[1]), int(match[2])):
        raise NoClock(f"its {CLOCK_TABLE} has {str(cell)[:40]!r} for the timebase")
    return int(match[1]), int(match[2])


def read_signposts(rows: Iterable[Sequence[object]]) -> tuple[Window, ...]:
    """The signposts of profkit's regions among the rows of SIGNPOST_TABLE, each with the cells of SIGNPOST_COLUMNS."""
    windows = []
    for start, duration, mark in rows:
        if mark == MARK and isinstance(start, int) and isinstance(duration, int) and duration >= 0:
            windows.append((start, start + duration))
    return tuple(sorted(windows))


def align_regions(
    records: Iterable[RegionRecord],
    clock: TraceClock | NoClock | None,
    length: int | None,
    signposts: Sequence[Window] = (),
) -> Alignment:
    """What counts of a trace of `length` ns (None: not known) in which processes left these records.

    `clock` None: the trace has no `time-info`. `signposts` are in the time of the trace, sorted (`read_signposts`).
    """
    records = tuple(records)
    spans = sorted(span for record in records for span in record.spans)
    left_out = sum(record.spans_left_out for record in records)
    notes = []
    if left_out:
        more = plural(left_out, "later entry of the region is", "later entries of the region are")
        notes.append(f"{more} not in it: the times of {len(spans)} were kept")
    if isinstance(clock, TraceClock) and spans:
        inside, reason = _clip_to_trace([(clock.in_trace(a), clock.in_trace(b)) for a, b in spans], length)
        if inside:
            return Alignment(merge_intervals(inside), len(inside), (*notes, *([reason] if reason else ())))
    elif spans:
        reason = f"the trace does not tell its clock: {clock or f'it has no table {CLOCK_TABLE}'}"
    else:
        reason = "its entries were not timed on the clock of the trace" if records else None
    marked, _ = _clip_to_trace(signposts, length)
    if marked:
        # not cut to what was kept: signposts have no limit
        why = [f"the region is where its signposts are: {reason}"] if reason else []
        return Alignment(merge_intervals(marked), len(marked), tuple(why))
    if reason is None:
        return Alignment()
    return Alignment(notes=(f"the whole trace counts, not the region alone: {reason}",))


def _clip_to_trace(windows: Sequence[Window], length: int | None) -> tuple[list[Window], str | None]:
    """The windows as far as they lie in the trace, and what is to be said of those that do not."""
    end = LARGEST if length is None else length
    inside = [(max(0, a), min(end, b)) for a, b in windows if b >= 0 and a <= end]
    if inside == list(windows):
        return inside, None
    outside = sum(a < 0 or b > end for a, b in windows)
    of_all = plural(len(windows), "entry", "entries")
    other = "" if inside else ": it is of another recording, or of another clock"
    return inside, f"{outside} of {of_all} of the region lie outside of the trace, or across its ends{other}"


@dataclass(frozen=True)
class TraceRecording:
    """One run of a recording, as far as its exports tell it.

    `run` is its entry in the table of contents (None where there is none), `target` the process that was profiled,
    `alignment` the part of it that counts. `exported` are the schemas that were exported with a table, whether it has
    rows or not; `left_out` those that were to be exported and could not be, with the reason. `pids` are the processes
    of the workload that said so themselves: what was launched may be a shell, and start them.
    """

    run: TraceRun | None = None
    target: Process | None = None
    alignment: Alignment = field(default_factory=Alignment)
    exported: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)
    pids: frozenset[int] = frozenset()

    @property
    def windows(self) -> tuple[Window, ...] | None:
        """What counts, as stretches of trace time in ns; None where the whole recording does."""
        return self.alignment.windows or None

    def includes(self, time: int | None) -> bool:
        """Whether what happened at a time (ns) counts; without a time only where the whole recording does."""
        windows = self.alignment.windows
        if not windows or time is None:
            return not windows
        place = bisect_right(windows, (time, LARGEST)) - 1
        return place >= 0 and time < windows[place][1]
