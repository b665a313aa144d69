"""What ran on the GPU and when, and what the program asked of it: encoders, command buffers committed and completed.

Each class takes the rows of one table and keeps 8 bytes for each number of a row. Times are ns from the begin of the
recording. A row of `metal-gpu-intervals` is a part of one encoder on one channel (a render encoder has a vertex and a
fragment part), of every process of the machine.

A command buffer is committed at the end of its row in `metal-application-command-buffer-submissions` (the row begins
when it was made); that is the `commit-time` of `metal-command-buffer-frame-assignment`, and what `start-latency` of
`metal-gpu-intervals` counts from: seen so in recordings of an M1 and an M3 Ultra.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from profkit.analysis.timeline.spans import Spans, empty_spans, union
from profkit.profilers.xctrace.cells import Process, Value

INTERVALS = "metal-gpu-intervals"
STATES = "metal-gpu-state-intervals"
WORK = (
    "start",
    "duration",
    "process",
    "gpu",
    "channel-name",
    "event-label/@fmt",
    "state",
    "start-latency",
    "frame-number",
    "cmdbuffer-id",
    "encoder-id",
)
STATE = ("start", "duration", "state", "gpu")

NO_ID = 0
NOT_TOLD = -1
MOST_NAMES = 4096  # kept apart; what comes after has one name
MORE = "[more names]"
_LATEST = 1 << 60  # ns: what lies beyond (36 years) is no time of a recording
_MOST_SKIPPED = 0.01  # of the rows: with more of them left out a sum of the others says nothing
_ACTIVE = "Active"
_NUMBER = re.compile(r"-?\d{1,20}")

K = TypeVar("K")


class Columns:
    """Rows of whole numbers, 8 bytes for each."""

    def __init__(self, *names: str) -> None:
        self._columns = {name: array("q") for name in names}

    def add(self, *row: int) -> None:
        """One row, in the order of the names."""
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def arrays(self) -> dict[str, Any]:
        """The columns by name; nothing can be added after that."""
        import numpy as np

        return {name: np.frombuffer(column, dtype="q") for name, column in self._columns.items()}


class NumberedNames(Generic[K]):
    """Numbers for things that come again and again."""

    def __init__(self, more: K | None = None, most: int = MOST_NAMES) -> None:
        self.all: list[K] = []
        self._numbers: dict[K, int] = {}
        self._more = more
        self._most = most

    def number(self, thing: K) -> int:
        """The number of `thing`, given when it comes first; beyond the most that are kept apart one for all."""
        found = self._numbers.get(thing)
        if found is None:
            if len(self.all) >= self._most and self._more is not None:
                return self._numbers.setdefault(self._more, self._append(self._more))
            found = self._numbers[thing] = self._append(thing)
        return found

    def _append(self, thing: K) -> int:
        if thing in self._numbers:
            return self._numbers[thing]
        self.all.append(thing)
        return len(self.all) - 1


def parse_interval(start: Value, duration: Value) -> tuple[int, int] | None:
    """Begin and end of a row, None where it tells no time."""
    if not isinstance(start, int) or not isinstance(duration, int) or duration < 0:
        return None
    end = start + duration
    return (start, end) if -_LATEST < start <= end < _LATEST else None


def metal_id(value: Value) -> int:
    """An id of Metal in 63 bits; 0 where there is none (0, or all bits set)."""
    if not isinstance(value, int) or value in (0, 0xFFFFFFFFFFFFFFFF, -1):
        return NO_ID
    return value & 0x7FFFFFFFFFFFFFFF


def process_of(value: Value) -> Process | None:
    """The process in a cell, None where it holds none."""
    return value if isinstance(value, Process) else None


def cell_text(value: Value) -> str:
    """The text in a cell, "" where it holds none."""
    return value.strip() if isinstance(value, str) else ""


def cell_number(value: Value) -> int | None:
    """The whole number in a cell or at the end of its text ("Frame 12"), None where there is none."""
    if isinstance(value, int):
        return value
    found = _NUMBER.findall(value) if isinstance(value, str) else []
    return int(found[-1]) if found else None


@dataclass
class GpuWork:
    """Fed with rows of `metal-gpu-intervals`."""

    processes: NumberedNames[Process | None] = field(default_factory=NumberedNames)
    gpus: NumberedNames[str] = field(default_factory=lambda: NumberedNames(MORE, 64))
    channels: NumberedNames[str] = field(default_factory=lambda: NumberedNames(MORE, 64))
    labels: NumberedNames[str] = field(default_factory=lambda: NumberedNames(MORE))
    skipped: int = 0  # rows without a time
    _columns: Columns = field(
        default_factory=lambda: Columns(
            "start", "end", "latency", "buffer", "encoder", "frame", "process", "label", "channel", "gpu"
        )
    )

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `WORK`."""
        for start, duration, process, gpu, channel, label, state, latency, frame, buffer, encoder in rows:
            when = parse_interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            if isinstance(state, str) and state not in ("", _ACTIVE):
                continue
            whose = process_of(process)
            self._columns.add(
                *when,
                latency if isinstance(latency, int) and 0 <= latency < _LATEST else NOT_TOLD,
                metal_id(buffer),
                metal_id(encoder),
                frame if isinstance(frame := cell_number(frame), int) and 0 < frame < _LATEST else NOT_TOLD,
                self.processes.number(whose),
                self.labels.number(label_of(cell_text(label), whose)),
                self.channels.number(cell_text(channel)),
                self.gpus.number(cell_text(gpu)),
            )

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def tells_time(self) -> bool:
        """Whether (nearly) all rows told when the work was: a table of others says nothing of how busy the GPU was."""
        return self.skipped <= _MOST_SKIPPED * (len(self) + self.skipped)

    def table(self) -> dict[str, Any]:
        """The columns as arrays, in the order of the starts."""
        import numpy as np

        table = self._columns.arrays()
        start = table["start"]
        if len(start) > 1 and (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            table = {name: column[order] for name, column in table.items()}
        return table


def label_of(shown: str, process: Process | None) -> str:
    """The labels out of `Command Buffer 0:Compute Command 0  ( python (42) )  0x4e189059`; "" where there are none."""
    whose = (
        "n/a"
        if process is None
        else process.name
        if process.pid is None
        else f"{process.name} ({process.pid})"
    )
    at = shown.rfind(whose)
    if at > 0:
        shown = shown[:at].rstrip().removesuffix("(").rstrip()
    return "" if shown == "GPU Execution" else shown


@dataclass
class GpuStates:
    """Fed with rows of `metal-gpu-state-intervals`: when each GPU was active, and when its state is known at all."""

    skipped: int = 0
    rows: int = 0
    _times: dict[tuple[str, bool], Columns] = field(default_factory=dict)  # by GPU, and whether it was active

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `STATE`."""
        for start, duration, state, gpu in rows:
            when = parse_interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self.rows += 1
            self._times.setdefault((cell_text(gpu), state == _ACTIVE), Columns("start", "end")).add(*when)

    @property
    def tells_time(self) -> bool:
        """Whether (nearly) all rows say when that was, as of `GpuWork`."""
        return self.skipped <= _MOST_SKIPPED * (self.rows + self.skipped)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The names of all GPUs."""
        return tuple(dict.fromkeys(gpu for gpu, _ in self._times))

    def active_times(self, gpu: str) -> Spans:
        """When it was active."""
        return times_of(self._times.get((gpu, True)))

    def known_times(self, gpu: str) -> Spans:
        """When its state is known."""
        return self.active_times(gpu) | times_of(self._times.get((gpu, False)))


def times_of(columns: Columns | None) -> Spans:
    """The union of the columns `start` and `end`."""
    if columns is None:
        return empty_spans()
    arrays = columns.arrays()
    return union(arrays["start"], arrays["end"])


ENCODERS = "metal-application-encoders-list"
SUBMISSIONS = "metal-application-command-buffer-submissions"
COMPLETED = "metal-command-buffer-completed"
ERRORS = "metal-command-buffer-error"
FRAMES = "metal-command-buffer-frame-assignment"
ENCODER = ("start", "duration", "process", "cmdbuffer-label", "encoder-label", "cmdbuffer-id", "encoder-id")
SUBMISSION = ("start", "duration", "process", "cmdbuffer-id")
COMPLETION = ("timestamp", "cmdbuffer-id")
ERROR = ("timestamp", "cmdbuffer-id", "error-code")
FRAME = ("cmdbuffer-id", "frame-number", "has-present", "process")

MOST_ERRORS = 1 << 16
# What Metal calls what the program gave no name.
_UNNAMED = re.compile(r"(?:\[\d+\] )?[A-Z][a-z]+(?: [A-Z][a-z]+)? \d+")


@dataclass
class Encoders:
    """Fed with rows of the encoders of the program that was recorded."""

    labels: NumberedNames[str] = field(default_factory=lambda: NumberedNames(MORE))
    processes: NumberedNames[Process | None] = field(default_factory=NumberedNames)
    skipped: int = 0
    _columns: Columns = field(default_factory=lambda: Columns("id", "buffer", "end", "label", "process"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ENCODER`."""
        for start, duration, process, buffer_label, label, buffer, encoder in rows:
            when = parse_interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            name = encoder_name(cell_text(buffer_label), cell_text(label))
            self._columns.add(
                metal_id(encoder),
                metal_id(buffer),
                when[1],
                self.labels.number(name),
                self.processes.number(process_of(process)),
            )

    def __len__(self) -> int:
        return len(self._columns)

    def label_numbers(self, encoders: Any) -> Any:
        """For each id of an encoder the number of its label, -1 where it is not listed."""
        table = self._columns.arrays()
        known = table["id"] != NO_ID
        return look_up(encoders, table["id"][known], table["label"][known], -1)

    def commit_times(self) -> dict[str, Any]:
        """Of each command buffer when its last encoder ended, which is some microseconds before it was committed."""
        import numpy as np

        table = self._columns.arrays()
        order = np.lexsort((table["end"], table["buffer"]))
        order = order[table["buffer"][order] != NO_ID]
        buffers = table["buffer"][order]
        last = order[np.flatnonzero(np.r_[buffers[1:] != buffers[:-1], True][: len(order)])]
        return {"buffer": table["buffer"][last], "at": table["end"][last], "process": table["process"][last]}


def encoder_name(buffer: str, label: str) -> str:
    """What an encoder is called: its label, with that of its command buffer before it where only that was given."""
    named = buffer and not _UNNAMED.fullmatch(buffer)
    if named and (not label or _UNNAMED.fullmatch(label)):
        return f"{buffer}: {label}" if label else buffer
    return label


@dataclass
class Submissions:
    """Fed with rows of the command buffers that the program committed."""

    processes: NumberedNames[Process | None] = field(default_factory=NumberedNames)
    skipped: int = 0
    _columns: Columns = field(default_factory=lambda: Columns("buffer", "at", "process"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SUBMISSION`."""
        for start, duration, process, buffer in rows:
            when = parse_interval(start, duration)
            if when is None or metal_id(buffer) == NO_ID:
                self.skipped += 1
                continue
            self._columns.add(metal_id(buffer), when[1], self.processes.number(process_of(process)))

    def __len__(self) -> int:
        return len(self._columns)

    def commit_times(self) -> dict[str, Any]:
        """Of each command buffer when it was committed."""
        return self._columns.arrays()


@dataclass
class Completions:
    """Fed with rows of completed command buffers, of all processes."""

    _columns: Columns = field(default_factory=lambda: Columns("buffer", "at"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COMPLETION`."""
        for at, buffer in rows:
            when = parse_interval(at, 0)
            if when is not None and metal_id(buffer) != NO_ID:
                self._columns.add(metal_id(buffer), when[0])

    def times_of(self, buffers: Any) -> Any:
        """For each command buffer when it was completed, -1 where that is not known."""
        table = self._columns.arrays()
        return look_up(buffers, table["buffer"], table["at"], -1)


@dataclass
class FailedBuffers:
    """Fed with rows of command buffers that ended with an error, of all processes."""

    failed: list[tuple[int, int, int | None]] = field(default_factory=list)  # when, which, and the code

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ERROR`."""
        for at, buffer, code in rows:
            when = parse_interval(at, 0)
            if when is not None and len(self.failed) < MOST_ERRORS:
                self.failed.append((when[0], metal_id(buffer), cell_number(code)))


@dataclass
class PresentedFrames:
    """Fed with rows of `metal-command-buffer-frame-assignment`: which frames of which process were put on a screen."""

    frames: dict[Process | None, set[int]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `FRAME`."""
        for _, frame, present, process in rows:
            at = cell_number(frame)
            if present and at is not None:
                self.frames.setdefault(process_of(process), set()).add(at)


def look_up(keys: Any, known: Any, values: Any, missing: int) -> Any:
    """For each of `keys` the first of `values` whose key is known by it."""
    import numpy as np

    if not len(known):
        return np.full(len(keys), missing, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    return np.where(known[order[at]] == keys, values[order[at]].astype(np.int64), missing)
