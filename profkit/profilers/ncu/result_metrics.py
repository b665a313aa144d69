"""The metrics of one result, of which few are wanted: told apart without a look at what nobody asked for.

A full report has two thousand metrics a launch, most of them lists of instances. This walk is what reading it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap
from struct import Struct

from profkit.profilers.ncu.launches import Value
from profkit.profilers.ncu.wire import (
    LENGTH,
    VARINT,
    Buffer,
    Malformed,
    fields,
    float32,
    float64,
    text,
    varint,
)

_NAME_ID_TAG = 0x08
_DOUBLE_VALUE = b"\x12\x09\x19"
_DOUBLE = Struct("<d")
_VALUE_TAG = 0x12
_UNSIGNED_TAGS = (0x28, 0x20)  # Uint64Value, Uint32Value
_HEAD = 6  # bytes in which tag, length and id of a metric end, unless it is a long list
_MOST_LEARNT = 200_000  # first bytes that are kept


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


def walk(
    data: bytes | mmap,
    at: int,
    end: int,
    metrics: int,
    asked: Asked,
    values: dict[str, Value],
    rest: list[tuple[int, int, int, int]],
) -> None:
    """One pass over the message: wanted values go to `values`, fields that are no metrics to `rest`.

    `metrics` is the number of the field that holds the metrics, below 16. No call for a metric: that is the speed.
    Raises Malformed, and IndexError at the end of `data`.
    """
    names, steps, doubles = asked.names, asked.steps, asked.doubles
    metric_tag = metrics << 3 | LENGTH
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
            found = next(fields(data, at, end))
            rest.append(found)
            at = found[3]
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
