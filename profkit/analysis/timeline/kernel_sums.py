"""Launches, times and medians of each launch configuration, and what each line of the program did for the devices.

The line is that of the range around a call of torch (`origins.py`); of a backward pass that of its forward operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from profkit.analysis.timeline.joined_recordings import with_operation
from profkit.analysis.timeline.origins import OriginIndex
from profkit.analysis.timeline.products import growing_rows
from profkit.analysis.timeline.range_names import SourceLine, range_meaning
from profkit.analysis.timeline.records import Columns, Range, Tables, TransferKind
from profkit.analysis.timeline.time_windows import TimeWindows
from profkit.core.types import ApiCall, GpuLine, GpuTrace, Kernel, KernelTime, Transfer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_VALUE_BITS = 45  # of a duration in ns: ten hours; a longer one counts as that
_MAX_PARTS = 32  # that wait before they are merged


class DurationSums(NamedTuple):
    """Sums over one group, in ns. The median of an even number is the mean of the middle two."""

    counted: int
    total: int
    least: int
    most: int
    median: float


class Durations:
    """Counts how often each duration occurs in each group."""

    def __init__(self) -> None:
        self._parts: list[
            tuple[Any, Any]
        ] = []  # groups with durations as one number, and how often each came

    def add(self, groups: NDArray[np.integer[Any]], durations: NDArray[np.int64]) -> None:
        """Add one duration in ns per entry, with the number of its group."""
        import numpy as np

        if not len(groups):
            return
        values = np.clip(durations, 0, (1 << _VALUE_BITS) - 1)
        keys = (groups.astype(np.int64) << _VALUE_BITS) | values
        self._parts.append(np.unique(keys, return_counts=True))
        if len(self._parts) > _MAX_PARTS:
            self._parts = [self._merged()]

    def summed(self) -> dict[int, DurationSums]:
        """Return the sums of each group, by the group's number."""
        import numpy as np

        if not self._parts:
            return {}
        keys, counts = self._merged()
        groups, values = keys >> _VALUE_BITS, keys & ((1 << _VALUE_BITS) - 1)
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        sums = np.cumsum(counts)
        ends = np.r_[starts[1:], len(groups)] - 1
        before = np.r_[0, sums[ends[:-1]]]
        count = sums[ends] - before
        low = np.searchsorted(sums, before + (count + 1) // 2)
        high = np.searchsorted(sums, before + count // 2 + 1)
        middle = (values[low] + values[high]) / 2
        columns = (count, np.add.reduceat(values * counts, starts), values[starts], values[ends], middle)
        rows = zip(*map(np.ndarray.tolist, columns), strict=True)
        return dict(zip(groups[starts].tolist(), map(DurationSums._make, rows), strict=True))

    def _merged(self) -> tuple[Any, Any]:
        import numpy as np

        keys, counts = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        keys, where = np.unique(keys, return_inverse=True)
        return keys, np.bincount(where, weights=counts).astype(np.int64)


MAX_ORDER = 2048  # launches whose order is reported
MAX_SEQUENCE = 1 << 14  # launches of one device that are compared with the schedules of programs
MAX_SETUP = 1024  # configurations that were launched in the set-up alone


class KernelSums:
    """Sums up kernels by launch configuration, fed with kernels in the order of their starts."""

    def __init__(self, configurations: list[Kernel]) -> None:
        self._table = configurations
        self._durations = Durations()
        self._first: dict[int, int] = {}  # by configuration its first launch that counts
        self._graphs: set[int] = set()  # configurations that a CUDA graph launched
        self._order: list[int] = []  # the configurations of the first launches that count
        self._device: int | None = None  # the one that launched first, and
        self._sequence: list[tuple[int, float]] = []  # its launches with their seconds
        self._before = Counter[int]()  # launches before what counts
        self._setup: int | None = None  # ns of these; None: there were none

    def add(self, rows: Columns, ordinal: Any) -> None:
        """Add kernels that count (columns ACTIVITY), each with its number among all kernels."""
        import numpy as np

        what = rows["what"]
        self._order += what[: MAX_ORDER - len(self._order)].tolist()
        if len(self._sequence) < MAX_SEQUENCE:
            self._add_sequence(rows)
        for number, at in zip(*map(np.ndarray.tolist, np.unique(what, return_index=True)), strict=True):
            self._first.setdefault(number, int(ordinal[at]))
        self._graphs.update(np.unique(what[rows["graph"]]).tolist())
        self._durations.add(what, rows["end"] - rows["start"])

    def _add_sequence(self, rows: Columns) -> None:
        if self._device is None:
            self._device = int(rows["device"][0])
        mine = rows[rows["device"] == self._device][: MAX_SEQUENCE - len(self._sequence)]
        seconds = (mine["end"] - mine["start"]) / 1e9
        self._sequence += zip(mine["what"].tolist(), seconds.tolist(), strict=True)

    def sequence(self, kernels: Sequence[KernelTime]) -> tuple[tuple[int, float], ...]:
        """Return the first launches of one device, each as its index in `kernels` and its seconds."""
        places = {time.kernel: place for place, time in enumerate(kernels)}
        return tuple((places[self._table[number]], seconds) for number, seconds in self._sequence)

    def add_setup(self, rows: Columns) -> None:
        """Add kernels that ran before what counts."""
        self._setup = (self._setup or 0) + int((rows["end"] - rows["start"]).sum())
        self._before.update(rows["what"].tolist())

    def summed(
        self, tool: str, ranges: Mapping[int, tuple[str, ...]], operations: Mapping[int, KernelTime]
    ) -> GpuTrace:
        """Return the trace of all kernels that were added, those with most time first.

        `ranges` names, by configuration, the ranges in which it was launched; `operations` holds its most frequent
        operation. Configurations of the set-up alone are kept apart, those with most launches first.
        """
        sums = self._durations.summed()

        def rank(number: int) -> tuple[int, int, str, str]:
            kernel = self._table[number]
            return -sums[number].total if number in sums else 0, -self._before[number], kernel.name, kernel.id

        counted, only_before = sorted(sums, key=rank), sorted(self._before.keys() - sums.keys(), key=rank)
        places = {number: place for place, number in enumerate(counted)}
        return GpuTrace(
            tool,
            tuple(
                with_operation(
                    KernelTime(
                        self._table[number],
                        sums[number].counted,
                        sums[number].total / 1e9,
                        sums[number].median / 1e9,
                        sums[number].least / 1e9,
                        sums[number].most / 1e9,
                        self._first[number],
                        ranges.get(number, ()),
                        self._before[number],
                        number in self._graphs,
                    ),
                    operations.get(number),
                )
                for number in counted
            ),
            launches=sum(durations.counted for durations in sums.values()),
            setup_seconds=None if self._setup is None else self._setup / 1e9,
            order=tuple(places[number] for number in self._order),
            setup=tuple(
                KernelTime(self._table[number], 0, 0.0, setup_launches=self._before[number])
                for number in only_before[:MAX_SETUP]
            ),
        )


class TransferSums:
    """Sums up the number, bytes and ns of copies by kind."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[int, int, int]] = {}

    def add(self, moved: Columns) -> None:
        """Add copies (columns ACTIVITY)."""
        for kind in set(moved["what"].tolist()):
            rows = moved[moved["what"] == kind]
            count, size, spent = self._kinds.get(kind, (0, 0, 0))
            spent += int((rows["end"] - rows["start"]).sum())
            self._kinds[kind] = count + len(rows), size + int(rows["bytes"].sum()), spent

    def summed(self, kinds: Sequence[TransferKind]) -> tuple[Transfer, ...]:
        """Return the copies by name, most time first, each split by the kind of memory on the host's side."""
        by_name: dict[str, Transfer] = {}
        for number, (count, size, ns) in sorted(self._kinds.items(), key=lambda item: -item[1][2]):
            kind, seconds = kinds[number], ns / 1e9
            known = by_name.get(kind.name, Transfer(kind.name, 0, 0, 0.0))
            memory = known.memory
            if kind.memory is not None:
                memory = (*memory, Transfer(kind.memory, count, size, seconds))
            by_name[kind.name] = Transfer(
                kind.name, known.count + count, known.bytes + size, known.seconds + seconds, memory
            )
        return tuple(sorted(by_name.values(), key=lambda transfer: -transfer.seconds))


MAX_LINES = 64
_WAITS = re.compile(
    r"^cu(?:da)?(?:Stream|Event|Device|Ctx)Synchronize|^cu(?:da)?Memcpy(?:DtoH)?(?:_v\d+|_ptds)*$"
)
_TO_DEVICE = "host to device"


SHORTEST = 100_000  # ns: what takes less on the host is the call itself, or a view


class HostOperations:
    """Finds operations of torch that call nothing of the driver: the host computes them, on its own tensors."""

    def __init__(self, origins: OriginIndex, windows: TimeWindows) -> None:
        self._origins, self._windows = origins, windows
        self._driver_steps: dict[
            tuple[int, int], set[int]
        ] = {}  # of each thread the steps in which the driver was called

    def add_calls(self, rows: Any) -> None:
        """Note in which operations the driver was called (columns CALL)."""
        import numpy as np

        for (process, thread), moments, _ in self._origins.steps():
            mine = rows["start"][(rows["process"] == process) & (rows["thread"] == thread)]
            steps = np.searchsorted(moments, mine, side="right") - 1
            self._driver_steps.setdefault((process, thread), set()).update(np.unique(steps).tolist())

    def summed(self) -> dict[SourceLine, ApiCall]:
        """Return for each line the operation that took most time on the host."""
        import numpy as np

        sums: dict[tuple[SourceLine, str], ApiCall] = {}
        for key, moments, numbers in self._origins.steps():
            driver_steps = self._driver_steps.get(key)
            if not driver_steps:  # nothing waits for a thread of its own
                continue
            spent = np.diff(moments)
            counts = (spent >= SHORTEST) & (self._windows.number(moments[:-1]) >= 0)
            for step in np.flatnonzero(counts).tolist():
                operation, backward_of, line, *_ = self._origins.origins[numbers[step]]
                if operation is None or line is None or backward_of or step in driver_steps:
                    continue
                known = sums.get((line, operation), ApiCall(operation, 0, 0.0))
                seconds = known.seconds + float(spent[step]) / 1e9
                sums[line, operation] = ApiCall(operation, known.calls + 1, seconds)
        ranked = sorted(sums.items(), key=lambda item: item[1].seconds)
        return {line: call for (line, _), call in ranked}


class LineSums:
    """Sums up what each line of the program did, fed with the kernels, copies and calls that count."""

    def __init__(
        self, ranges: Sequence[Range], windows: TimeWindows, tables: Tables, operations: Sequence[Range] = ()
    ) -> None:
        self._ranges, self._windows, self._tables = ranges, windows, tables
        self.origins = OriginIndex((*ranges, *operations))
        self._kernels: dict[SourceLine, list[float]] = {}
        self._waits = Counter[SourceLine]()
        self._on_host = HostOperations(self.origins, windows)
        self._copies: dict[SourceLine, TransferSums] = {}

    def add_kernels(self, rows: Columns, origin: Any) -> None:
        """Add kernels (columns ACTIVITY) with the numbers of their origins."""
        for line, chosen in self._by_line(rows, origin):
            sums = self._kernels.setdefault(line, [0, 0.0])
            sums[0] += len(chosen)
            sums[1] += float((chosen["end"] - chosen["start"]).sum())

    def add_copies(self, rows: Columns, when: Any) -> None:
        """Add copies (columns ACTIVITY) with the times in ns at which they were launched."""
        origin = self.origins.find(when, rows["process"], rows["thread"])
        for line, chosen in self._by_line(rows, origin):
            self._copies.setdefault(line, TransferSums()).add(chosen)

    def add_calls(self, rows: Columns) -> None:
        """Add calls of the host (columns CALL), of which those that wait for the device are counted."""
        import numpy as np

        self._on_host.add_calls(rows)
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
        order = np.argsort(origin, kind="stable")
        numbers, starts = np.unique(origin[order], return_index=True)
        found = []
        for number, chosen in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            line = self.origins.origins[number].line if number > 0 else None
            if line is not None:
                found.append((line, rows[chosen]))
        return found

    def summed(self) -> tuple[tuple[GpuLine, ...], float | None]:
        """Return the lines, most kernel time first, and the seconds over which lines were recorded.

        The seconds are None where no line was recorded.
        """
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
        on_host, rows = self._on_host.summed(), growing_rows(self.origins.origins)
        working = {line: seconds for line, (_, seconds) in self._kernels.items()}
        every = {*calls, *working, *self._waits, *self._copies}
        ranked = sorted(every, key=lambda line: (-working.get(line, 0.0), -spent[line], line[:2]))
        lines = (
            replace(
                self._line(line, calls[line], spent[line]), on_host=on_host.get(line), rows=rows.get(line)
            )
            for line in ranked[:MAX_LINES]
        )
        return tuple(lines), (last - first) / 1e9 if last > first else None

    def _line(self, line: SourceLine, calls: int, spent: float) -> GpuLine:
        copies = self._copies.get(line, TransferSums())
        transfers = copies.summed(self._tables.transfers)
        sent = sum(transfer.count for transfer in transfers if transfer.kind == _TO_DEVICE)
        launches, working = self._kernels.get(line, (0, 0.0))
        alone = max(0, self._waits[line] - sent)
        return GpuLine(*line, calls, spent / 1e9, int(launches), working / 1e9, alone, transfers)
