"""Which part of a recording counts, on which GPU, and whose work: decided before anything is summed up.

Marked: the windows of the region, cut at their edges. Unmarked: all of the time for which the GPU's state was told, as
that is what a share of the whole recording speaks of; and in it the window of the process, from what it first asked of
the GPU to the end of its last work there. What lies around that is the start-up of a Python, and no use of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.spans import Spans, empty_spans, spans_of, union
from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.metal_buffers import Buffers, buffers_of
from profkit.profilers.xctrace.metal_read import MetalTables
from profkit.profilers.xctrace.metal_target import Target, choose_target
from profkit.profilers.xctrace.recording import Recording


@dataclass(frozen=True)
class Part:
    """`rows` are all intervals on the GPU that counts, `own` says which are the target's.

    `active` is when that GPU was (None: not told), `busy` when the target had it, both in all of the recording;
    `counted` is what counts, `window` the part of it that is the target's.
    """

    gpu: str | None
    gpus: tuple[str, ...]
    target: Target
    whose: frozenset[Process | None]
    rows: Mapping[str, Any]
    own: Any
    active: Spans | None
    counted: Spans
    window: Spans
    busy: Spans
    buffers: Buffers

    def columns(self) -> Mapping[str, Any]:
        """The target's intervals."""
        return {name: column[self.own] for name, column in self.rows.items()}


def part_that_counts(tables: MetalTables, recording: Recording) -> Part:
    """The part, of what was read."""
    work, states = tables.gpu_work.best, tables.told_states
    rows = work.table()
    processes = work.processes.all
    recorded = {*tables.encoders.best.processes.all, *tables.submissions.best.processes.all}
    target = choose_target(
        processes, _busy_by(rows, "process", len(processes)), recording.run, recorded, recording.pids
    )
    own = _isin(rows["process"], target.numbers)
    gpus = tuple(dict.fromkeys((*states.gpus, *work.gpus.all)))
    gpu = _main(
        gpus, work.gpus.all, rows, own, {name: states.active(name).spans().total for name in states.gpus}
    )
    if len(gpus) > 1 and gpu is not None:
        numbers = [n for n, name in enumerate(work.gpus.all) if name == gpu]
        there = _isin(rows["gpu"], frozenset(numbers))
        rows, own = {name: column[there] for name, column in rows.items()}, own[there]
    whose = frozenset(processes[number] for number in target.numbers) | frozenset(target.others)
    mine = {name: column[own] for name, column in rows.items()}
    buffers = buffers_of(mine, tables.submissions.best, tables.encoders.best, tables.completions.best, whose)
    active = states.active(gpu or "").spans() if gpu is not None and gpu in states.gpus else None
    known = states.told(gpu or "").spans() if active is not None else union(rows["start"], rows["end"])
    busy = union(mine["start"], mine["end"])
    if recording.windows is not None:
        counted = window = spans_of(recording.windows)
    else:
        window = _window(busy, buffers)
        counted = _whole(known | window) if known or window else _recorded(tables, recording)
    return Part(gpu, gpus, target, whose, rows, own, active, counted, window, busy, buffers)


def _whole(spans: Spans) -> Spans:
    extent = spans.extent
    return spans_of([extent]) if extent is not None else empty_spans()


def _recorded(tables: MetalTables, recording: Recording) -> Spans:
    """All of it, as long as it was: a recording of the counters alone has no table of the GPU's states or work."""
    samples = tables.counters.extent
    length = recording.run.length if recording.run is not None else None
    if length is not None:
        return spans_of([(0, length)])
    return spans_of([samples]) if samples is not None else empty_spans()


def _window(busy: Spans, buffers: Buffers) -> Spans:
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


def _main(
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
