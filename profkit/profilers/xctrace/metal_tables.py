"""Reads the tables of Metal System Trace as columns: which cells of each are read, and as what.

Times are ns from the begin of the recording. A row of `metal-gpu-intervals` is a part of one encoder on one
channel (a render encoder has a vertex and a fragment part), of every process of the machine. Its
`start-latency` counts from when the command buffer was committed: seen so in recordings of an M1 and an M3
Ultra.

To read one more table, add its layout to `LAYOUTS`; it is then exported as well.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from profkit.core.codec import is_finite_number
from profkit.core.errors import UnreadableReport
from profkit.core.types import MetalCounter
from profkit.profilers.xctrace.spans import IntervalSet, overlap_lengths, union
from profkit.profilers.xctrace.tables import ExportTable
from profkit.profilers.xctrace.toc import EXPORT_AGAIN, Process, Value

INTERVALS, STATES = "metal-gpu-intervals", "metal-gpu-state-intervals"
ENCODERS = "metal-application-encoders-list"
# When Metal's compiler worked; which shaders it made; how long each ran, where the Shader Timeline was recorded.
COMPILER, SHADER_LIST = "graphics-compiler-activity-intervals", "metal-shader-profiler-shader-list"
SHADERS = "metal-shader-profiler-intervals"
FRAMES, DISPLAYED = "metal-command-buffer-frame-assignment", "displayed-surfaces-interval"

NO_ID = 0
UNKNOWN_LATENCY = -1
ACTIVE = "Active"
MORE = "[more names]"
NO_SHADER = "(no name)"
_MAX_NAMES = 1024  # of one column that are kept apart; what comes after has one name
_LATEST = 1 << 50  # ns: what lies beyond (13 days) is no time of a recording
_LARGEST = 1 << 62
_MAX_SKIPPED = 0.01  # of the rows: with more of them left out a sum of the others says nothing
# What Metal calls what the program gave no name.
_UNNAMED = re.compile(r"(?:\[\d+\] )?[A-Z][a-z]+(?: [A-Z][a-z]+)? \d+")

K = TypeVar("K")
Rows: TypeAlias = "Iterable[Sequence[Value]]"
ColumnKind: TypeAlias = Literal["name", "process", "id", "number"]


class NumberedNames(Generic[K]):
    """Numbers for things that repeat; all after the first 1,024 share one number, that of `more`."""

    def __init__(self, more: K) -> None:
        self.all: list[K] = []
        self._numbers: dict[K, int] = {}
        self._more = more

    def number(self, thing: K) -> int:
        """Return the number of `thing`, which it gets when it comes first."""
        number = self._numbers.get(thing)
        if number is None:
            if len(self.all) >= _MAX_NAMES and thing != self._more:
                return self.number(self._more)
            number = self._numbers[thing] = len(self.all)
            self.all.append(thing)
        return number


def parse_interval(start: Value, duration: Value) -> tuple[int, int] | None:
    """Return begin and end of a row; None where it has no valid time."""
    if not isinstance(start, int) or not isinstance(duration, int) or duration < 0:
        return None
    end = start + duration
    return (start, end) if -_LATEST < start <= end < _LATEST else None


def cell_text(value: Value) -> str:
    """Return the text in a cell, "" where it holds none."""
    return value.strip() if isinstance(value, str) else ""


def _parse_id(value: Value) -> int:
    """Return an id of Metal in 63 bits; 0 if there is none (0, or all bits set)."""
    if not isinstance(value, int) or value in (0, 0xFFFFFFFFFFFFFFFF, -1):
        return NO_ID
    return value & 0x7FFFFFFFFFFFFFFF


def _parse_number(value: Value) -> int:
    return value if isinstance(value, int) and 0 <= value < _LARGEST else UNKNOWN_LATENCY


def encoder_name(buffer: str, label: str) -> str:
    """Return an encoder's name: its label, after that of its command buffer where only that was given."""
    named = buffer and not _UNNAMED.fullmatch(buffer)
    if named and (not label or _UNNAMED.fullmatch(label)):
        return f"{buffer}: {label}" if label else buffer
    return label


def label_of(shown: str, process: Process | None) -> str:
    """Return the labels of `Command Buffer 0:Compute Command 0  ( python (42) )  0x4e189059`; "" without any."""
    owner = "n/a" if process is None else process.name
    if process is not None and process.pid is not None:
        owner = f"{owner} ({process.pid})"
    at = shown.rfind(owner)
    if at > 0:
        shown = shown[:at].rstrip().removesuffix("(").rstrip()
    return "" if shown == "GPU Execution" else shown


def _select_active_work(rows: Rows) -> Iterator[Sequence[Value]]:
    for start, duration, process, gpu, channel, label, state, *others in rows:
        if not isinstance(state, str) or state in ("", ACTIVE):
            shown = label_of(cell_text(label), process if isinstance(process, Process) else None)
            yield (start, duration, process, gpu, channel, shown, *others)


def _name_encoders(rows: Rows) -> Iterator[Sequence[Value]]:
    for start, duration, buffer_label, label, *others in rows:
        yield (start, duration, encoder_name(cell_text(buffer_label), cell_text(label)), *others)


def _select_presents(rows: Rows) -> Iterator[Sequence[Value]]:
    """Return the command buffers that present a frame: Metal numbers all others as frames, too."""
    return ((moment, 0, process) for moment, presents, process in rows if presents)


def _name_shaders(rows: Rows) -> Iterator[Sequence[Value]]:
    for start, duration, name, label, *others in rows:
        yield (start, duration, cell_text(name) or cell_text(label) or NO_SHADER, *others)


def _list_shaders(rows: Rows) -> Iterator[Sequence[Value]]:
    return _name_shaders((moment, 0, *others) for moment, *others in rows)


@dataclass(frozen=True)
class TableLayout:
    """The layout of a table: `cells` to read, the time first; `columns` what they become, after `prepare`."""

    cells: tuple[str, ...]
    columns: Mapping[str, ColumnKind]
    prepare: Callable[[Rows], Iterator[Sequence[Value]]] | None = None


_SPAN = ("start", "duration")
# In the order to be read in.
LAYOUTS = {
    INTERVALS: TableLayout(
        (*_SPAN, "process", "gpu", "channel-name", "event-label/@fmt", "state", "start-latency",
         "cmdbuffer-id", "encoder-id"),
        {"process": "process", "gpu": "name", "channel": "name", "label": "name", "latency": "number",
         "buffer": "id", "encoder": "id"},
        _select_active_work,
    ),
    STATES: TableLayout((*_SPAN, "state", "gpu"), {"state": "name", "gpu": "name"}),
    ENCODERS: TableLayout(
        (*_SPAN, "cmdbuffer-label", "encoder-label", "process", "encoder-id"),
        {"label": "name", "process": "process", "encoder": "id"},
        _name_encoders,
    ),
    COMPILER: TableLayout((*_SPAN, "process"), {"process": "process"}),
    SHADER_LIST: TableLayout(
        ("timestamp", "name", "label", "process"), {"name": "name", "process": "process"}, _list_shaders
    ),
    SHADERS: TableLayout(
        (*_SPAN, "name", "label", "process"), {"name": "name", "process": "process"}, _name_shaders
    ),
    FRAMES: TableLayout(("timestamp", "has-present", "process"), {"process": "process"}, _select_presents),
    DISPLAYED: TableLayout(_SPAN, {}),
}  # fmt: skip


class MetalTable:
    """Rows of one table: begin, end and other whole numbers, 8 bytes each.

    `names` maps the numbers of names to the names.
    """

    def __init__(self, layout: TableLayout) -> None:
        self.skipped = 0  # rows without a time
        self.names: dict[str, NumberedNames[Any]] = {}
        parsers: dict[ColumnKind, Callable[[Value], int]] = {"id": _parse_id, "number": _parse_number}
        self._parse = []
        for column, kind in layout.columns.items():
            if kind in parsers:
                self._parse.append(parsers[kind])
                continue
            names = self.names[column] = NumberedNames[Any](None if kind == "process" else MORE)
            self._parse.append(_number_process(names) if kind == "process" else _number_text(names))
        self._columns = {name: array("q") for name in ("start", "end", *layout.columns)}

    def add(self, rows: Rows) -> None:
        """Add rows as the layout has them after its preparation."""
        start, end, *columns = self._columns.values()
        cells = [(column.append, parse) for column, parse in zip(columns, self._parse, strict=True)]
        for first, duration, *values in rows:
            when = parse_interval(first, duration)
            if when is None:
                self.skipped += 1
                continue
            start.append(when[0])
            end.append(when[1])
            for (append, parse), value in zip(cells, values, strict=True):
                append(parse(value))

    def __len__(self) -> int:
        return len(self._columns["start"])

    def __getitem__(self, column: str) -> Any:
        """Return a column as an array; nothing can be added after that."""
        import numpy as np

        return np.frombuffer(self._columns[column], dtype="q")

    def arrays(self) -> dict[str, Any]:
        """Return all columns."""
        return {name: self[name] for name in self._columns}

    def where(self, column: str, wanted: Collection[object]) -> Any:
        """Return for each row whether its name in this column is one of the wanted."""
        import numpy as np

        numbers = [number for number, name in enumerate(self.names[column].all) if name in wanted]
        return np.isin(self[column], numbers)

    def times(self, rows: Any) -> IntervalSet:
        """Return the union of the times of some rows."""
        return union(self["start"][rows], self["end"][rows])


def _number_text(names: NumberedNames[str]) -> Callable[[Value], int]:
    return lambda value: names.number(cell_text(value))


def _number_process(names: NumberedNames[Process | None]) -> Callable[[Value], int]:
    return lambda value: names.number(value if isinstance(value, Process) else None)


class MetalTableSet:
    """All tables that were read. `rows`: by schema the rows of its longest table.

    Of several tables of one schema the longest counts: they hold the same, one for each instrument.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._tables = {schema: MetalTable(layout) for schema, layout in LAYOUTS.items()}

    def __getitem__(self, schema: str) -> MetalTable:
        return self._tables[schema]

    @property
    def skipped(self) -> int:
        """Return the number of rows without a time."""
        return sum(table.skipped for table in self._tables.values())

    def read(self, table: ExportTable) -> None:
        """Read the rows of one table. Raises UnreadableReport where too many of them have no time."""
        schema = table.schema
        layout = LAYOUTS[schema]
        rows = table.rows(layout.cells)
        fresh = MetalTable(layout)
        fresh.add(layout.prepare(rows) if layout.prepare else rows)
        count = len(fresh) + fresh.skipped
        if fresh.skipped > _MAX_SKIPPED * count:
            raise UnreadableReport(
                f"{table.path or schema}: {fresh.skipped:,} of its {count:,} rows have no time", EXPORT_AGAIN
            )
        if count > self.rows.get(schema, -1):
            self._tables[schema], self.rows[schema] = fresh, count


COUNTERS = "metal-gpu-counter-intervals"
_CELLS = ("start", "duration", "name", "value", "percent-value", "is-percentage")


class CounterSamples:
    """The samples of the tables that were read, as columns; numbered by name."""

    def __init__(self) -> None:
        self.skipped = 0  # rows without a time, a name or a value
        self._names = NumberedNames(MORE)
        self._in_percent: set[int] = set()
        self._start, self._end, self._counter = array("q"), array("q"), array("q")
        self._value = array("d")

    def read(self, table: ExportTable) -> int:
        """Read the rows of one table, and return how many there are."""
        rows = 0
        for start, duration, name, value, percentage, is_percentage in table.rows(_CELLS):
            rows += 1
            when = parse_interval(start, duration)
            amount = value if isinstance(value, (int, float)) else percentage
            if when is None or not is_finite_number(amount) or not name:
                self.skipped += 1
                continue
            number = self._names.number(cell_text(name))
            if is_percentage:
                self._in_percent.add(number)
            self._start.append(when[0])
            self._end.append(when[1])
            self._counter.append(number)
            self._value.append(amount)
        return rows

    @property
    def extent(self) -> tuple[int, int] | None:
        """Return the time from the begin of the first sample to the end of the last, in ns."""
        return (min(self._start), max(self._end)) if self._start else None

    def counters(self, part: IntervalSet, busy: IntervalSet | None) -> tuple[MetalCounter, ...]:
        """Return every counter in the part that counts, by name.

        `busy` is when the process had work on the GPU. The mean of a counter is the sum of value times the time that
        the sample held within the part, over the sum of those times.
        """
        import numpy as np

        if not self._start or not part.total:
            return ()
        start, end = np.frombuffer(self._start, dtype="q"), np.frombuffer(self._end, dtype="q")
        value, counter = np.frombuffer(self._value, dtype="d"), np.frombuffer(self._counter, dtype="q")
        held = overlap_lengths(start, end, part)
        worked = np.zeros(len(held)) if busy is None else overlap_lengths(start, end, part & busy)
        counters = []
        for number, name in enumerate(self._names.all):
            counts = (counter == number) & (held > 0)
            if not counts.any():
                continue
            values, weights, active = value[counts], held[counts], worked[counts]
            least, most = float(values.min()), float(values.max())
            counters.append(
                MetalCounter(
                    name,
                    "%" if number in self._in_percent else "",
                    _mean(values, weights, least, most),
                    least,
                    most,
                    int(counts.sum()),
                    active=_mean(values, active, least, most) if active.any() else None,
                    filled=float(active.sum() / weights[active > 0].sum()) if active.any() else None,
                )
            )
        return tuple(sorted(counters, key=lambda measured: measured.name))


def _mean(values: object, weights: object, least: float, most: float) -> float:
    """Return a weighted mean within `least` and `most`, which rounding of its sums may leave."""
    import numpy as np

    return min(max(float(np.average(values, weights=weights)), least), most)  # type: ignore[call-overload]
