"""Writes .ncu-rep files by the format's grammar, so that readers can be tried on what nobody recorded.

NVIDIA's own package opens them. Field numbers: Nsight Compute's
extras/FileFormat.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profkit.profilers.ncu.launches import LaunchResult
from profkit.profilers.ncu.rep import open_report

NAN = float("nan")


def read_launches(path: Path) -> tuple[LaunchResult, ...]:
    """Every result with all of its metrics."""
    with open_report(path) as file:
        return tuple(file.launches(lambda _: True))


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value)


def lump(field_number: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field_number << 3 | 2) + varint(len(raw)) + raw


def double(field_number: int, value: float) -> bytes:
    return varint(field_number << 3 | 1) + struct.pack("<d", value)


def single(field_number: int, value: float) -> bytes:
    return varint(field_number << 3 | 5) + struct.pack("<f", value)


@dataclass(frozen=True)
class Float32:
    value: float


@dataclass(frozen=True)
class Uint32:
    value: int


@dataclass(frozen=True)
class Instances:
    """A metric that is told per instance; `total` is its own value, where it has one."""

    values: tuple[float, ...]
    total: float | None = None


Value = float | int | str | Float32 | Uint32 | Instances


def metric_value(value: Value) -> bytes:
    """ProfileMetricValue."""
    match value:
        case str():
            return lump(1, value)
        case Float32():
            return single(2, value.value)
        case Uint32():
            return number(4, value.value)
        case int():
            return number(5, value)
        case float():
            return double(3, value)
    raise TypeError(value)


@dataclass
class Names:
    """The string table that metric names are ids into: one for the whole file, `fresh` since the last block."""

    ids: dict[str, int] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)

    def id(self, name: str) -> int:
        if name not in self.ids:
            self.ids[name] = len(self.ids)
            self.fresh.append(name)
        return self.ids[name]

    def table(self) -> bytes:
        """ProfilerStringTable of what is new."""
        strings, self.fresh = self.fresh, []
        return b"".join(lump(1, name) for name in strings)


def metrics(field_number: int, values: Mapping[str, Value], names: Names) -> bytes:
    """The MetricResults of one result, as field `field_number`."""
    out = []
    for name, value in values.items():
        message = number(1, names.id(name))
        if isinstance(value, Instances):
            if value.total is not None:
                message += lump(2, metric_value(value.total))
            for index, one in enumerate(value.values):
                message += lump(3, lump(1, number(5, index)) + lump(2, metric_value(one)))
        else:
            message += lump(2, metric_value(value))
        out.append(lump(field_number, message + number(4, 0)))
    return b"".join(out)


def three(x: int, y: int, z: int) -> bytes:
    return number(1, x) + number(2, y) + number(3, z)


@dataclass(frozen=True)
class KernelResult:
    """One ProfileResult."""

    name: str
    metrics: Mapping[str, Value]
    grid: tuple[int, int, int] = (132, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    mangled: str | None = None
    clock: tuple[int, int] | None = (1, 1)
    thread: int = 7
    more: bytes = b""  # further fields, whole

    def message(self, names: Names) -> bytes:
        return (
            number(1, self.thread)
            + number(2, 1)
            + number(3, 1)
            + number(4, 1)
            + lump(5, self.mangled or self.name)
            + lump(6, self.name.partition("(")[0])
            + lump(7, self.name)
            + number(8, 3)
            + lump(9, three(0, 0, 0))
            + lump(10, three(*self.grid))
            + lump(11, three(*self.block))
            + metrics(13, self.metrics, names)
            + lump(15, number(1, 1))
            + number(16, 0)
            + number(22, 1)
            + number(23, 7)
            + (lump(25, number(1, self.clock[0]) + number(2, self.clock[1])) if self.clock else b"")
            + self.more
        )


@dataclass(frozen=True)
class TogetherResult:
    """One RangeResult, CmdlistResult or GraphResult: `kind` is the field of its count in the block header."""

    metrics: Mapping[str, Value]
    kind: int = 7

    def message(self, names: Names) -> bytes:
        return (
            number(1, 7)
            + number(2, 1)
            + metrics(4, self.metrics, names)
            + number(6, 0)
            + number(11, 1)
            + lump(12 if self.kind == 7 else 13, number(1, 0) + number(2, 0))
        )


Result = KernelResult | TogetherResult


def session(
    *,
    version: str = "2025.3.1.0 (build 36398880) (public-release)",
    command: str | None = "ncu -o out -- python3 work.py",
    device: Mapping[str, Value] | None = None,
    device_name: str = "NVIDIA H200",
    index: int = 0,
    more: bytes = b"",
) -> bytes:
    """ReportSessionDetails."""
    attributes = {"compute_capability_major": Uint32(9), "compute_capability_minor": Uint32(0)}
    rows = b"".join(
        lump(3, lump(1, f"device__attribute_{key}") + lump(2, metric_value(value)))
        for key, value in {**attributes, **(device or {})}.items()
    )
    return (
        number(1, 4711)
        + number(2, 1_763_600_000)
        + lump(6, number(1, index) + lump(2, device_name) + rows)
        + lump(8, lump(1, "CUDA Version") + lump(2, "13.0"))
        + lump(8, lump(1, "Display Driver Version") + lump(2, "580.95.05"))
        + lump(8, lump(1, "Nsight Compute Target") + lump(2, version))
        + (lump(11, command) if command else b"")
        + more
    )


def block(
    results: Iterable[Result] = (),
    names: Names | None = None,
    *,
    details: bytes | None = None,
    sources: Sequence[bytes] = (),
    sized: bool = True,
) -> bytes:
    """One block: its header and its payload."""
    names = names or Names()
    counts = {1: len(sources), 2: 0, 7: 0, 8: 0, 9: 0}
    payload = b"".join(struct.pack("<I", len(source)) + source for source in sources)
    ordered = sorted(results, key=lambda result: result.kind if isinstance(result, TogetherResult) else 2)
    for result in ordered:
        counts[result.kind if isinstance(result, TogetherResult) else 2] += 1
        message = result.message(names)
        payload += struct.pack("<I", len(message)) + message
    header = (
        number(1, counts[1])
        + number(2, counts[2])
        + (lump(3, details) if details is not None else b"")
        + lump(4, names.table())
        + (number(5, len(payload)) if sized else b"")
        + lump(6, number(1, 4711) + lump(2, "host") + lump(3, "/usr/bin/python3"))
        + b"".join(number(kind, counts[kind]) for kind in (7, 8, 9))
    )
    return struct.pack("<I", len(header)) + header + payload


def report(*blocks: bytes, version: int = 7) -> bytes:
    """A whole file."""
    header = number(1, version)
    return b"NVR\0" + struct.pack("<I", len(header)) + header + b"".join(blocks)


def simple(results: Iterable[Result], **of_session: str) -> bytes:
    """A file of a session block and one block of results."""
    return report(block(details=session(**of_session)), block(results))  # type: ignore[arg-type]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
