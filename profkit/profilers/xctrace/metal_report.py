"""Sums up the tables of Metal System Trace and of GPU counters, for the part that counts.

What a recording does not have is listed with the reason and the way to get it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from profkit.core.types import (
    Fact,
    Gpu,
    GpuTrace,
    Kernel,
    KernelTime,
    MetalAbsent,
    MetalCounter,
    MetalTrace,
    MetalWork,
    Report,
)
from profkit.profilers.xctrace.alignment import CountedPart, TraceRecording, look_up, part_that_counts
from profkit.profilers.xctrace.command import GPU_COUNTERS, METAL, export_line
from profkit.profilers.xctrace.metal_tables import (
    COMPILER,
    COUNTERS,
    DISPLAYED,
    ENCODERS,
    FRAMES,
    INTERVALS,
    LAYOUTS,
    NO_ID,
    SHADER_LIST,
    SHADERS,
    STATES,
    CounterSamples,
    MetalTableSet,
    encoder_name,
)
from profkit.profilers.xctrace.spans import (
    IntervalSet,
    longest_span,
    overlap_lengths,
    spans_of,
    union,
)
from profkit.profilers.xctrace.tables import ExportTable

_APPLE = re.compile(r"[MA]\d+\b")  # how Instruments calls Apple's own, without the maker
# The one counter that a recording without a counter set has on an M3 and later; nothing but ray tracing moves it.
USELESS = "RT Unit Active"
NO_SET = ("(null)", "", "None")
_TEMPLATE = f"xctrace record --template '{METAL}' ..."
# Alone: together with the instruments of a template they often give no rows.
_WITH_COUNTERS = (
    f"record the counters by themselves: xctrace record --instrument '{GPU_COUNTERS}' --launch -- COMMAND; or choose "
    "a counter set in Instruments (Metal Application, GPU), and save that as a template to record with"
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
    COUNTERS: _WITH_COUNTERS,
    COMPILER: _TEMPLATE,
    SHADER_LIST: _LAUNCH,
    SHADERS: _WITH_TIMELINE,
    FRAMES: _TEMPLATE,
    DISPLAYED: _TEMPLATE,
}
_OWN_FIX = (COUNTERS, SHADERS)  # a template of Instruments alone does not give them


class MetalTableReader:
    """Reads the tables of an export about the GPU, and adds their sums to a report."""

    schemas = (*LAYOUTS, COUNTERS)

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables = MetalTableSet()
        self._samples = CounterSamples()

    def read(self, table: ExportTable) -> None:
        """Read one table of `schemas`."""
        if table.schema == COUNTERS:
            rows = self._samples.read(table)
            self._tables.rows[COUNTERS] = max(rows, self._tables.rows.get(COUNTERS, 0))
        else:
            self._tables.read(table)

    def finish(self, report: Report) -> Report:
        """Add the GPUs and the trace to the report, in Metal's terms and in those of other tools."""
        tables, recording = self._tables, self._recording
        if not tables.rows and not _expects_gpu(recording):
            return report
        part = part_that_counts(tables, recording, self._samples.extent)
        encoders, copying = encoder_sums(tables, part)
        metal = _metal_trace(tables, self._samples, recording, part, encoders)
        gpus = (Gpu(_full_name(part.gpu), 0),) if part.gpu else ()
        notes = _list_notes(tables, self._samples.skipped, part, metal)
        return replace(
            report,
            metal=metal,
            trace=_gpu_trace(part, metal, encoders, copying) if encoders else report.trace,
            gpus=gpus or report.gpus,
            warnings=(*report.warnings, *notes),
        )


def _expects_gpu(recording: TraceRecording) -> bool:
    """Return whether the recording was of the GPU, though no table of that was exported, or none that is read."""
    if any(schema.startswith("metal-") for schema in recording.exported):
        return True
    return recording.run is not None and (recording.run.has(INTERVALS) or recording.run.has(COUNTERS))


def _full_name(name: str) -> str:
    """Return the GPU's name as the machine itself calls it: `Apple M1` for `M1`."""
    return f"Apple {name}" if _APPLE.match(name) else name


def _metal_trace(
    tables: MetalTableSet,
    samples: CounterSamples,
    recording: TraceRecording,
    part: CountedPart,
    encoders: tuple[NamedWork, ...],
) -> MetalTrace:
    counted, window, busy = part.counted, part.window, part.busy
    has_work, active = tables.rows.get(INTERVALS, 0) > 0, part.active
    if active is None and has_work:
        active = union(part.work["start"], part.work["end"])
    knows_process = has_work and part.target.name is not None
    pending, idle = part.submitted, window - busy
    by_others = None if active is None else active - busy
    counters = samples.counters(counted, busy if len(busy) else None)
    useless = _is_useless(counters)
    shaders = _shader_sums(tables, part)
    has_result = {COUNTERS: not useless, SHADERS: bool(shaders), FRAMES: FRAMES in tables.rows}
    return MetalTrace(
        span=_to_seconds(counted) or None,
        device_busy=None if active is None else _to_seconds(active & counted),
        process_busy=_to_seconds(busy & counted) if knows_process else None,
        others=_to_seconds(by_others & counted) if knows_process and by_others is not None else None,
        longest_gap=longest_span(idle) / 1e9 if window.total else None,
        encoders=tuple(named.work() for named in encoders),
        buffers=_count_buffers(part) if knows_process else None,
        frame=_frame_time(tables, part),
        displayed=_displayed_time(tables, counted),
        **_compiling(tables, part),
        shaders=tuple(named.work() for named in shaders),
        shader_names=_shader_names(tables, part),
        counters=() if useless else counters,
        absent=tuple(_list_absences(recording, tables.rows, has_result)),
        marked=recording.windows is not None,
        entries=recording.alignment.entries,
        window=_to_seconds(window) or None,
        unsubmitted=None if pending is None else _to_seconds(idle - pending),
        blocked=None if pending is None or by_others is None else _to_seconds(idle & pending & by_others),
        device=_full_name(part.gpu) if part.gpu else None,
        guessed=part.target.note if part.target.guessed else None,
        lost=recording.alignment.loss,
    )


def _count_buffers(part: CountedPart) -> int:
    """Return how many command buffers of the target had work in the part that counts."""
    import numpy as np

    work = part.own_work
    inside = overlap_lengths(work["start"], work["end"], part.counted) > 0
    return len(np.unique(work["buffer"][inside & (work["buffer"] != NO_ID)]))


def _frame_time(tables: MetalTableSet, part: CountedPart) -> float | None:
    """Return the median time from one frame that the target presents to the next, in seconds.

    Both frames lie in one stretch of what counts. None without frames.
    """
    import numpy as np

    table = tables[FRAMES]
    moments = np.sort(table["start"][table.where("process", part.target.processes)])
    moments = moments[overlap_lengths(moments, moments + 1, part.counted) > 0]
    stretch = np.searchsorted(part.counted.begins, moments, side="right")
    steps = np.diff(moments)[stretch[1:] == stretch[:-1]]
    return float(np.median(steps)) / 1e9 if len(steps) else None


def _displayed_time(tables: MetalTableSet, counted: IntervalSet) -> float | None:
    """Return how long a frame stayed on the screen, in seconds: the median of those that count."""
    import numpy as np

    table = tables[DISPLAYED]
    times = (table["end"] - table["start"])[overlap_lengths(table["start"], table["end"], counted) > 0]
    return float(np.median(times)) / 1e9 if len(times) else None


def _compiling(tables: MetalTableSet, part: CountedPart) -> dict[str, Any]:
    """Return how long and how often Metal's compiler worked for the target, in all of the recording."""
    if COMPILER not in tables.rows:
        return {}
    is_target = tables[COMPILER].where("process", part.target.processes)
    return {"compiling": _to_seconds(tables[COMPILER].times(is_target)), "compilations": int(is_target.sum())}


def _shader_names(tables: MetalTableSet, part: CountedPart) -> tuple[str, ...]:
    """Return the shaders that were compiled for the target, as Metal names them, in the table's order."""
    table = tables[SHADER_LIST]
    names = table["name"][table.where("process", part.target.processes)].tolist()
    return tuple(table.names["name"].all[number] for number in dict.fromkeys(names))


def _shader_sums(tables: MetalTableSet, part: CountedPart) -> tuple[NamedWork, ...]:
    """Return the target's shaders that were timed, largest first."""
    import numpy as np

    table = tables[SHADERS]
    is_target = table.where("process", part.target.processes)
    work = {name: column[is_target] for name, column in table.arrays().items()}
    work["encoder"] = np.full(len(work["start"]), NO_ID, dtype=np.int64)  # the table names none
    return sum_by_name(table.names["name"].all, work["name"], work, part.counted)


def _gpu_trace(
    part: CountedPart, metal: MetalTrace, encoders: tuple[NamedWork, ...], copying: float | None
) -> GpuTrace:
    """Return the trace in the terms of other tools: an encoder is a kernel, the process's window the span."""
    busy, idle = part.busy & part.window, part.window.total - (part.busy & part.window).total
    begin = int(part.window.begins[0]) if len(part.window) else 0
    before = spans_of([(min(0, begin), begin)])
    return GpuTrace(
        "xctrace",
        tuple(named.kernel() for named in encoders),
        span=_to_seconds(part.window),
        busy=_to_seconds(busy),
        launches=sum(len(named.each) for named in encoders),
        starved=metal.unsubmitted * 1e9 / idle if metal.unsubmitted is not None and idle else None,
        largest_gap=metal.longest_gap,
        copying=copying,
        marked=metal.marked,
        setup_seconds=_to_seconds(part.busy & before) if metal.marked else None,
    )


def _to_seconds(spans: IntervalSet) -> float:
    return spans.total / 1e9


def _is_useless(counters: tuple[MetalCounter, ...]) -> bool:
    """Return whether there is no counter, or only the one that is always there, at 0."""
    return all(counter.name == USELESS and counter.most == 0 for counter in counters)


def _list_absences(
    recording: TraceRecording, rows: Mapping[str, int], has_result: Mapping[str, bool]
) -> Iterator[MetalAbsent]:
    """Yield what the recording lacks, with the reason.

    `rows` by schema (0: a table without rows; not there: no table); `has_result`: whether some tables gave a
    result.
    """
    for schema, fix in _FIXES.items():
        if not has_result.get(schema, rows.get(schema)):
            yield _explain_absence(recording, rows, schema, fix)


def _explain_absence(
    recording: TraceRecording, rows: Mapping[str, int], schema: str, fix: str
) -> MetalAbsent:
    run = recording.run
    settings = run.settings if run is not None else {}
    export = export_line(schema, None if run is None else run.number)
    if schema == COUNTERS and (chosen := settings.get("Counter Set")) in NO_SET:
        return MetalAbsent(schema, Fact.of("no-counter-set", setting=chosen or ""), fix)
    if schema == SHADERS and settings.get("Shader Timeline") == "Disabled":
        return MetalAbsent(schema, Fact("no-shader-timeline"), fix)
    if rows.get(schema):
        return MetalAbsent(schema, Fact("no-rows-that-count"))
    if schema in rows:
        return MetalAbsent(schema, Fact.of("no-rows", table=schema), fix)
    if run is None or run.has(schema):
        return MetalAbsent(schema, Fact.of("not-exported", table=schema), export)
    return MetalAbsent(schema, Fact.of("no-table", table=schema), fix if schema in _OWN_FIX else _TEMPLATE)


def _list_notes(tables: MetalTableSet, skipped: int, part: CountedPart, metal: MetalTrace) -> Iterator[Fact]:
    """Yield notes, the most important first. `skipped`: samples of counters that were left out."""
    if part.target.note is not None and tables.rows.get(INTERVALS):
        yield part.target.note
    if not metal.marked and metal.span is not None and metal.window is not None:
        name = part.target.name or ""
        yield Fact.of("whole-recording", seconds=metal.span, window=metal.window, name=name)
    if part.active is None and metal.device_busy is not None:
        yield Fact.of("no-gpu-states", table=STATES)
    skipped += tables.skipped
    if skipped:
        yield Fact.of("rows-without-values", count=skipped)


NO_LABEL = "(no label)"


@dataclass(frozen=True)
class NamedWork:
    """All work of one name. Times in ns; `each` has one value per instance."""

    name: str
    each: Any

    @property
    def total(self) -> int:
        """Return the sum of the times, which may have run side by side."""
        return int(self.each.sum())

    def work(self) -> MetalWork:
        """Return the work as the core types have it, in seconds."""
        import numpy as np

        return MetalWork(
            self.name,
            len(self.each),
            self.total / 1e9,
            float(np.median(self.each)) / 1e9,
            int(self.each.max()) / 1e9,
        )

    def kernel(self) -> KernelTime:
        """Return the work as a kernel, as the traces of other tools have it."""
        work = self.work()
        least = int(self.each.min()) / 1e9
        return KernelTime(
            Kernel(self.name, (), ()),
            work.count,
            work.seconds,
            work.median or 0.0,
            least,
            work.longest or 0.0,
        )


def sum_by_name(
    names: Sequence[str], which: Any, work: Mapping[str, Any], part: IntervalSet
) -> tuple[NamedWork, ...]:
    """Sum up work by name, largest first: `which` is the number of each interval's name.

    Intervals of one name and one encoder are one (several pieces, or a vertex and a fragment part).
    """
    import numpy as np

    inside = overlap_lengths(work["start"], work["end"], part)
    counted = inside > 0
    which, inside = which[counted], inside[counted]
    if not len(which):
        return ()
    alone = np.arange(len(which), dtype=np.int64) + (1 << 62)  # a piece without an id is one of its own
    encoder = work["encoder"][counted]
    instance = np.where(encoder == NO_ID, alone, encoder)
    order = np.argsort(which, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(which[order]) != 0, True])
    sums = []
    for first, last in pairwise(cuts.tolist()):
        rows = order[first:last]
        _, of = np.unique(instance[rows], return_inverse=True)
        each = np.bincount(of, inside[rows]).astype(np.int64)
        sums.append(NamedWork(names[int(which[rows[0]])], each))
    return tuple(sorted(sums, key=lambda named: (-named.total, named.name)))


def encoder_sums(tables: MetalTableSet, part: CountedPart) -> tuple[tuple[NamedWork, ...], float | None]:
    """Return the target's work by encoder, and the seconds in which nothing but copies ran.

    The seconds are within the window; None without copies. The label is that in the list of encoders, joined by
    `encoder-id`; else the one that the interval itself shows ("command buffer:encoder"); else the channel.
    """
    import numpy as np

    work, names, encoders = part.own_work, tables[INTERVALS].names, tables[ENCODERS]
    listed = encoders.names["label"].all
    shown = [encoder_name(*_split_label(label)) for label in names["label"].all]
    channels = [f"{channel} {NO_LABEL}".strip() for channel in names["channel"].all]
    has_listed = np.array([bool(label) for label in listed] or [False])
    has_shown = np.array([bool(label) for label in shown] or [False])
    has_id = encoders["encoder"] != NO_ID
    number = look_up(work["encoder"], encoders["encoder"][has_id], encoders["label"][has_id])
    name_numbers = np.where(
        (number >= 0) & has_listed[np.maximum(number, 0)],
        number,
        np.where(
            has_shown[work["label"]], len(listed) + work["label"], len(listed) + len(shown) + work["channel"]
        ),
    )
    table: dict[str, int] = {}
    place = np.array([table.setdefault(name, len(table)) for name in (*listed, *shown, *channels)] or [0])
    name_numbers = place[name_numbers]
    copies = np.isin(name_numbers, [number for name, number in table.items() if "Blit" in name.split()])
    copying = None
    if copies.any():
        other_work = union(work["start"][~copies], work["end"][~copies])
        copying = ((part.busy - other_work) & part.window).total / 1e9
    return sum_by_name(list(table), name_numbers, work, part.counted), copying


def _split_label(shown: str) -> tuple[str, str]:
    """Split `Command Buffer 0:Compute Command 0` into the labels of command buffer and encoder."""
    buffer, colon, label = shown.partition(":")
    return (buffer.strip(), label.strip()) if colon else ("", shown)
