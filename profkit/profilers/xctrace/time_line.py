"""Exports of xctrace as what happened when, for whoever shows it on a time line. `report.py` sums the same up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from profkit.analysis.timeline.trace_events import TraceMark, mark_events
from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.alignment import (
    CLOCK_COLUMNS,
    CLOCK_TABLE,
    NoClock,
    TraceClock,
    align_regions,
    read_clock,
)
from profkit.profilers.xctrace.cells import Backtrace, Process, Thread, Value, process_label
from profkit.profilers.xctrace.folder import RecordingExports, find_exports
from profkit.profilers.xctrace.metal.tables import PERFORMANCE, THERMAL
from profkit.profilers.xctrace.metal.work import (
    COMPLETED,
    ENCODERS,
    INTERVALS,
    STATES,
    SUBMISSIONS,
    encoder_name,
    label_of,
)
from profkit.profilers.xctrace.report import wanted_schemas
from profkit.profilers.xctrace.tables import Row
from profkit.runtime.passes.read_records import read_record
from profkit.runtime.region.record import RegionRecord

KEPT = 1 << 20  # encoders and command buffers whose labels and begins are remembered
DEEP = 60  # frames of a stack that are shown
SAMPLE = 1_000_000  # ns that a sample stands for where its table does not say

DRIVER = "metal-driver-intervals"
SIGNPOSTS = ("OSSignpostIntervals", "os-signpost-interval", "kdebug-signpost-interval")
# The first that is there: they hold the same samples. Weights of the first two are times, those of others counts.
SAMPLED = ("time-profile", "time-sample", "cpu-profile", "counters-profile")
TIMED = SAMPLED[:2]
MACHINE = "the machine"


class TimeLine:
    """The exports at a path as marks. What is read first (labels, submissions) is looked up by what comes later."""

    def __init__(self, exports: RecordingExports, records: Iterable[RegionRecord] = ()) -> None:
        self._exports = exports
        self._records = tuple(records)
        self._labels: dict[int, str] = {}  # of encoders, by their ids
        self._buffers: dict[int, tuple[int, str, str]] = {}  # begin, process, how the begin is known

    @property
    def _readers(
        self,
    ) -> Mapping[str, tuple[tuple[str, ...], Callable[[Iterable[Row]], Iterator[TraceMark]]]]:
        """By schema the columns that are wanted, and who makes marks of them; in the order to be read in."""
        sampled = next((one for one in SAMPLED if one in self._exports.schemas), SAMPLED[0])
        span = ("start", "duration")
        return {
            SUBMISSIONS: ((*span, "process", "cmdbuffer-id"), self._read_submissions),
            ENCODERS: (
                (*span, "process", "thread", "cmdbuffer-label", "encoder-label", "cmdbuffer-id", "encoder-id"),
                self._encoder_marks,
            ),
            COMPLETED: (("timestamp", "cmdbuffer-id"), self._buffer_marks),
            INTERVALS: (
                (*span, "process", "gpu", "channel-name", "event-label", "state", "start-latency",
                 "frame-number", "cmdbuffer-id", "encoder-id"),
                self._work_marks,
            ),
            STATES: ((*span, "gpu", "state", "label/@fmt"), _active_marks),
            PERFORMANCE: ((*span, "gpu-performance-state", "track-label"), _state_marks("performance state")),
            THERMAL: ((*span, "thermal-state", "track-label"), _state_marks("thermal state")),
            DRIVER: ((*span, "process", "thread", "event-type", "event-label/@fmt"), _driver_marks),
            **dict.fromkeys(SIGNPOSTS, ((*span, "process", "subsystem", "name"), _signpost_marks)),
            sampled: (("time", "thread", "weight" if sampled in TIMED else "-", "stack"), _sample_marks),
        }  # fmt: skip

    def marks(self) -> Iterator[TraceMark]:
        """All of them, table by table; raises UnreadableReport where a table is cut off or damaged."""
        yield from self._region_marks()
        for schema, (columns, make_marks) in self._readers.items():
            for table in self._exports.tables((schema,)):
                yield from make_marks(table.rows(columns))

    def _region_marks(self) -> Iterator[TraceMark]:
        """The entries of the region that counts, where the recording tells its clock."""
        clock: TraceClock | None = None
        for table in self._exports.tables((CLOCK_TABLE,)) if self._records else ():
            with contextlib.suppress(NoClock):
                clock = read_clock(table.rows(CLOCK_COLUMNS))
        for begin, end in align_regions(self._records, clock, None).windows if clock is not None else ():
            yield from _make_mark(begin, end - begin, "the region that counts", "entries", "region", "region")

    def _read_submissions(self, rows: Iterable[Row]) -> Iterator[TraceMark]:
        for start, _, process, buffer in rows:
            if isinstance(start, int) and isinstance(buffer, int) and buffer:
                self._remember(buffer, start, _process_group(process), "from its submission")
        return iter(())

    def _encoder_marks(self, rows: Iterable[Row]) -> Iterator[TraceMark]:
        """When the host encoded: what each encoder is called, and when a command buffer was begun."""
        for start, duration, process, thread, of, label, buffer, encoder in rows:
            name = encoder_name(_text_or_empty(of), _text_or_empty(label)) or "encoder without a label"
            if isinstance(encoder, int) and len(self._labels) < KEPT:
                self._labels.setdefault(encoder, name)
            if isinstance(start, int) and isinstance(buffer, int) and buffer:
                self._remember(buffer, start, _process_group(process), "from its first encoder")
            details = {"command buffer": _text_or_empty(of), "encoder id": _hex_number(encoder)}
            yield from _make_mark(
                start,
                duration,
                _process_group(process),
                f"encoding, {_thread_label(thread)}",
                name,
                "encoder",
                details,
            )

    def _remember(self, buffer: int, start: int, group: str, how: str) -> None:
        known = self._buffers.get(buffer)
        if known is None:
            if len(self._buffers) < KEPT:
                self._buffers[buffer] = (start, group, how)
        elif known[2] == how and start < known[0]:
            self._buffers[buffer] = (start, group, how)

    def _buffer_marks(self, rows: Iterable[Row]) -> Iterator[TraceMark]:
        """Command buffers that the host is known to have begun, until they were completed."""
        for at, buffer in rows:
            known = self._buffers.get(buffer) if isinstance(buffer, int) else None
            if known is None or not isinstance(at, int):
                continue
            start, group, how = known
            yield from _make_mark(
                start,
                at - start,
                group,
                "command buffers",
                "command buffer",
                "buffer",
                {"begins": how, "id": _hex_number(buffer)},
            )

    def _work_marks(self, rows: Iterable[Row]) -> Iterator[TraceMark]:
        for start, duration, process, gpu, channel, label, state, latency, frame, buffer, encoder in rows:
            known = self._labels.get(encoder) if isinstance(encoder, int) else None
            owner = process if isinstance(process, Process) else None
            shown = known or label_of(_text_or_empty(label), owner) or "GPU execution"
            details: dict[str, str | int | float | None] = {
                "state": _text_or_empty(state) or None,
                "submission to begin, ns": latency if isinstance(latency, int) else None,
                "frame": frame if isinstance(frame, int) and frame else None,
                "command buffer id": _hex_number(buffer),
                "encoder id": _hex_number(encoder),
            }
            group = f"{_gpu_label(gpu)}: {process_label(owner)}"
            yield from _make_mark(
                start, duration, group, _text_or_empty(channel) or "GPU", shown, "gpu", details
            )


def open_time_line(path: Path, records: Iterable[RegionRecord] = ()) -> Iterator[TraceMark]:
    """Everything of the exports at `path` (one XML, or a folder) that has a begin and a length, in ns of the recording.

    `records` are what processes noted of the region that counts. Raises UnreadableReport for what is no export, is
    damaged, or has none of these tables; while the marks are taken, too, since a table is read as it is shown.
    """
    exports = find_exports(path, wanted_schemas())  # so that the run is that of the report
    if exports.broken:
        raise exports.broken[0].error
    line = TimeLine(exports, records)
    if not exports.schemas & set(line._readers):
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


def _active_marks(rows: Iterable[Row]) -> Iterator[TraceMark]:
    """When the GPU was active; idle is what lies between."""
    for start, duration, gpu, state, label in rows:
        if _text_or_empty(state) == "Active":
            yield from _make_mark(
                start, duration, _gpu_label(gpu), "active", _text_or_empty(label).strip() or "Active", "state"
            )


def _state_marks(what: str) -> Callable[[Iterable[Row]], Iterator[TraceMark]]:
    def marks(rows: Iterable[Row]) -> Iterator[TraceMark]:
        for start, duration, state, track in rows:
            if _text_or_empty(state):
                label = f"{what}, {_text_or_empty(track)}" if _text_or_empty(track) else what
                yield from _make_mark(start, duration, MACHINE, label, _text_or_empty(state), "state")

    return marks


def _driver_marks(rows: Iterable[Row]) -> Iterator[TraceMark]:
    for start, duration, process, thread, kind, label in rows:
        name = " ".join(_text_or_empty(label).split()) or _text_or_empty(kind) or "driver"
        details = {"event": _text_or_empty(kind)} if _text_or_empty(kind) else {}
        yield from _make_mark(
            start,
            duration,
            _process_group(process),
            f"driver, {_thread_label(thread)}",
            name,
            "driver",
            details,
        )


def _signpost_marks(rows: Iterable[Row]) -> Iterator[TraceMark]:
    for start, duration, process, subsystem, name in rows:
        track = f"signposts, {_text_or_empty(subsystem)}" if _text_or_empty(subsystem) else "signposts"
        yield from _make_mark(
            start, duration, _process_group(process), track, _text_or_empty(name) or "signpost", "signpost"
        )


def _sample_marks(rows: Iterable[Row]) -> Iterator[TraceMark]:
    """Samples as slices of their weight, at most until the next of the thread: what ran, and its callers."""
    waiting: dict[Value, tuple[int, int, Value]] = {}
    for time, thread, weight, stack in rows:
        if not isinstance(time, int) or not isinstance(thread, Thread):
            continue
        before = waiting.get(thread)
        if before is not None:
            yield from _sample_mark(thread, before, time)
        length = weight if isinstance(weight, int) and 0 < weight < 1_000_000_000 else SAMPLE
        waiting[thread] = (time, length, stack if not isinstance(stack, tuple) else None)
    for thread, last in waiting.items():
        yield from _sample_mark(thread, last, last[0] + last[1])


def _sample_mark(thread: Value, sample: tuple[int, int, Value], until: int) -> Iterator[TraceMark]:
    at, length, stack = sample
    frames = stack.frames if isinstance(stack, Backtrace) else ()
    name = frames[0].name if frames else "[no stack]"
    details = {"stack": "\n".join(frame.name for frame in frames[:DEEP])} if len(frames) > 1 else {}
    process = thread.process if isinstance(thread, Thread) else None
    end = min(at + length, until) if until > at else at
    yield from _make_mark(
        at,
        end - at,
        _process_group(process),
        f"CPU samples, {_thread_label(thread)}",
        name,
        "sample",
        details,
    )


def _make_mark(
    start: object,
    duration: object,
    group: str,
    track: str,
    name: str,
    category: str,
    details: Mapping[str, str | int | float | None] | None = None,
) -> Iterator[TraceMark]:
    """The mark; none of what has no time, or ends before it begins."""
    if isinstance(start, int) and isinstance(duration, int) and start >= 0 and duration >= 0:
        kept = {key: value for key, value in (details or {}).items() if value is not None and value != ""}
        yield TraceMark(start, start + duration, group, track, name, category, kept)


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _hex_number(value: object) -> str | None:
    return hex(value) if isinstance(value, int) and value else None


def _process_group(process: object) -> str:
    return process_label(process if isinstance(process, Process) else None)


def _gpu_label(gpu: object) -> str:
    return f"GPU {gpu}" if isinstance(gpu, str) and gpu else "GPU"


def _thread_label(thread: object) -> str:
    if not isinstance(thread, Thread):
        return "unknown thread"
    number = f" {hex(thread.tid)}" if thread.tid is not None else ""
    return f"{thread.name or 'thread'}{number}"
