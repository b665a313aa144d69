"""Activities and calls that come one by one, in any order, kept as columns: 96 bytes of one, 48 of the other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.records import (
    ACTIVITY,
    CALL,
    KERNEL,
    MOST_CONFIGURATIONS,
    OTHER,
    TRANSFER,
    Columns,
    Configuration,
    Tables,
)

BLOCK = 1 << 17
_FOLDED = Configuration(OTHER, (0, 0, 0), (0, 0, 0))


@dataclass
class Collected:
    """For readers of texts. Times in ns; `key` joins an activity with its call, -1 where it has none."""

    tables: Tables = field(default_factory=Tables)
    devices: set[int] = field(default_factory=set)
    graphs: set[int] = field(default_factory=set)  # keys of launches of CUDA graphs
    kernels: int = 0
    _activities: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name, _ in ACTIVITY}
    )
    _calls: dict[str, array[int]] = field(default_factory=lambda: {name: array("q") for name, _ in CALL})
    _numbers: dict[object, int] = field(default_factory=dict)

    def kernel(self, what: Configuration, start: int, end: int, *, key: int = -1, device: int = 0) -> None:
        """One launch of a kernel as the device carried it out."""
        number = self._numbers.get(what)
        if number is None:
            if len(self.tables.configurations) >= MOST_CONFIGURATIONS:
                what = _FOLDED
            number = self._number(what, what, self.tables.configurations)
        self.kernels += 1
        self._activity(KERNEL, number, start, end, key, device, 0)

    def transfer(self, kind: str, start: int, end: int, size: int, *, key: int = -1, device: int = 0) -> None:
        """One copy or memset of `size` bytes."""
        number = self._number(("transfer", kind), kind, self.tables.transfers)
        self._activity(TRANSFER, number, start, end, key, device, size)

    def call(self, name: str, start: int, end: int, *, key: int = -1, thread: int = 0) -> None:
        """One call of the host into CUDA."""
        if "GraphLaunch" in name:
            self.graphs.add(key)
        row = (start, end, key, self._number(("call", name), name, self.tables.calls), thread, 0)
        for column, value in zip(self._calls.values(), row, strict=True):
            column.append(value)

    def thread(self, *what: str) -> int:
        """A number for a thread."""
        return self._numbers.setdefault(("thread", *what), len(self._numbers))

    def _activity(self, kind: int, what: int, start: int, end: int, key: int, device: int, size: int) -> None:
        device &= 0x7FFF
        self.devices.add(device)
        row = (start, end, key, -1, -1, size, what, -1, 0, device, kind, 0)
        for column, value in zip(self._activities.values(), row, strict=True):
            column.append(value)

    def _number(self, key: object, value: Any, table: list[Any]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(table)
            table.append(value)
        return number

    def activities(self) -> Iterator[Columns]:
        """What the devices did, in the order of the starts."""
        import numpy as np

        block = _columns(self._activities, ACTIVITY)
        if self.graphs:
            block["graph"] = np.isin(block["key"], np.array(sorted(self.graphs), dtype=np.int64))
        yield from _in_blocks(block)

    def calls(self) -> Iterator[Columns]:
        """The host's calls into CUDA, in the order of their starts."""
        yield from _in_blocks(_columns(self._calls, CALL))


def _columns(columns: Mapping[str, array[int]], dtype: Any) -> Columns:
    import numpy as np

    size = len(columns["start"])
    table = np.zeros(size, dtype=dtype)
    for name, values in columns.items():
        table[name] = np.frombuffer(values, dtype=np.int64) if size else 0
    return table


def _in_blocks(table: Columns) -> Iterator[Columns]:
    import numpy as np

    table = table[np.argsort(table["start"], kind="stable")]
    for at in range(0, len(table), BLOCK):
        yield table[at : at + BLOCK]
