"""What ran on the GPU and when: `metal-gpu-intervals` and `metal-gpu-state-intervals` as columns.

A row of the former is a part of one encoder on one channel (a render encoder has a vertex and a fragment part), of
every process of the machine; 64 bytes are kept of it. Times in ns from the begin of the recording.

What the program asked of the GPU, and when that was done: encoders with their labels, command buffers committed and
completed. Times in ns from the begin of the recording.

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

from profkit.analysis.timeline.spans import Union
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
_BLOCK = 1 << 14

K = TypeVar("K")

_COLUMNS: tuple[tuple[str, str], ...] = (
    ("start", "q"),
    ("end", "q"),
    ("latency", "q"),
    ("buffer", "q"),
    ("encoder", "q"),
    ("frame", "q"),
    ("process", "i"),
    ("label", "i"),
    ("channel", "i"),
    ("gpu", "i"),
)


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


def interval(start: Value, duration: Value) -> tuple[int, int] | None:
    """Begin and end of a row, None where it tells no time."""
    if not isinstance(start, int) or not isinstance(duration, int) or duration < 0:
        return None
    end = start + duration
    return (start, end) if -_LATEST < start <= end < _LATEST else None


def identity(value: Value) -> int:
    """An id of Metal in 63 bits; 0 where there is none (0, or all bits set)."""
    if not isinstance(value, int) or value in (0, 0xFFFFFFFFFFFFFFFF, -1):
        return NO_ID
    return value & 0x7FFFFFFFFFFFFFFF


def process_of(value: Value) -> Process | None:
    """The process in a cell, None where it holds none."""
    return value if isinstance(value, Process) else None


def text(value: Value) -> str:
    """The text in a cell, "" where it holds none."""
    return value.strip() if isinstance(value, str) else ""


def number(value: Value) -> int | None:
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
    _columns: dict[str, array[int]] = field(
        default_factory=lambda: {name: array(code) for name, code in _COLUMNS}
    )

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `WORK`."""
        columns = [self._columns[name].append for name, _ in _COLUMNS]
        for start, duration, process, gpu, channel, label, state, latency, frame, buffer, encoder in rows:
            when = interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            if isinstance(state, str) and state not in ("", _ACTIVE):
                continue
            whose = process_of(process)
            row = (
                *when,
                latency if isinstance(latency, int) and 0 <= latency < _LATEST else NOT_TOLD,
                identity(buffer),
                identity(encoder),
                frame if isinstance(frame := number(frame), int) and 0 < frame < _LATEST else NOT_TOLD,
                self.processes.number(whose),
                self.labels.number(label_of(text(label), whose)),
                self.channels.number(text(channel)),
                self.gpus.number(text(gpu)),
            )
            for append, value in zip(columns, row, strict=True):
                append(value)

    def __len__(self) -> int:
        return len(self._columns["start"])

    @property
    def tells_time(self) -> bool:
        """Whether (nearly) all rows told when the work was: a table of others says nothing of how busy the GPU was."""
        return self.skipped <= _MOST_SKIPPED * (len(self) + self.skipped)

    def table(self) -> dict[str, Any]:
        """The columns as arrays, in the order of the starts."""
        import numpy as np

        table = {name: np.frombuffer(self._columns[name], dtype=code) for name, code in _COLUMNS}
        start = table["start"]
        if len(start) > 1 and (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            table = {name: column[order] for name, column in table.items()}
        return table


def label_of(told: str, process: Process | None) -> str:
    """The labels out of `Command Buffer 0:Compute Command 0  ( python (42) )  0x4e189059`; "" where there are none."""
    whose = (
        "n/a"
        if process is None
        else process.name
        if process.pid is None
        else f"{process.name} ({process.pid})"
    )
    at = told.rfind(whose)
    if at > 0:
        told = told[:at].rstrip().removesuffix("(").rstrip()
    return "" if told == "GPU Execution" else told


@dataclass
class GpuStates:
    """Fed with rows of `metal-gpu-state-intervals`: when each GPU was active, and when its state was told at all."""

    skipped: int = 0
    rows: int = 0
    _active: dict[str, Union] = field(default_factory=dict)
    _told: dict[str, Union] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `STATE`."""
        blocks: dict[tuple[str, bool], tuple[array[int], array[int]]] = {}
        waiting = 0
        for start, duration, state, gpu in rows:
            when = interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self.rows += 1
            starts, ends = blocks.setdefault((text(gpu), state == _ACTIVE), (array("q"), array("q")))
            starts.append(when[0])
            ends.append(when[1])
            waiting += 1
            if waiting >= _BLOCK:
                self._take(blocks)
                blocks, waiting = {}, 0
        self._take(blocks)

    @property
    def tells_time(self) -> bool:
        """Whether (nearly) all rows told when that was, as of `GpuWork`."""
        return self.skipped <= _MOST_SKIPPED * (self.rows + self.skipped)

    def _take(self, blocks: dict[tuple[str, bool], tuple[array[int], array[int]]]) -> None:
        import numpy as np

        for (gpu, active), (starts, ends) in blocks.items():
            columns = np.frombuffer(starts, dtype="q"), np.frombuffer(ends, dtype="q")
            self._told.setdefault(gpu, Union()).add(*columns)
            if active:
                self._active.setdefault(gpu, Union()).add(*columns)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The names of all GPUs."""
        return tuple(self._told)

    def active(self, gpu: str) -> Union:
        """When it was active."""
        return self._active.get(gpu, Union())

    def told(self, gpu: str) -> Union:
        """When anything was told of it."""
        return self._told.get(gpu, Union())


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
    _id: array[int] = field(default_factory=lambda: array("q"))
    _buffer: array[int] = field(default_factory=lambda: array("q"))
    _end: array[int] = field(default_factory=lambda: array("q"))
    _label: array[int] = field(default_factory=lambda: array("i"))
    _process: array[int] = field(default_factory=lambda: array("i"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ENCODER`."""
        for start, duration, process, buffer_label, label, buffer, encoder in rows:
            when = interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self._id.append(identity(encoder))
            self._buffer.append(identity(buffer))
            self._end.append(when[1])
            self._label.append(self.labels.number(encoder_name(text(buffer_label), text(label))))
            self._process.append(self.processes.number(process_of(process)))

    def __len__(self) -> int:
        return len(self._id)

    def label_numbers(self, encoders: Any) -> Any:
        """For each id of an encoder the number of its label, -1 where it is not listed."""
        import numpy as np

        ids, labels = np.frombuffer(self._id, dtype="q"), np.frombuffer(self._label, dtype="i")
        known = ids != NO_ID
        return look_up(encoders, ids[known], labels[known], -1)

    def committed(self) -> dict[str, Any]:
        """Of each command buffer when its last encoder ended, which is some microseconds before it was committed."""
        import numpy as np

        buffers = np.frombuffer(self._buffer, dtype="q")
        ends = np.frombuffer(self._end, dtype="q")
        whose = np.frombuffer(self._process, dtype="i")
        order = np.lexsort((ends, buffers))
        order = order[buffers[order] != NO_ID]
        last = np.flatnonzero(np.r_[buffers[order][1:] != buffers[order][:-1], True][: len(order)])
        return {"buffer": buffers[order][last], "at": ends[order][last], "process": whose[order][last]}


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
    _buffer: array[int] = field(default_factory=lambda: array("q"))
    _at: array[int] = field(default_factory=lambda: array("q"))
    _process: array[int] = field(default_factory=lambda: array("i"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SUBMISSION`."""
        for start, duration, process, buffer in rows:
            when = interval(start, duration)
            if when is None or identity(buffer) == NO_ID:
                self.skipped += 1
                continue
            self._buffer.append(identity(buffer))
            self._at.append(when[1])
            self._process.append(self.processes.number(process_of(process)))

    def __len__(self) -> int:
        return len(self._buffer)

    def committed(self) -> dict[str, Any]:
        """Of each command buffer when it was committed."""
        import numpy as np

        return {
            "buffer": np.frombuffer(self._buffer, dtype="q"),
            "at": np.frombuffer(self._at, dtype="q"),
            "process": np.frombuffer(self._process, dtype="i"),
        }


@dataclass
class Completions:
    """Fed with rows of completed command buffers, of all processes."""

    _buffer: array[int] = field(default_factory=lambda: array("q"))
    _at: array[int] = field(default_factory=lambda: array("q"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COMPLETION`."""
        for at, buffer in rows:
            when = interval(at, 0)
            if when is not None and identity(buffer) != NO_ID:
                self._buffer.append(identity(buffer))
                self._at.append(when[0])

    def __len__(self) -> int:
        return len(self._buffer)

    def at(self, buffers: Any) -> Any:
        """For each command buffer when it was completed, -1 where that is not told."""
        import numpy as np

        return look_up(
            buffers, np.frombuffer(self._buffer, dtype="q"), np.frombuffer(self._at, dtype="q"), -1
        )


@dataclass
class FailedBuffers:
    """Fed with rows of command buffers that ended with an error, of all processes."""

    failed: list[tuple[int, int, int | None]] = field(default_factory=list)  # when, which, and the code

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ERROR`."""
        for at, buffer, code in rows:
            when = interval(at, 0)
            if when is not None and len(self.failed) < MOST_ERRORS:
                self.failed.append((when[0], identity(buffer), number(code)))


@dataclass
class Presents:
    """Fed with rows of `metal-command-buffer-frame-assignment`: which frames of which process were put on a screen."""

    frames: dict[Process | None, set[int]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `FRAME`."""
        for _, frame, present, process in rows:
            at = number(frame)
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
