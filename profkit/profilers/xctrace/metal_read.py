"""The tables of Metal System Trace and of GPU counters: which columns of them are read, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from profkit.analysis.timeline.records import Spool
from profkit.profilers.xctrace import metal_counters as counting
from profkit.profilers.xctrace import metal_host as host
from profkit.profilers.xctrace import metal_shaders as shading
from profkit.profilers.xctrace import metal_states as states
from profkit.profilers.xctrace import metal_work as work
from profkit.profilers.xctrace.cells import Value
from profkit.profilers.xctrace.tables import Table

Rows = Iterable[Sequence[Value]]


class Taker(Protocol):
    """Takes the rows of one table."""

    def add(self, rows: Rows) -> None:
        """All of them."""


T = TypeVar("T", bound=Taker)


@dataclass
class Kept(Generic[T]):
    """Of several tables of one schema the one with most rows: they hold the same, one for each instrument."""

    make: Callable[[], T]
    best: T
    rows: int = -1
    tables: int = 0

    def read(self, rows: Rows) -> None:
        """One table."""
        fresh, count = self.make(), _Count(rows)
        fresh.add(count)
        self.tables += 1
        if count.rows > self.rows:
            self.best, self.rows = fresh, count.rows


@dataclass
class _Count:
    """Rows, and how many there were."""

    source: Rows
    rows: int = 0

    def __iter__(self) -> Iterator[Sequence[Value]]:
        for row in self.source:
            self.rows += 1
            yield row


def _kept(make: Callable[[], T]) -> Kept[T]:
    return Kept(make, make())


@dataclass
class MetalTables:
    """All that was read. `rows`: of each schema that was there the most rows of a table.

    What the GPU did beyond `latest` ns is no time of this recording: such rows are `outside`, and have none.
    """

    spool: Spool
    latest: int | None = None
    gpu_work: Kept[work.GpuWork] = field(default_factory=lambda: _kept(work.GpuWork))
    gpu_states: Kept[work.GpuStates] = field(default_factory=lambda: _kept(work.GpuStates))
    encoders: Kept[host.Encoders] = field(default_factory=lambda: _kept(host.Encoders))
    submissions: Kept[host.Submissions] = field(default_factory=lambda: _kept(host.Submissions))
    completions: Kept[host.Completions] = field(default_factory=lambda: _kept(host.Completions))
    presents: Kept[host.Presents] = field(default_factory=lambda: _kept(host.Presents))
    errors: Kept[host.Errors] = field(default_factory=lambda: _kept(host.Errors))
    performance: Kept[states.States] = field(default_factory=lambda: _kept(states.States))
    thermal: Kept[states.States] = field(default_factory=lambda: _kept(states.States))
    memory: Kept[states.Levels] = field(default_factory=lambda: _kept(states.Levels))
    compiling: Kept[states.Compiling] = field(default_factory=lambda: _kept(states.Compiling))
    infos: Kept[states.GpuInfos] = field(default_factory=lambda: _kept(states.GpuInfos))
    shaders: shading.ShaderTimes = field(default_factory=shading.ShaderTimes)
    counters: counting.CounterSamples = field(init=False)
    rows: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counters = counting.CounterSamples(self.spool)

    def takers(self) -> dict[str, tuple[tuple[str, ...], Callable[[Rows], None]]]:
        """By schema the columns that are wanted of it, and who takes them; in the order to be read in."""
        return {
            work.INTERVALS: (work.WORK, self.gpu_work.read),
            work.STATES: (work.STATE, self.gpu_states.read),
            host.ENCODERS: (host.ENCODER, self.encoders.read),
            host.SUBMISSIONS: (host.SUBMISSION, self.submissions.read),
            host.COMPLETED: (host.COMPLETION, self.completions.read),
            host.FRAMES: (host.FRAME, self.presents.read),
            host.ERRORS: (host.ERROR, self.errors.read),
            states.PERFORMANCE: (states.PERFORMANCE_STATE, self.performance.read),
            states.THERMAL: (states.THERMAL_STATE, self.thermal.read),
            states.MEMORY: (states.ALLOCATED, self.memory.read),
            states.COMPILER: (states.COMPILING, self.compiling.read),
            states.GPU_INFO: (states.INFO, self.infos.read),
            shading.SHADERS: (shading.SHADER, self._shaders),
            shading.SHADER_LIST: (shading.LISTED, self.shaders.add_list),
            shading.SHADER_PCS: (shading.SHADER_PC, self._shader_pcs),
            counting.COUNTERS: (counting.SAMPLE, self._counters),
            counting.COUNTER_INFO: (counting.COUNTER, self.counters.add_info),
            counting.COUNTER_VALUES: (counting.RAW_SAMPLE, self._counter_values),
        }

    def read(self, table: Table) -> None:
        """The rows of one table."""
        wanted, take = self.takers()[table.schema]
        found: Rows = table.rows(wanted)  # type: ignore[assignment]
        if self.latest is not None and table.schema in (work.INTERVALS, work.STATES):
            found = self._inside(table.schema, found, self.latest)
        rows = _Count(found)
        take(rows)
        self.rows[table.schema] = max(self.rows.get(table.schema, 0), rows.rows)

    def _inside(self, schema: str, rows: Rows, latest: int) -> Iterator[Sequence[Value]]:
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
    def told_states(self) -> work.GpuStates:
        """When GPUs were active; as if nothing had been told where too many rows tell no time."""
        states = self.gpu_states.best
        return states if states.tells_time else work.GpuStates()

    @property
    def timeless(self) -> dict[str, int]:
        """How many rows told no time of this recording, by schema, where those are too many to sum up the others."""
        both: dict[str, work.GpuWork | work.GpuStates] = {
            work.INTERVALS: self.gpu_work.best,
            work.STATES: self.gpu_states.best,
        }
        return {schema: one.skipped for schema, one in both.items() if not one.tells_time}

    # What follows is summed up as it comes, so of several tables that hold the same the first with rows is taken.

    def _shaders(self, rows: Rows) -> None:
        if not self.shaders.rows:
            self.shaders.add(rows)

    def _shader_pcs(self, rows: Rows) -> None:
        if not self.shaders.rows:
            self.shaders.add_pcs(rows)

    def _counters(self, rows: Rows) -> None:
        if not self.counters.rows:
            self.counters.add(rows)

    def _counter_values(self, rows: Rows) -> None:
        if not self.counters.rows:
            self.counters.add_raw(rows)
