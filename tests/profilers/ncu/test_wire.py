"""Protobuf's wire format and the blocks around it: what is malformed is said where it shows."""

from __future__ import annotations

import struct

import pytest

from profkit.profilers.ncu.blocks import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    MalformedMessage,
    TruncatedReport,
    read_blocks,
    read_fields,
    read_records,
    read_varint,
)
from tests.profilers.ncu import writer as w


def test_fields_are_told_by_number_and_wire_type_without_copying() -> None:
    message = w.number(1, 300) + w.lump(2, b"abc") + w.double(3, 1.0) + w.single(4, 1.0) + w.number(2**28, 0)
    told = [(number, wire, a, b - a) for number, wire, a, b in read_fields(message, 0, len(message))]
    assert told == [
        (1, VARINT, 300, 3 - 300),
        (2, LENGTH, 5, 3),
        (3, FIXED64, 9, 8),
        (4, FIXED32, 18, 4),
        (2**28, VARINT, 0, len(message)),
    ]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**32, 2**64 - 1])
def test_a_number_of_any_length_is_read(value: int) -> None:
    written = w.varint(value)
    assert read_varint(written, 0, len(written)) == (value, len(written))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (w.lump(2, b"abc")[:-1], "a field of 3 bytes where 2 are left"),
        (w.varint(2 << 3 | 2) + w.varint(2**63), "a field of 9223372036854775808 bytes"),
        (w.double(3, 1.0)[:-1], "a field of 8 bytes where 7 are left"),
        (b"\x08\xff", "cut off"),
        (b"\x08" + b"\xff" * 9 + b"\x7f" * 3, None),
        (b"\x08" + b"\xff" * 11, "more than 64 bits"),
        (w.varint(1 << 3 | 3), "wire type 3"),
        (w.varint(1 << 3 | 7), "wire type 7"),
        (b"\x02\x00", "without a number"),
    ],
)
def test_a_malformed_field_is_said(message: bytes, said: str | None) -> None:
    with pytest.raises(MalformedMessage, match=said or "."):
        list(read_fields(message, 0, len(message)))


def test_a_field_does_not_reach_into_the_next_message() -> None:
    two = w.lump(1, b"abc") + b"more bytes"
    with pytest.raises(MalformedMessage):
        list(read_fields(two, 0, 4))


def test_the_parts_of_a_file_are_all_of_its_bytes() -> None:
    results: list[w.Result] = [
        w.KernelResult("k", {"a__b": 1}),
        w.TogetherResult({}),
        w.TogetherResult({}, 9),
    ]
    content = w.report(w.block(details=w.session()), w.block(results, sources=[b"\x08\x01"]))
    told = w.parts(content)
    assert [part.kind for part in told] == [
        *("file-header", "block-header", "block-header"),
        *("source", "kernel", "range", "graph"),
    ]
    assert 4 + sum(4 + part.size for part in told) == len(content)
    assert all(struct.unpack_from("<I", content, part.offset - 4)[0] == part.size for part in told)


def test_what_is_whole_is_given_before_the_cut_is_raised() -> None:
    content = w.report(w.block(details=w.session()), w.block([w.KernelResult("k", {})]))[:-1]
    walk = read_blocks(content)
    assert next(walk).index == 0
    with pytest.raises(TruncatedReport, match="1 kernel"):
        next(walk)


def test_results_of_no_bytes_are_none() -> None:
    header = w.number(2, 2**32 - 1) + w.number(5, 4000)
    content = w.report(struct.pack("<I", len(header)) + header + b"\0" * 4000)
    (block,) = read_blocks(content)
    with pytest.raises(MalformedMessage, match="empty"):
        list(read_records(content, block))
