"""perf.data: the header's facts, and cut, foreign or hostile files."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.errors import UnreadableReport
from profkit.tools.perf.data import DataHeader, is_perf_data, read_header, recorded_pids


def string(text: str, order: str) -> bytes:
    raw = text.encode() + b"\0"
    raw += bytes(-len(raw) % 64)
    return struct.pack(order + "I", len(raw)) + raw


def recording(order: str = "<", *, finished: bool = True) -> bytes:
    """A perf.data by the documented layout: two processes, and the facts of a header, with a host name."""
    records = b"".join(
        struct.pack(order + "IHH", kind, 0, 8 + len(body)) + body
        for kind, body in [
            (3, struct.pack(order + "II8s", 41, 41, b"app")),  # COMM
            (10, bytes(56)),  # MMAP2
            (7, struct.pack(order + "IIIIQ", 42, 41, 42, 41, 0)),  # FORK
            (9, bytes(4000)),  # SAMPLE
        ]
    )
    attribute = bytes(128)
    names = ["cycles:u", "instructions:u"]
    described = struct.pack(order + "II", len(names), len(attribute))
    for number, name in enumerate(names):
        described += attribute + struct.pack(order + "I", 2) + string(name, order)
        described += struct.pack(order + "QQ", 2 * number, 2 * number + 1)
    parts = {
        3: string("secret-host", order),
        5: string("6.12.1", order),
        6: string("aarch64", order),
        8: string("Neoverse", order),
        11: struct.pack(order + "I", 2) + string("perf", order) + string("record", order),
        12: described,
    }
    at = 104 + len(records) + 16 * len(parts)
    table, bodies = b"", b""
    for part in parts.values():
        table += struct.pack(order + "QQ", at + len(bodies), len(part))
        bodies += part
    bits = sum(1 << bit for bit in parts)
    magic = b"PERFILE2" if order == "<" else b"2ELIFREP"
    sizes = (104, 144, 0, 0, 104, len(records) if finished else 0, 0, 0)
    head = magic + struct.pack(order + "8Q4Q", *sizes, bits, 0, 0, 0)
    return head + records + (table + bodies if finished else b"")


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_facts_of_a_recording_in_either_byte_order(tmp_path: Path, order: str):
    path = write(tmp_path, recording(order))
    assert is_perf_data(path.read_bytes()[:8])
    header = read_header(path)
    assert header == DataHeader(
        "6.12.1", "aarch64", "Neoverse", ("perf", "record"), ("cycles:u", "instructions:u")
    )
    assert "secret-host" not in repr(header)
    assert recorded_pids(path) == {41, 42}


def test_a_recording_whose_perf_was_killed_gives_its_processes_and_no_facts(tmp_path: Path):
    path = write(tmp_path, recording(finished=False))
    assert read_header(path) == DataHeader()
    assert recorded_pids(path) == {41, 42}


def test_a_piped_recording_gives_its_processes_and_no_facts(tmp_path: Path):
    records = recording(finished=False)[104:]
    path = write(tmp_path, b"PERFILE2" + struct.pack("<Q", 16) + records)
    assert read_header(path) == DataHeader()
    assert recorded_pids(path) == {41, 42}


@pytest.mark.parametrize("cut", [0, 7, 8, 15, 50, 103, 104, 500, 4200, 4300])
def test_a_cut_recording_is_refused_with_a_sentence(tmp_path: Path, cut: int):
    with pytest.raises(UnreadableReport, match=r"cut off|no perf\.data"):
        read_header(write(tmp_path, recording()[:cut]))


def test_another_file_or_none_is_refused(tmp_path: Path):
    for path in (write(tmp_path, b"\x7fELF" + bytes(200)), tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableReport):
            read_header(path)


@pytest.mark.parametrize("field", range(8, 104, 8))
@pytest.mark.parametrize("value", [0, 1, 2**31, 2**63 - 1, 2**64 - 1])
def test_any_number_in_the_header_is_read_or_refused(tmp_path: Path, field: int, value: int):
    data = bytearray(recording())
    data[field : field + 8] = struct.pack("<Q", value)
    for read in (read_header, recorded_pids):
        with contextlib.suppress(UnreadableReport):
            read(write(tmp_path, bytes(data)))


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=12), st.integers(0, 6000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_damage_anywhere_is_read_or_refused(tmp_path: Path, damage: list[tuple[int, int]], length: int):
    data = bytearray(recording())
    for place, byte in damage:
        data[place % len(data)] = byte
    path = write(tmp_path, bytes(data[:length]))
    for read in (read_header, recorded_pids):
        try:
            read(path)
        except UnreadableReport:
            continue
