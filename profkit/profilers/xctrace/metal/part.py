"""Which part of a recording counts, on which GPU, and whose work: decided before anything is summed up.

Marked: the windows of the region, cut at their edges. Unmarked: all of the time for which the GPU's state is known, as
that is what a share of the whole recording speaks of; and in it the window of the process, from what it first asked of
the GPU to the end of its last work there. What lies around that is the start-up of a Python, and no use of a GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.spans import Depth, Spans, depth, empty_spans, spans_of, union
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.cells import Process, is_same_process, process_label
from profkit.profilers.xctrace.metal.tables import MetalTables
from profkit.profilers.xctrace.metal.work import NO_ID, NOT_TOLD, Completions, Encoders, Submissions, look_up
from profkit.profilers.xctrace.toc import TraceRun

# They draw what others made, so they are never what was profiled unless the recording says so.
COMPOSITORS = frozenset(("WindowServer", "backboardd"))


@dataclass(frozen=True)
class GpuTarget:
    """`numbers` are those of the processes whose work counts; `name` tells them; `note`: what has to be said.

    `others` is a process that counts and had nothing on the GPU. `guessed`: nothing says that it is what was profiled.
    """

    numbers: frozenset[int] = frozenset()
    name: str | None = None
    note: str | None = None
    others: tuple[Process, ...] = ()
    guessed: bool = False


def choose_target(
    processes: Sequence[Process | None],
    busy: Mapping[int, int],
    run: TraceRun | None,
    recorded: Iterable[Process | None] = (),
    pids: Collection[int] = (),
) -> GpuTarget:
    """The target among `processes`, which used the GPU for `busy` ns each, by number.

    In this order: those of `pids` (the workload told them itself), the process that the table of contents names, the
    busiest of those whose Metal calls were `recorded`, and without a table of contents the busiest of all that are no
    compositor. A launched process that did nothing on the GPU stays the target: others' work is not the workload's.
    """
    if pids:
        own = [n for n, process in enumerate(processes) if process is not None and process.pid in pids]
        if own:
            return GpuTarget(frozenset(own), process_label(processes[max(own, key=lambda n: busy.get(n, 0))]))
    launched = None if run is None else run.target
    if launched is not None:
        own = [
            n
            for n, process in enumerate(processes)
            if process is not None and is_same_process(process, launched)
        ]
        if own:
            return GpuTarget(frozenset(own), process_label(launched))
    called = {process for process in recorded if process is not None}
    found = _busiest_target(processes, busy, called)
    if found is not None:
        note = (
            f"the recording names no process: {found.name} counts, the busiest whose Metal calls it holds"
            if launched is None
            else f"{process_label(launched)} was launched and had nothing on the GPU: {found.name} counts,"
            " whose Metal calls were recorded with it"
        )
        return GpuTarget(found.numbers, found.name, note)
    if launched is not None:
        note = f"{process_label(launched)} was launched and had nothing on the GPU"
        return GpuTarget(frozenset(), process_label(launched), note, (launched,))
    others = {p for p in processes if p is not None and p.name not in COMPOSITORS}
    found = _busiest_target(processes, busy, others or {p for p in processes if p is not None})
    if found is None:
        return GpuTarget()
    return GpuTarget(
        found.numbers,
        found.name,
        f"the recording names no process: {found.name} counts, the busiest on the GPU",
        guessed=True,
    )


def _busiest_target(
    processes: Sequence[Process | None], busy: Mapping[int, int], among: Collection[Process]
) -> GpuTarget | None:
    own = [n for n, process in enumerate(processes) if process in among]
    if not own:
        return None
    first = max(own, key=lambda n: busy.get(n, 0))
    process = processes[first]
    # A process that changed its name (exec) has several, with one pid.
    same = [n for n in own if process is not None and _same_pid(processes[n], process)]
    return GpuTarget(frozenset(same or [first]), process_label(process))


def _same_pid(one: Process | None, other: Process) -> bool:
    return one is not None and (one == other or (one.pid is not None and one.pid == other.pid))


_BEFORE = -(1 << 60)


@dataclass(frozen=True)
class CommandBuffers:
    """Columns, one place for each command buffer: first begin and last end on the GPU, the union of its time there,
    when it was committed and when it was completed."""

    begin: Any
    end: Any
    busy: Any
    commit: Any
    done: Any
    completed: Any  # whether completion is known, and not taken for the end on the GPU

    def pending(self) -> Spans | None:
        """When something was committed and not done on the GPU; None where no commit is told.

        What is done and whose completion has not come to the host yet is no work that the GPU could do.
        """
        import numpy as np

        end = np.where(self.end >= 0, self.end, self.done)
        known = (self.commit >= 0) & (end >= 0)
        return union(self.commit[known], end[known]) if known.any() else None

    def queue(self, part: Spans) -> Depth | None:
        """How many were committed and not completed; None where no commit is told."""
        known = (self.commit >= 0) & (self.done >= 0)
        return depth(self.commit[known], self.done[known], part) if known.any() else None

    def latencies(self, part: Spans) -> Any:
        """From commit to the begin on the GPU, of those committed in the part that counts."""
        known = (self.commit >= 0) & (self.begin >= self.commit) & part.holds(self.commit)
        return (self.begin - self.commit)[known]

    def completions(self, part: Spans) -> Any:
        """From commit to completion, of those committed in the part that counts."""
        known = (self.commit >= 0) & self.completed & (self.done >= self.commit) & part.holds(self.commit)
        return (self.done - self.commit)[known]

    def notices(self, part: Spans) -> Any:
        """From the end on the GPU to completion, of those that began there in the part that counts."""
        known = (self.end >= 0) & self.completed & (self.done >= self.end) & part.holds(self.begin)
        return (self.done - self.end)[known]

    def times(self, part: Spans) -> Any:
        """The GPU time of each that began there in the part that counts."""
        known = (self.begin >= 0) & part.holds(self.begin)
        return self.busy[known]


def buffers_of(
    rows: Mapping[str, Any],
    submissions: Submissions,
    encoders: Encoders,
    completions: Completions,
    whose: Collection[Process | None],
) -> CommandBuffers:
    """The command buffers of some processes: `rows` are their columns of `GpuWork`.

    Committed: as the table of submissions says; else at the begin of its GPU work less `start-latency`; else when its
    last encoder ended. Completed: as the table of completions says, else when its GPU work ended.
    """
    import numpy as np

    known = rows["buffer"] != NO_ID
    ids, start, end, latency = (rows[name][known] for name in ("buffer", "start", "end", "latency"))
    order = np.lexsort((start, ids))
    ids, start, end, latency = ids[order], start[order], end[order], latency[order]
    cuts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, dtype=np.int64)
    keys = ids[cuts]
    begin = start[cuts]
    last = np.maximum.reduceat(end, cuts) if len(cuts) else end
    estimate = np.where(latency == NOT_TOLD, _BEFORE, start - latency)
    by_latency = np.maximum.reduceat(estimate, cuts) if len(cuts) else estimate
    sent = _own_rows(submissions.commit_times(), submissions.processes.all, whose)
    made = _own_rows(encoders.commit_times(), encoders.processes.all, whose)
    more = np.setdiff1d(sent[0], keys)  # committed, and nothing seen of them on the GPU
    keys = np.r_[keys, more]
    begin, last = np.r_[begin, np.full(len(more), -1)], np.r_[last, np.full(len(more), -1)]
    by_latency = np.r_[by_latency, np.full(len(more), _BEFORE)]
    commit = look_up(keys, *sent, -1)
    commit = np.where((commit < 0) & (by_latency > _BEFORE), by_latency, commit)
    commit = np.where(commit < 0, look_up(keys, *made, -1), commit)
    done = completions.times_of(keys)
    busy = np.r_[_busy_times(start, end, cuts), np.zeros(len(more), dtype=np.int64)]
    return CommandBuffers(begin, last, busy, commit, np.where(done < 0, last, done), done >= 0)


def _own_rows(
    table: Mapping[str, Any], processes: list[Process | None], whose: Collection[Process | None]
) -> tuple[Any, Any]:
    """Ids and times of a table, those of some processes."""
    import numpy as np

    own = np.isin(table["process"], [n for n, process in enumerate(processes) if process in whose])
    return table["buffer"][own], table["at"][own]


def _busy_times(start: Any, end: Any, cuts: Any) -> Any:
    """For each group of rows, which begins at `cuts` and is in order of starts, the union of its intervals."""
    import numpy as np

    if not len(cuts):
        return np.empty(0, dtype=np.int64)
    sizes = np.diff(np.r_[cuts, len(start)])
    shift = int(end.max()) - int(start.min()) + 1
    if shift * len(cuts) >= 1 << 62:  # hours, of millions: each by itself
        parts = zip(cuts, cuts + sizes, strict=True)
        return np.array([union(start[a:b], end[a:b]).total for a, b in parts], dtype=np.int64)
    # Each group gets a stretch of time of its own, one behind the other, so that one union is that of all.
    moved = np.repeat(np.arange(len(cuts)), sizes) * shift - int(start.min())
    spans = union(start + moved, end + moved)
    return np.bincount(spans.begins // shift, spans.ends - spans.begins, len(cuts)).astype(np.int64)


@dataclass(frozen=True)
class CountedPart:
    """`rows` are all intervals on the GPU that counts, `own` says which are the target's.

    `active` is when that GPU was (None: not known), `busy` when the target had it, both in all of the recording;
    `counted` is what counts, `window` the part of it that is the target's.
    """

    gpu: str | None
    gpus: tuple[str, ...]
    target: GpuTarget
    whose: frozenset[Process | None]
    rows: Mapping[str, Any]
    own: Any
    active: Spans | None
    counted: Spans
    window: Spans
    busy: Spans
    buffers: CommandBuffers

    def columns(self) -> Mapping[str, Any]:
        """The target's intervals."""
        return {name: column[self.own] for name, column in self.rows.items()}


def part_that_counts(tables: MetalTables, recording: TraceRecording) -> CountedPart:
    """The part, of what was read."""
    work, states = tables.gpu_work.best, tables.believed_states
    rows = work.table()
    processes = work.processes.all
    recorded = {*tables.encoders.best.processes.all, *tables.submissions.best.processes.all}
    target = choose_target(
        processes, _busy_by(rows, "process", len(processes)), recording.run, recorded, recording.pids
    )
    own = _isin(rows["process"], target.numbers)
    gpus = tuple(dict.fromkeys((*states.gpus, *work.gpus.all)))
    gpu = _main_gpu(
        gpus, work.gpus.all, rows, own, {name: states.active_times(name).total for name in states.gpus}
    )
    if len(gpus) > 1 and gpu is not None:
        numbers = [n for n, name in enumerate(work.gpus.all) if name == gpu]
        there = _isin(rows["gpu"], frozenset(numbers))
        rows, own = {name: column[there] for name, column in rows.items()}, own[there]
    whose = frozenset(processes[number] for number in target.numbers) | frozenset(target.others)
    mine = {name: column[own] for name, column in rows.items()}
    buffers = buffers_of(mine, tables.submissions.best, tables.encoders.best, tables.completions.best, whose)
    active = states.active_times(gpu or "") if gpu is not None and gpu in states.gpus else None
    known = states.known_times(gpu or "") if active is not None else union(rows["start"], rows["end"])
    busy = union(mine["start"], mine["end"])
    if recording.windows is not None:
        counted = window = spans_of(recording.windows)
    else:
        window = _work_window(busy, buffers)
        counted = _extent_of(known | window) if known or window else _recorded_time(tables, recording)
    return CountedPart(gpu, gpus, target, whose, rows, own, active, counted, window, busy, buffers)


def _extent_of(spans: Spans) -> Spans:
    extent = spans.extent
    return spans_of([extent]) if extent is not None else empty_spans()


def _recorded_time(tables: MetalTables, recording: TraceRecording) -> Spans:
    """All of it, as long as it was: a recording of the counters alone has no table of the GPU's states or work."""
    samples = tables.counters.extent
    length = recording.run.length if recording.run is not None else None
    if length is not None:
        return spans_of([(0, length)])
    return spans_of([samples]) if samples is not None else empty_spans()


def _work_window(busy: Spans, buffers: CommandBuffers) -> Spans:
    """From the first commit that came to the GPU, or the first work there, to the end of the last."""
    extent = busy.extent
    if extent is None:
        return empty_spans()
    commits = buffers.commit[(buffers.commit >= 0) & (buffers.begin >= 0)]
    begin = min(extent[0], int(commits.min())) if len(commits) else extent[0]
    return spans_of([(begin, extent[1])])


def _busy_by(rows: Mapping[str, Any], column: str, size: int) -> dict[int, int]:
    """By number the time of the intervals added up: enough to tell which is the largest."""
    import numpy as np

    if not size:
        return {}
    spent = np.bincount(rows[column], rows["end"] - rows["start"], size)
    return {number: int(ns) for number, ns in enumerate(spent.tolist())}


def _main_gpu(
    gpus: tuple[str, ...], numbered: list[str], rows: Mapping[str, Any], own: Any, active: Mapping[str, int]
) -> str | None:
    """The GPU that the target used most; where it used none the one that was active longest."""
    if not gpus:
        return None
    used = _busy_by({name: rows[name][own] for name in ("gpu", "start", "end")}, "gpu", len(numbered))
    by_name = {name: used.get(number, 0) for number, name in enumerate(numbered)}
    return max(gpus, key=lambda name: (by_name.get(name, 0), active.get(name, 0)))


def _isin(column: Any, numbers: frozenset[int]) -> Any:
    import numpy as np

    return np.isin(column, sorted(numbers))
