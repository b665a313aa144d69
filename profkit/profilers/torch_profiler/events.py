"""The events of a Chrome trace of Kineto, sorted by what they tell. What each version of torch calls a thing, it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.collect import Collected
from profkit.analysis.timeline.records import Configuration, Range

LONGEST_NAME = 65536
MOST_RANGES = 1 << 20
STEP = "ProfilerStep"
_STEP = re.compile(r"ProfilerStep#\d+$")
# Kineto's categories; before torch 1.12 they had capitals and other words.
_KERNEL = frozenset({"kernel", "concurrent_kernel"})
_COPY = frozenset({"gpu_memcpy", "memcpy"})
_FILL = frozenset({"gpu_memset", "memset"})
_CALL = frozenset({"cuda_runtime", "cuda_driver", "runtime", "driver", "xpu_runtime", "xpu_driver"})
_RANGE = frozenset({"user_annotation"})
_TIMED = _KERNEL | _COPY | _FILL | _CALL | _RANGE
_COUNTED = (
    "cuda_profiler_range"  # a kernel that CUPTI's range profiler replayed for its counters: no time of a run
)
# Devices that are not NVIDIA's, by how their categories or (AMD's, which has CUDA's categories) their calls begin.
_OTHERS = {"xpu_": "Intel GPU (XPU)", "mtia_": "MTIA device", "hpu_": "Gaudi device (HPU)"}
_AMD = "AMD GPU (HIP)"
_NVIDIA = frozenset({"cpu_op", "kernel", "cuda_runtime"})  # most events: nothing to look for
_DIRECTIONS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "HtoH": "host to host",
    "PtoP": "peer to peer",
}


@dataclass
class Events:
    """Takes one event after the other. `steps` are those of a profiler with a schedule, in ns."""

    collected: Collected = field(default_factory=Collected)
    ranges: list[Range] = field(default_factory=list)
    steps: list[tuple[int, int | None]] = field(default_factory=list)
    operators: int = 0  # of the CPU
    counted: int = 0  # kernels that were replayed for counters
    other: str | None = None  # what the device is where it is not NVIDIA's
    odd: int = 0

    def take(self, event: object) -> None:
        """Take note of an event, whatever it is."""
        if not isinstance(event, dict) or event.get("ph") != "X":
            return
        category = event.get("cat")
        kind = category.lower() if isinstance(category, str) else ""
        self.counted += kind == _COUNTED
        if kind not in _NVIDIA:
            self.other = next((what for begin, what in _OTHERS.items() if kind.startswith(begin)), self.other)
        if kind in ("cpu_op", "operator"):
            self.operators += 1
            if kind == "operator" and _STEP.match(str(event.get("name"))):
                kind = "user_annotation"  # torch 1.8 had no word for it
        if kind in _TIMED:
            start, length = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur"))
            if start is None or length is None or length < 0:
                self.odd += 1
                return
            args = event.get("args")
            self._sort_in(kind, event, start, start + length, args if isinstance(args, dict) else {})

    def _sort_in(
        self, kind: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        name = str(event.get("name"))[:LONGEST_NAME]
        key, device = _whole(args.get("correlation"), -1), _whole(args.get("device"), 0)
        if kind in _RANGE:
            self._range(name, event, start, end, args.get("domain"))
        elif kind in _CALL:
            if name.startswith("hip"):
                self.other = _AMD
            self.collected.call(name, start, end, key=key, thread=self._thread(event))
        elif kind in _KERNEL:
            self.collected.kernel(_configuration(name, args), start, end, key=key, device=device)
        else:
            direction = next((words for sign, words in _DIRECTIONS.items() if sign in name), "copy")
            what = "memset" if kind in _FILL else direction
            self.collected.transfer(
                what, start, end, max(_whole(args.get("bytes"), 0), 0), key=key, device=device
            )

    def _range(self, name: str, event: Mapping[str, Any], start: int, end: int, domain: object) -> None:
        if _STEP.match(name):
            self.steps.append((start, end))
            name = STEP
        if len(self.ranges) >= MOST_RANGES:
            return
        # Only profkit's own annotations tell a domain. Those, and steps, are the whole process': the backward pass of a
        # step is launched by a thread of its own.
        if isinstance(domain, str):
            self.ranges.append(Range(name, domain, start, end, 0, None))
        elif name == STEP:
            self.ranges.append(Range(name, None, start, end, 0, None))
        else:
            self.ranges.append(Range(name, None, start, end, 0, self._thread(event)))

    def _thread(self, event: Mapping[str, Any]) -> int:
        return self.collected.thread(str(event.get("pid")), str(event.get("tid")))


def _configuration(name: str, args: Mapping[str, Any]) -> Configuration:
    registers, shared = _whole(args.get("registers per thread"), -1), _whole(args.get("shared memory"), -1)
    return Configuration(
        name,
        _triple(args.get("grid")),
        _triple(args.get("block")),
        None,
        registers if registers >= 0 else None,
        shared if shared >= 0 else None,
    )


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
