"""One result of an .ncu-rep (a kernel launch, a range, a command list, a graph) out of its protobuf message.

Sections, rules, sources and instance lists, which are most of a full report, are stepped over by their length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Process:
    """Who launched it."""

    id: int | None = None
    name: str | None = None


def read_result(data: Buffer, part: Part, wanted: Mapping[int, str], process: Process) -> Launch:
    """The result in `part`; of its metrics those whose name's id is in `wanted`.

    Raises Malformed where the message is damaged.
    """
    assert part.kind in _KINDS
    kind: ResultKind = part.kind  # type: ignore[assignment]
    numbers = _KINDS[kind]
    values: dict[str, Value] = {}
    rest: dict[int, tuple[int, int]] = {}
    sections: list[tuple[int, int]] = []
    try:
        _walk(data, part, numbers, wanted, values, rest, sections)
    except IndexError:
        raise Malformed(part.offset, f"a {kind} result is cut off") from None

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
    asked, done = _clock(data, rest.get(numbers.clock))
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
        lock_asked=asked,
        lock_done=done,
        driver=_driver(data, rest.get(numbers.driver)),
        sections=tuple(_first_string(data, *span) for span in sections),
        unsupported=bool(number_of(numbers.unsupported)),
    )


def _walk(
    data: Buffer,
    part: Part,
    numbers: _Numbers,
    wanted: Mapping[int, str],
    values: dict[str, Value],
    rest: dict[int, tuple[int, int]],
    sections: list[tuple[int, int]],
) -> None:
    """One pass over the message. Its two thousand metrics are told apart without a call each: that is the speed."""
    at, end = part.offset, part.offset + part.size
    metric_tag = numbers.metrics << 3 | LENGTH  # one byte: the number is below 16
    while at < end:
        if data[at] == metric_tag:
            size = data[at + 1]
            if size < 0x80:
                at += 2
            else:
                size, at = varint(data, at + 1, end)
            stop = at + size
            if stop > end:
                raise Malformed(at, f"a metric of {size} bytes where {end - at} are left")
            if size and data[at] == _NAME_ID_TAG:  # the id comes first wherever it was seen
                name_id = data[at + 1]
                next_ = at + 2
                if name_id >= 0x80:
                    high = data[next_]
                    if high < 0x80:
                        name_id = name_id & 0x7F | high << 7
                        next_ += 1
                    else:
                        name_id, next_ = varint(data, at + 1, stop)
                if name_id in wanted:
                    # A double, as most are, without a call: tag and length of MetricValue, then of DoubleValue.
                    if data[next_ : next_ + 3] == _DOUBLE_VALUE and next_ + 11 <= stop:
                        values[wanted[name_id]] = _DOUBLE.unpack_from(data, next_ + 3)[0]
                    elif data[next_] == _VALUE_TAG and data[next_ + 2] in _UNSIGNED_TAGS:
                        values[wanted[name_id]] = varint(data, next_ + 3, stop)[0]
                    else:
                        values[wanted[name_id]] = _metric(data, next_, stop)[1]
            else:
                late_id, value = _metric(data, at, stop)
                if late_id in wanted:
                    values[wanted[late_id]] = value
            at = stop
            continue
        for number, wire, a, b in fields(data, at, end):  # one turn: the next field alone
            if number == numbers.sections and wire == LENGTH:
                sections.append((a, b))
            else:
                rest[number] = (a, b)
            at = b
            break


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
