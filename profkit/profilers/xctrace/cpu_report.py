"""The CPU's side of an export: what the samples of the profiled process fell on, and what its cores counted.

Tables of Time Profiler (`time-profile`, or raw `time-sample`), CPU Profiler (`cpu-profile`: sampled by cycles) and CPU
Counters (`counters-profile`: sampled by time or by an event, with counts since the thread's sample before).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from profkit.analysis.stacks.merge import MOST_SLOTS, FrameTable
from profkit.core.formatting import plural
from profkit.core.types import Counter, Report
from profkit.profilers.xctrace.cells import Backtrace, Frame
from profkit.profilers.xctrace.cpu_frames import frame_of
from profkit.profilers.xctrace.cpu_guided import SCHEMA, GuidedTally
from profkit.profilers.xctrace.cpu_notes import CpuNotes
from profkit.profilers.xctrace.cpu_rows import raw_rows, rows
from profkit.profilers.xctrace.cpu_samples import CYCLES, SAMPLES, TIME, SampleTally, Unit, Windows
from profkit.profilers.xctrace.recording import Recording
from profkit.profilers.xctrace.tables import Table

SYMBOLS = ("time-profile", "counters-profile", "cpu-profile")
RAW = "time-sample"
SCHEMAS = (*SYMBOLS, RAW, SCHEMA)

_TIMES = re.compile(r".*\d\s*(ns|µs|μs|us|ms|s|sec|min|h)\b.*", re.DOTALL)
_KNOWN = 200_000  # stacks, and frames, whose numbers are kept; a 500 MB table has some 100,000 stacks


class CpuPiece:
    """Takes the CPU's tables of a recording one by one, and adds what they came to to its report.

    Only samples of the process that was profiled count, where the recording names it; else all do. Where a part of the
    recording counts, only samples within it do.
    """

    schemas = SCHEMAS

    def __init__(self, recording: Recording) -> None:
        self._target = recording.target
        self._windows = Windows(recording.windows)
        self._entries = recording.alignment.entries if recording.windows is not None else 0
        self._tables: list[tuple[str, SampleTally, CpuNotes]] = []
        # By identity, which costs no look at the frames; what is in the value keeps that identity from being reused.
        self._stacks: dict[int, tuple[Backtrace, tuple[int, ...]]] = {}
        self._slots = 0  # frames in them, together
        self._functions: dict[int, tuple[Frame, int]] = {}
        self._frames = FrameTable()
        self._guided = GuidedTally(recording)

    def read(self, table: Table) -> None:
        """Take all rows of one of the CPU's tables. Raises UnreadableReport as they do.

        Raw samples are read for want of named ones only: they are the same, and hold nothing more.
        """
        if table.schema == SCHEMA:
            self._guided.read(table)
            return
        if table.schema == RAW and self._has_time():
            return
        samples = raw_rows(table) if table.schema == RAW else rows(table)
        tally: SampleTally | None = None
        notes = CpuNotes(table, self._target)
        for time, thread, process, state, weight, stack, counts, shown, core in samples:
            if tally is None:
                tally = SampleTally(self._frames, _unit(table, shown), _events(table))
            if not notes.counts(process, weight, tally.unit) or not self._windows.hold(time):
                continue
            if weight is None:
                notes.weightless += 1
            ids = () if stack is None else self._stack(stack)
            tally.add(ids, weight or 0, notes.thread(thread, process), state, counts, core)
        if tally is None:
            tally = SampleTally(self._frames, _unit(table, None), _events(table))
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

    def _function(self, frame: Frame) -> int:
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

        Of several tables of one kind the one with most samples is told: they hold the same.
        """
        chosen: dict[str, tuple[SampleTally, CpuNotes]] = {}
        repeated: dict[str, int] = {}
        for schema, tally, notes in self._tables:
            repeated[schema] = repeated.get(schema, 0) + 1
            if schema not in chosen or tally.samples > chosen[schema][0].samples:
                chosen[schema] = tally, notes
        told = [(schema, *chosen[schema]) for schema in SCHEMAS if schema in chosen]
        warnings: list[str] = []
        for schema, tally, notes in told:
            warnings += notes.warnings(tally, restricted=bool(self._entries))
            if repeated[schema] > 1:
                warnings.append(
                    f"there are {repeated[schema]} tables of {schema}: the one with most samples is told"
                )
        if self._frames.full:
            warnings.append("too many different functions: the later ones are not told apart")
        guided = self._guided.counters()
        samples = max((tally.samples for _, tally, _ in told), default=0)
        facts = {"samples": str(samples)} if samples else {}
        if (told or guided) and self._entries:
            facts["region"] = f"counted in {plural(self._entries, 'entry', 'entries')}"
        return replace(
            report,
            profiles=(*report.profiles, *(profile for _, tally, _ in told for profile in tally.profiles())),
            stacks=(*report.stacks, *(stacks for _, tally, _ in told for stacks in tally.stacks())),
            counters=(
                *report.counters,
                *(counter for _, tally, _ in told for counter in _counters(tally)),
                *guided,
            ),
            facts={**report.facts, **facts},
            warnings=(*report.warnings, *dict.fromkeys(warnings)),
        )


def _unit(table: Table, shown: str | None) -> Unit:
    """What the weights of `table` are: by its entry in the table of contents, else as Instruments shows them."""
    if table.schema == RAW:
        return SAMPLES
    if table.schema == "cpu-profile":
        return CYCLES
    if table.schema == "counters-profile":
        trigger, event = table.attributes.get("trigger"), _names(table.attributes.get("pmi-event"))
        by_time = trigger == "time" if trigger else shown is None or _TIMES.fullmatch(shown) is not None
        if not by_time:
            name = event[0] if event else "events"
            return Unit(name, name)
    return TIME


def _events(table: Table) -> tuple[str, ...]:
    return _names(table.attributes.get("pmc-events")) if table.schema == "counters-profile" else ()


def _names(attribute: str | None) -> tuple[str, ...]:
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

    Kinds of cores are told apart, as perf does: a cycle of one is no cycle of another.
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
