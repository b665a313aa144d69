"""perf.data: the header's facts, and cut, foreign or hostile files."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.command import is_perf_data, recorded_pids


def recording(order: str = "<", *, finished: bool = True) -> bytes:
    """A perf.data by the documented layout: two processes, a sample, and a feature behind them."""
    records = b"".join(
        struct.pack(order + "IHH", kind, 0, 8 + len(body)) + body
        for kind, body in [
            (3, struct.pack(order + "II8s", 41, 41, b"app")),  # COMM
            (10, bytes(56)),  # MMAP2
            (7, struct.pack(order + "IIIIQ", 42, 41, 42, 41, 0)),  # FORK
            (9, bytes(4000)),  # SAMPLE
        ]
    )
    # A feature that perf puts behind the records: the host's name, which nothing here may look at.
    features = struct.pack(order + "QQ", 104 + len(records) + 16, 64) + b"secret-host".ljust(64, b"\0")
    magic = b"PERFILE2" if order == "<" else b"2ELIFREP"
    sizes = (104, 144, 0, 0, 104, len(records) if finished else 0, 0, 0)
    head = magic + struct.pack(order + "8Q4Q", *sizes, 1 << 3, 0, 0, 0)
    return head + records + (features if finished else b"")


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_recording_in_either_byte_order_names_its_processes(tmp_path: Path, order: str):
    path = write(tmp_path, recording(order))
    assert is_perf_data(path.read_bytes()[:8])
    assert recorded_pids(path) == {41, 42}


def test_a_recording_whose_perf_was_killed_names_its_processes(tmp_path: Path):
    assert recorded_pids(write(tmp_path, recording(finished=False))) == {41, 42}


def test_a_piped_recording_names_its_processes(tmp_path: Path):
    records = recording(finished=False)[104:]
    assert recorded_pids(write(tmp_path, b"PERFILE2" + struct.pack("<Q", 16) + records)) == {41, 42}


@pytest.mark.parametrize("cut", [0, 7, 8, 15, 50, 103])
def test_a_recording_cut_within_its_header_is_refused_with_a_sentence(tmp_path: Path, cut: int):
    with pytest.raises(UnreadableReport, match=r"cut off|no perf\.data"):
        recorded_pids(write(tmp_path, recording()[:cut]))


@pytest.mark.parametrize(("cut", "pids"), [(104, set()), (125, {41}), (220, {41, 42})])
def test_a_recording_cut_later_gives_what_stands_before_its_end(tmp_path: Path, cut: int, pids: set[int]):
    assert recorded_pids(write(tmp_path, recording()[:cut])) == pids


def test_another_file_or_none_is_refused(tmp_path: Path):
    for path in (write(tmp_path, b"\x7fELF" + bytes(200)), tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableReport):
            recorded_pids(path)


@pytest.mark.parametrize("field", range(8, 104, 8))
@pytest.mark.parametrize("value", [0, 1, 2**31, 2**63 - 1, 2**64 - 1])
def test_any_number_in_the_header_is_read_or_refused(tmp_path: Path, field: int, value: int):
    data = bytearray(recording())
    data[field : field + 8] = struct.pack("<Q", value)
    with contextlib.suppress(UnreadableReport):
        recorded_pids(write(tmp_path, bytes(data)))


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=12), st.integers(0, 6000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_damage_anywhere_is_read_or_refused(tmp_path: Path, damage: list[tuple[int, int]], length: int):
    data = bytearray(recording())
    for place, byte in damage:
        data[place % len(data)] = byte
    path = write(tmp_path, bytes(data[:length]))
    with contextlib.suppress(UnreadableReport):
        recorded_pids(path)
