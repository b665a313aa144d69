"""Makes a recorded GPU report small enough for the repository: `python -m tests.small_reports IN OUT`.

Of an .ncu-rep it drops what is counted per instruction and per instance (MetricValueList), the cubins and sources,
rules and sections; every metric's own value, kernels, NVTX and session stay. Of an nsys export it drops empty tables
and the tables of enumerations. Scrub first: `profkit scrub`.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    read_blocks,
    read_fields,
    read_file_header,
    read_records,
)
from tests.profilers.ncu.writer import number, varint

METRICS = {"kernel": 13, "range": 4, "cmdlist": 4, "graph": 4}
BULK = {"kernel": {17, 18, 19, 28, 32, 33, 34}, "range": {7, 8, 14, 17, 18, 19, 20}}


def rewritten(message: bytes, change: Callable[[int, bytes], bytes | None]) -> bytes:
    """The message with each length-delimited field changed; None drops it."""
    out = bytearray()
    for field, wire, a, b in read_fields(message, 0, len(message)):
        if wire == VARINT:
            out += number(field, a)
        elif wire == LENGTH:
            value = change(field, message[a:b])
            out += b"" if value is None else varint(field << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(field << 3 | wire) + message[a:b]
    return bytes(out)


def small_record(kind: str, record: bytes) -> bytes:
    """A result without instance lists, sections and rules."""

    def change(field: int, value: bytes) -> bytes | None:
        if field == METRICS[kind]:
            return rewritten(value, lambda inner, told: None if inner == 3 else told)
        return None if field in BULK.get(kind, ()) else value

    return rewritten(record, change)


def small_ncu(data: bytes) -> bytes:
    """The report without sources and without what `small_record` drops."""
    head = read_file_header(data)
    out = bytearray(data[: head.offset + head.size])
    for block in read_blocks(data):
        payload = bytearray()
        for part in read_records(data, block):
            if part.kind != "source":
                record = small_record(part.kind, data[part.offset : part.offset + part.size])
                payload += struct.pack("<I", len(record)) + record
        header = bytearray()
        for field, wire, a, b in read_fields(data, block.header.offset, block.payload):
            if wire == VARINT:
                header += number(field, {1: 0, 5: len(payload)}.get(field, a))
            else:
                header += varint(field << 3 | wire) + (varint(b - a) if wire == LENGTH else b"") + data[a:b]
        out += struct.pack("<I", len(header)) + header + payload
    return bytes(out)


def small_nsys(source: Path, output: Path) -> None:
    """The export with the tables that hold something, vacuumed."""
    with closing(sqlite3.connect(":memory:")) as base:
        with closing(sqlite3.connect(source)) as original:
            original.backup(base)
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            count = base.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{name}" LIMIT 1)').fetchone()[0]
            if not count or name.startswith("ENUM_"):
                base.execute(f'DROP TABLE "{name}"')
        base.commit()
        base.execute("VACUUM INTO ?", (str(output),))


def main(source: Path, output: Path) -> None:
    """Write a small copy of `source` to `output`."""
    head = source.open("rb").read(16)
    if head.startswith(b"NVR\0"):
        output.write_bytes(small_ncu(source.read_bytes()))
    elif head.startswith(b"SQLite"):
        small_nsys(source, output)
    else:
        output.write_bytes(source.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
