"""The CPU's side of an export: what the samples of the profiled process fell on, and what its cores counted.

Tables of Time Profiler (`time-profile`, or raw `time-sample`), CPU Profiler (`cpu-profile`: sampled by cycles) and CPU
Counters (`counters-profile`: sampled by time or by an event, with counts since the thread's sample before).

The guided modes of CPU Counters leave `MetricAggregationForThread`: for each thread, in stretches of some milliseconds,
a row for each metric. It is known from what others read of it (Xcode 16 to 26, M1 to M4); no export of it is at hand,
so its columns are found by their types. Every stretch is there twice, exact (`is-precise`, ended by context switches)
and in steps of 10 ms, with the same sums; the exact ones count where there are any. `cycle` counts core cycles, other
whole numbers count events. The four of the mode CPU Bottlenecks are shares of what the pipeline could have done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from profkit.analysis.stacks.merge import MOST_SLOTS, FrameTable
from profkit.analysis.timeline.spans import overlap_lengths, spans_of
from profkit.core.formatting import format_percent, plural
from profkit.core.types import Counter, Report
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.cells import (
    Backtrace,
    Process,
    StackFrame,
    Thread,
    is_same_process,
    process_label,
)
from profkit.profilers.xctrace.cpu_samples import (
    CYCLES,
    RAW,
    SAMPLES,
    TIME,
    SampleTally,
    WeightUnit,
    frame_of,
    read_samples,
)
from profkit.profilers.xctrace.tables import ExportTable

GUIDED = "MetricAggregationForThread"
SHARES = ("useful", "delivery", "processing", "discarded")
SCHEMAS = ("time-profile", "counters-profile", "cpu-profile", RAW, GUIDED)
# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100
_NAMED = 3  # other processes that a sentence names
_KNOWN = 200_000  # stacks, and frames, whose numbers are kept; a 500 MB table has some 100,000 stacks
_GUIDED_TYPES = ("start-time", "duration", "thread", "string", "uint64", "fixed-decimal", "boolean")
_TIMES = re.compile(r".*\d\s*(ns|µs|μs|us|ms|s|sec|min|h)\b.*", re.DOTALL)
# A thread that ran for a millisecond has counted these; a 0 is a counter that was not on.
_NEVER_ZERO = re.compile(
    r"FIXED_\w+|INST_ALL|CORE_ACTIVE_CYCLE|Cycles|Instructions|INST_RETIRED\..*|CPU_CLK_.*"
)


class FrameNumbers:
    """Numbers of the frames of stacks. Equal stacks of one export are one object, whose frames are looked at once."""

    def __init__(self) -> None:
        self.table = FrameTable()
        # By identity, which costs no look at the frames; what is in the value keeps that identity from being reused.
        self._stacks: dict[int, tuple[Backtrace, tuple[int, ...]]] = {}
        self._slots = 0  # frames in them, together
        self._functions: dict[int, tuple[StackFrame, int]] = {}

    def of_stack(self, stack: Backtrace) -> tuple[int, ...]:
        """The numbers of its frames, innermost first."""
        known = self._stacks.get(id(stack))
        if known is not None:
            return known[1]
        ids = tuple([self._of_frame(frame) for frame in stack.frames])
        self._slots += len(ids)
        if len(self._stacks) < _KNOWN and self._slots < MOST_SLOTS:
            self._stacks[id(stack)] = stack, ids
        return ids

    def _of_frame(self, frame: StackFrame) -> int:
        known = self._functions.get(id(frame))
        if known is not None:
            return known[1]
        binary = frame.binary
        number = self.table.add(frame_of(frame.name, (binary.name or binary.path) if binary else None))
        if len(self._functions) < _KNOWN:
            self._functions[id(frame)] = frame, number
        return number


class SampledTable:
    """The samples of one table: whose count, what they come to, and what became of the others."""

    def __init__(self, table: ExportTable, recording: TraceRecording, frames: FrameNumbers) -> None:
        self.schema = table.schema
        self._attributes = table.attributes
        self._recording, self._target = recording, recording.target
        # Such a table holds samples of what was profiled only, whatever name that had when the recording ended.
        self._single = table.attributes.get("target-pid") == "SINGLE"
        self._others: dict[str, int] = {}  # samples by process: not the target's, or all where none is named
        self._weightless = 0
        tally: SampleTally | None = None
        for time, thread, process, state, weight, stack, counts, shown, core in read_samples(table):
            tally = tally or SampleTally(frames.table, _weight_unit(table, shown), _events(table))
            if self._counts(process) and recording.includes(time):
                self._weightless += weight is None
                ids = () if stack is None else frames.of_stack(stack)
                tally.add(ids, weight or 0, self._thread_label(thread, process), state, counts, core)
        self.tally = tally or SampleTally(frames.table, _weight_unit(table, None), _events(table))

    def _counts(self, process: Process | None) -> bool:
        """Whether samples of a process count. One whose process is not known counts."""
        target = self._target
        if process is None or (target is not None and is_same_process(process, target)):
            return True
        name = process_label(process)
        self._others[name] = self._others.get(name, 0) + 1
        return target is None or self._single

    def _thread_label(self, thread: Thread | None, process: Process | None) -> str:
        if thread is None:
            return "[unknown thread]"
        name = thread.name or "thread"
        if thread.tid is not None:
            name = f"{name} 0x{thread.tid:x}"
        several = self._target is None and process is not None and len(self._others) > 1
        return f"{name} of {process_label(process)}" if several else name

    def warnings(self) -> Iterator[str]:
        """Sentences about what does not count, and what is not known."""
        tally, schema = self.tally, self.schema
        if self._others:
            yield from self._note_others()
        if not tally.samples:
            where = " in the marked region" if self._recording.windows is not None else ""
            named = self._target is not None and self._others
            yield (
                f"{schema}: no sample of {process_label(self._target)}{where}"
                if named
                else f"{schema}: it holds no sample{where}"
            )
        if tally.waiting:
            yield (
                f"{schema}: {plural(tally.waiting, 'sample')} of threads that waited "
                f"stand apart, as waiting and not as CPU time"
            )
        if tally.samples and tally.without_stack:
            share = format_percent(100 * tally.without_stack / (tally.samples + tally.waiting))
            yield f"{schema}: {plural(tally.without_stack, 'sample')} ({share} %) without a stack: where is not known"
        if tally.uneven and (named_events := self._attributes.get("pmc-events")):
            yield (
                f"{schema}: the counts of {plural(tally.uneven, 'sample')} do not fit the events that the table of "
                f"contents names ({named_events}), so none is shown"
            )
        elif tally.uneven:
            yield (
                f"{schema}: it has counts, and which events they are of stands in the table of contents only "
                "(xctrace export --input DOCUMENT --toc --output toc.xml, beside it)"
            )
        if self._weightless:
            yield f"{schema}: {plural(self._weightless, 'sample')} without a weight count for nothing"
        if tally.cut:
            yield (
                f"{schema}: too many distinct stacks; the inner frames of {format_percent(100 * tally.cut)} % "
                f"of the weight "
                "are not kept apart in the stacks (the tables are exact)"
            )
        if schema == RAW and tally.samples:
            yield "time-sample has addresses and no names of functions: export time-profile of the same document"
        elif 0 < tally.samples < ENOUGH_SAMPLES:
            yield f"{schema}: only {plural(tally.samples, 'sample')}, so shares are rough"

    def _note_others(self) -> Iterator[str]:
        ordered = sorted(self._others.items(), key=lambda named: (-named[1], named[0]))
        names = ", ".join(name for name, _ in ordered[:_NAMED]) + (", ..." if len(ordered) > _NAMED else "")
        if self._target is not None and self._single:
            yield (
                f"{self.schema}: its samples are of {names}, and the table of contents names "
                f"{process_label(self._target)}: they are counted, since the table is of one process"
            )
        elif self._target is not None:
            samples = plural(sum(self._others.values()), "sample")
            yield f"{self.schema}: not counted: {samples} of other processes ({names})"
        elif len(ordered) > 1:
            yield (
                f"{self.schema}: samples of {len(ordered)} processes are counted together ({names}): which one was "
                "profiled stands in the table of contents only (toc.xml, in the same folder)"
            )

    def counters(self) -> Iterator[Counter]:
        """What was counted over all samples, and the event that took them, where it was one.

        Kinds of cores are kept apart, as perf does: a cycle of one is no cycle of another.
        """
        tally = self.tally
        counts: dict[tuple[str, str | None], float] = dict(tally.counts())
        if tally.unit.unit not in ("s", "cycles", "samples", "events") and tally.samples:
            counts |= {(tally.unit.unit, kind): weight for kind, weight in tally.weights().items()}
        for (name, kind), value in counts.items():
            if not tally.samples:
                yield Counter(name, None, "not-counted", pmu=kind, reason="no sample of the profiled process")
            elif value == 0 and _NEVER_ZERO.fullmatch(name):
                yield Counter(name, None, "hard-zero", pmu=kind, reason="a program that ran has counted some")
            else:
                yield Counter(name, float(value), "measured", pmu=kind)


class GuidedTally:
    """Sums of each metric over the threads of the profiled process, in the part of the recording that counts."""

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._rows: list[tuple[int, int, str, float, bool]] = []

    def read(self, table: ExportTable) -> None:
        """Take all rows. Raises UnreadableReport as they do."""
        target, single = self._recording.target, table.attributes.get("target-pid") == "SINGLE"
        names = [next((c.mnemonic for c in table.columns if c.type == kind), "") for kind in _GUIDED_TYPES]
        for start, duration, thread, metric, whole, part, precise in table.rows(names):
            process = thread.process if isinstance(thread, Thread) else None
            if not (single or target is None or process is None or is_same_process(process, target)):
                continue
            value = part if isinstance(part, float) and part else whole
            known = isinstance(start, int) and isinstance(duration, int) and isinstance(metric, str)
            if known and isinstance(value, int | float):
                self._rows.append((start, duration, metric, value, bool(precise)))  # type: ignore[arg-type]

    def counters(self) -> tuple[Counter, ...]:
        """A counter for each metric that was more than nothing."""
        import numpy as np

        rows = [row for row in self._rows if row[4]] or self._rows
        shares = [1.0] * len(rows)
        if self._recording.windows is not None:
            start = np.array([row[0] for row in rows], dtype=np.int64)
            length = np.maximum(np.array([row[1] for row in rows], dtype=np.int64), 1)
            shares = (
                overlap_lengths(start, start + length, spans_of(self._recording.windows)) / length
            ).tolist()
        sums: dict[str, float] = {}
        for (_, _, metric, value, _), share in zip(rows, shares, strict=True):
            sums[metric] = sums.get(metric, 0.0) + value * share
        return tuple(
            Counter(name, value, "measured", unit="share" if name in SHARES else "")
            for name, value in sorted(sums.items())
            if value > 0
        )


class CpuTableReader:
    """Takes the CPU's tables of a recording one by one, and adds what they came to to its report.

    Only samples of the process that was profiled count, where the recording names it; else all do. Where a part of the
    recording counts, only samples within it do.
    """

    schemas = SCHEMAS

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables: list[SampledTable] = []
        self._frames = FrameNumbers()
        self._guided = GuidedTally(recording)

    def read(self, table: ExportTable) -> None:
        """Take all rows of one of the CPU's tables. Raises UnreadableReport as they do.

        Raw samples are read for want of named ones only: they are the same, and hold nothing more.
        """
        if table.schema == GUIDED:
            self._guided.read(table)
        elif table.schema != RAW or not any(
            known.tally.samples and known.tally.unit == TIME for known in self._tables
        ):
            self._tables.append(SampledTable(table, self._recording, self._frames))

    def finish(self, report: Report) -> Report:
        """The report with the samples' profiles and stacks, the counts, and what is to be said of both.

        Of several tables of one kind the one with most samples counts: they hold the same.
        """
        selected: list[SampledTable] = []
        warnings: list[str] = []
        for schema in SCHEMAS:
            tables = [table for table in self._tables if table.schema == schema]
            if tables:
                selected.append(max(tables, key=lambda table: table.tally.samples))
                warnings += selected[-1].warnings()
            if len(tables) > 1:
                warnings.append(
                    f"there are {len(tables)} tables of {schema}: the one with most samples counts"
                )
        if self._frames.table.full:
            warnings.append("too many different functions: the later ones are not kept apart")
        guided = self._guided.counters()
        facts = dict(report.facts)
        if samples := max((table.tally.samples for table in selected), default=0):
            facts["samples"] = str(samples)
        if (selected or guided) and self._recording.windows is not None:
            entries = plural(self._recording.alignment.entries, "entry", "entries")
            facts["region"] = f"counted in {entries}"
        return replace(
            report,
            profiles=(*report.profiles, *(part for table in selected for part in table.tally.profiles())),
            stacks=(*report.stacks, *(part for table in selected for part in table.tally.stacks())),
            counters=(*report.counters, *(part for table in selected for part in table.counters()), *guided),
            facts=facts,
            warnings=(*report.warnings, *dict.fromkeys(warnings)),
        )


def _weight_unit(table: ExportTable, shown: str | None) -> WeightUnit:
    """What the weights of `table` are: by its entry in the table of contents, else as Instruments shows them."""
    if table.schema == RAW:
        return SAMPLES
    if table.schema == "cpu-profile":
        return CYCLES
    if table.schema == "counters-profile":
        trigger, event = table.attributes.get("trigger"), _quoted_names(table.attributes.get("pmi-event"))
        by_time = trigger == "time" if trigger else shown is None or _TIMES.fullmatch(shown) is not None
        if not by_time:
            name = event[0] if event else "events"
            return WeightUnit(name, name)
    return TIME


def _events(table: ExportTable) -> tuple[str, ...]:
    return _quoted_names(table.attributes.get("pmc-events")) if table.schema == "counters-profile" else ()


def _quoted_names(attribute: str | None) -> tuple[str, ...]:
    """The names in an attribute of a table of contents, each in quotes: `"INST_ALL" "CORE_ACTIVE_CYCLE"`."""
    try:
        return tuple(name for name in shlex.split((attribute or "").replace(",", " ")) if name)
    except ValueError:
        return ()
