"""From the tables of Metal System Trace and of GPU counters to what Metal did: the part that counts, summed up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from profkit.analysis.timeline.records import Spool
from profkit.analysis.timeline.spans import Spans, longest_span, slice_shares, slice_states, spans_of, union
from profkit.analysis.timeline.windows import EVER
from profkit.core.types import Gpu, GpuTrace, MetalDevice, MetalOverTime, MetalTrace, Report
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.metal import sums as sums
from profkit.profilers.xctrace.metal.absent import (
    NO_SET,
    TablesRead,
    is_useless,
    list_metal_absences,
    notes_of,
    timeless_of,
)
from profkit.profilers.xctrace.metal.counters import COUNTERS, counters_in
from profkit.profilers.xctrace.metal.part import CountedPart, part_that_counts
from profkit.profilers.xctrace.metal.sums import BLIT, encoder_names, frames_in
from profkit.profilers.xctrace.metal.tables import COMPILER, GpuInfos, MetalTables, states_in
from profkit.profilers.xctrace.metal.work import ERRORS, FRAMES, INTERVALS
from profkit.profilers.xctrace.tables import ExportTable

if TYPE_CHECKING:
    from profkit.profilers.xctrace.metal.part import CountedPart


_APPLE = re.compile(r"[MA]\d+\b")  # how Instruments calls Apple's own, without the maker


def full_name(name: str, vendor: str = "") -> str:
    """`Apple M1` of `M1`: as the machine itself calls it."""
    vendor = vendor or ("Apple" if _APPLE.match(name) else "")
    return name if not vendor or name.lower().startswith(vendor.lower()) else f"{vendor} {name}"


def gpus_of(infos: GpuInfos, names: Sequence[str]) -> Iterator[Gpu]:
    """All GPUs by name."""
    for index, name in enumerate(dict.fromkeys((*(name for name in names if name), *infos.found))):
        yield Gpu(full_name(name, infos.found.get(name, ("", None))[0]), index)


def recommended_memory(infos: GpuInfos, gpu: str | None) -> int | None:
    """Bytes that Metal recommends to use on a GPU at most; of the only one, where its name is not known."""
    if gpu in infos.found:
        return infos.found[gpu][1]
    return next(iter(infos.found.values()))[1] if len(infos.found) == 1 and not gpu else None


def devices_in(tables: MetalTables, part: CountedPart) -> Iterator[MetalDevice]:
    """Each GPU in the part that counts: when it was active, and when it worked for the target."""
    import numpy as np

    work, states = tables.gpu_work.best, tables.believed_states
    rows = work.table()
    own = np.isin(rows["process"], sorted(part.target.numbers))
    for name in part.gpus:
        there = np.isin(rows["gpu"], [n for n, other in enumerate(work.gpus.all) if other == name])
        mine = union(rows["start"][there & own], rows["end"][there & own]) & part.counted
        active = states.active_times(name) & part.counted if name in states.gpus else None
        yield MetalDevice(full_name(name), None if active is None else active.total / 1e9, mine.total / 1e9)


_DEFAULT = "Default"


@dataclass(frozen=True)
class MetalParts:
    """What a report gets of the tables. `trace` None: nothing of a process was seen on a GPU."""

    metal: MetalTrace
    trace: GpuTrace | None
    gpus: tuple[Gpu, ...]
    warnings: tuple[str, ...]


def summarize_tables(tables: MetalTables, recording: TraceRecording) -> MetalParts:
    """All of it."""
    part = part_that_counts(tables, recording)
    own = part.columns()
    names, which = encoder_names(tables.gpu_work.best, own, tables.encoders.best)
    encoders = sums.by_name(names, which, own["start"], own["end"], part.counted, own["encoder"])
    metal = _metal_trace(tables, recording, part, encoders)
    trace = (
        _gpu_trace(tables, recording, part, metal, encoders, _copy_time(part, names, which))
        if encoders
        else None
    )
    return MetalParts(
        metal,
        trace,
        tuple(gpus_of(tables.infos.best, part.gpus)),
        tuple(notes_of(tables, recording, part, metal)),
    )


def _metal_trace(
    tables: MetalTables, recording: TraceRecording, part: CountedPart, encoders: tuple[sums.NamedWork, ...]
) -> MetalTrace:
    counted, window, busy, rows, own = part.counted, part.window, part.busy, part.rows, part.columns()
    told = tables.rows.get(INTERVALS, 0) > 0 and tables.gpu_work.best.tells_time
    seen = part.active if part.active is not None else union(rows["start"], rows["end"]) if told else None
    known = told and bool(part.target.numbers or part.target.name)
    working = busy if len(busy) else None
    pending = part.buffers.pending()
    idle = window - busy
    others = None if seen is None else seen - busy
    queue = part.buffers.queue(window)
    counters = counters_in(tables.counters, counted, working, part.gpu)
    shaders = tables.shaders.within(counted, part.whose)
    run, channels = recording.run, tables.gpu_work.best.channels.all
    channel = sums.by_name(channels, own["channel"], own["start"], own["end"], counted)
    clocks = _choose_track(tables.performance.best.tracks, part.gpu)
    performance = tables.performance.best.spans(clocks)
    absent = TablesRead(
        run, tables.rows, recording.left_out, timeless_of(tables, recording), recording.broken
    )
    chosen = run.setting("Counter Set") if run is not None else None
    induced = run.setting("Induced GPU Performance State") if run is not None else None
    processes = tables.gpu_work.best.processes.all
    return MetalTrace(
        span=_to_seconds(counted.total) or None,
        device_busy=None if seen is None else _to_seconds((seen & counted).total),
        process_busy=_to_seconds((busy & counted).total) if known else None,
        others=_to_seconds((others & counted).total) if known and others is not None else None,
        longest_gap=_to_seconds(longest_span(idle)) if window.total else None,
        processes=sums.processes_in(
            processes, rows["process"], rows["start"], rows["end"], counted, part.target.numbers
        ),
        channels=tuple(one.work("channel") for one in channel),
        encoders=tuple(one.work("encoder") for one in encoders),
        shaders=tuple(one.work("shader") for one in shaders),
        command_buffers=sums.time_spread(part.buffers.times(counted)),
        completion=sums.time_spread(part.buffers.completions(counted)),
        latency=sums.time_spread(part.buffers.latencies(counted)),
        notice=sums.time_spread(part.buffers.notices(counted)),
        queue_depth=None if queue is None else queue.mean,
        queue_most=None if queue is None else queue.most,
        frames=frames_in(
            own, channels, tables.presents.best if FRAMES in tables.rows else None, part.whose, counted
        ),
        performance=states_in(performance, counted, working),
        thermal=states_in(
            tables.thermal.best.spans(_choose_track(tables.thermal.best.tracks, "Current")), counted, None
        ),
        induced=None if induced == _DEFAULT else induced,
        counters=() if is_useless(counters) else counters,
        memory_peak=tables.memory.best.peak(
            part.whose, counted if recording.windows is not None else spans_of([EVER])
        ),
        absent=list_metal_absences(absent, counters, shaders=bool(shaders), commits=pending is not None),
        marked=recording.windows is not None,
        entries=recording.alignment.entries,
        window=_to_seconds(window.total) or None,
        unsubmitted=None if pending is None else _to_seconds((idle - pending).total),
        blocked=None if pending is None or others is None else _to_seconds((idle & pending & others).total),
        memory_recommended=recommended_memory(tables.infos.best, part.gpu),
        over_time=_over_time(part, seen, performance),
        device=full_name(part.gpu) if part.gpu else None,
        devices=tuple(devices_in(tables, part)) if len(part.gpus) > 1 else (),
        window_busy=None if seen is None or not window.total else _to_seconds((seen & window).total),
        failed=_count_failed_buffers(tables, counted) if ERRORS in tables.rows else None,
        compiled=_to_seconds((tables.compiling.best.times(part.whose) & counted).total)
        if COMPILER in tables.rows
        else None,
        counter_set=None if chosen in NO_SET else chosen,
        guessed=part.target.note if part.target.guessed else None,
        lost=recording.alignment.loss,
    )


def _gpu_trace(
    tables: MetalTables,
    recording: TraceRecording,
    part: CountedPart,
    metal: MetalTrace,
    encoders: tuple[sums.NamedWork, ...],
    copying: float | None,
) -> GpuTrace:
    """The same in the words of other tools: an encoder is a kernel, the window of the process the span."""
    busy = (part.busy & part.window).total
    idle = part.window.total - busy
    begin = int(part.window.begins[0]) if len(part.window) else 0
    before = spans_of([(min(0, begin), begin)])
    return GpuTrace(
        "xctrace",
        tuple(one.kernel() for one in encoders),
        span=_to_seconds(part.window.total),
        busy=_to_seconds(busy),
        launches=sum(len(one.each) for one in encoders),
        launch_latency=metal.latency.median if metal.latency is not None else None,
        starved=metal.unsubmitted * 1e9 / idle if metal.unsubmitted is not None and idle else None,
        largest_gap=metal.longest_gap,
        copying=copying,
        marked=recording.windows is not None,
        setup_seconds=_to_seconds((part.busy & before).total) if recording.windows is not None else None,
        compile_seconds=_to_seconds((tables.compiling.best.times(part.whose) & before).total)
        if COMPILER in tables.rows
        else None,
    )


def _copy_time(part: CountedPart, names: Sequence[str], which: Any) -> float | None:
    """The time of the window in which nothing but copies ran, in s; None where none is called a copy."""
    import numpy as np

    own = part.columns()
    copies = np.isin(which, [number for number, name in enumerate(names) if BLIT in name.split()])
    if not copies.any():
        return None
    rest = union(own["start"][~copies], own["end"][~copies])
    return _to_seconds(((part.busy - rest) & part.window).total)


def _choose_track(tracks: frozenset[str], wanted: str | None) -> str | None:
    """The track to read where there are several: the one that is wanted, if it is there; None for all."""
    return wanted if len(tracks) > 1 and wanted in tracks else None


def _over_time(
    part: CountedPart, seen: Spans | None, performance: Mapping[str, Spans]
) -> MetalOverTime | None:
    extent = (part.window if len(part.window) else part.counted).extent
    if extent is None or seen is None:
        return None
    return MetalOverTime(
        _to_seconds(extent[1] - extent[0]),
        slice_shares(seen, *extent),
        slice_shares(part.busy, *extent) if len(part.busy) else (),
        slice_states(performance, *extent),
    )


def _count_failed_buffers(tables: MetalTables, counted: Spans) -> int:
    import numpy as np

    return int(counted.holds(np.array([at for at, _, _ in tables.errors.best.failed], dtype=np.int64)).sum())


def _to_seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9


_OF_METAL = "metal-"


class MetalTableReader:
    """Takes the tables of an export that speak of the GPU; the report gets what they come to."""

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables = MetalTables(Spool(), recording.latest)
        self.schemas = tuple(self._tables.takers())
        self._read = False

    def read(self, table: ExportTable) -> None:
        """One table of `schemas`."""
        self._read = True
        self._tables.read(table)

    def finish(self, report: Report) -> Report:
        """The report with the trace, as Metal has it and as other tools have theirs, and the GPUs."""
        with self._tables.spool:
            if not self._read and not _expects_gpu(self._recording):
                return report
            parts = summarize_tables(self._tables, self._recording)
        return replace(
            report,
            metal=parts.metal,
            trace=parts.trace or report.trace,
            gpus=parts.gpus or report.gpus,
            warnings=(*report.warnings, *parts.warnings),
        )


def _expects_gpu(recording: TraceRecording) -> bool:
    """Whether the recording was one of the GPU, though no table of that was exported, or none that is read."""
    if any(schema.startswith(_OF_METAL) for schema in recording.exported):
        return True
    return recording.run is not None and (recording.run.has(INTERVALS) or recording.run.has(COUNTERS))
