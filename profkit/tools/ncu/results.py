"""One result of an .ncu-rep (a kernel launch, a range, a command list, a graph) out of its protobuf message.

Sections, rules, sources and instance lists, which are most of a full report, are stepped over by their length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap
from struct import Struct

from profkit.tools.ncu.blocks import Part
from profkit.tools.ncu.launches import DEVICE, Launch, ResultKind, Value, finite, kernel_of
from profkit.tools.ncu.nvtx import open_ranges
from profkit.tools.ncu.wire import LENGTH, VARINT, Buffer, Malformed, fields, float32, float64, text, varint


@dataclass(frozen=True)
class _Numbers:
    """Field numbers of one kind of result (ProfilerReport.proto); 0 where the kind has no such field."""

    metrics: int
    sections: int
    unsupported: int
    nvtx: int
    context: int
    clock: int
    driver: int
    stream: int = 0
    demangled: int = 0
    function: int = 0
    mangled: int = 0
    grid: int = 0
    block: int = 0
    thread: int = 1


_KINDS: Mapping[ResultKind, _Numbers] = {
    "kernel": _Numbers(13, 17, 20, 21, 22, 25, 35, 23, demangled=7, function=6, mangled=5, grid=10, block=11),
    "range": _Numbers(4, 7, 9, 10, 11, 12, 21),
    "cmdlist": _Numbers(4, 7, 9, 10, 11, 13, 25, 12, demangled=18),
    "graph": _Numbers(4, 7, 9, 10, 11, 13, 23, 12),
}
_TITLES: Mapping[ResultKind, str] = {"range": "range", "cmdlist": "command list", "graph": "CUDA graph"}
_NAME_ID_TAG = 0x08
_DOUBLE_VALUE = b"\x12\x09\x19"
_DOUBLE = Struct("<d")
_VALUE_TAG = 0x12
_UNSIGNED_TAGS = (0x28, 0x20)  # Uint64Value, Uint32Value
_HEAD = 6  # bytes in which tag, length and id of a metric end, unless it is a long list
_MOST_LEARNT = 200_000  # first bytes that are kept
_AT_ONCE = 16 << 20  # bytes of one result that are copied out of the file


@dataclass(frozen=True)
class Process:
    """Who launched it."""

    id: int | None = None
    name: str | None = None


@dataclass
class Asked:
    """Which metrics are wanted, by the id of their name, and what was learnt of them on the way.

    One launch has the same metrics as the one before it, mostly of the same lengths. So the first bytes of a metric
    (tag, length, id) are looked up among those that were met: how far it is to the next one, or that it is wanted.
    """

    names: Mapping[int, str]
    steps: dict[bytes, int] = field(
        default_factory=dict
    )  # first bytes -> length, of metrics that nobody wants
    doubles: dict[bytes, tuple[str, int, int]] = field(
        default_factory=dict
    )  # wanted: name, where its value is, length


def read_result(data: bytes | mmap, part: Part, asked: Asked, process: Process) -> Launch:
    """The result in `part`, with those of its metrics that are asked for.

    Raises Malformed where the message is damaged.
    """
    assert part.kind in _KINDS
    kind: ResultKind = part.kind  # type: ignore[assignment]
    if part.size > _AT_ONCE:
        return _read(data, part.offset, part.offset + part.size, kind, asked, process)
    try:  # bytes are quicker to look into than a mapped file
        return _read(data[part.offset : part.offset + part.size], 0, part.size, kind, asked, process)
    except Malformed as fault:
        raise Malformed(part.offset + fault.offset, fault.text) from None


def _read(data: bytes | mmap, at: int, end: int, kind: ResultKind, asked: Asked, process: Process) -> Launch:
    numbers = _KINDS[kind]
    values: dict[str, Value] = {}
    rest: dict[int, tuple[int, int]] = {}
    sections: list[tuple[int, int]] = []
    try:
        _walk(data, at, end, numbers, asked, values, rest, sections)
    except IndexError:
        raise Malformed(at, f"a {kind} result is cut off") from None

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
        process=process.id,
        process_name=process.name,
        device=None if device is None else int(device),
        context=number_of(numbers.context),
        stream=number_of(numbers.stream),
        ranges=ranges,
        lock_asked=lock_asked,
        lock_done=lock_done,
        driver=_driver(data, rest.get(numbers.driver)),
        sections=tuple(_first_string(data, *span) for span in sections),
        unsupported=bool(number_of(numbers.unsupported)),
    )


def _walk(
    data: bytes | mmap,
    at: int,
    end: int,
    numbers: _Numbers,
    asked: Asked,
    values: dict[str, Value],
    rest: dict[int, tuple[int, int]],
    sections: list[tuple[int, int]],
) -> None:
    """One pass over the message. Its two thousand metrics are told apart without a call each: that is the speed."""
    names, steps, doubles = asked.names, asked.steps, asked.doubles
    metric_tag = numbers.metrics << 3 | LENGTH  # one byte: the number is below 16
    while at < end:
        head = data[at : at + _HEAD]
        if head in steps:
            at += steps[head]
            continue
        if head in doubles:
            name, value_at, step = doubles[head]
            if data[at + value_at - 3 : at + value_at] == _DOUBLE_VALUE and at + step <= end:
                values[name] = _DOUBLE.unpack_from(data, at + value_at)[0]
                at += step
                continue
        if head[0] != metric_tag:
            for number, wire, a, b in fields(data, at, end):  # one turn: the next field alone
                if number == numbers.sections and wire == LENGTH:
                    sections.append((a, b))
                else:
                    rest[number] = (a, b)
                at = b
                break
            continue
        size, first = varint(data, at + 1, end)
        stop = first + size
        if stop > end:
            raise Malformed(at, f"a metric of {size} bytes where {end - first} are left")
        if size and data[first] == _NAME_ID_TAG:  # the id comes first wherever it was seen
            name_id, next_ = varint(data, first + 1, stop)
            learnt = next_ - at <= _HEAD and len(steps) + len(doubles) < _MOST_LEARNT
            if name_id not in names:
                if learnt:
                    steps[head] = stop - at
            elif data[next_ : next_ + 3] == _DOUBLE_VALUE and next_ + 11 <= stop:
                values[names[name_id]] = _DOUBLE.unpack_from(data, next_ + 3)[0]
                if learnt:
                    doubles[head] = (names[name_id], next_ + 3 - at, stop - at)
            elif next_ + 3 < stop and data[next_] == _VALUE_TAG and data[next_ + 2] in _UNSIGNED_TAGS:
                values[names[name_id]] = varint(data, next_ + 3, stop)[0]
            else:
                values[names[name_id]] = _metric(data, next_, stop)[1]
        else:
            name_id, value = _metric(data, first, stop)
            if name_id in names:
                values[names[name_id]] = value
        at = stop
    if at > end:
        raise Malformed(end, "a metric reaches over the end of its result")


def _metric(data: Buffer, at: int, end: int) -> tuple[int, Value]:
    """ProfileMetricResult: the id of its name, and its own value; None where it has instances alone."""
    name_id, value = -1, None
    for number, wire, a, b in fields(data, at, end):
        if number == 1 and wire == VARINT:
            name_id = a
        elif number == 2 and wire == LENGTH:
            value = metric_value(data, a, b)
        elif number == 3 and value is not None:
            break  # the instances behind it are not asked for
    return name_id, value


def metric_value(data: Buffer, at: int, end: int) -> Value:
    """ProfileMetricValue: text, float, double or an unsigned integer, whichever is there."""
    value: Value = None
    for number, wire, a, b in fields(data, at, end):
        if number in (4, 5) and wire == VARINT:
            value = a
        elif number == 3 and b - a == 8:
            value = float64(data, a)
        elif number == 2 and b - a == 4:
            value = float32(data, a)
        elif number == 1 and wire == LENGTH:
            value = text(data, a, b)
    return value


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
