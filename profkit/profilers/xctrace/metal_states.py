"""States over time and small tables: clocks and heat, memory, compiling, and which GPUs there are.

A state of the GPU's clocks ("Minimum", "Medium", "Maximum") is told only while it runs; one that rests tells none. The
column `is-induced` of that table says yes in recordings that induced nothing (M3 Ultra, A16), so it is not read: what
was induced stands in the table of contents.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.spans import Spans, empty_spans, overlap_lengths, union
from profkit.core.types import MetalState
from profkit.profilers.xctrace.cells import Process, Value
from profkit.profilers.xctrace.metal_work import interval, process_of, text

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
class States:
    """Fed with rows of begin, duration, state and track."""

    skipped: int = 0
    _found: dict[tuple[str, str], tuple[array[int], array[int]]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `PERFORMANCE_STATE` or `THERMAL_STATE`."""
        for start, duration, state, track in rows:
            when = interval(start, duration)
            name = text(state)
            if when is None or not name:
                self.skipped += 1
                continue
            key = (text(track), name)
            if key not in self._found and len(self._found) >= MOST_STATES:
                key = ("", OTHER)
            starts, ends = self._found.setdefault(key, (array("q"), array("q")))
            starts.append(when[0])
            ends.append(when[1])

    @property
    def tracks(self) -> frozenset[str]:
        """The names of all tracks."""
        return frozenset(track for track, _ in self._found)

    def spans(self, track: str | None = None) -> dict[str, Spans]:
        """When each state held, on one track or on all."""
        found: dict[str, Spans] = {}
        for (where, name), (starts, ends) in self._found.items():
            if track is None or where == track:
                one = union(_column(starts), _column(ends))
                found[name] = found[name] | one if name in found else one
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
class Levels:
    """Fed with rows of how many bytes Metal had allocated for each process, and from when to when."""

    skipped: int = 0
    _found: dict[Process | None, tuple[array[int], array[int], array[int]]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `ALLOCATED`."""
        for start, duration, process, size in rows:
            when = interval(start, duration)
            if when is None or not isinstance(size, int) or not 0 <= size < 1 << 60:
                self.skipped += 1
                continue
            columns = self._found.setdefault(process_of(process), (array("q"), array("q"), array("q")))
            for column, value in zip(columns, (*when, size), strict=True):
                column.append(value)

    def peak(self, processes: Iterable[Process | None], part: Spans) -> int | None:
        """The most bytes of one of the processes in the part that counts; None where nothing is told of them then."""
        peaks = []
        for process in processes:
            if process in self._found:
                starts, ends, sizes = (_column(column) for column in self._found[process])
                inside = overlap_lengths(starts, ends, part) > 0
                peaks += [int(sizes[inside].max())] if inside.any() else []
        return max(peaks, default=None)


@dataclass
class Compiling:
    """Fed with rows of when Metal's compiler worked for each process."""

    skipped: int = 0
    rows: int = 0
    _found: dict[Process | None, tuple[array[int], array[int]]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COMPILING`."""
        for start, duration, process in rows:
            when = interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self.rows += 1
            starts, ends = self._found.setdefault(process_of(process), (array("q"), array("q")))
            starts.append(when[0])
            ends.append(when[1])

    def of(self, processes: Iterable[Process | None]) -> Spans:
        """When it worked for one of the processes."""
        whole = empty_spans()
        for process in processes:
            if process in self._found:
                starts, ends = self._found[process]
                whole = whole | union(_column(starts), _column(ends))
        return whole


@dataclass
class GpuInfos:
    """Fed with rows of `device-gpu-info`: vendor, name, and how much memory Metal recommends to use at one time."""

    found: dict[str, tuple[str, int | None]] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `INFO`."""
        for name, vendor, size in rows:
            if text(name):
                self.found[text(name)] = (text(vendor), size if isinstance(size, int) and size > 0 else None)


def _column(values: array[int]) -> Any:
    import numpy as np

    return np.frombuffer(values, dtype="q")
