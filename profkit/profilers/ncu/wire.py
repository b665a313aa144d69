"""Protobuf's wire format, as far as a reader needs it: fields by number, nothing copied, unknown ones stepped over.

Source of the grammar: "Encoding", protobuf.dev. Works on anything that gives integers by index and bytes by slice
(`bytes`, `bytearray`, `mmap`), so that a field that nobody asks for costs its tag and its length, whatever it holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import TypeAlias

Buffer: TypeAlias = "bytes | bytearray | mmap"

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}


class Malformed(ValueError):
    """The bytes are no message: `offset` is where it shows, the text says how."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(f"{text} at byte {offset}")
        self.offset, self.text = offset, text


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, and where the next byte stands. Raises Malformed where it runs past `end` or 64 bits."""
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise Malformed(start, "a number of more than 64 bits")
    raise Malformed(start, "a number that is cut off")


def fields(data: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Every field between `at` and `end`: (number, wire type, a, b).

    Of a VARINT `a` is the value and `b` where the next field begins; of all others the payload is `data[a:b]`.
    Raises Malformed where a field runs over `end` or has a wire type that there is not.
    """
    while at < end:
        start = at
        tag, at = varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = varint(data, at, end)
            yield number, wire, value, at
            continue
        if wire == LENGTH:
            length, at = varint(data, at, end)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise Malformed(start, f"a field of wire type {wire}")
        if number == 0:
            raise Malformed(start, "a field without a number")
        if length > end - at:
            raise Malformed(start, f"a field of {length} bytes where {end - at} are left")
        yield number, wire, at, at + length
        at += length


def text(data: Buffer, at: int, end: int) -> str:
    """The string in `data[at:end]`; what is no UTF-8 becomes a replacement character."""
    return bytes(data[at:end]).decode("utf-8", "replace")


def float32(data: Buffer, at: int) -> float:
    """The little-endian float at `at`."""
    return float(struct.unpack_from("<f", data, at)[0])


def float64(data: Buffer, at: int) -> float:
    """The little-endian double at `at`."""
    return float(struct.unpack_from("<d", data, at)[0])
