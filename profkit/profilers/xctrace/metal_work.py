"""What ran on the GPU and when: `metal-gpu-intervals` and `metal-gpu-state-intervals` as columns.

A row of the former is a part of one encoder on one channel (a render encoder has a vertex and a fragment part), of
every process of the machine; 64 bytes are kept of it. Times in ns from the begin of the recording.
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


class Names(Generic[K]):
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

    processes: Names[Process | None] = field(default_factory=Names)
    gpus: Names[str] = field(default_factory=lambda: Names(MORE, 64))
    channels: Names[str] = field(default_factory=lambda: Names(MORE, 64))
    labels: Names[str] = field(default_factory=lambda: Names(MORE))
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
