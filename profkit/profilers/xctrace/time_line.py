"""Exports of xctrace as what happened when, for whoever shows it on a time line. `report.py` sums the same up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from profkit.analysis.timeline.trace_events import TraceMark, mark_events
from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.cells import Backtrace, Process, Thread, process_label
from profkit.profilers.xctrace.folder import RecordingExports, find_exports
from profkit.profilers.xctrace.metal.tables import (
    ACTIVE,
    COMPLETED,
    ENCODERS,
    INTERVALS,
    PERFORMANCE,
    STATES,
    THERMAL,
    cell_text,
    encoder_name,
    label_of,
)
from profkit.profilers.xctrace.report import find_alignment, wanted_schemas
from profkit.runtime.passes.read import read_record
from profkit.runtime.region.record import RegionRecord

KEPT = 1 << 20  # encoders and command buffers whose labels and begins are remembered
DEEP = 60  # frames of a stack that are shown
SAMPLE = 1_000_000  # ns that a sample stands for where its table does not say

DRIVER = "metal-driver-intervals"
SIGNPOSTS = ("OSSignpostIntervals", "os-signpost-interval", "kdebug-signpost-interval")
# The first that is there: they hold the same samples.
SAMPLED = ("time-profile", "time-sample")
MACHINE = "the machine"
_SPAN = ("start", "duration")
_Rows: TypeAlias = "Iterable[tuple[Any, ...]]"
_Reader: TypeAlias = "Callable[[_Rows], Iterator[TraceMark]]"


class TimeLine:
    """The exports at a path as marks. What is read first (labels) is looked up by what comes later."""

    def __init__(self, exports: RecordingExports, records: Iterable[RegionRecord] = ()) -> None:
        self._exports = exports
        self._records = tuple(records)
        self._labels: dict[int, str] = {}  # of encoders, by their ids
        self._buffers: dict[int, tuple[int, str]] = {}  # begin of the first encoder, process

    @property
    def readers(self) -> Mapping[str, tuple[tuple[str, ...], _Reader]]:
        """By schema the columns that are wanted, and who makes marks of them; in the order to be read in."""
        sampled = next((schema for schema in SAMPLED if schema in self._exports.schemas), SAMPLED[0])
        return {
            ENCODERS: (
                (*_SPAN, "process", "thread", "cmdbuffer-label", "encoder-label", "cmdbuffer-id", "encoder-id"),
                self._encoder_marks,
            ),
            COMPLETED: (("timestamp", "cmdbuffer-id"), self._buffer_marks),
            INTERVALS: (
                (*_SPAN, "process", "gpu", "channel-name", "event-label/@fmt", "state", "start-latency",
                 "cmdbuffer-id", "encoder-id"),
                self._work_marks,
            ),
            STATES: ((*_SPAN, "gpu", "state", "label/@fmt"), _active_marks),
            PERFORMANCE: ((*_SPAN, "gpu-performance-state", "track-label"), _state_marks("performance state")),
            THERMAL: ((*_SPAN, "thermal-state", "track-label"), _state_marks("thermal state")),
            DRIVER: ((*_SPAN, "process", "thread", "event-type", "event-label/@fmt"), _driver_marks),
            **dict.fromkeys(SIGNPOSTS, ((*_SPAN, "process", "subsystem", "name"), _signpost_marks)),
            sampled: (("time", "thread", "weight", "stack"), _sample_marks),
        }  # fmt: skip

    def marks(self) -> Iterator[TraceMark]:
        """All of them, table by table; raises UnreadableReport where a table is cut off or damaged."""
        run = next((run for run in self._exports.runs if run.number == self._exports.run), None)
        for begin, end in find_alignment(self._exports, run, self._records).windows:
            yield TraceMark(begin, end, "the region that counts", "entries", "region", "region")
        for schema, (columns, make_marks) in self.readers.items():
            for table in self._exports.tables((schema,)):
                yield from make_marks(table.rows(columns))

    def _encoder_marks(self, rows: _Rows) -> Iterator[TraceMark]:
        """When the host encoded: what each encoder is called, and when a command buffer was begun."""
        for start, duration, process, thread, of, label, buffer, encoder in rows:
            name = encoder_name(cell_text(of), cell_text(label)) or "encoder without a label"
            if isinstance(encoder, int) and len(self._labels) < KEPT:
                self._labels.setdefault(encoder, name)
            group, track = _process_group(process), f"encoding, {_thread_label(thread)}"
            if isinstance(buffer, int) and buffer and isinstance(start, int):
                known = self._buffers.get(buffer)
                if known is not None or len(self._buffers) < KEPT:
                    self._buffers[buffer] = (start, group) if known is None else min(known, (start, known[1]))
            details = {"command buffer": of, "encoder id": _hex_number(encoder)}
            yield from _make_mark(start, duration, group, track, name, "encoder", details)

    def _buffer_marks(self, rows: _Rows) -> Iterator[TraceMark]:
        """Command buffers that the host is known to have begun, until they were completed."""
        for at, buffer in rows:
            known = self._buffers.get(buffer)
            if known is not None and isinstance(at, int):
                start, group = known
                details = {"begins": "from its first encoder", "id": _hex_number(buffer)}
                yield from _make_mark(
                    start, at - start, group, "command buffers", "command buffer", "buffer", details
                )

    def _work_marks(self, rows: _Rows) -> Iterator[TraceMark]:
        for start, duration, process, gpu, channel, label, state, latency, buffer, encoder in rows:
            owner = process if isinstance(process, Process) else None
            name = self._labels.get(encoder) or label_of(cell_text(label), owner) or "GPU execution"
            details = {
                "state": state,
                "submission to begin, ns": latency,
                "command buffer id": _hex_number(buffer),
                "encoder id": _hex_number(encoder),
            }
            group = f"{_gpu_label(gpu)}: {process_label(owner)}"
            yield from _make_mark(start, duration, group, channel or "GPU", name, "gpu", details)


def open_time_line(path: Path, records: Iterable[RegionRecord] = ()) -> Iterator[TraceMark]:
    """Everything of the exports at `path` (one XML, or a folder) that has a begin and a length, in ns of the recording.

    `records` are what processes noted of the region that counts. Raises UnreadableReport for what is no export, is
    damaged, or has none of these tables; while the marks are taken, too, since a table is read as it is shown.
    """
    exports = find_exports(path, wanted_schemas())  # so that the run is that of the report
    if exports.broken:
        raise exports.broken[0].error or UnreadableReport(f"{path} is damaged")
    line = TimeLine(exports, records)
    if not exports.schemas & set(line.readers):
        raise UnreadableReport(
            f"{path} has no table with times that could be put on a line",
            "export the tables metal-gpu-intervals, metal-gpu-state-intervals and time-profile as well",
        )
    return line.marks()


def time_line(path: Path, records: Sequence[Path], counted: Callable[[int], None]) -> Iterator[str]:
    """The marks as trace events; `records` are files. Raises as `open_time_line` does, before the first piece."""
    regions = []
    for record in records:
        with contextlib.suppress(UnreadableReport):  # the trace is worth showing without
            regions.append(read_record(record))
    return mark_events(open_time_line(path, regions), "xctrace", counted)


def _active_marks(rows: _Rows) -> Iterator[TraceMark]:
    """When the GPU was active; idle is what lies between."""
    for start, duration, gpu, state, label in rows:
        if state == ACTIVE:
            name = cell_text(label) or ACTIVE
            yield from _make_mark(start, duration, _gpu_label(gpu), "active", name, "state")


def _state_marks(what: str) -> _Reader:
    def marks(rows: _Rows) -> Iterator[TraceMark]:
        for start, duration, state, track in rows:
            if state:
                label = f"{what}, {track}" if track else what
                yield from _make_mark(start, duration, MACHINE, label, state, "state")

    return marks


def _driver_marks(rows: _Rows) -> Iterator[TraceMark]:
    for start, duration, process, thread, kind, label in rows:
        name = " ".join(cell_text(label).split()) or kind or "driver"
        track = f"driver, {_thread_label(thread)}"
        yield from _make_mark(
            start, duration, _process_group(process), track, name, "driver", {"event": kind}
        )


def _signpost_marks(rows: _Rows) -> Iterator[TraceMark]:
    for start, duration, process, subsystem, name in rows:
        track = f"signposts, {subsystem}" if subsystem else "signposts"
        yield from _make_mark(start, duration, _process_group(process), track, name or "signpost", "signpost")


def _sample_marks(rows: _Rows) -> Iterator[TraceMark]:
    """Samples as slices of their weight, at most until the next of the thread: what ran, and its callers."""
    last: dict[Thread, tuple[int, int, object]] = {}
    for time, thread, weight, stack in rows:
        if not isinstance(time, int) or not isinstance(thread, Thread):
            continue
        if thread in last:
            yield from _sample_mark(thread, last[thread], time)
        length = weight if isinstance(weight, int) and 0 < weight < 1_000_000_000 else SAMPLE
        last[thread] = (time, length, stack)
    for thread, sample in last.items():
        yield from _sample_mark(thread, sample, sample[0] + sample[1])


def _sample_mark(thread: Thread, sample: tuple[int, int, object], until: int) -> Iterator[TraceMark]:
    at, length, stack = sample
    frames = stack.frames if isinstance(stack, Backtrace) else ()
    name = frames[0].name if frames else "[no stack]"
    details = {"stack": "\n".join(frame.name for frame in frames[:DEEP])} if len(frames) > 1 else {}
    duration = min(length, max(until - at, 0))
    track = f"CPU samples, {_thread_label(thread)}"
    yield from _make_mark(at, duration, _process_group(thread.process), track, name, "sample", details)


def _make_mark(
    start: object,
    duration: object,
    group: str,
    track: object,
    name: object,
    category: str,
    details: Mapping[str, object] | None = None,
) -> Iterator[TraceMark]:
    """The mark; none of what has no time, or ends before it begins."""
    if isinstance(start, int) and isinstance(duration, int) and start >= 0 and duration >= 0:
        known = {
            key: value
            for key, value in (details or {}).items()
            if isinstance(value, (str, int, float)) and value != ""
        }
        yield TraceMark(start, start + duration, group, str(track), str(name), category, known)


def _hex_number(value: object) -> str | None:
    return hex(value) if isinstance(value, int) and value else None


def _process_group(process: object) -> str:
    return process_label(process if isinstance(process, Process) else None)


def _gpu_label(gpu: object) -> str:
    return f"GPU {gpu}" if gpu else "GPU"


def _thread_label(thread: object) -> str:
    if not isinstance(thread, Thread):
        return "unknown thread"
    number = f" {hex(thread.tid)}" if thread.tid is not None else ""
    return f"{thread.name or 'thread'}{number}"
