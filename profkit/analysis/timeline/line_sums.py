"""What each line of the program did for the devices: launches, copies, and calls that wait.

The line is that of the range around a call of torch (`origins.py`); of a backward pass that of its forward operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from profkit.analysis.timeline.origins import LaunchOrigins, SourceLine, TimeWindows, range_meaning
from profkit.analysis.timeline.records import Columns, Range, Tables
from profkit.core.types import GpuLine, HostMemory, MemoryKind, Transfer

MOST_LINES = 64
_WAITS = re.compile(
    r"^cu(?:da)?(?:Stream|Event|Device|Ctx)Synchronize|^cu(?:da)?Memcpy(?:DtoH)?(?:_v\d+|_ptds)*$"
)
_TO_DEVICE = "host to device"
_Copied = tuple[str, "MemoryKind | None"]


class LineSums:
    """Fed with the kernels, copies and calls that count."""

    def __init__(self, ranges: Sequence[Range], windows: TimeWindows, tables: Tables) -> None:
        self._ranges, self._windows, self._tables = ranges, windows, tables
        self.origins = LaunchOrigins(ranges)
        self._kernels: dict[SourceLine, list[float]] = {}
        self._waits = Counter[SourceLine]()
        self._copies: dict[SourceLine, dict[_Copied, list[float]]] = {}

    def add_kernels(self, rows: Columns, origin: Any) -> None:
        """Kernels (columns ACTIVITY) and the numbers of their origins."""
        for line, chosen in self._by_line(rows, origin):
            sums = self._kernels.setdefault(line, [0, 0.0])
            sums[0] += len(chosen)
            sums[1] += float((chosen["end"] - chosen["start"]).sum())

    def add_copies(self, rows: Columns, when: Any) -> None:
        """Copies (columns ACTIVITY) and when they were asked for."""
        origin = self.origins.find(when, rows["process"], rows["thread"])
        for line, chosen in self._by_line(rows, origin):
            kinds = self._copies.setdefault(line, {})
            for number in set(chosen["what"].tolist()):
                kind = self._tables.transfers[number]
                mine = chosen[chosen["what"] == number]
                sums = kinds.setdefault((kind.name, kind.memory), [0, 0, 0.0])
                sums[0] += len(mine)
                sums[1] += int(mine["bytes"].sum())
                sums[2] += float((mine["end"] - mine["start"]).sum())

    def add_calls(self, rows: Columns) -> None:
        """Calls (columns CALL)."""
        import numpy as np

        waits = np.array([_WAITS.search(name) is not None for name in self._tables.calls] or [False])
        rows = rows[waits[rows["name"]]] if len(rows) else rows
        if not len(rows):
            return
        origin = self.origins.find(rows["start"], rows["process"], rows["thread"])
        for line, chosen in self._by_line(rows, origin):
            self._waits[line] += len(chosen)

    def _by_line(self, rows: Columns, origin: Any) -> list[tuple[SourceLine, Columns]]:
        import numpy as np

        if origin is None or not len(rows):
            return []
        found = []
        for number in np.unique(origin).tolist():
            line = self.origins.origins[number].line if number > 0 else None
            if line is not None:
                found.append((line, rows[origin == number]))
        return found

    def summed(self) -> tuple[tuple[GpuLine, ...], float | None]:
        """The lines, and the seconds in which they were recorded."""
        calls: Counter[SourceLine] = Counter()
        spent: Counter[SourceLine] = Counter()
        first, last = 1 << 62, -1
        for entry in self._ranges:
            line = range_meaning(entry.name, entry.domain).line
            if line is None or entry.end is None or not self._windows.touched(entry.start, entry.start):
                continue
            calls[line] += 1
            spent[line] += entry.end - entry.start
            first, last = min(first, entry.start), max(last, entry.end)
        lines = [
            self._line(line, calls[line], spent[line])
            for line in {*calls, *self._kernels, *self._waits, *self._copies}
        ]
        lines.sort(key=lambda one: (-one.kernel_seconds, -one.seconds, one.file, one.line))
        return tuple(lines[:MOST_LINES]), (last - first) / 1e9 if last > first else None

    def _line(self, line: SourceLine, calls: int, spent: float) -> GpuLine:
        transfers = _transfers(self._copies.get(line, {}))
        sent = sum(one.count for one in transfers if one.kind == _TO_DEVICE)
        launches, working = self._kernels.get(line, (0, 0.0))
        alone = max(0, self._waits[line] - sent)
        return GpuLine(*line, calls, spent / 1e9, int(launches), working / 1e9, alone, transfers)


def _transfers(kinds: dict[_Copied, list[float]]) -> tuple[Transfer, ...]:
    by_name: dict[str, list[tuple[MemoryKind | None, list[float]]]] = {}
    for (name, memory), sums in kinds.items():
        by_name.setdefault(name, []).append((memory, sums))
    return tuple(
        Transfer(
            name,
            int(sum(one[0] for _, one in parts)),
            int(sum(one[1] for _, one in parts)),
            sum(one[2] for _, one in parts) / 1e9,
            tuple(
                HostMemory(memory, int(one[0]), int(one[1]), one[2] / 1e9)
                for memory, one in parts
                if memory is not None
            ),
        )
        for name, parts in by_name.items()
    )
