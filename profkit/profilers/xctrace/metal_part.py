"""Which part of a recording counts, and whose work: decided before anything is summed up.

Marked: the windows of the region, cut at their edges. Unmarked: all of the time for which the GPU's state is known, as
that is what a share of the whole recording speaks of; and in it the window of the process, from what it first asked of
the GPU to the end of its last work there. What lies around that is the start-up of a Python, and no use of a GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.spans import Depth, Spans, depth, empty_spans, spans_of, union
from profkit.core.types import Spread
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.metal_tables import (
    ACTIVE,
    COMPLETED,
    ENCODERS,
    INTERVALS,
    NO_ID,
    STATES,
    UNKNOWN_LATENCY,
    MetalTables,
)
from profkit.profilers.xctrace.toc import Process, is_same_process, process_label

# They draw what others made, so they are never what was profiled unless the recording says so.
COMPOSITORS = frozenset(("WindowServer", "backboardd"))
UNKNOWN = -1  # a time
_MIDDLE, _NEARLY_ALL = 50, 95


@dataclass(frozen=True)
class GpuTarget:
    """The processes whose work counts; `name` tells them; `note`: what has to be said.

    `guessed`: nothing says that it is what was profiled.
    """

    processes: frozenset[Process | None] = frozenset()
    name: str | None = None
    note: str | None = None
    guessed: bool = False


def choose_target(
    busy: Mapping[Process | None, int], recorded: Collection[Process | None], recording: TraceRecording
) -> GpuTarget:
    """The target among processes, which used the GPU for `busy` ns each.

    In this order: those that said so themselves, the process that the table of contents names, the busiest of those
    whose Metal calls were `recorded`, and without a table of contents the busiest of all that are no compositor. A
    launched process that did nothing on the GPU stays the target: others' work is not the workload's.
    """
    launched = recording.run.target if recording.run is not None else None
    named = sorted((process for process in busy if process is not None), key=lambda process: -busy[process])
    own = [process for process in named if process.pid in recording.pids]
    if not own and launched is not None:
        own = [process for process in named if is_same_process(process, launched)]
    if own:
        return GpuTarget(frozenset(own), process_label(own[0]))
    called = [process for process in named if process in recorded]
    idle = f"{process_label(launched)} was launched and had nothing on the GPU"
    if launched is not None and not called:
        return GpuTarget(frozenset((launched,)), process_label(launched), idle)
    candidates = called or [process for process in named if process.name not in COMPOSITORS] or named
    if not candidates:
        return GpuTarget()
    name = process_label(candidates[0])
    how = ", whose Metal calls were recorded with it" if called else ", the busiest on the GPU"
    why = "the recording names no process" if launched is None else idle
    return GpuTarget(frozenset(candidates[:1]), name, f"{why}: {name} counts{how}", guessed=not called)


def time_spread(values: Any) -> Spread | None:
    """Many times in ns, as seconds; None of none."""
    import numpy as np

    if not len(values):
        return None
    median, p95 = np.percentile(values, (_MIDDLE, _NEARLY_ALL))
    return Spread(len(values), float(median) / 1e9, float(p95) / 1e9, int(values.max()) / 1e9)


@dataclass(frozen=True)
class CommandBuffers:
    """Columns in ns, one place for each command buffer; -1 where a time is not known.

    First begin and last end on the GPU, the union of its time there, when it was committed and when it was completed.
    """

    begin: Any
    end: Any
    busy: Any
    commit: Any
    completed: Any

    @property
    def _done(self) -> Any:
        import numpy as np

        return np.where(self.completed < 0, self.end, self.completed)

    def pending(self) -> Spans | None:
        """When something was committed and not done on the GPU; None where no commit is told.

        What is done and whose completion has not come to the host yet is no work that the GPU could do.
        """
        import numpy as np

        end = np.where(self.end >= 0, self.end, self.completed)
        known = (self.commit >= 0) & (end >= 0)
        return union(self.commit[known], end[known]) if known.any() else None

    def queue(self, part: Spans) -> Depth | None:
        """How many were committed and not completed; None where no commit is told."""
        known = (self.commit >= 0) & (self._done >= 0)
        return depth(self.commit[known], self._done[known], part) if known.any() else None

    def latency(self, part: Spans) -> Spread | None:
        """From commit to the begin on the GPU, of those committed in the part that counts."""
        return _spread_between(self.commit, self.begin, part.holds(self.commit))

    def completion(self, part: Spans) -> Spread | None:
        """From commit to completion, of those committed in the part that counts."""
        return _spread_between(self.commit, self.completed, part.holds(self.commit))

    def times(self, part: Spans) -> Spread | None:
        """The GPU time of each that began there in the part that counts."""
        return time_spread(self.busy[(self.begin >= 0) & part.holds(self.begin)])


def _spread_between(first: Any, second: Any, chosen: Any) -> Spread | None:
    known = chosen & (first >= 0) & (second >= first)
    return time_spread((second - first)[known])


def buffers_of(work: Mapping[str, Any], tables: MetalTables) -> CommandBuffers:
    """The command buffers of some work on the GPU: committed at the begin of the first of it less `start-latency`."""
    import numpy as np

    known = work["buffer"] != NO_ID
    ids, start, end, latency = (work[name][known] for name in ("buffer", "start", "end", "latency"))
    order = np.lexsort((start, ids))
    ids, start, end, latency = ids[order], start[order], end[order], latency[order]
    cuts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]][: len(ids)])
    keys, begin = ids[cuts], start[cuts]
    last = np.maximum.reduceat(end, cuts) if len(cuts) else end
    commit = np.where(latency == UNKNOWN_LATENCY, UNKNOWN, start - latency)
    commit = np.maximum.reduceat(commit, cuts) if len(cuts) else commit
    completed = look_up(keys, tables[COMPLETED]["buffer"], tables[COMPLETED]["start"])
    return CommandBuffers(begin, last, _busy_times(start, end, cuts), commit, completed)


def _busy_times(start: Any, end: Any, cuts: Any) -> Any:
    """For each group of rows, which begins at `cuts` and is in order of starts, the union of its intervals."""
    import numpy as np

    if not len(cuts):
        return np.empty(0, dtype=np.int64)
    sizes = np.diff(np.r_[cuts, len(start)])
    shift = int(end.max()) - int(start.min()) + 1
    # Each group gets a stretch of time of its own, one behind the other, so that one union is that of all.
    moved = np.repeat(np.arange(len(cuts)), sizes) * shift - int(start.min())
    spans = union(start + moved, end + moved)
    return np.bincount(spans.begins // shift, spans.ends - spans.begins, len(cuts)).astype(np.int64)


def look_up(keys: Any, known: Any, values: Any) -> Any:
    """For each of `keys` the first of `values` whose key is known by it; -1 where there is none."""
    import numpy as np

    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    return np.where(known[order[at]] == keys, values[order[at]].astype(np.int64), -1)


@dataclass(frozen=True)
class CountedPart:
    """`work` are the columns of all intervals on the GPU, `own` says which are the target's.

    `active` is when that GPU was (None: not known), `busy` when the target had it, both in all of the recording;
    `counted` is what counts, `window` the part of it that is the target's.
    """

    gpu: str | None
    target: GpuTarget
    work: Mapping[str, Any]
    own: Any
    active: Spans | None
    counted: Spans
    window: Spans
    busy: Spans
    buffers: CommandBuffers

    @property
    def own_work(self) -> Mapping[str, Any]:
        """The columns of the target's intervals."""
        return {name: column[self.own] for name, column in self.work.items()}


def part_that_counts(
    tables: MetalTables, recording: TraceRecording, sampled: tuple[int, int] | None
) -> CountedPart:
    """The part, of what was read; `sampled` is from the first to the last sample of the counters."""
    table, states = tables[INTERVALS], tables[STATES]
    work = table.arrays()
    recorded = tables[ENCODERS].names["process"].all
    target = choose_target(_busy_by_process(work, table.names["process"].all), recorded, recording)
    own = table.where("process", target.processes)
    own_work = {name: column[own] for name, column in work.items()}
    buffers = buffers_of(own_work, tables)
    active = states.times(states.where("state", (ACTIVE,))) if len(states) else None
    busy = union(own_work["start"], own_work["end"])
    if recording.windows is not None:
        counted = window = spans_of(recording.windows)
    else:
        window = _work_window(busy, buffers)
        known = union(work["start"], work["end"]) if active is None else states.times(slice(None))
        extent = (known | window).extent
        if extent is None:  # of a recording of the counters alone
            length = recording.run.length if recording.run is not None else None
            extent = sampled if length is None else (0, length)
        counted = empty_spans() if extent is None else spans_of([extent])
    gpu = next(filter(None, (*states.names["gpu"].all, *table.names["gpu"].all)), None)
    return CountedPart(gpu, target, work, own, active, counted, window, busy, buffers)


def _work_window(busy: Spans, buffers: CommandBuffers) -> Spans:
    """From the first commit that came to the GPU, or the first work there, to the end of the last."""
    extent = busy.extent
    if extent is None:
        return empty_spans()
    commits = buffers.commit[(buffers.commit >= 0) & (buffers.begin >= 0)]
    begin = min(extent[0], int(commits.min())) if len(commits) else extent[0]
    return spans_of([(begin, extent[1])])


def _busy_by_process(work: Mapping[str, Any], names: Sequence[Process | None]) -> dict[Process | None, int]:
    """The time of the intervals added up: enough to tell which is the largest."""
    import numpy as np

    spent = np.bincount(work["process"], work["end"] - work["start"], len(names))
    return {name: int(ns) for name, ns in zip(names, spent.tolist(), strict=True)}
