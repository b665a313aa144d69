"""The tables of CUPTI activities as columns for `timeline`, block by block, whatever the schema's version lacks.

Several columns travel in one number: SQLite hands over a row of 6 in half the time of one of 14.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from profkit.timeline.records import (
    ACTIVITY,
    CALL,
    GRAPH,
    KERNEL,
    MOST_CONFIGURATIONS,
    OTHER,
    TRANSFER,
    Columns,
    Configuration,
    Tables,
)
from profkit.tools.nsys.database import Database
from profkit.tools.nsys.names import call_name

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
NAMES = ("demangledName", "shortName", "mangledName")
# ENUM_CUDA_MEMCPY_OPER. Where it is not told (old schemas have no such table) the numbers are the same.
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


class OutOfOrder(Exception):
    """A table is not in the order of its starts; it has to be sorted."""


class NotNumbers(Exception):
    """A column of numbers holds something else; it has to be asked for with care."""


@dataclass
class Activities:
    """Reads what the devices did. `odd` counts rows whose times make no sense; they are left out."""

    database: Database
    tables: Tables
    sort: bool = False  # let SQLite sort: slower, and it writes temporary files
    careful: bool = (
        False  # let SQLite make a number of whatever a column holds, which costs a third of the time
    )
    odd: int = 0
    graphs: int = 0  # CUDA graphs that were traced as a whole
    kernels: int = 0
    processes: dict[int, int] = field(default_factory=dict)  # nsys' number -> ours
    threads: dict[int, int] = field(default_factory=dict)
    _configurations: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _folded: int | None = None

    def blocks(self) -> Iterator[Columns]:
        """All of it, in the order of the starts."""
        streams = [self._kernel_blocks(), self._copy_blocks(), self._fill_blocks(), self._graph_blocks()]
        yield from merged(streams)

    def calls(self) -> Iterator[Columns]:
        """The host's calls into CUDA, in the order of their starts."""
        number = self._number
        query = (
            f"SELECT {number(CALLS, 'start')}, {number(CALLS, 'end')}, {number(CALLS, 'globalTid')}, "
            f"{number(CALLS, 'correlationId', -1)}, {number(CALLS, 'nameId', -1)} FROM {CALLS}"
        )
        if CALLS not in self.database.tables:
            return
        names: dict[int, int] = {}
        last = -(1 << 62)
        import numpy as np

        for rows in self._fetched(CALLS, query):
            block = np.zeros(len(rows), dtype=CALL)
            block["start"], block["end"] = rows[:, 0], rows[:, 1]
            block["process"] = _numbered(rows[:, 2] >> 24, self.processes)
            block["thread"] = _numbered(rows[:, 2], self.threads)
            block["key"] = _key(block["process"], rows[:, 3])
            self._learn(rows[:, 4], names)
            block["name"] = _numbered(rows[:, 4], names)
            block, last = _in_order(self._sane(block), last)
            yield block

    def _learn(self, ids: Any, names: dict[int, int]) -> None:
        import numpy as np

        new = [number for number in np.unique(ids).tolist() if number not in names]
        texts = self.database.strings(new)
        for number in new:
            names[number] = len(self.tables.calls)
            self.tables.calls.append(call_name(texts.get(number, f"[call {number}]")))

    def _kernel_blocks(self) -> Iterator[Columns]:
        if KERNELS not in self.database.tables:
            return
        number = self._number
        there = self.database.columns(KERNELS)
        name = next((n for n in NAMES if n in there), NAMES[0])
        mangled = "mangledName" if name != "mangledName" else name

        def packed(*parts: tuple[str, int]) -> str:
            return " | ".join(f"({number(KERNELS, column)} << {shift})" for column, shift in parts)

        memory = " + ".join(number(KERNELS, c) for c in ("staticSharedMemory", "dynamicSharedMemory"))
        query = (
            f"SELECT {number(KERNELS, 'start')}, {number(KERNELS, 'end')}, {number(KERNELS, 'globalPid')}, "
            f"{number(KERNELS, 'correlationId', -1)}, "
            # grid: x below 2^31, y and z below 2^16; block: x and y up to 2^10, z up to 2^6 (CUDA's own limits)
            f"{packed(('gridX', 0), ('gridY', 31), ('gridZ', 47))}, "
            f"{packed(('blockX', 0), ('blockY', 11), ('blockZ', 22), ('registersPerThread', 29), ('deviceId', 40))}"
            f" | ({self._is_graph(KERNELS)} << 62), "
            f"({number(KERNELS, name)} << 32) | ({number(KERNELS, mangled)} & 4294967295), {memory} FROM {KERNELS}"
        )
        last = -(1 << 62)
        for rows in self._fetched(KERNELS, query):
            block = self._blank(rows, KERNEL)
            shape = rows[:, 5]
            block["device"] = (shape >> 40) & 0x7FFF
            block["graph"] = (shape >> 62) & 1
            block["what"] = self._configuration(rows[:, 4], shape & ((1 << 40) - 1), rows[:, 6], rows[:, 7])
            block, last = _in_order(self._sane(block), last)
            self.kernels += len(block)
            yield block

    def _number(self, table: str, column: str, default: int = 0) -> str:
        """A column as a number: as it stands, which nsys' own files can be trusted with, or with care."""
        if self.careful or column not in self.database.columns(table):
            return self.database.number(table, column, default)
        return f'"{column}"'

    def _is_graph(self, table: str) -> str:
        """1 for a node of a CUDA graph. Some versions write 0 for none."""
        if "graphNodeId" not in self.database.columns(table):
            return "0"
        return "(coalesce(graphNodeId | 0, 0) <> 0)"

    def _configuration(self, grid: Any, block: Any, names: Any, shared: Any) -> Any:
        import numpy as np

        keys = np.stack([grid, block, names, shared], axis=1)
        # Rows as wholes, by a hash that is checked: a collision would join two kernels.
        with np.errstate(over="ignore"):
            hashed = grid * 0x2545F4914F6CDD1D + block
            hashed = hashed * 0x2545F4914F6CDD1D + names
            hashed = hashed * 0x2545F4914F6CDD1D + shared
        _, first, where = np.unique(hashed, return_index=True, return_inverse=True)
        if not (keys[first][where] == keys).all():
            _, first, where = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        found = [tuple(row) for row in keys[first].tolist()]
        self._name([row for row in found if row not in self._configurations])
        return np.array([self._configurations.get(row, self._folded) for row in found], dtype=np.int32)[
            where.reshape(-1)
        ]

    def _name(self, new: list[tuple[int, int, int, int]]) -> None:
        texts = self.database.strings(sorted({n for row in new for n in (row[2] >> 32, row[2] & 0xFFFFFFFF)}))
        table = self.tables.configurations
        for row in new:
            if len(table) >= MOST_CONFIGURATIONS:
                if self._folded is None:
                    self._folded = len(table)
                    table.append(Configuration(OTHER, (0, 0, 0), (0, 0, 0)))
                return
            grid, block, names, shared = row
            self._configurations[row] = len(table)
            mangled = texts.get(names & 0xFFFFFFFF)
            name = texts.get(names >> 32) or mangled or f"[kernel {names >> 32}]"
            table.append(
                Configuration(
                    name,
                    (grid & 0x7FFFFFFF, (grid >> 31) & 0xFFFF, (grid >> 47) & 0xFFFF),
                    (block & 0x7FF, (block >> 11) & 0x7FF, (block >> 22) & 0x7F),
                    mangled,
                    (block >> 29) & 0x7FF or None,
                    shared,
                )
            )

    def _copy_blocks(self) -> Iterator[Columns]:
        yield from self._transfers(COPIES, self._number(COPIES, "copyKind"), COPY_KINDS)

    def _fill_blocks(self) -> Iterator[Columns]:
        yield from self._transfers(FILLS, "0", {0: MEMSET})

    def _transfers(self, table: str, kind: str, names: dict[int, str]) -> Iterator[Columns]:
        import numpy as np

        if table not in self.database.tables:
            return
        number = self._number
        query = (
            f"SELECT {number(table, 'start')}, {number(table, 'end')}, {number(table, 'globalPid')}, "
            f"{number(table, 'correlationId', -1)}, {kind}, {number(table, 'deviceId')}, "
            f"{number(table, 'bytes')}, {self._is_graph(table)} FROM {table}"
        )
        last = -(1 << 62)
        for rows in self._fetched(table, query):
            block = self._blank(rows, TRANSFER)
            kinds = {k: self._transfer(names.get(k, "copy")) for k in np.unique(rows[:, 4]).tolist()}
            block["what"] = [kinds[k] for k in rows[:, 4].tolist()]
            block["device"], block["bytes"] = rows[:, 5] & 0x7FFF, np.maximum(rows[:, 6], 0)
            block["graph"] = rows[:, 7] != 0
            block, last = _in_order(self._sane(block), last)
            yield block

    def _transfer(self, name: str) -> int:
        if name not in self.tables.transfers:
            self.tables.transfers.append(name)
        return self.tables.transfers.index(name)

    def _graph_blocks(self) -> Iterator[Columns]:
        if GRAPHS not in self.database.tables:
            return
        number = self._number
        query = (
            f"SELECT {number(GRAPHS, 'start')}, {number(GRAPHS, 'end')}, {number(GRAPHS, 'globalPid')}, "
            f"{number(GRAPHS, 'correlationId', -1)}, {number(GRAPHS, 'deviceId')}, "
            f"{number(GRAPHS, 'graphExecId')} FROM {GRAPHS}"
        )
        last = -(1 << 62)
        for rows in self._fetched(GRAPHS, query):
            block = self._blank(rows, GRAPH)
            block["device"], block["graph"] = rows[:, 4] & 0x7FFF, True
            block["what"] = [self._graph(number) for number in rows[:, 5].tolist()]
            block, last = _in_order(self._sane(block), last)
            self.graphs += len(block)
            yield block

    def _graph(self, number: int) -> int:
        """The number of a graph, as of a kernel: it repeats like one."""
        row = (-1, -1, number, 0)
        if row not in self._configurations and len(self.tables.configurations) < MOST_CONFIGURATIONS:
            self._configurations[row] = len(self.tables.configurations)
            self.tables.configurations.append(Configuration(f"[CUDA graph {number}]", (0, 0, 0), (0, 0, 0)))
        return self._configurations.get(row, 0)

    def _fetched(self, table: str, query: str) -> Iterator[Any]:
        import numpy as np

        if not {"start", "end"} <= self.database.columns(table):
            return
        for rows in self.database.blocks(f'{query} ORDER BY "start" | 0' if self.sort else query):
            try:
                yield np.array(rows, dtype=np.int64)
            except (TypeError, ValueError, OverflowError):
                raise NotNumbers from None

    def _blank(self, rows: Any, kind: int) -> Columns:
        import numpy as np

        block = np.zeros(len(rows), dtype=ACTIVITY)
        block["start"], block["end"], block["kind"] = rows[:, 0], rows[:, 1], kind
        block["launch"] = block["call"] = block["thread"] = -1
        block["process"] = _numbered(rows[:, 2] >> 24, self.processes)
        block["key"] = _key(block["process"], rows[:, 3])
        return block

    def _sane(self, block: Columns) -> Columns:
        """Without the rows that end before they begin, or are years away: nobody measured them."""
        good = (
            (block["end"] >= block["start"]) & (abs(block["start"]) < 1 << 61) & (abs(block["end"]) < 1 << 61)
        )
        if good.all():
            return block
        self.odd += int(len(block) - good.sum())
        return block[good]


def merged(streams: list[Iterator[Columns]]) -> Iterator[Columns]:
    """Several sorted streams as one. What is given out lies before everything that is still to come."""
    import numpy as np

    waiting: list[Columns | None] = [next(stream, None) for stream in streams]
    while True:
        there = [block for block in waiting if block is not None and len(block)]
        for at, block in enumerate(waiting):
            if block is not None and not len(block):
                waiting[at] = next(streams[at], None)
                break
        else:
            if not there:
                return
            horizon = min(int(block["start"][-1]) for block in there)
            parts = []
            for at, block in enumerate(waiting):
                if block is None:
                    continue
                cut = int(np.searchsorted(block["start"], horizon, side="right"))
                parts.append(block[:cut])
                waiting[at] = block[cut:] if cut < len(block) else next(streams[at], None)
            joined = np.concatenate(parts)
            yield joined[np.argsort(joined["start"], kind="stable")]


def _in_order(block: Columns, last: int) -> tuple[Columns, int]:
    """`block` sorted, and where it ends. Raises OutOfOrder where it begins before `last`."""
    import numpy as np

    starts = block["start"]
    if not len(starts):
        return block, last
    if (starts[1:] < starts[:-1]).any():
        block = block[np.argsort(starts, kind="stable")]
    if int(block["start"][0]) < last:
        raise OutOfOrder
    return block, int(block["start"][-1])


def _numbered(values: Any, numbers: dict[int, int]) -> Any:
    """Small numbers for large ones, given out in the order in which they come."""
    import numpy as np

    distinct, where = np.unique(values, return_inverse=True)
    small = [numbers.setdefault(value, len(numbers)) for value in distinct.tolist()]
    return np.array(small, dtype=np.int64)[where.reshape(-1)]


def _key(processes: Any, correlations: Any) -> Any:
    """A launch's key in the whole recording; -1 where it has no number."""
    import numpy as np

    return np.where(correlations >= 0, (processes.astype(np.int64) << 33) | (correlations & 0x1FFFFFFFF), -1)
