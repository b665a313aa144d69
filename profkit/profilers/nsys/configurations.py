"""Launch configurations as nsys' rows tell them, each with a number: what was launched, and in which shape.

A configuration travels in four numbers, since SQLite hands over a row of 6 in half the time of one of 14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.records import MOST_CONFIGURATIONS, OTHER, Configuration, Tables
from profkit.profilers.nsys.database import Database

_NAMES = ("demangledName", "shortName", "mangledName")


def packed(there: frozenset[str], number: Callable[[str], str]) -> tuple[str, str, str, str]:
    """Expressions for the grid, the block (with registers, and the device above bit 40), the names, and the memory.

    `there` are the columns that the table has, `number` makes an expression of one. CUDA's own limits: of a grid x is
    below 2^31, y and z below 2^16; of a block x and y are up to 2^10, z up to 2^6.
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
    """The device out of the second of the four numbers."""
    return (block >> 40) & 0x7FFF


@dataclass
class Configurations:
    """Gives each configuration its place in `tables`, in the order in which they come."""

    database: Database
    tables: Tables
    _numbers: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _folded: int | None = None

    def of(self, grid: Any, block: Any, names: Any, shared: Any) -> Any:
        """The numbers of the configurations of a block's rows, each of which is told by four numbers."""
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
        found = [tuple(row) for row in keys[first].tolist()]
        self._name([row for row in found if row not in self._numbers])
        return np.array([self._numbers.get(row, self._folded) for row in found], dtype=np.int32)[
            where.reshape(-1)
        ]

    def _name(self, new: list[tuple[int, int, int, int]]) -> None:
        texts = self.database.strings(sorted({n for row in new for n in (row[2] >> 32, row[2] & 0xFFFFFFFF)}))
        table = self.tables.configurations
        for row in new:
            if len(table) >= MOST_CONFIGURATIONS:
                self._fold()
                return
            grid, block, names, shared = row
            self._numbers[row] = len(table)
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

    def graph(self, number: int) -> int:
        """The number of a graph, as of a kernel: it repeats like one."""
        row, table = (-1, -1, number, 0), self.tables.configurations
        if row not in self._numbers:
            if len(table) >= MOST_CONFIGURATIONS:
                return self._fold()
            self._numbers[row] = len(table)
            table.append(Configuration(f"[CUDA graph {number}]", (0, 0, 0), (0, 0, 0)))
        return self._numbers[row]

    def _fold(self) -> int:
        """The number of all that come when the table is full."""
        if self._folded is None:
            self._folded = len(self.tables.configurations)
            self.tables.configurations.append(Configuration(OTHER, (0, 0, 0), (0, 0, 0)))
        return self._folded
