"""From the tables of Metal System Trace and of GPU counters to what Metal did: the part that counts, summed up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from profkit.analysis.timeline.records import Spool
from profkit.analysis.timeline.spans import Spans, longest_span, slice_shares, slice_states, spans_of, union
from profkit.core.types import Gpu, GpuTrace, MetalDevice, MetalOverTime, MetalTrace, Report
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.metal.absent import NO_SET, is_useless, list_metal_absences, list_notes
from profkit.profilers.xctrace.metal.counters import COUNTER_TABLES, COUNTERS, CounterSamples, counters_in
from profkit.profilers.xctrace.metal.part import CountedPart, active_times, part_that_counts
from profkit.profilers.xctrace.metal.sums import (
    NamedWork,
    channel_sums,
    encoder_sums,
    frames_in,
    peak_memory,
    processes_in,
    shader_sums,
    state_times,
    states_in,
)
from profkit.profilers.xctrace.metal.tables import (
    COMPILER,
    ERRORS,
    GPU_INFO,
    INTERVALS,
    LAYOUTS,
    MEMORY,
    PERFORMANCE,
    STATES,
    THERMAL,
    MetalTables,
)
from profkit.profilers.xctrace.tables import ExportTable

_APPLE = re.compile(r"[MA]\d+\b")  # how Instruments calls Apple's own, without the maker
_DEFAULT = "Default"


class MetalTableReader:
    """Takes the tables of an export that speak of the GPU; the report gets what they come to."""

    schemas = (*LAYOUTS, GPU_INFO, *COUNTER_TABLES)

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables = MetalTables()
        self._spool = Spool()
        self._samples = CounterSamples(self._spool)

    def read(self, table: ExportTable) -> None:
        """One table of `schemas`."""
        if table.schema in COUNTER_TABLES:
            self._tables.rows[table.schema] = self._samples.read(table)
        else:
            self._tables.read(table)

    def finish(self, report: Report) -> Report:
        """The report with the trace, as Metal has it and as other tools have theirs, and the GPUs."""
        with self._spool:
            if not self._tables.rows and not _expects_gpu(self._recording):
                return report
            return _add_metal(report, self._tables, self._samples, self._recording)


def _expects_gpu(recording: TraceRecording) -> bool:
    """Whether the recording was one of the GPU, though no table of that was exported, or none that is read."""
    if any(schema.startswith("metal-") for schema in recording.exported):
        return True
    return recording.run is not None and (recording.run.has(INTERVALS) or recording.run.has(COUNTERS))


def _add_metal(
    report: Report, tables: MetalTables, samples: CounterSamples, recording: TraceRecording
) -> Report:
    part = part_that_counts(tables, recording, samples.extent)
    encoders, copying = encoder_sums(tables, part)
    metal = _metal_trace(tables, samples, recording, part, encoders)
    names = dict.fromkeys((*(name for name in part.gpus if name), *tables.infos))
    gpus = tuple(Gpu(_full_name(name, tables), index) for index, name in enumerate(names))
    notes = list_notes(tables, samples.skipped, part, metal)
    return replace(
        report,
        metal=metal,
        trace=_gpu_trace(tables, part, metal, encoders, copying) if encoders else report.trace,
        gpus=gpus or report.gpus,
        warnings=(*report.warnings, *notes),
    )


def _full_name(name: str, tables: MetalTables) -> str:
    """`Apple M1` of `M1`: as the machine itself calls it."""
    vendor, _ = tables.infos.get(name, ("", None))
    vendor = vendor or ("Apple" if _APPLE.match(name) else "")
    return name if not vendor or name.lower().startswith(vendor.lower()) else f"{vendor} {name}"


def _metal_trace(
    tables: MetalTables,
    samples: CounterSamples,
    recording: TraceRecording,
    part: CountedPart,
    encoders: tuple[NamedWork, ...],
) -> MetalTrace:
    counted, window, busy, buffers = part.counted, part.window, part.busy, part.buffers
    has_work, marked, run = tables.rows.get(INTERVALS, 0) > 0, recording.windows is not None, recording.run
    active = part.active
    if active is None and has_work:
        active = union(part.work["start"], part.work["end"])
    knows_process = has_work and part.target.name is not None
    working = busy if len(busy) else None
    pending, idle = buffers.pending(), window - busy
    by_others = None if active is None else active - busy
    queue = buffers.queue(window)
    counters = counters_in(samples, counted, working, part.gpu)
    shaders = shader_sums(tables, part)
    clocks = state_times(tables[PERFORMANCE], part.gpu)
    chosen = run.setting("Counter Set") if run is not None else None
    induced = run.setting("Induced GPU Performance State") if run is not None else None
    recommended = [most for name, (_, most) in tables.infos.items() if part.gpu in (name, None, "")]
    return MetalTrace(
        span=_to_seconds(counted) or None,
        device_busy=None if active is None else _to_seconds(active & counted),
        process_busy=_to_seconds(busy & counted) if knows_process else None,
        others=_to_seconds(by_others & counted) if knows_process and by_others is not None else None,
        longest_gap=longest_span(idle) / 1e9 if window.total else None,
        processes=processes_in(tables, part),
        channels=tuple(named.work("channel") for named in channel_sums(tables, part)),
        encoders=tuple(named.work("encoder") for named in encoders),
        shaders=tuple(named.work("shader") for named in shaders),
        command_buffers=buffers.times(counted),
        completion=buffers.completion(counted),
        latency=buffers.latency(counted),
        notice=buffers.notice(counted),
        queue_depth=None if queue is None else queue.mean,
        queue_most=None if queue is None else queue.most,
        frames=frames_in(tables, part),
        performance=states_in(clocks, counted, working),
        thermal=states_in(state_times(tables[THERMAL], "Current"), counted, None),
        induced=None if induced == _DEFAULT else induced,
        counters=() if is_useless(counters) else counters,
        memory_peak=peak_memory(tables[MEMORY], part.target.processes, counted if marked else None),
        absent=list_metal_absences(
            recording, tables.rows, counters, shaders=bool(shaders), commits=pending is not None
        ),
        marked=marked,
        entries=recording.alignment.entries,
        window=_to_seconds(window) or None,
        unsubmitted=None if pending is None else _to_seconds(idle - pending),
        blocked=None if pending is None or by_others is None else _to_seconds(idle & pending & by_others),
        memory_recommended=recommended[0] if len(recommended) == 1 else None,
        over_time=_over_time(part, active, clocks),
        device=_full_name(part.gpu, tables) if part.gpu else None,
        devices=tuple(_list_devices(tables, part)) if len(part.gpus) > 1 else (),
        window_busy=None if active is None or not window.total else _to_seconds(active & window),
        failed=int(counted.holds(tables[ERRORS]["start"]).sum()) if ERRORS in tables.rows else None,
        compiled=_to_seconds(_compiling_times(tables, part) & counted) if COMPILER in tables.rows else None,
        counter_set=None if chosen in NO_SET else chosen,
        guessed=part.target.note if part.target.guessed else None,
        lost=recording.alignment.loss,
    )


def _list_devices(tables: MetalTables, part: CountedPart) -> Iterator[MetalDevice]:
    """Each GPU in the part that counts: when it was active, and when it worked for the target."""
    table = tables[INTERVALS]
    own = table.where("process", part.target.processes)
    for name in part.gpus:
        work = table.times(own & table.where("gpu", (name,))) & part.counted
        active = active_times(tables, name) & part.counted
        known = name in tables[STATES].names["gpu"].all
        yield MetalDevice(_full_name(name, tables), _to_seconds(active) if known else None, _to_seconds(work))


def _gpu_trace(
    tables: MetalTables,
    part: CountedPart,
    metal: MetalTrace,
    encoders: tuple[NamedWork, ...],
    copying: float | None,
) -> GpuTrace:
    """The same in the words of other tools: an encoder is a kernel, the window of the process the span."""
    busy, idle = part.busy & part.window, part.window.total - (part.busy & part.window).total
    begin = int(part.window.begins[0]) if len(part.window) else 0
    before = spans_of([(min(0, begin), begin)])
    return GpuTrace(
        "xctrace",
        tuple(named.kernel() for named in encoders),
        span=_to_seconds(part.window),
        busy=_to_seconds(busy),
        launches=sum(len(named.each) for named in encoders),
        launch_latency=metal.latency.median if metal.latency is not None else None,
        starved=metal.unsubmitted * 1e9 / idle if metal.unsubmitted is not None and idle else None,
        largest_gap=metal.longest_gap,
        copying=copying,
        marked=metal.marked,
        setup_seconds=_to_seconds(part.busy & before) if metal.marked else None,
        compile_seconds=_to_seconds(_compiling_times(tables, part) & before)
        if COMPILER in tables.rows
        else None,
    )


def _compiling_times(tables: MetalTables, part: CountedPart) -> Spans:
    """When Metal's compiler worked for the target."""
    table = tables[COMPILER]
    return table.times(table.where("process", part.target.processes))


def _over_time(part: CountedPart, active: Spans | None, clocks: Mapping[str, Spans]) -> MetalOverTime | None:
    extent = (part.window if len(part.window) else part.counted).extent
    if extent is None or active is None:
        return None
    return MetalOverTime(
        (extent[1] - extent[0]) / 1e9,
        slice_shares(active, *extent),
        slice_shares(part.busy, *extent) if len(part.busy) else (),
        slice_states(clocks, *extent),
    )


def _to_seconds(spans: Spans) -> float:
    return spans.total / 1e9
