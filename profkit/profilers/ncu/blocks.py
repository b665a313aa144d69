"""How an .ncu-rep is laid out: protobuf messages in blocks.

    "NVR\\0"  u32 length, FileHeader
    block:   u32 length, BlockHeader, payload of PayloadSize bytes =
             {u32 length, SourceData}    x NumSources
             {u32 length, ProfileResult} x NumResults
             {u32 length, RangeResult}   x NumRangeResults, then CmdlistResult, GraphResult alike

All numbers are little-endian. Metric names are ids into the string tables of all block headers, one after the other.
Source: Nsight Compute 2025.3, extras/FileFormat/ProfilerReport.proto; read in reports of 2020.3 to 2025.3. Protobuf is
read without its library ("Encoding", protobuf.dev): fields by number, from anything that gives integers by index and
bytes by slice (`bytes`, `mmap`), so a field that nobody asks for costs its tag and its length, whatever it holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Literal, TypeAlias

Buffer: TypeAlias = "bytes | bytearray | mmap"

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}


class MalformedMessage(ValueError):
    """The bytes are not a message: `offset` is where that shows, the text says how."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(f"{text} at byte {offset}")
        self.offset, self.text = offset, text


def read_varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """Read the number at `at`, and return it with the place of the next byte.

    Raises MalformedMessage where it runs past `end` or has more than 64 bits.
    """
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
            raise MalformedMessage(start, "a number of more than 64 bits")
    raise MalformedMessage(start, "a number that is cut off")


def read_fields(data: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield every field between `at` and `end`: (number, wire type, a, b).

    Of a VARINT `a` is the value and `b` where the next field begins; of all others the payload is `data[a:b]`.
    Raises MalformedMessage where a field runs over `end` or has an unknown wire type.
    """
    while at < end:
        start = at
        tag, at = read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = read_varint(data, at, end)
            yield number, wire, value, at
            continue
        if wire == LENGTH:
            length, at = read_varint(data, at, end)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise MalformedMessage(start, f"a field of wire type {wire}")
        if number == 0:
            raise MalformedMessage(start, "a field without a number")
        if length > end - at:
            raise MalformedMessage(start, f"a field of {length} bytes where {end - at} are left")
        yield number, wire, at, at + length
        at += length


def read_text(data: Buffer, at: int, end: int) -> str:
    """Decode the string in `data[at:end]`; invalid UTF-8 becomes a replacement character."""
    return bytes(data[at:end]).decode("utf-8", "replace")


def read_float32(data: Buffer, at: int) -> float:
    """Read the little-endian float at `at`."""
    return float(struct.unpack_from("<f", data, at)[0])


def read_float64(data: Buffer, at: int) -> float:
    """Read the little-endian double at `at`."""
    return float(struct.unpack_from("<d", data, at)[0])


class Message:
    """The fields of a message by number: the last whole number of each, and where its other payloads lie.

    Raises MalformedMessage.
    """

    def __init__(self, data: Buffer, at: int, end: int) -> None:
        self.data = data
        self.numbers: dict[int, int] = {}
        self.spans: dict[int, list[tuple[int, int]]] = {}
        for number, wire, a, b in read_fields(data, at, end):
            if wire == VARINT:
                self.numbers[number] = a
            else:
                self.spans.setdefault(number, []).append((a, b))

    def text(self, number: int) -> str:
        """Return the last string in this field, "" if there is none."""
        return read_text(self.data, *self.spans[number][-1]) if number in self.spans else ""

    def parts(self, number: int) -> Iterator[Message]:
        """Return the messages in this field."""
        return (Message(self.data, a, b) for a, b in self.spans.get(number, ()))


MAGIC = b"NVR\0"
NEWEST = 7  # FileHeader.Version: that of all reports from 2020.3 to 2025.3
PartKind = Literal["file-header", "block-header", "source", "kernel", "range", "cmdlist", "graph"]

# BlockHeader: field number of the count -> what is counted, in the order of the payload.
_RECORDS: dict[int, PartKind] = {1: "source", 2: "kernel", 7: "range", 8: "cmdlist", 9: "graph"}
_PAYLOAD_SIZE = 5
_MIN_RESULT = 8  # bytes; a result has a dozen required fields, so a shorter one is none


class TruncatedReport(MalformedMessage):
    """The file ends before something that it announces."""


@dataclass(frozen=True)
class ReportMessage:
    """One length-prefixed message: `data[offset : offset + size]`, with its length in the 4 bytes before."""

    offset: int
    kind: PartKind
    size: int
    block: int  # which block it belongs to, the first is 0; -1 for the file header


@dataclass(frozen=True)
class ReportBlock:
    """One block: where its header and payload lie, and how many records of each kind it announces."""

    index: int
    header: ReportMessage
    payload: int  # offset
    payload_size: int | None  # bytes; None where the header does not tell
    counts: dict[PartKind, int]

    @property
    def results(self) -> int:
        """Return how many results of any kind the block announces."""
        return sum(count for kind, count in self.counts.items() if kind != "source")


def read_file_header(data: Buffer) -> ReportMessage:
    """Read the file's own header. Raises MalformedMessage where `data` is no report."""
    if data[:4] != MAGIC:
        raise MalformedMessage(0, "not a report of Nsight Compute: it does not begin with NVR")
    return _read_message(data, 4, "file-header", -1)


def layout_version(data: Buffer) -> int | None:
    """Return the version of the layout from the file header. Raises MalformedMessage."""
    header = read_file_header(data)
    fields = read_fields(data, header.offset, header.offset + header.size)
    return next((a for number, wire, a, _ in fields if number == 1 and wire == VARINT), None)


def read_blocks(data: Buffer) -> Iterator[ReportBlock]:
    """Yield every complete block, in order. Raises TruncatedReport after the last where the file is cut off."""
    header = read_file_header(data)
    at, index = header.offset + header.size, 0
    while at < len(data):
        block = _read_block(data, at, index)
        size = block.payload_size
        if size is None:
            ends = [part.offset + part.size for part in read_records(data, block)]
            size = max(ends, default=block.payload) - block.payload
        if size > len(data) - block.payload:
            held = ", ".join(f"{n} {kind}" for kind, n in block.counts.items() if n)
            raise TruncatedReport(
                len(data),
                f"block {index} has {size} bytes ({held or 'no'} records) and "
                f"{len(data) - block.payload} of them are there: the file ends",
            )
        yield block
        at, index = block.payload + size, index + 1


def read_records(data: Buffer, block: ReportBlock) -> Iterator[ReportMessage]:
    """Yield the records of a block, in the order of the payload.

    Raises MalformedMessage where they do not fit into it.
    """
    at = block.payload
    end = len(data) if block.payload_size is None else block.payload + block.payload_size
    for kind in _RECORDS.values():
        for number in range(block.counts.get(kind, 0)):
            part = _read_message(data, at, kind, block.index, min(end, len(data)))
            if kind != "source" and part.size < _MIN_RESULT:
                raise MalformedMessage(at, f"{kind} result {number} of block {block.index} is empty")
            yield part
            at = part.offset + part.size


def _read_block(data: Buffer, at: int, index: int) -> ReportBlock:
    header = _read_message(data, at, "block-header", index)
    if header.size == 0:  # room that was never written to; read as blocks, gigabytes of it would take hours
        raise TruncatedReport(at, f"zeros where block {index} should begin: the file ends")
    counts: dict[PartKind, int] = {}
    size: int | None = None
    for number, wire, a, b in read_fields(data, header.offset, header.offset + header.size):
        if wire == VARINT and number in _RECORDS:
            counts[_RECORDS[number]] = a
        elif wire == VARINT and number == _PAYLOAD_SIZE:
            size = a
        elif wire == LENGTH and number in (*_RECORDS, _PAYLOAD_SIZE):
            raise MalformedMessage(b, f"the header of block {index} counts in bytes")
    return ReportBlock(index, header, header.offset + header.size, size, counts)


def _read_message(data: Buffer, at: int, kind: PartKind, block: int, end: int | None = None) -> ReportMessage:
    limit = len(data) if end is None else end
    if limit - at < 4:
        raise TruncatedReport(at, f"the {kind} of block {block} has no length: the file ends")
    size = struct.unpack_from("<I", data, at)[0]
    if size > limit - at - 4:
        raise TruncatedReport(at, f"a {kind} of {size} bytes where {limit - at - 4} are left: the file ends")
    return ReportMessage(at + 4, kind, size, block)
