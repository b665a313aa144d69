"""Whether what a kernel process writes is an answer of ours: its kernel can write whatever it likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_OUTPUTS = 10_000
LARGEST = 1 << 48  # elements, bytes
TENSOR_PARTS = [int, str, list, list, int, str, bool]  # address, dtype, shape, stride, room, device, lazy


def is_description(value: Any) -> bool:
    """Whether it is how our process describes a value."""
    if isinstance(value, list):
        return len(value) <= MOST_OUTPUTS and all(map(is_description, value))
    if not isinstance(value, dict):
        return value is None or isinstance(value, (bool, int, str))
    if "tensor" not in value:
        return len(value) == 1 and all(isinstance(word, (str, list)) for word in value.values())
    parts = value["tensor"]
    if not isinstance(parts, list) or [type(part) for part in parts] != TENSOR_PARTS:
        return False
    sizes = [*parts[2], *parts[3]]
    fits = all(type(size) is int and 0 <= size < LARGEST for size in sizes) and len(parts[2]) == len(parts[3])
    return fits and 0 <= parts[0] < 1 << 64


def addresses_in(value: Any) -> Iterator[int]:
    """Where the tensors of a described value lie."""
    if isinstance(value, list):
        for each in value:
            yield from addresses_in(each)
    elif isinstance(value, dict) and "tensor" in value:
        yield value["tensor"][0]


def is_segment(value: Any) -> bool:
    """Whether it is address, bytes and handle of an allocation."""
    return (
        isinstance(value, list)
        and [type(part) for part in value] == [int, int, str]
        and 0 <= value[0] < 1 << 64
        and 0 <= value[1] < LARGEST
    )
