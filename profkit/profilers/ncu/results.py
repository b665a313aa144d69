"""Reads one kernel launch of an .ncu-rep from its protobuf message (ProfileResult).

A full report has two thousand metrics a launch, most of them lists of instances. Unwanted metrics, sections,
rules and sources are skipped by their length.
"""

from __future__ import annotations

from collections.abc import Mapping
from mmap import mmap

from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    Buffer,
    MalformedMessage,
    Message,
    ReportMessage,
    read_fields,
    read_float32,
    read_float64,
    read_text,
    read_varint,
)
from profkit.profilers.ncu.launches import DEVICE, LaunchResult, Value, finite_number, kernel_of

_NAME_ID_TAG = 0x08


def read_metrics(
    data: bytes | mmap,
    at: int,
    end: int,
    names: Mapping[int, str],
    values: dict[str, Value],
    rest: list[tuple[int, int, int, int]],
) -> None:
    """Read a message in one pass: metrics in `names` go to `values`, all other fields to `rest`.

    Unwanted metrics are skipped. Raises MalformedMessage, and IndexError at the end of `data`.
    """
    metric_tag = _METRICS << 3 | LENGTH
    while at < end:
        if data[at] != metric_tag:
            entry = next(read_fields(data, at, end))
            rest.append(entry)
            at = entry[3]
            continue
        size, first = data[at + 1], at + 2
        if size > 0x7F:
            size, first = read_varint(data, at + 1, end)
        stop = first + size
        if stop > end:
            raise MalformedMessage(at, f"a metric of {size} bytes where {end - first} are left")
        if size and data[first] == _NAME_ID_TAG:  # the id comes first wherever it was seen
            name_id, next_ = data[first + 1], first + 2
            if name_id > 0x7F:
                name_id, next_ = read_varint(data, first + 1, stop)
            if name_id in names:
                values[names[name_id]] = _metric(data, next_, stop)[1]
        else:
            name_id, value = _metric(data, first, stop)
            if name_id in names:
                values[names[name_id]] = value
        at = stop


def _metric(data: Buffer, at: int, end: int) -> tuple[int, Value]:
    """Read the id of the name and the own value of a ProfileMetricResult; None where it has only instances."""
    name_id, value = -1, None
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            name_id = a
        elif number == 2 and wire == LENGTH:
            value = metric_value(data, a, b)
        elif number == 3 and value is not None:
            break  # the instances behind it are not needed
    return name_id, value


def metric_value(data: Buffer, at: int, end: int) -> Value:
    """Read a ProfileMetricValue: text, float, double or unsigned integer, whichever it has."""
    value: Value = None
    for number, wire, a, b in read_fields(data, at, end):
        if number in (4, 5) and wire == VARINT:
            value = a
        elif number == 3 and b - a == 8:
            value = read_float64(data, a)
        elif number == 2 and b - a == 4:
            value = read_float32(data, a)
        elif number == 1 and wire == LENGTH:
            value = read_text(data, a, b)
    return value


# Fields of ProfileResult by number (ProfilerReport.proto).
_MANGLED, _FUNCTION, _DEMANGLED, _GRID, _BLOCK, _METRICS, _CLOCK, _DRIVER = 5, 6, 7, 10, 11, 13, 25, 35
_AT_ONCE = 16 << 20  # bytes of one result that are copied out of the file


def read_result(data: bytes | mmap, part: ReportMessage, names: Mapping[int, str]) -> LaunchResult:
    """Read the launch in `part`, with those of its metrics that are in `names`.

    Raises MalformedMessage where the message is damaged.
    """
    if part.size > _AT_ONCE:
        return _read_launch(data, part.offset, part.offset + part.size, names)
    try:  # bytes are quicker to look into than a mapped file
        return _read_launch(data[part.offset : part.offset + part.size], 0, part.size, names)
    except MalformedMessage as fault:
        raise MalformedMessage(part.offset + fault.offset, fault.text) from None


def _read_launch(data: bytes | mmap, at: int, end: int, names: Mapping[int, str]) -> LaunchResult:
    values: dict[str, Value] = {}
    fields: list[tuple[int, int, int, int]] = []
    try:
        read_metrics(data, at, end, names, values, fields)
    except IndexError:
        raise MalformedMessage(at, "a kernel result is cut off") from None
    spans = {number: (a, b) for number, _, a, b in fields}

    def string(field: int) -> str:
        return read_text(data, *spans[field]) if field in spans else ""

    mangled = string(_MANGLED) or None
    lock_requested, lock_done = _read_clock_lock(data, spans.get(_CLOCK))
    device = finite_number(values.get(DEVICE))
    return LaunchResult(
        kernel=kernel_of(
            string(_DEMANGLED) or string(_FUNCTION) or mangled or "kernel",
            mangled,
            _read_triple(data, spans.get(_GRID)),
            _read_triple(data, spans.get(_BLOCK)),
            values,
        ),
        values=values,
        device=None if device is None else int(device),
        lock_requested=lock_requested,
        lock_done=lock_done,
        driver=_driver(data, spans.get(_DRIVER)),
    )


def _read_triple(data: Buffer, span: tuple[int, int] | None) -> tuple[int, ...]:
    """Read a Uint64x3 as (x, y, z); empty where it is absent."""
    if span is None:
        return ()
    sides = Message(data, *span).numbers
    return (sides.get(1, 0), sides.get(2, 0), sides.get(3, 0))


def _read_clock_lock(data: Buffer, span: tuple[int, int] | None) -> tuple[bool | None, bool | None]:
    """Read from a ProfilerClockStatusMessage whether a lock was requested, and whether it was executed."""
    flags = {} if span is None else Message(data, *span).numbers
    return tuple(None if flags.get(n) is None else bool(flags[n]) for n in (1, 2))  # type: ignore[return-value]


def _driver(data: Buffer, span: tuple[int, int] | None) -> str | None:
    """Return the driver's version from KmdVersion, a float: 580.1589965 means "580.159", with three decimals."""
    if span is None or span[1] - span[0] != 4:
        return None
    version = finite_number(read_float32(data, span[0]))
    return f"{version:.3f}".rstrip("0").rstrip(".") if version else None
