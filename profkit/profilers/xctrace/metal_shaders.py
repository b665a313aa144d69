"""Shaders: from the shader timeline by name, or where only program counters were recorded by the list of shaders."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.spans import Spans
from profkit.profilers.xctrace.cells import Process, Value
from profkit.profilers.xctrace.metal_sums import Summed, by_name
from profkit.profilers.xctrace.metal_work import MORE, Names, interval, process_of, text

SHADERS = "metal-shader-profiler-intervals"
SHADER_LIST = "metal-shader-profiler-shader-list"
SHADER_PCS = "gpu-shader-profiler-interval"
SHADER = ("start", "duration", "name", "label", "process")
LISTED = ("name", "pc-start", "pc-end", "process")
SHADER_PC = ("start", "duration", "pc")
UNKNOWN = "[not in the list of shaders]"
_MOST_LISTED = 1 << 17
_LARGEST = 1 << 63


@dataclass
class ShaderTimes:
    """Fed with rows of the three tables, the list before the program counters."""

    names: Names[str] = field(default_factory=lambda: Names(MORE))
    processes: Names[Process | None] = field(default_factory=Names)
    rows: int = 0
    skipped: int = 0
    _columns: tuple[array[int], ...] = field(default_factory=lambda: tuple(array("q") for _ in range(4)))
    _listed: list[tuple[int, int, str, Process | None]] = field(default_factory=list)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SHADER`."""
        for start, duration, name, label, process in rows:
            when = interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self._append(*when, text(name) or text(label) or UNKNOWN, process_of(process))

    def add_list(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `LISTED`."""
        for name, begin, end, process in rows:
            if not isinstance(begin, int) or not isinstance(end, int) or not text(name):
                continue
            if 0 <= begin < end < _LARGEST and len(self._listed) < _MOST_LISTED:
                self._listed.append((begin, end, text(name), process_of(process)))

    def add_pcs(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SHADER_PC`; without a list of shaders they say nothing."""
        import numpy as np

        listed = sorted(self._listed, key=lambda one: one[0])
        begins = np.array([one[0] for one in listed], dtype=np.int64)
        for start, duration, pc in rows:
            when = interval(start, duration)
            if when is None or not isinstance(pc, int) or not listed or not 0 <= pc < _LARGEST:
                self.skipped += 1
                continue
            at = int(np.searchsorted(begins, pc, side="right")) - 1
            if at >= 0 and pc < listed[at][1]:
                self._append(*when, listed[at][2], listed[at][3])
            else:
                self._append(*when, UNKNOWN, None)

    def _append(self, start: int, end: int, name: str, process: Process | None) -> None:
        self.rows += 1
        row = (start, end, self.names.number(name), self.processes.number(process))
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def within(self, part: Spans, whose: Collection[Process | None]) -> tuple[Summed, ...]:
        """The shaders of some processes in the part that counts, largest first."""
        import numpy as np

        start, end, name, process = (_array(column) for column in self._columns)
        own = np.isin(process, [n for n, one in enumerate(self.processes.all) if one in whose])
        return by_name(self.names.all, name[own], start[own], end[own], part)


def _array(column: array[int]) -> Any:
    import numpy as np

    return np.frombuffer(column, dtype="q")
