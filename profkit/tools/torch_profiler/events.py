"""The events of a Chrome trace of Kineto as columns for `timeline`. What each version of torch calls a thing, it is."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from profkit.timeline.records import (
    ACTIVITY,
    CALL,
    KERNEL,
    MOST_CONFIGURATIONS,
    OTHER,
    TRANSFER,
    Columns,
    Configuration,
    Range,
    Tables,
)

BLOCK = 1 << 17
LONGEST_NAME = 65536
MOST_RANGES = 1 << 20
_STEP = re.compile(r"ProfilerStep#\d+$")
# Kineto's categories; before torch 1.12 they had capitals and other words.
_KERNEL = frozenset({"kernel", "concurrent_kernel"})
_COPY = frozenset({"gpu_memcpy", "memcpy"})
_FILL = frozenset({"gpu_memset", "memset"})
_CALL = frozenset({"cuda_runtime", "cuda_driver", "runtime", "driver"})
_RANGE = frozenset({"user_annotation"})
_DIRECTIONS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "HtoH": "host to host",
    "PtoP": "peer to peer",
}


@dataclass
class Events:
    """Takes one event after the other; keeps 60 bytes of each that matters."""

    tables: Tables = field(default_factory=Tables)
    ranges: list[Range] = field(default_factory=list)
    steps: list[tuple[int, int | None]] = field(default_factory=list)  # of a profiler with a schedule
    devices: set[int] = field(default_factory=set)
    operators: int = 0  # of the CPU
    odd: int = 0
    _activities: dict[str, array[int]] = field(default_factory=dict)
    _calls: dict[str, array[int]] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    _graphs: set[int] = field(default_factory=set)  # correlation numbers of graph launches

    def __post_init__(self) -> None:
        self._activities = {name: array("q") for name, _ in ACTIVITY}
        self._calls = {name: array("q") for name, _ in CALL}

    def take(self, event: object) -> None:
        """Take note of an event, whatever it is."""
        if not isinstance(event, dict) or event.get("ph") != "X":
            return
        category = event.get("cat")
        kind = category.lower() if isinstance(category, str) else ""
        if kind in ("cpu_op", "operator"):
            self.operators += 1
        elif kind in _KERNEL or kind in _COPY or kind in _FILL or kind in _CALL or kind in _RANGE:
            start, length = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur"))
            if start is None or length is None or length < 0:
                self.odd += 1
                return
            raw = event.get("args")
            self._sort_in(kind, event, start, start + length, raw if isinstance(raw, dict) else {})

    def _sort_in(
        self, kind: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        name = str(event.get("name"))[:LONGEST_NAME]
        if kind in _RANGE:
            self._range(name, event, start, end, args)
        elif kind in _CALL:
            self._call(name, event, start, end, args)
        elif kind in _KERNEL:
            self._activity(KERNEL, self._configuration(name, args), start, end, args)
        else:
            what = (
                "memset" if kind in _FILL else next((d for k, d in _DIRECTIONS.items() if k in name), "copy")
            )
            self._activity(TRANSFER, self._number("transfer", what, self.tables.transfers), start, end, args)

    def _range(
        self, name: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        if _STEP.match(name):
            self.steps.append((start, end))
            name = "ProfilerStep"
        if len(self.ranges) < MOST_RANGES:
            domain = args.get("domain")
            thread = None if isinstance(domain, str) else self._thread(event)
            self.ranges.append(
                Range(name, domain if isinstance(domain, str) else None, start, end, 0, thread)
            )

    def _call(
        self, name: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        key = _whole(args.get("correlation"), -1)
        if "GraphLaunch" in name:
            self._graphs.add(key)
        row = (start, end, key, self._number("call", name, self.tables.calls), self._thread(event), 0)
        for column, value in zip(self._calls.values(), row, strict=True):
            column.append(value)

    def _activity(self, kind: int, what: int, start: int, end: int, args: Mapping[str, Any]) -> None:
        device = _whole(args.get("device"), 0) & 0x7FFF
        self.devices.add(device)
        key, size = _whole(args.get("correlation"), -1), max(_whole(args.get("bytes"), 0), 0)
        row = (start, end, key, -1, -1, size, what, -1, 0, device, kind, 0)
        for column, value in zip(self._activities.values(), row, strict=True):
            column.append(value)

    def _configuration(self, name: str, args: Mapping[str, Any]) -> int:
        found = Configuration(
            name,
            _triple(args.get("grid")),
            _triple(args.get("block")),
            None,
            _whole(args.get("registers per thread"), -1) if "registers per thread" in args else None,
            _whole(args.get("shared memory"), -1) if "shared memory" in args else None,
        )
        number = self._numbers.get(found)
        if number is None:
            table = self.tables.configurations
            if len(table) >= MOST_CONFIGURATIONS:
                found = Configuration(OTHER, (0, 0, 0), (0, 0, 0))
                if found in self._numbers:
                    return self._numbers[found]
            number = self._numbers[found] = len(table)
            table.append(found)
        return number

    def _number(self, table: str, name: str, names: list[str]) -> int:
        number = self._numbers.get((table, name))
        if number is None:
            number = self._numbers[table, name] = len(names)
            names.append(name)
        return number

    def _thread(self, event: Mapping[str, Any]) -> int:
        key = ("thread", str(event.get("pid")), str(event.get("tid")))
        return self._numbers.setdefault(key, len(self._numbers))

    @property
    def kernels(self) -> int:
        """How many kernels there were."""
        return self._activities["kind"].count(KERNEL)

    def activities(self) -> Iterator[Columns]:
        """What the devices did, in the order of the starts."""
        import numpy as np

        block = _columns(self._activities, ACTIVITY)
        if self._graphs:
            block["graph"] = np.isin(block["key"], np.array(sorted(self._graphs), dtype=np.int64))
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


def _nanoseconds(microseconds: object) -> int | None:
    """A time of the trace, in whole ns: of microseconds since 1970 as one float the fractions would be lost."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    if not abs(microseconds) < 1e15 * 4:
        return None  # not finite, or in no century
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)


def _whole(value: object, default: int) -> int:
    if isinstance(value, float) and value == value and abs(value) < 1 << 53:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return value
    return default


def _triple(value: object) -> tuple[int, int, int]:
    """Grid or block as three numbers; zeros where it was not told."""
    if isinstance(value, list) and value:
        numbers = [min(max(_whole(item, 0), 0), 1 << 31) for item in value[:3]]
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z
    return 0, 0, 0
