"""What was launched in which marked ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from profkit.analysis.timeline.paths import Paths
from profkit.analysis.timeline.records import Columns, Range
from profkit.analysis.timeline.windows import Windows
from profkit.core.types import GpuRange

MOST_RANGES = 256  # by name, those with most GPU time; programs that number their ranges have one per step
MOST_NAMES = 32  # ranges that are named with one kernel

_Key: TypeAlias = "tuple[str, str | None]"  # name, domain


class RangeSums:
    """Fed with the kernels that count."""

    def __init__(self, ranges: Sequence[Range], windows: Windows) -> None:
        self._ranges, self._windows, self._paths = ranges, windows, Paths(ranges)
        self._inside: Counter[tuple[int, int]] = Counter()  # launches by path and configuration
        self._path_time: Counter[int] = Counter()  # kernel ns by path

    def add(self, rows: Columns, when: Any) -> None:
        """Kernels (columns ACTIVITY), each with the time at which it was launched."""
        import numpy as np

        if not self._paths:
            return
        path = self._paths.find(when, rows["process"], rows["thread"])
        pairs, counts = np.unique((path << 32) | rows["what"], return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._inside[pair >> 32, pair & 0xFFFFFFFF] += count
        numbers, where = np.unique(path, return_inverse=True)
        spent = np.bincount(where.reshape(-1), rows["end"] - rows["start"])
        for number, nanoseconds in zip(numbers.tolist(), spent.tolist(), strict=True):
            self._path_time[number] += int(nanoseconds)

    def names(self) -> dict[int, tuple[str, ...]]:
        """By configuration the ranges in which it was launched."""
        names: dict[int, dict[str, None]] = {}
        for path, what in self._inside:
            names.setdefault(what, {}).update((name, None) for name, _ in self._paths.names[path])
        return {what: tuple(found)[:MOST_NAMES] for what, found in names.items()}

    def ranges(self) -> tuple[GpuRange, ...]:
        """By name and domain, in what counts; most GPU time first."""
        launched, spent = Counter[_Key](), Counter[_Key]()
        per_path = Counter[int]()
        for (path, _), count in self._inside.items():
            per_path[path] += count
        for path, count in per_path.items():
            for key in self._paths.names[path]:
                launched[key] += count
                spent[key] += self._path_time[path]
        entries, seconds = Counter[_Key](), Counter[_Key]()
        for entry in self._ranges:
            end = entry.start if entry.end is None else entry.end
            if self._windows.touched(entry.start, end):
                entries[entry.name, entry.domain] += 1
                seconds[entry.name, entry.domain] += end - entry.start
        ranked = sorted(entries, key=lambda key: (-spent[key], -seconds[key], key[0]))[:MOST_RANGES]
        return tuple(
            GpuRange(*key, entries[key], seconds[key] / 1e9, launched[key], spent[key] / 1e9)
            for key in ranked
        )
