"""Launches, times and medians of each launch configuration, and what each line of the program did for the devices.

The line is that of the range around a call of torch (`origins.py`); of a backward pass that of its forward operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from profkit.analysis.timeline.origins import (
    LaunchOrigins,
    SourceLine,
    TimeWindows,
    range_meaning,
)
from profkit.analysis.timeline.records import Columns, Configuration, Range, Tables, TransferKind
from profkit.core.types import GpuLine, HostCalls, Kernel, KernelTime, Transfer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_VALUE_BITS = 40  # of a duration in ns: 18 minutes; a longer one counts as that
_MOST_WAITING = 1 << 19  # pairs of group and duration that wait before they are merged


class Medians:
    """Counts how often each duration came in each group."""

    def __init__(self) -> None:
        self._pending: list[tuple[Any, Any]] = []
        self._waiting = 0
        self._keys: Any = None
        self._counts: Any = None

    def add(self, groups: NDArray[np.integer[Any]], durations: NDArray[np.int64]) -> None:
        """One duration in ns per entry, with the number of its group."""
        import numpy as np

        if not len(groups):
            return
        values = np.clip(durations, 0, (1 << _VALUE_BITS) - 1)
        keys, counts = np.unique((groups.astype(np.int64) << _VALUE_BITS) | values, return_counts=True)
        self._pending.append((keys, counts))
        self._waiting += len(keys)
        if self._waiting > _MOST_WAITING:
            self._merge()

    def medians(self) -> dict[int, float]:
        """The median of each group, in ns; of an even number the mean of the middle two."""
        import numpy as np

        self._merge()
        if self._keys is None:
            return {}
        groups, values = self._keys >> _VALUE_BITS, self._keys & ((1 << _VALUE_BITS) - 1)
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        sums = np.cumsum(self._counts)
        ends = np.r_[starts[1:], len(groups)] - 1
        before = np.r_[0, sums[ends[:-1]]]
        total = sums[ends] - before
        low = np.searchsorted(sums, before + (total + 1) // 2)
        high = np.searchsorted(sums, before + total // 2 + 1)
        middle = (values[low] + values[high]) / 2
        return {int(group): float(value) for group, value in zip(groups[starts], middle, strict=True)}

    def _merge(self) -> None:
        import numpy as np

        parts = [*self._pending, *([] if self._keys is None else [(self._keys, self._counts)])]
        self._pending, self._waiting = [], 0
        if not parts:
            return
        keys = np.concatenate([part[0] for part in parts])
        counts = np.concatenate([part[1] for part in parts])
        self._keys, where = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(where, weights=counts).astype(np.int64)


MOST_ORDER = 2048  # launches whose order is told
MOST_SETUP = 1024  # configurations that were launched in the set-up alone
_NEVER = 1 << 62


@dataclass
class _Launches:
    """Of one configuration. Times in ns; `setup` counts launches before what counts."""

    count: int = 0
    total: int = 0
    least: int = _NEVER
    most: int = 0
    first: int = _NEVER
    setup: int = 0
    graph: bool = False


@dataclass(frozen=True)
class KernelOperation:
    """What launched a configuration most often: the operation, how often, how many different ones there were.

    `backward_of` and the line are those of most launches by it.
    """

    operation: str | None = None
    operation_launches: int = 0
    operations: int = 0
    backward_of: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    flops: float | None = None
    lines: tuple[GpuLine, ...] = ()


@dataclass(frozen=True)
class SummedKernels:
    """`times` most time first; `order`: which of them the first launches were; `setup`: launched only before.

    `setup_seconds` is the time of all kernels before what counts; None where there were none.
    """

    times: tuple[KernelTime, ...]
    order: tuple[int, ...]
    setup: tuple[KernelTime, ...]
    setup_seconds: float | None


class KernelSums:
    """Fed with kernels in the order of their starts."""

    def __init__(self, configurations: list[Configuration]) -> None:
        self._table = configurations
        self._kernels: dict[int, _Launches] = {}
        self._medians = Medians()
        self._order: list[int] = []  # the configurations of the first launches that count
        self._setup = 0  # ns of kernels before what counts
        self._before = False  # whether there were any

    def add(self, rows: Columns, ordinal: Any) -> None:
        """Kernels that count (columns ACTIVITY), each with its number among all kernels."""
        import numpy as np

        what, spent = rows["what"], rows["end"] - rows["start"]
        self._order += what[: MOST_ORDER - len(self._order)].tolist()
        order = np.argsort(what, kind="stable")
        cuts = np.flatnonzero(np.r_[True, what[order][1:] != what[order][:-1]])
        ordered = spent[order]
        columns = (
            what[order][cuts],
            np.diff(np.r_[cuts, len(order)]),
            np.add.reduceat(ordered, cuts),
            np.minimum.reduceat(ordered, cuts),
            np.maximum.reduceat(ordered, cuts),
            ordinal[order][cuts],
            np.logical_or.reduceat(rows["graph"][order], cuts),
        )
        for number, count, total, least, most, first, graph in zip(
            *map(np.ndarray.tolist, columns), strict=True
        ):
            kernel = self._kernels.setdefault(number, _Launches())
            kernel.count += count
            kernel.total += total
            kernel.least, kernel.most = min(kernel.least, least), max(kernel.most, most)
            kernel.first = min(kernel.first, first)
            kernel.graph |= graph
        self._medians.add(what, spent)

    def add_setup(self, rows: Columns) -> None:
        """Kernels before what counts."""
        import numpy as np

        self._before = True
        self._setup += int((rows["end"] - rows["start"]).sum())
        whats, counts = np.unique(rows["what"], return_counts=True)
        for what, count in zip(whats.tolist(), counts.tolist(), strict=True):
            self._kernels.setdefault(what, _Launches()).setup += count

    def summed(
        self, ranges: Mapping[int, tuple[str, ...]], operations: Mapping[int, KernelOperation]
    ) -> SummedKernels:
        """All of it; `ranges` are those that each configuration was launched in, `operations` its commonest one."""
        ranked = sorted(self._kernels.items(), key=self._rank)
        counted = [(number, launches) for number, launches in ranked if launches.count]
        places = {number: place for place, (number, _) in enumerate(counted)}
        medians = self._medians.medians()
        return SummedKernels(
            tuple(
                KernelTime(
                    _kernel(self._table[number]),
                    launches.count,
                    launches.total / 1e9,
                    medians[number] / 1e9,
                    launches.least / 1e9,
                    launches.most / 1e9,
                    launches.first,
                    ranges.get(number, ()),
                    launches.setup,
                    launches.graph,
                    **vars(operations.get(number, KernelOperation())),
                )
                for number, launches in counted
            ),
            tuple(places[number] for number in self._order),
            tuple(
                KernelTime(_kernel(self._table[number]), 0, 0.0, setup_launches=launches.setup)
                for number, launches in [item for item in ranked if not item[1].count][:MOST_SETUP]
            ),
            self._setup / 1e9 if self._before else None,
        )

    def _rank(self, item: tuple[int, _Launches]) -> tuple[int, int, str, str]:
        """Most time first, then most launches of the set-up."""
        kernel = _kernel(self._table[item[0]])
        return -item[1].total, -item[1].setup, kernel.name, kernel.id


def _kernel(configuration: Configuration) -> Kernel:
    return Kernel(
        configuration.name,
        configuration.grid,
        configuration.block,
        configuration.mangled,
        configuration.registers,
        configuration.shared,
    )


class TransferSums:
    """Fed with copies: by kind how many, their bytes and their ns."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[int, int, int]] = {}

    def add(self, moved: Columns) -> None:
        """Copies (columns ACTIVITY)."""
        for kind in set(moved["what"].tolist()):
            rows = moved[moved["what"] == kind]
            count, size, spent = self._kinds.get(kind, (0, 0, 0))
            spent += int((rows["end"] - rows["start"]).sum())
            self._kinds[kind] = count + len(rows), size + int(rows["bytes"].sum()), spent

    def summed(self, kinds: Sequence[TransferKind]) -> tuple[Transfer, ...]:
        """By name, most time first; of each the kinds of memory on the host's side."""
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


MOST_LINES = 64
_WAITS = re.compile(
    r"^cu(?:da)?(?:Stream|Event|Device|Ctx)Synchronize|^cu(?:da)?Memcpy(?:DtoH)?(?:_v\d+|_ptds)*$"
)
_TO_DEVICE = "host to device"


SHORTEST = 100_000  # ns: what takes less on the host is the call itself, or a view


class HostOperations:
    """Operations of torch in which nothing is asked of the driver: the host computes them, on tensors of its own."""

    def __init__(self, origins: LaunchOrigins, windows: TimeWindows) -> None:
        self._origins, self._windows = origins, windows
        self._asked: dict[
            tuple[int, int], set[int]
        ] = {}  # of each thread the steps in which the driver was asked

    def add_calls(self, rows: Any) -> None:
        """Calls (columns CALL)."""
        import numpy as np

        for (process, thread), moments, _ in self._origins.steps():
            mine = rows["start"][(rows["process"] == process) & (rows["thread"] == thread)]
            steps = np.searchsorted(moments, mine, side="right") - 1
            self._asked.setdefault((process, thread), set()).update(np.unique(steps).tolist())

    def summed(self) -> dict[SourceLine, HostCalls]:
        """Of each line the operation with most time."""
        import numpy as np

        sums: dict[tuple[SourceLine, str], HostCalls] = {}
        for key, moments, numbers in self._origins.steps():
            spent = np.diff(moments)
            counts = (spent >= SHORTEST) & (self._windows.number(moments[:-1]) >= 0)
            for step in np.flatnonzero(counts).tolist():
                operation, backward_of, line = self._origins.origins[numbers[step]]
                if operation is None or line is None or backward_of or step in self._asked.get(key, ()):
                    continue
                known = sums.get((line, operation), HostCalls(operation, 0, 0.0))
                seconds = known.seconds + float(spent[step]) / 1e9
                sums[line, operation] = HostCalls(operation, known.calls + 1, seconds)
        ranked = sorted(sums.items(), key=lambda item: item[1].seconds)
        return {line: one for (line, _), one in ranked}


class LineSums:
    """Fed with the kernels, copies and calls that count."""

    def __init__(self, ranges: Sequence[Range], windows: TimeWindows, tables: Tables) -> None:
        self._ranges, self._windows, self._tables = ranges, windows, tables
        self.origins = LaunchOrigins(ranges)
        self._kernels: dict[SourceLine, list[float]] = {}
        self._waits = Counter[SourceLine]()
        self._on_host = HostOperations(self.origins, windows)
        self._copies: dict[SourceLine, TransferSums] = {}

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
            self._copies.setdefault(line, TransferSums()).add(chosen)

    def add_calls(self, rows: Columns) -> None:
        """Calls (columns CALL)."""
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
        on_host = self._on_host.summed()
        lines = [
            replace(self._line(line, calls[line], spent[line]), on_host=on_host.get(line))
            for line in {*calls, *self._kernels, *self._waits, *self._copies}
        ]
        lines.sort(key=lambda one: (-one.kernel_seconds, -one.seconds, one.file, one.line))
        return tuple(lines[:MOST_LINES]), (last - first) / 1e9 if last > first else None

    def _line(self, line: SourceLine, calls: int, spent: float) -> GpuLine:
        copies = self._copies.get(line, TransferSums())
        transfers = copies.summed(self._tables.transfers)
        sent = sum(one.count for one in transfers if one.kind == _TO_DEVICE)
        launches, working = self._kernels.get(line, (0, 0.0))
        alone = max(0, self._waits[line] - sent)
        return GpuLine(*line, calls, spent / 1e9, int(launches), working / 1e9, alone, transfers)
