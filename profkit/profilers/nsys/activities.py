"""Reads the tables of CUPTI activities as columns for `timeline`, block by block, in any schema.

A launch configuration travels in four numbers, since SQLite hands over a row of 6 in half the time of one of
14.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.records import (
    ACTIVITY,
    CALL,
    GRAPH,
    KERNEL,
    MAX_CONFIGURATIONS,
    OTHER,
    TRANSFER,
    Columns,
    Tables,
    TransferKind,
)
from profkit.core.types import Kernel, MemoryKind
from profkit.profilers.nsys.database import Database, call_name


class UnorderedTable(Exception):
    """A table is not in the order of its start times, and has to be sorted."""


def check_order(blocks: Iterable[Columns]) -> Iterator[Columns]:
    """Yield each block sorted; nsys leaves a table in order in all but a few places.

    Raises UnorderedTable where a block begins before the one before it ends.
    """
    import numpy as np

    last = -(1 << 62)
    for block in blocks:
        starts = block["start"]
        if len(starts):
            if (starts[1:] < starts[:-1]).any():
                block = block[np.argsort(starts, kind="stable")]
            if int(block["start"][0]) < last:
                raise UnorderedTable
            last = int(block["start"][-1])
        yield block


def merge_blocks(streams: list[Iterator[Columns]]) -> Iterator[Columns]:
    """Merge several sorted streams into one; each block lies before everything that is still to come."""
    import numpy as np

    waiting: list[Columns | None] = [next(stream, None) for stream in streams]
    while True:
        filled = [block for block in waiting if block is not None and len(block)]
        for at, block in enumerate(waiting):
            if block is not None and not len(block):
                waiting[at] = next(streams[at], None)
                break
        else:
            if not filled:
                return
            horizon = min(int(block["start"][-1]) for block in filled)
            parts = []
            for at, block in enumerate(waiting):
                if block is None:
                    continue
                cut = int(np.searchsorted(block["start"], horizon, side="right"))
                parts.append(block[:cut])
                waiting[at] = block[cut:] if cut < len(block) else next(streams[at], None)
            joined = np.concatenate(parts)
            yield joined[np.argsort(joined["start"], kind="stable")]


_NAMES = ("demangledName", "shortName", "mangledName")


def pack_columns(there: frozenset[str], number: Callable[[str], str]) -> tuple[str, str, str, str]:
    """Return SQL expressions that pack a configuration into four numbers.

    They are the grid, the block (with registers, and the device above bit 40), the names, and the shared memory.
    `there` are the columns that the table has, `number` makes an expression of one. CUDA's own limits: of a grid
    x is below 2^31, y and z below 2^16; of a block x and y are up to 2^10, z up to 2^6.
    """

    def together(*parts: tuple[str, int]) -> str:
        return " | ".join(f"({number(column)} << {shift})" for column, shift in parts)

    name = next((n for n in _NAMES if n in there), _NAMES[0])
    return (
        together(("gridX", 0), ("gridY", 31), ("gridZ", 47)),
        together(("blockX", 0), ("blockY", 11), ("blockZ", 22), ("registersPerThread", 29), ("deviceId", 40)),
        f"({number(name)} << 32) | ({number(_NAMES[-1])} & 4294967295)",
        " + ".join(number(column) for column in ("staticSharedMemory", "dynamicSharedMemory")),
    )


def device_of(block: Any) -> Any:
    """Return the device out of the second of the four numbers."""
    return (block >> 40) & 0x7FFF


@dataclass
class ConfigurationTable:
    """Gives each configuration its place in `tables`, in the order in which they come."""

    database: Database
    tables: Tables
    _numbers: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _folded: int | None = None

    def of(self, grid: Any, block: Any, names: Any, shared: Any) -> Any:
        """Return the numbers of the configurations of a block's rows, given by four numbers each."""
        import numpy as np

        block = block & ((1 << 40) - 1)
        keys = np.stack([grid, block, names, shared], axis=1)
        # Rows as wholes, by a hash that is checked: a collision would join two kernels.
        with np.errstate(over="ignore"):
            hashed = grid * 0x2545F4914F6CDD1D + block
            hashed = hashed * 0x2545F4914F6CDD1D + names
            hashed = hashed * 0x2545F4914F6CDD1D + shared
        _, first, where = np.unique(hashed, return_index=True, return_inverse=True)
        if not (keys[first][where] == keys).all():
            _, first, where = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        rows = [tuple(row) for row in keys[first].tolist()]
        self._name([row for row in rows if row not in self._numbers])
        return np.array([self._numbers.get(row, self._folded) for row in rows], dtype=np.int32)[
            where.reshape(-1)
        ]

    def _name(self, new: list[tuple[int, int, int, int]]) -> None:
        texts = self.database.strings(sorted({n for row in new for n in (row[2] >> 32, row[2] & 0xFFFFFFFF)}))
        table = self.tables.configurations
        for row in new:
            if len(table) >= MAX_CONFIGURATIONS:
                self._fold()
                return
            grid, block, names, shared = row
            self._numbers[row] = len(table)
            mangled = texts.get(names & 0xFFFFFFFF)
            name = texts.get(names >> 32) or mangled or f"[kernel {names >> 32}]"
            table.append(
                Kernel(
                    name,
                    (grid & 0x7FFFFFFF, (grid >> 31) & 0xFFFF, (grid >> 47) & 0xFFFF),
                    (block & 0x7FF, (block >> 11) & 0x7FF, (block >> 22) & 0x7F),
                    mangled,
                    (block >> 29) & 0x7FF or None,
                    shared,
                )
            )

    def graph(self, number: int) -> int:
        """Return the number of a CUDA graph, which repeats like a kernel."""
        row, table = (-1, -1, number, 0), self.tables.configurations
        if row not in self._numbers:
            if len(table) >= MAX_CONFIGURATIONS:
                return self._fold()
            self._numbers[row] = len(table)
            table.append(Kernel(f"[CUDA graph {number}]", (0, 0, 0), (0, 0, 0)))
        return self._numbers[row]

    def _fold(self) -> int:
        """Return the number that all configurations share that come when the table is full."""
        if self._folded is None:
            self._folded = len(self.tables.configurations)
            self.tables.configurations.append(Kernel(OTHER, (0, 0, 0), (0, 0, 0)))
        return self._folded


KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
# ENUM_CUDA_MEMCPY_OPER. Old schemas have no such table, but the numbers are the same.
COPY_KINDS = {
    1: "host to device",
    2: "device to host",
    3: "host to array",
    4: "array to host",
    5: "array to array",
    6: "array to device",
    7: "device to array",
    8: "device to device",
    9: "host to host",
    10: "peer to peer",
    11: "host to device (managed)",
    12: "device to host (managed)",
    13: "device to device (managed)",
}
MEMSET = "memset"
_FROM_HOST, _TO_HOST, _OF_ARRAYS = (1, 3), (2, 4), (3, 4)  # of the copies those with one side on the host
# ENUM_CUDA_MEM_KIND, the same in every export that tells it. CUPTI's own numbers are others, where 2 is pinned.
_HOST_MEMORY: dict[int, MemoryKind] = {0: "pageable", 1: "pinned", 4: "managed", 6: "managed"}
_DEVICE_MEMORY, _ARRAY = (2, 4, 5, 6), (3,)
_UNKNOWN_MEMORY = 7


@dataclass
class DeviceActivities:
    """Reads what the devices did. `odd` counts rows with impossible times, which are left out."""

    database: Database
    tables: Tables
    sort: bool = False  # let SQLite sort: slower, and it writes temporary files
    odd: int = 0
    graphs: int = 0  # CUDA graphs that were traced as a whole
    kernels: int = 0
    processes: dict[int, int] = field(default_factory=dict)  # nsys' number -> ours
    threads: dict[int, int] = field(default_factory=dict)
    _configurations: ConfigurationTable = field(init=False)

    def __post_init__(self) -> None:
        self._configurations = ConfigurationTable(self.database, self.tables)

    def blocks(self) -> Iterator[Columns]:
        """Yield all activities, in the order of their start times. Raises UnorderedTable."""
        import numpy as np

        sides = (self.database.number(COPIES, side, _UNKNOWN_MEMORY) for side in ("srcKind", "dstKind"))
        source, destination = (f"({side} & 255)" for side in sides)
        copy_kind = f"({self._number(COPIES, 'copyKind')} << 16) | ({source} << 8) | {destination}"
        copies = self._transfers(COPIES, copy_kind, _copy_kind)
        fills = self._transfers(FILLS, "0", lambda _: TransferKind(MEMSET))
        streams = (self._kernel_blocks(), copies, fills, self._graph_blocks())
        for block in merge_blocks([check_order(map(self._sane, stream)) for stream in streams]):
            self.kernels += int(np.count_nonzero(block["kind"] == KERNEL))
            self.graphs += int(np.count_nonzero(block["kind"] == GRAPH))
            yield block

    def calls(self) -> Iterator[Columns]:
        """Yield the host's calls into CUDA, in the order of their start times. Raises UnorderedTable."""
        yield from check_order(map(self._sane, self._call_blocks()))

    def _call_blocks(self) -> Iterator[Columns]:
        import numpy as np

        number = self._number
        fields = (
            f"{number(CALLS, 'start')}, {number(CALLS, 'end')}, {number(CALLS, 'globalTid')}, "
            f"{number(CALLS, 'correlationId', -1)}, {number(CALLS, 'nameId', -1)}"
        )
        names: dict[int, int] = {}
        for rows in self._fetched(CALLS, fields):
            block = np.zeros(len(rows), dtype=CALL)
            block["start"], block["end"] = rows[:, 0], rows[:, 1]
            block["process"] = _renumber(rows[:, 2] >> 24, self.processes)
            block["thread"] = _renumber(rows[:, 2], self.threads)
            block["key"] = _key(block["process"], rows[:, 3])
            self._learn(rows[:, 4], names)
            block["name"] = _renumber(rows[:, 4], names)
            yield block

    def _learn(self, ids: Any, names: dict[int, int]) -> None:
        import numpy as np

        new = [number for number in np.unique(ids).tolist() if number not in names]
        texts = self.database.strings(new)
        for number in new:
            names[number] = len(self.tables.calls)
            self.tables.calls.append(call_name(texts.get(number, f"[call {number}]")))

    def _kernel_blocks(self) -> Iterator[Columns]:
        columns = self.database.columns(KERNELS)
        grid, shape, names, memory = pack_columns(columns, lambda column: self._number(KERNELS, column))
        fields = (
            f"{self._common(KERNELS)}, {grid}, {shape} | ({self._is_graph(KERNELS)} << 62), {names}, {memory}"
        )
        for rows in self._fetched(KERNELS, fields):
            block = self._blank(rows, KERNEL)
            block["device"] = device_of(rows[:, 6])
            block["graph"] = (rows[:, 6] >> 62) & 1
            block["what"] = self._configurations.of(*(rows[:, n] for n in range(5, 9)))
            yield block

    def _common(self, table: str) -> str:
        """Return the SQL of the first five columns of a row, which every activity has."""
        number = self._number
        return (
            f"{number(table, 'start')}, {number(table, 'end')}, {number(table, 'globalPid')}, "
            f"{number(table, 'correlationId', -1)}, {number(table, 'streamId', -1)}"
        )

    def _number(self, table: str, column: str, default: int = 0) -> str:
        """Return the SQL of a column as it is, or `default` where the table lacks it.

        A conversion to a number in SQLite would cost a third of the time.
        """
        return f'"{column}"' if column in self.database.columns(table) else str(default)

    def _is_graph(self, table: str) -> str:
        """Return SQL that is 1 for a node of a CUDA graph. Some versions write 0 for no node."""
        if "graphNodeId" not in self.database.columns(table):
            return "0"
        return "(coalesce(graphNodeId | 0, 0) <> 0)"

    def _transfers(self, table: str, kind: str, named: Callable[[int], TransferKind]) -> Iterator[Columns]:
        import numpy as np

        number = self._number
        fields = (
            f"{self._common(table)}, {kind}, {number(table, 'deviceId')}, {number(table, 'bytes')}, "
            f"{self._is_graph(table)}"
        )
        for rows in self._fetched(table, fields):
            block = self._blank(rows, TRANSFER)
            kinds = {k: self._transfer(named(k)) for k in np.unique(rows[:, 5]).tolist()}
            block["what"] = [kinds[k] for k in rows[:, 5].tolist()]
            block["device"], block["bytes"] = rows[:, 6] & 0x7FFF, np.maximum(rows[:, 7], 0)
            block["graph"] = rows[:, 8] != 0
            yield block

    def _transfer(self, kind: TransferKind) -> int:
        if kind not in self.tables.transfers:
            self.tables.transfers.append(kind)
        return self.tables.transfers.index(kind)

    def _graph_blocks(self) -> Iterator[Columns]:
        number = self._number
        fields = f"{self._common(GRAPHS)}, {number(GRAPHS, 'deviceId')}, {number(GRAPHS, 'graphExecId')}"
        for rows in self._fetched(GRAPHS, fields):
            block = self._blank(rows, GRAPH)
            block["device"], block["graph"] = rows[:, 5] & 0x7FFF, True
            block["what"] = [self._configurations.graph(graph_id) for graph_id in rows[:, 6].tolist()]
            yield block

    def _fetched(self, table: str, fields: str) -> Iterator[Any]:
        """Yield blocks of rows as whole numbers; none for a table that is missing or has no times.

        Raises sqlite3.DatabaseError for columns that hold no numbers.
        """
        if not {"start", "end"} <= self.database.columns(table):
            return
        order = ' ORDER BY "start" | 0' if self.sort else ""
        numbers = self.database.numbers(f"SELECT {fields} FROM {table}{order}")
        while True:
            try:
                rows = next(numbers, None)
            except (TypeError, ValueError, OverflowError):
                raise sqlite3.DatabaseError("its columns hold no numbers") from None
            if rows is None:
                return
            yield rows

    def _blank(self, rows: Any, kind: int) -> Columns:
        import numpy as np

        block = np.zeros(len(rows), dtype=ACTIVITY)
        block["start"], block["end"], block["kind"] = rows[:, 0], rows[:, 1], kind
        block["launch"] = block["call"] = block["thread"] = -1
        block["process"] = _renumber(rows[:, 2] >> 24, self.processes)
        block["key"] = _key(block["process"], rows[:, 3])
        block["stream"] = np.where(rows[:, 4] >= 0, rows[:, 4] & 0x7FFFFFFF, -1)
        return block

    def _sane(self, block: Columns) -> Columns:
        """Drop the rows that end before they begin, are years away, or lost their times, which are 0 then."""
        good = (
            (block["end"] >= block["start"])
            & (abs(block["start"]) < 1 << 61)
            & (abs(block["end"]) < 1 << 61)
            & ((block["start"] != 0) | (block["end"] != 0))
        )
        if good.all():
            return block
        self.odd += int(len(block) - good.sum())
        sane: Columns = block[good]
        return sane


def _copy_kind(number: int) -> TransferKind:
    """Return the kind of a copy by its direction and the memory on both sides.

    The host's memory is known only where the other side is memory of a device.
    """
    copy, source, destination = number >> 16, number >> 8 & 255, number & 255
    name = COPY_KINDS.get(copy, "copy")
    host, device = (source, destination) if copy in _FROM_HOST else (destination, source)
    if copy not in (*_FROM_HOST, *_TO_HOST) or device not in (
        _ARRAY if copy in _OF_ARRAYS else _DEVICE_MEMORY
    ):
        return TransferKind(name)
    return TransferKind(name, _HOST_MEMORY.get(host))


def _renumber(values: Any, numbers: dict[int, int]) -> Any:
    """Replace large numbers by small ones, given out in the order in which they come."""
    import numpy as np

    if len(values) and (values == values[0]).all():  # of one process, or one thread: nothing has to be sorted
        return np.full(len(values), numbers.setdefault(int(values[0]), len(numbers)), dtype=np.int64)
    distinct, where = np.unique(values, return_inverse=True)
    small = [numbers.setdefault(value, len(numbers)) for value in distinct.tolist()]
    return np.array(small, dtype=np.int64)[where.reshape(-1)]


def _key(processes: Any, correlations: Any) -> Any:
    """Return a launch's key that is unique in the whole recording; -1 where it has no number."""
    import numpy as np

    return np.where(correlations >= 0, (processes.astype(np.int64) << 33) | (correlations & 0x1FFFFFFFF), -1)
