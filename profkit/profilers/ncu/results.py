"""One result of an .ncu-rep (a kernel launch, a range, a command list, a graph) out of its protobuf message.

Sections, rules, sources and instance lists, which are most of a full report, are stepped over by their length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap

from profkit.profilers.ncu.blocks import Part
from profkit.profilers.ncu.launches import DEVICE, Launch, ResultKind, Value, finite, kernel_of
from profkit.profilers.ncu.nvtx import open_ranges
from profkit.profilers.ncu.result_metrics import Asked, walk
from profkit.profilers.ncu.wire import LENGTH, VARINT, Buffer, Malformed, fields, float32, text


@dataclass(frozen=True)
class _Numbers:
    """Field numbers of one kind of result (ProfilerReport.proto); 0 where the kind has no such field."""

    metrics: int
    sections: int
    unsupported: int
    nvtx: int
    clock: int
    driver: int
    demangled: int = 0
    function: int = 0
    mangled: int = 0
    grid: int = 0
    block: int = 0
    thread: int = 1


_KINDS: Mapping[ResultKind, _Numbers] = {
    "kernel": _Numbers(13, 17, 20, 21, 25, 35, demangled=7, function=6, mangled=5, grid=10, block=11),
    "range": _Numbers(4, 7, 9, 10, 12, 21),
    "cmdlist": _Numbers(4, 7, 9, 10, 13, 25, demangled=18),
    "graph": _Numbers(4, 7, 9, 10, 13, 23),
}
_TITLES: Mapping[ResultKind, str] = {"range": "range", "cmdlist": "command list", "graph": "CUDA graph"}
_AT_ONCE = 16 << 20  # bytes of one result that are copied out of the file


def read_result(data: bytes | mmap, part: Part, asked: Asked) -> Launch:
    """The result in `part`, with those of its metrics that are asked for.

    Raises Malformed where the message is damaged.
    """
    assert part.kind in _KINDS
    kind: ResultKind = part.kind  # type: ignore[assignment]
    if part.size > _AT_ONCE:
        return _read(data, part.offset, part.offset + part.size, kind, asked)
    try:  # bytes are quicker to look into than a mapped file
        return _read(data[part.offset : part.offset + part.size], 0, part.size, kind, asked)
    except Malformed as fault:
        raise Malformed(part.offset + fault.offset, fault.text) from None


def _read(data: bytes | mmap, at: int, end: int, kind: ResultKind, asked: Asked) -> Launch:
    numbers = _KINDS[kind]
    values: dict[str, Value] = {}
    others: list[tuple[int, int, int, int]] = []
    try:
        walk(data, at, end, numbers.metrics, asked, values, others)
    except IndexError:
        raise Malformed(at, f"a {kind} result is cut off") from None
    rest = {number: (a, b) for number, _, a, b in others}

    def string(field: int) -> str:
        return text(data, *rest[field]) if field in rest else ""

    def number_of(field: int) -> int | None:
        return rest[field][0] if field in rest else None

    thread = number_of(numbers.thread)
    ranges = open_ranges(data, *rest[numbers.nvtx], thread) if numbers.nvtx in rest else ()
    mangled = string(numbers.mangled) or None
    name = string(numbers.demangled) or string(numbers.function) or mangled
    if not name:
        name = ranges[-1].name if ranges and kind == "range" else _TITLES.get(kind, "kernel")
    lock_asked, lock_done = _clock(data, rest.get(numbers.clock))
    device = finite(values.get(DEVICE))
    return Launch(
        kernel=kernel_of(
            name,
            mangled,
            _three(data, rest.get(numbers.grid)),
            _three(data, rest.get(numbers.block)),
            values,
        ),
        values=values,
        kind=kind,
        device=None if device is None else int(device),
        ranges=ranges,
        lock_asked=lock_asked,
        lock_done=lock_done,
        driver=_driver(data, rest.get(numbers.driver)),
        sections=tuple(
            _first_string(data, a, b)
            for number, wire, a, b in others
            if number == numbers.sections and wire == LENGTH
        ),
        unsupported=bool(number_of(numbers.unsupported)),
    )


def _three(data: Buffer, span: tuple[int, int] | None) -> tuple[int, ...]:
    """Uint64x3 as (x, y, z); nothing where it is absent."""
    if span is None:
        return ()
    found = {number: a for number, wire, a, _ in fields(data, *span) if wire == VARINT}
    return (found.get(1, 0), found.get(2, 0), found.get(3, 0))


def _clock(data: Buffer, span: tuple[int, int] | None) -> tuple[bool | None, bool | None]:
    """ProfilerClockStatusMessage: whether a lock was requested, and executed."""
    if span is None:
        return None, None
    found = {number: bool(a) for number, wire, a, _ in fields(data, *span) if wire == VARINT}
    return found.get(1), found.get(2)


def _driver(data: Buffer, span: tuple[int, int] | None) -> str | None:
    """KmdVersion is a float, "580.159" as 580.1589965: three digits are what it means."""
    if span is None or span[1] - span[0] != 4:
        return None
    version = finite(float32(data, span[0]))
    return f"{version:.3f}".rstrip("0").rstrip(".") if version else None


def _first_string(data: Buffer, at: int, end: int) -> str:
    """ProfilerSection.Identifier, which is its first field."""
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == LENGTH:
            return text(data, a, b)
    return ""
