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
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.stacks.merge import MOST_SLOTS, FrameTable
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
    SAMPLES,
    TIME,
    SampleTally,
    WeightUnit,
    frame_of,
    read_raw_samples,
    read_samples,
)
from profkit.profilers.xctrace.tables import ExportTable

MOST_PROCESSES = 1_000  # that are kept apart
# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100
_NAMED = 3  # other processes that a sentence names


class CpuNotes:
    """Whose samples count, and what became of the others, of one table."""

    def __init__(self, table: ExportTable, target: Process | None) -> None:
        self._table = table
        self._target = target
        self._seen: dict[str, list[float]] = {}  # process -> samples, weight; of those that count or not
        self._unit: WeightUnit | None = None
        # Such a table holds samples of what was profiled only, whatever name that had when the recording ended.
        self._single = table.attributes.get("target-pid") == "SINGLE"
        self.weightless = 0

    def counts(self, process: Process | None, weight: float | None, unit: WeightUnit) -> bool:
        """Note a sample of `process`; whether it counts. One whose process is not known counts."""
        self._unit = unit
        target = self._target
        if process is None:
            return True
        same = target is None or is_same_process(process, target)
        if same and target is not None:
            return True
        name = process_label(process) if len(self._seen) < MOST_PROCESSES else "[more processes]"
        row = self._seen.setdefault(name, [0, 0])
        row[0] += 1
        row[1] += weight or 0
        return same or self._single

    def thread(self, thread: Thread | None, process: Process | None) -> str:
        """How a thread is called in tables."""
        if thread is None:
            return "[unknown thread]"
        name = thread.name or "thread"
        if thread.tid is not None:
            name = f"{name} 0x{thread.tid:x}"
        return (
            f"{name} of {process_label(process)}"
            if self._target is None and process and len(self._seen) > 1
            else name
        )

    def warnings(self, tally: SampleTally, *, restricted: bool) -> list[str]:
        """Sentences about what does not count, and what is not known."""
        schema = self._table.schema
        found = [*self._note_others(schema)]
        if not tally.samples:
            found.append(self._explain_no_sample(schema, restricted=restricted))
        if tally.waiting:
            found.append(
                f"{schema}: {plural(tally.waiting, 'sample')} of threads that waited "
                f"stand apart, as waiting and not as CPU time"
            )
        if tally.samples and tally.without_stack:
            share = format_percent(100 * tally.without_stack / (tally.samples + tally.waiting))
            found.append(
                f"{schema}: {plural(tally.without_stack, 'sample')} ({share} %) without a stack: where is not known"
            )
        if tally.uneven:
            named = self._table.attributes.get("pmc-events")
            found.append(
                f"{schema}: the counts of {plural(tally.uneven, 'sample')} do not fit the events that the table of "
                f"contents names ({named}), so none is shown"
                if named
                else f"{schema}: it has counts, and which events they are of stands in the table of contents only "
                "(xctrace export --input DOCUMENT --toc --output toc.xml, beside it)"
            )
        if self.weightless:
            found.append(f"{schema}: {plural(self.weightless, 'sample')} without a weight count for nothing")
        if tally.cut:
            found.append(
                f"{schema}: too many distinct stacks; the inner frames of {format_percent(100 * tally.cut)} % "
                f"of the weight "
                "are not kept apart in the stacks (the tables are exact)"
            )
        if schema == "time-sample" and tally.samples:
            found.append(
                "time-sample has addresses and no names of functions: export time-profile of the same document"
            )
        if 0 < tally.samples < ENOUGH_SAMPLES and tally.unit != SAMPLES:
            found.append(f"{schema}: only {plural(tally.samples, 'sample')}, so shares are rough")
        return found

    def _explain_no_sample(self, schema: str, *, restricted: bool) -> str:
        where = " in the marked region" if restricted else ""
        if self._target is not None and self._seen:
            return f"{schema}: no sample of {process_label(self._target)}{where}"
        return f"{schema}: it holds no sample{where}"

    def _note_others(self, schema: str) -> list[str]:
        if not self._seen or self._unit is None:
            return []
        ordered = sorted(self._seen.items(), key=lambda one: (-one[1][1], one[0]))
        names = ", ".join(name for name, _ in ordered[:_NAMED]) + (", ..." if len(ordered) > _NAMED else "")
        samples = int(sum(row[0] for row in self._seen.values()))
        if self._target is not None and self._single:
            return [
                f"{schema}: its samples are of {names}, and the table of contents names "
                f"{process_label(self._target)}: they are counted, since the table is of one process"
            ]
        if self._target is not None:
            return [f"{schema}: not counted: {plural(samples, 'sample')} of other processes ({names})"]
        if len(ordered) > 1:
            return [
                f"{schema}: samples of {len(ordered)} processes are counted together ({names}): which one was profiled "
                "stands in the table of contents only (toc.xml, in the same folder)"
            ]
        return []


GUIDED = "MetricAggregationForThread"
SHARES = ("useful", "delivery", "processing", "discarded")
MOST_METRICS = 200
_TYPES = ("start-time", "duration", "thread", "string", "uint64", "fixed-decimal", "boolean")


class GuidedTally:
    """Sums of each metric over the threads of the profiled process, in the part of the recording that counts."""

    def __init__(self, recording: TraceRecording) -> None:
        self._target = recording.target
        self._windows = recording.windows
        self._sums: dict[bool, dict[str, float]] = {True: {}, False: {}}

    def read(self, table: ExportTable) -> None:
        """Take all rows. Raises UnreadableReport as they do."""
        names = [next((c.mnemonic for c in table.columns if c.type == kind), "") for kind in _TYPES]
        single = table.attributes.get("target-pid") == "SINGLE"
        for start, duration, thread, metric, whole, part, precise in table.rows(names):
            if not (isinstance(start, int) and isinstance(duration, int) and isinstance(metric, str)):
                continue
            process = thread.process if isinstance(thread, Thread) else None
            if not (
                single or self._target is None or process is None or is_same_process(process, self._target)
            ):
                continue
            value = part if isinstance(part, float) and part else whole
            if not isinstance(value, int | float):
                continue
            sums = self._sums[bool(precise)]
            if metric in sums or len(sums) < MOST_METRICS:
                sums[metric] = sums.get(metric, 0.0) + value * self._share(start, start + duration)

    def _share(self, begin: int, end: int) -> float:
        """How much (0..1) of a stretch lies in what counts."""
        windows = self._windows
        if windows is None:
            return 1.0
        if end <= begin:
            return 1.0 if any(a <= begin < b for a, b in windows) else 0.0
        return _covered_time(windows, begin, end) / (end - begin)

    def counters(self) -> tuple[Counter, ...]:
        """A counter for each metric that was more than nothing."""
        sums = self._sums[True] or self._sums[False]
        return tuple(
            Counter(name, value, "measured", unit="share" if name in SHARES else "")
            for name, value in sorted(sums.items())
            if value > 0
        )


def _covered_time(windows: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """How many ns of [begin, end) lie in `windows`, which are sorted and apart."""
    total = 0
    place = max(0, bisect_left(windows, (begin, begin)) - 1)
    for a, b in windows[place:]:
        if a >= end:
            break
        total += max(0, min(b, end) - max(a, begin))
    return total


SYMBOLS = ("time-profile", "counters-profile", "cpu-profile")
RAW = "time-sample"
SCHEMAS = (*SYMBOLS, RAW, GUIDED)

_TIMES = re.compile(r".*\d\s*(ns|µs|μs|us|ms|s|sec|min|h)\b.*", re.DOTALL)
_KNOWN = 200_000  # stacks, and frames, whose numbers are kept; a 500 MB table has some 100,000 stacks


class CpuTableReader:
    """Takes the CPU's tables of a recording one by one, and adds what they came to to its report.

    Only samples of the process that was profiled count, where the recording names it; else all do. Where a part of the
    recording counts, only samples within it do.
    """

    schemas = SCHEMAS

    def __init__(self, recording: TraceRecording) -> None:
        self._target = recording.target
        self._recording = recording
        self._entries = recording.alignment.entries if recording.windows is not None else 0
        self._tables: list[tuple[str, SampleTally, CpuNotes]] = []
        # By identity, which costs no look at the frames; what is in the value keeps that identity from being reused.
        self._stacks: dict[int, tuple[Backtrace, tuple[int, ...]]] = {}
        self._slots = 0  # frames in them, together
        self._functions: dict[int, tuple[StackFrame, int]] = {}
        self._frames = FrameTable()
        self._guided = GuidedTally(recording)

    def read(self, table: ExportTable) -> None:
        """Take all rows of one of the CPU's tables. Raises UnreadableReport as they do.

        Raw samples are read for want of named ones only: they are the same, and hold nothing more.
        """
        if table.schema == GUIDED:
            self._guided.read(table)
            return
        if table.schema == RAW and self._has_time():
            return
        samples = read_raw_samples(table) if table.schema == RAW else read_samples(table)
        tally: SampleTally | None = None
        notes = CpuNotes(table, self._target)
        for time, thread, process, state, weight, stack, counts, shown, core in samples:
            if tally is None:
                tally = SampleTally(self._frames, _weight_unit(table, shown), _events(table))
            if not notes.counts(process, weight, tally.unit) or not self._recording.includes(time):
                continue
            if weight is None:
                notes.weightless += 1
            ids = () if stack is None else self._stack(stack)
            tally.add(ids, weight or 0, notes.thread(thread, process), state, counts, core)
        if tally is None:
            tally = SampleTally(self._frames, _weight_unit(table, None), _events(table))
        self._tables.append((table.schema, tally, notes))

    def _has_time(self) -> bool:
        return any(tally.samples and tally.unit == TIME for _, tally, _ in self._tables)

    def _stack(self, stack: Backtrace) -> tuple[int, ...]:
        """The numbers of its frames, innermost first; equal stacks of one export are one object, looked at once."""
        known = self._stacks.get(id(stack))
        if known is not None:
            return known[1]
        ids = tuple([self._function(frame) for frame in stack.frames])
        self._slots += len(ids)
        if len(self._stacks) < _KNOWN and self._slots < MOST_SLOTS:
            self._stacks[id(stack)] = stack, ids
        return ids

    def _function(self, frame: StackFrame) -> int:
        known = self._functions.get(id(frame))
        if known is not None:
            return known[1]
        binary = frame.binary
        number = self._frames.add(frame_of(frame.name, (binary.name or binary.path) if binary else None))
        if len(self._functions) < _KNOWN:
            self._functions[id(frame)] = frame, number
        return number

    def finish(self, report: Report) -> Report:
        """The report with the samples' profiles and stacks, the counts, and what is to be said of both.

        Of several tables of one kind the one with most samples counts: they hold the same.
        """
        chosen: dict[str, tuple[SampleTally, CpuNotes]] = {}
        repeated: dict[str, int] = {}
        for schema, tally, notes in self._tables:
            repeated[schema] = repeated.get(schema, 0) + 1
            if schema not in chosen or tally.samples > chosen[schema][0].samples:
                chosen[schema] = tally, notes
        selected = [(schema, *chosen[schema]) for schema in SCHEMAS if schema in chosen]
        warnings: list[str] = []
        for schema, tally, notes in selected:
            warnings += notes.warnings(tally, restricted=bool(self._entries))
            if repeated[schema] > 1:
                warnings.append(
                    f"there are {repeated[schema]} tables of {schema}: the one with most samples counts"
                )
        if self._frames.full:
            warnings.append("too many different functions: the later ones are not kept apart")
        guided = self._guided.counters()
        samples = max((tally.samples for _, tally, _ in selected), default=0)
        facts = {"samples": str(samples)} if samples else {}
        if (selected or guided) and self._entries:
            facts["region"] = f"counted in {plural(self._entries, 'entry', 'entries')}"
        return replace(
            report,
            profiles=(
                *report.profiles,
                *(profile for _, tally, _ in selected for profile in tally.profiles()),
            ),
            stacks=(*report.stacks, *(stacks for _, tally, _ in selected for stacks in tally.stacks())),
            counters=(
                *report.counters,
                *(counter for _, tally, _ in selected for counter in _counters(tally)),
                *guided,
            ),
            facts={**report.facts, **facts},
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


# A thread that ran for a millisecond has counted these; a 0 is a counter that was not on.
_NEVER_ZERO = re.compile(
    r"FIXED_\w+|INST_ALL|CORE_ACTIVE_CYCLE|Cycles|Instructions|INST_RETIRED\..*|CPU_CLK_.*"
)


def _counters(tally: SampleTally) -> Iterator[Counter]:
    """What was counted over all samples, and the event that took them, where it was one.

    Kinds of cores are kept apart, as perf does: a cycle of one is no cycle of another.
    """
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
