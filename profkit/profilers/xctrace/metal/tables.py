"""The tables of Metal System Trace and of GPU counters: which columns are read, by which class, and the small ones.

A state of the GPU's clocks ("Minimum", "Medium", "Maximum") is recorded only while it runs. The column `is-induced` of
that table says yes in recordings that induced nothing (M3 Ultra, A16), so it is not read: what was induced stands in
the table of contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from profkit.analysis.timeline.records import Spool
from profkit.analysis.timeline.spans import Spans, empty_spans, overlap_lengths
from profkit.core.types import MetalState
from profkit.profilers.xctrace.cells import Process, Value
from profkit.profilers.xctrace.metal.counters import (
    COUNTER,
    COUNTER_INFO,
    COUNTER_VALUES,
    COUNTERS,
    RAW_SAMPLE,
    SAMPLE,
    CounterSamples,
)
from profkit.profilers.xctrace.metal.sums import (
    LISTED,
    SHADER,
    SHADER_LIST,
    SHADER_PC,
    SHADER_PCS,
    SHADERS,
    ShaderTimes,
)
from profkit.profilers.xctrace.metal.work import (
    COMPLETED,
    COMPLETION,
    ENCODER,
    ENCODERS,
    ERROR,
    ERRORS,
    FRAME,
    FRAMES,
    INTERVALS,
    STATE,
    STATES,
    SUBMISSION,
    SUBMISSIONS,
    WORK,
    Columns,
    Completions,
    Encoders,
    FailedBuffers,
    GpuStates,
    GpuWork,
    PresentedFrames,
    Submissions,
    cell_text,
    parse_interval,
    process_of,
    times_of,
)
from profkit.profilers.xctrace.tables import ExportTable

PERFORMANCE = "gpu-performance-state-intervals"
THERMAL = "device-thermal-state-intervals"
MEMORY = "metal-current-allocated-size"
COMPILER = "graphics-compiler-activity-intervals"
GPU_INFO = "device-gpu-info"
PERFORMANCE_STATE = ("start", "duration", "gpu-performance-state", "track-label")
THERMAL_STATE = ("start", "duration", "thermal-state", "track-label")
ALLOCATED = ("start", "duration", "process", "current-allocated-size")
COMPILING = ("start", "duration", "process")
INFO = ("device-name", "vendor-name", "recommended-max-working-set-size")

MOST_STATES = 64
OTHER = "[other states]"


@dataclass
class StateIntervals:
    """Fed with rows of begin, duration, state and track."""

    skipped: int = 0
    _found: dict[tuple[str, str], Columns] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `PERFORMANCE_STATE` or `THERMAL_STATE`."""
        for start, duration, state, track in rows:
            when = parse_interval(start, duration)
            name = cell_text(state)
            if when is None or not name:
                self.skipped += 1
                continue
            key = (cell_text(track), name)
            if key not in self._found and len(self._found) >= MOST_STATES:
                key = ("", OTHER)
            self._found.setdefault(key, Columns("start", "end")).add(*when)

    @property
    def tracks(self) -> frozenset[str]:
        """The names of all tracks."""
        return frozenset(track for track, _ in self._found)

    def spans(self, track: str | None = None) -> dict[str, Spans]:
        """When each state held, on one track or on all."""
        found: dict[str, Spans] = {}
        for (where, name), columns in self._found.items():
            if track is None or where == track:
                times = times_of(columns)
                found[name] = found[name] | times if name in found else times
        return found


def states_in(found: Mapping[str, Spans], part: Spans, busy: Spans | None) -> tuple[MetalState, ...]:
    """How long each state held in the part that counts, longest first; `busy`: when the process had the GPU."""
    told = [
        MetalState(
            name, (spans & part).total / 1e9, None if busy is None else (spans & part & busy).total / 1e9
        )
        for name, spans in found.items()
    ]
    return tuple(sorted((state for state in told if state.seconds > 0), key=lambda s: (-s.seconds, s.name)))


@dataclass
class AllocatedMemory:
    """Fed with rows of how many bytes Metal had allocated for each process, and from when to when."""

    skipped: int = 0
    _found: dict[Process | None, Columns] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ALLOCATED`."""
        for start, duration, process, size in rows:
            when = parse_interval(start, duration)
            if when is None or not isinstance(size, int) or not 0 <= size < 1 << 60:
                self.skipped += 1
                continue
            self._found.setdefault(process_of(process), Columns("start", "end", "size")).add(*when, size)

    def peak(self, processes: Iterable[Process | None], part: Spans) -> int | None:
        """The most bytes of one of the processes in the part that counts; None where nothing is told of them then."""
        peaks = []
        for process in processes:
            if process in self._found:
                table = self._found[process].arrays()
                inside = overlap_lengths(table["start"], table["end"], part) > 0
                peaks += [int(table["size"][inside].max())] if inside.any() else []
        return max(peaks, default=None)


@dataclass
class CompilerActivity:
    """Fed with rows of when Metal's compiler worked for each process."""

    skipped: int = 0
    rows: int = 0
    _found: dict[Process | None, Columns] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COMPILING`."""
        for start, duration, process in rows:
            when = parse_interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self.rows += 1
            self._found.setdefault(process_of(process), Columns("start", "end")).add(*when)

    def times(self, processes: Iterable[Process | None]) -> Spans:
        """When it worked for one of the processes."""
        whole = empty_spans()
        for process in processes:
            whole = whole | times_of(self._found.get(process))
        return whole


@dataclass
class GpuInfos:
    """Fed with rows of `device-gpu-info`: vendor, name, and how much memory Metal recommends to use at one time."""

    found: dict[str, tuple[str, int | None]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `INFO`."""
        for name, vendor, size in rows:
            if cell_text(name):
                self.found[cell_text(name)] = (
                    cell_text(vendor),
                    size if isinstance(size, int) and size > 0 else None,
                )


Rows = Iterable[Sequence[Value]]


class RowConsumer(Protocol):
    """Takes the rows of one table."""

    def add(self, rows: Rows) -> None:
        """All of them."""


T = TypeVar("T", bound=RowConsumer)


@dataclass
class LongestTable(Generic[T]):
    """Of several tables of one schema the one with most rows: they hold the same, one for each instrument."""

    make: Callable[[], T]
    best: T
    rows: int = -1
    tables: int = 0

    def read(self, rows: Rows) -> None:
        """One table."""
        fresh, count = self.make(), _RowCount(rows)
        fresh.add(count)
        self.tables += 1
        if count.rows > self.rows:
            self.best, self.rows = fresh, count.rows


@dataclass
class _RowCount:
    """Rows, and how many there were."""

    source: Rows
    rows: int = 0

    def __iter__(self) -> Iterator[Sequence[Value]]:
        for row in self.source:
            self.rows += 1
            yield row


def _longest_table(make: Callable[[], T]) -> LongestTable[T]:
    return LongestTable(make, make())


@dataclass
class MetalTables:
    """All that was read. `rows`: of each schema that was there the most rows of a table.

    What the GPU did beyond `latest` ns is no time of this recording: such rows are `outside`, and have none.
    """

    spool: Spool
    latest: int | None = None
    gpu_work: LongestTable[GpuWork] = field(default_factory=lambda: _longest_table(GpuWork))
    gpu_states: LongestTable[GpuStates] = field(default_factory=lambda: _longest_table(GpuStates))
    encoders: LongestTable[Encoders] = field(default_factory=lambda: _longest_table(Encoders))
    submissions: LongestTable[Submissions] = field(default_factory=lambda: _longest_table(Submissions))
    completions: LongestTable[Completions] = field(default_factory=lambda: _longest_table(Completions))
    presents: LongestTable[PresentedFrames] = field(default_factory=lambda: _longest_table(PresentedFrames))
    errors: LongestTable[FailedBuffers] = field(default_factory=lambda: _longest_table(FailedBuffers))
    performance: LongestTable[StateIntervals] = field(default_factory=lambda: _longest_table(StateIntervals))
    thermal: LongestTable[StateIntervals] = field(default_factory=lambda: _longest_table(StateIntervals))
    memory: LongestTable[AllocatedMemory] = field(default_factory=lambda: _longest_table(AllocatedMemory))
    compiling: LongestTable[CompilerActivity] = field(
        default_factory=lambda: _longest_table(CompilerActivity)
    )
    infos: LongestTable[GpuInfos] = field(default_factory=lambda: _longest_table(GpuInfos))
    shaders: ShaderTimes = field(default_factory=ShaderTimes)
    counters: CounterSamples = field(init=False)
    rows: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counters = CounterSamples(self.spool)

    def takers(self) -> dict[str, tuple[tuple[str, ...], Callable[[Rows], None]]]:
        """By schema the columns that are wanted of it, and who takes them; in the order to be read in."""
        return {
            INTERVALS: (WORK, self.gpu_work.read),
            STATES: (STATE, self.gpu_states.read),
            ENCODERS: (ENCODER, self.encoders.read),
            SUBMISSIONS: (SUBMISSION, self.submissions.read),
            COMPLETED: (COMPLETION, self.completions.read),
            FRAMES: (FRAME, self.presents.read),
            ERRORS: (ERROR, self.errors.read),
            PERFORMANCE: (PERFORMANCE_STATE, self.performance.read),
            THERMAL: (THERMAL_STATE, self.thermal.read),
            MEMORY: (ALLOCATED, self.memory.read),
            COMPILER: (COMPILING, self.compiling.read),
            GPU_INFO: (INFO, self.infos.read),
            SHADERS: (SHADER, self.shaders.add),
            SHADER_LIST: (LISTED, self.shaders.add_list),
            SHADER_PCS: (SHADER_PC, self.shaders.add_pcs),
            COUNTERS: (SAMPLE, self.counters.add),
            COUNTER_INFO: (COUNTER, self.counters.add_info),
            COUNTER_VALUES: (RAW_SAMPLE, self.counters.add_raw),
        }

    def read(self, table: ExportTable) -> None:
        """The rows of one table."""
        wanted, take = self.takers()[table.schema]
        found: Rows = table.rows(wanted)  # type: ignore[assignment]
        if self.latest is not None and table.schema in (INTERVALS, STATES):
            found = self._drop_outside(table.schema, found, self.latest)
        rows = _RowCount(found)
        take(rows)
        self.rows[table.schema] = max(self.rows.get(table.schema, 0), rows.rows)

    def _drop_outside(self, schema: str, rows: Rows, latest: int) -> Iterator[Sequence[Value]]:
        """The rows, without a start where they lie outside; the first two columns are start and duration."""
        outside = 0
        for row in rows:
            start, duration = row[0], row[1]
            if (
                isinstance(start, int)
                and isinstance(duration, int)
                and not -latest <= start <= start + duration <= latest
                and duration >= 0
            ):
                outside += 1
                self.outside[schema] = max(outside, self.outside.get(schema, 0))
                yield (None, *row[1:])
            else:
                yield row

    @property
    def believed_states(self) -> GpuStates:
        """When GPUs were active; as if nothing had been told where too many rows tell no time."""
        states = self.gpu_states.best
        return states if states.tells_time else GpuStates()

    @property
    def timeless(self) -> dict[str, int]:
        """How many rows told no time of this recording, by schema, where those are too many to sum up the others."""
        both: dict[str, GpuWork | GpuStates] = {
            INTERVALS: self.gpu_work.best,
            STATES: self.gpu_states.best,
        }
        return {schema: one.skipped for schema, one in both.items() if not one.tells_time}
