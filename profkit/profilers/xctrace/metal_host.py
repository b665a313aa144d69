"""What the program asked of the GPU, and when that was done: encoders with their labels, command buffers committed and
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
from typing import Any

from profkit.profilers.xctrace.cells import Process, Value
from profkit.profilers.xctrace.metal_work import (
    MORE,
    NO_ID,
    Names,
    identity,
    interval,
    number,
    process_of,
    text,
)

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

    labels: Names[str] = field(default_factory=lambda: Names(MORE))
    processes: Names[Process | None] = field(default_factory=Names)
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
        return looked_up(encoders, ids[known], labels[known], -1)

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

    processes: Names[Process | None] = field(default_factory=Names)
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

        return looked_up(
            buffers, np.frombuffer(self._buffer, dtype="q"), np.frombuffer(self._at, dtype="q"), -1
        )


@dataclass
class Errors:
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


def looked_up(keys: Any, known: Any, values: Any, missing: int) -> Any:
    """For each of `keys` the first of `values` whose key is known by it."""
    import numpy as np

    if not len(known):
        return np.full(len(keys), missing, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    return np.where(known[order[at]] == keys, values[order[at]].astype(np.int64), missing)
