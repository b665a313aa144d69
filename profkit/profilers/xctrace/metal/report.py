"""From the tables of Metal System Trace and of GPU counters to what Metal did: the part that counts, summed up.

What a recording does not give is listed with the reason and the way to get it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from profkit.analysis.timeline.spans import Spans, longest_span, slice_shares, slice_states, spans_of, union
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Gpu, GpuTrace, MetalAbsent, MetalCounter, MetalOverTime, MetalTrace, Report
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.command import GPU_COUNTERS, METAL, export_line
from profkit.profilers.xctrace.metal.counters import COUNTERS, CounterSamples
from profkit.profilers.xctrace.metal.part import CountedPart, part_that_counts
from profkit.profilers.xctrace.metal.sums import (
    NamedWork,
    channel_sums,
    encoder_sums,
    processes_in,
    shader_sums,
    state_times,
    states_in,
)
from profkit.profilers.xctrace.metal.tables import (
    COMPLETED,
    ENCODERS,
    INTERVALS,
    LAYOUTS,
    PERFORMANCE,
    SHADERS,
    STATES,
    THERMAL,
    MetalTables,
)
from profkit.profilers.xctrace.tables import ExportTable

_APPLE = re.compile(r"[MA]\d+\b")  # how Instruments calls Apple's own, without the maker
_DEFAULT = "Default"
# The one counter that a recording without a counter set has on an M3 and later; nothing but ray tracing moves it.
USELESS = "RT Unit Active"
NO_SET = ("(null)", "", "None")
_TEMPLATE = f"xctrace record --template '{METAL}' ..."
# By themselves: beside the instruments of a template they often give no rows.
_WITH_COUNTERS = (
    f"record the counters by themselves: xctrace record --instrument '{GPU_COUNTERS}' --launch -- COMMAND"
)
_BY_HAND = (
    "choose a counter set in Instruments (Metal Application, GPU), and save that as a template to record with"
)
_WITH_TIMELINE = (
    "an Apple GPU of M3 or later, recorded with a template in which Metal Application has Shader Timeline switched on"
    " (in Instruments: Metal System Trace, its recording options, File > Save as Template; xctrace record --template)"
)
_LAUNCH = "launch the program with xctrace; attached to, some versions record nothing of it"
_FIXES = {
    STATES: _TEMPLATE,
    INTERVALS: _LAUNCH,
    ENCODERS: _LAUNCH,
    COMPLETED: _LAUNCH,
    PERFORMANCE: _TEMPLATE,
    THERMAL: _TEMPLATE,
}
# Of the process' time on the GPU; in recordings of an M1 both tables agree to 1 in 100 at worst.
_UNTOLD = 0.01


class MetalTableReader:
    """Takes the tables of an export that speak of the GPU; the report gets what they come to."""

    schemas = (*LAYOUTS, COUNTERS)

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables = MetalTables()
        self._samples = CounterSamples()

    def read(self, table: ExportTable) -> None:
        """One table of `schemas`."""
        if table.schema == COUNTERS:
            rows = self._samples.read(table)
            self._tables.rows[COUNTERS] = max(rows, self._tables.rows.get(COUNTERS, 0))
        else:
            self._tables.read(table)

    def finish(self, report: Report) -> Report:
        """The report with the trace, as Metal has it and as other tools have theirs, and the GPUs."""
        tables, recording = self._tables, self._recording
        if not tables.rows and not _expects_gpu(recording):
            return report
        part = part_that_counts(tables, recording, self._samples.extent)
        encoders, copying = encoder_sums(tables, part)
        metal = _metal_trace(tables, self._samples, recording, part, encoders)
        gpus = tuple(Gpu(_full_name(name), index) for index, name in enumerate(filter(None, part.gpus)))
        notes = _list_notes(tables, self._samples.skipped, part, metal)
        return replace(
            report,
            metal=metal,
            trace=_gpu_trace(part, metal, encoders, copying) if encoders else report.trace,
            gpus=gpus or report.gpus,
            warnings=(*report.warnings, *notes),
        )


def _expects_gpu(recording: TraceRecording) -> bool:
    """Whether the recording was one of the GPU, though no table of that was exported, or none that is read."""
    if any(schema.startswith("metal-") for schema in recording.exported):
        return True
    return recording.run is not None and (recording.run.has(INTERVALS) or recording.run.has(COUNTERS))


def _full_name(name: str) -> str:
    """`Apple M1` of `M1`: as the machine itself calls it."""
    return f"Apple {name}" if _APPLE.match(name) else name


def _metal_trace(
    tables: MetalTables,
    samples: CounterSamples,
    recording: TraceRecording,
    part: CountedPart,
    encoders: tuple[NamedWork, ...],
) -> MetalTrace:
    counted, window, busy, buffers = part.counted, part.window, part.busy, part.buffers
    has_work, run = tables.rows.get(INTERVALS, 0) > 0, recording.run
    active = part.active
    if active is None and has_work:
        active = union(part.work["start"], part.work["end"])
    knows_process = has_work and part.target.name is not None
    working = busy if len(busy) else None
    pending, idle = buffers.pending(), window - busy
    by_others = None if active is None else active - busy
    queue = buffers.queue(window)
    counters = samples.counters(counted, working)
    shaders = shader_sums(tables, part)
    clocks = state_times(tables[PERFORMANCE], part.gpu)
    chosen = run.setting("Counter Set") if run is not None else None
    induced = run.setting("Induced GPU Performance State") if run is not None else None
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
        performance=states_in(clocks, counted, working),
        thermal=states_in(state_times(tables[THERMAL], "Current"), counted, None),
        induced=None if induced == _DEFAULT else induced,
        counters=() if _is_useless(counters) else counters,
        absent=tuple(_list_absences(recording, tables.rows, counters, shaders=bool(shaders))),
        marked=recording.windows is not None,
        entries=recording.alignment.entries,
        window=_to_seconds(window) or None,
        unsubmitted=None if pending is None else _to_seconds(idle - pending),
        blocked=None if pending is None or by_others is None else _to_seconds(idle & pending & by_others),
        over_time=_over_time(part, active, clocks),
        device=_full_name(part.gpu) if part.gpu else None,
        window_busy=None if active is None or not window.total else _to_seconds(active & window),
        counter_set=None if chosen in NO_SET else chosen,
        guessed=part.target.note if part.target.guessed else None,
        lost=recording.alignment.loss,
    )


def _gpu_trace(
    part: CountedPart, metal: MetalTrace, encoders: tuple[NamedWork, ...], copying: float | None
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
    )


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


def _is_useless(counters: tuple[MetalCounter, ...]) -> bool:
    """Whether there is nothing among them but the counter that always is there, and 0."""
    return bool(counters) and all(counter.name == USELESS and counter.most == 0 for counter in counters)


def _list_absences(
    recording: TraceRecording, rows: Mapping[str, int], counters: tuple[MetalCounter, ...], *, shaders: bool
) -> Iterator[MetalAbsent]:
    """What is not there. `rows` by schema (0: a table without rows; not there: no table); `shaders`: some were told."""
    for schema, fix in _FIXES.items():
        if not rows.get(schema):
            yield _explain_absence(recording, rows, schema, fix)
    if not shaders:
        absent = _explain_absence(recording, rows, SHADERS, _WITH_TIMELINE)
        if recording.run is not None and recording.run.setting("Shader Timeline") == "Disabled":
            why = "it was recorded with Shader Timeline: Disabled, so no shader was timed"
            absent = MetalAbsent(SHADERS, why, _WITH_TIMELINE)
        yield absent
    if not counters or _is_useless(counters):
        yield _explain_counters(recording, rows, counters)


def _explain_absence(
    recording: TraceRecording, rows: Mapping[str, int], schema: str, fix: str
) -> MetalAbsent:
    run = recording.run
    again = export_line(schema, None if run is None else run.number)
    if schema in recording.left_out:
        return MetalAbsent(schema, f"the table could not be exported: {recording.left_out[schema]}", again)
    if schema in recording.broken and schema not in rows:
        return MetalAbsent(schema, f"the table is damaged: {recording.broken[schema]}", again)
    if rows.get(schema):
        return MetalAbsent(schema, "none of its rows lies in the part that counts")
    if schema in rows:
        return MetalAbsent(schema, "the table has no rows", fix, "no-rows")
    if run is None or run.has(schema):
        return MetalAbsent(schema, "the table was not exported", again)
    template = run.summary.get("template-name")
    with_what = f" (template {template})" if template else ""
    return MetalAbsent(schema, f"the recording has no such table{with_what}", _TEMPLATE)


def _explain_counters(
    recording: TraceRecording, rows: Mapping[str, int], counters: tuple[MetalCounter, ...]
) -> MetalAbsent:
    chosen = recording.run.setting("Counter Set") if recording.run is not None else None
    if counters:
        with_what = f" (Counter Set: {chosen})" if chosen is not None else ""
        reason = f"its only counter is {USELESS}, 0 throughout: no counter set was recorded{with_what}"
        return MetalAbsent(COUNTERS, reason, _BY_HAND)
    if chosen is not None and chosen in NO_SET:
        reason = f"it was recorded with Counter Set: {chosen}"
        return MetalAbsent(COUNTERS, reason, f"{_WITH_COUNTERS}; or {_BY_HAND}", "no-counter-set")
    if chosen is not None and rows.get(COUNTERS) == 0 and COUNTERS not in recording.left_out:
        reason = (
            f"Counter Set: {chosen} was asked for and nothing counted: chips that do not know it ignore it"
        )
        return MetalAbsent(COUNTERS, reason, _BY_HAND)
    return _explain_absence(recording, rows, COUNTERS, _WITH_COUNTERS)


def _list_notes(tables: MetalTables, skipped: int, part: CountedPart, metal: MetalTrace) -> Iterator[str]:
    """Sentences, the most important first. `skipped`: samples of counters that were left out."""
    if part.target.note is not None and tables.rows.get(INTERVALS):
        yield part.target.note
    if not metal.marked and metal.span is not None and metal.window is not None:
        yield (
            f"nothing is marked: all {format_quantity(metal.span, 's')} count for which the GPU was recorded, of which"
            f" {format_quantity(metal.window, 's')} lie between the first work of {part.target.name} and its last"
        )
    if part.active is None and metal.device_busy is not None:
        yield f"without {STATES} the GPU counts as active while any process had work on it"
    if part.active is not None and (part.busy & part.counted - part.active).total > _UNTOLD * part.busy.total:
        yield f"{STATES} does not hold all of the time in which the process worked: it may be cut off"
    if len(part.gpus) > 1:
        further = ", ".join(name for name in part.gpus if name != part.gpu)
        yield f"of {plural(len(part.gpus), 'GPU')} {part.gpu} counts, which the process used most; beside it: {further}"
    if metal.induced is not None:
        yield f"the GPU was held in the performance state {metal.induced} while it was recorded"
    skipped += tables.skipped
    if skipped:
        yield f"{plural(skipped, 'row')} without a time, a value or an id left out"
    if tables.repeated > 1:
        yield f"there are {tables.repeated} tables with the same rows: the longest counts"
