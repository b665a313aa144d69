"""perf.data: the header's facts, and cut, foreign or hostile files."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.command import recorded_pids


def recording(*, finished: bool = True) -> bytes:
    """A perf.data by the documented layout: two processes, a sample, and a feature behind them."""
    records = b"".join(
        struct.pack("<IHH", kind, 0, 8 + len(body)) + body
        for kind, body in [
            (3, struct.pack("<II8s", 41, 41, b"app")),  # COMM
            (10, bytes(56)),  # MMAP2
            (7, struct.pack("<IIIIQ", 42, 41, 42, 41, 0)),  # FORK
            (9, bytes(4000)),  # SAMPLE
        ]
    )
    # A feature that perf puts behind the records: the host's name, which nothing here may look at.
    features = struct.pack("<QQ", 104 + len(records) + 16, 64) + b"secret-host".ljust(64, b"\0")
    sizes = (104, 144, 0, 0, 104, len(records) if finished else 0, 0, 0)
    head = b"PERFILE2" + struct.pack("<8Q4Q", *sizes, 1 << 3, 0, 0, 0)
    return head + records + (features if finished else b"")


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "pids"),
    [
        (recording(), {41, 42}),
        (recording(finished=False), {41, 42}),  # perf was killed
        (recording()[:104], set()),
        (recording()[:125], {41}),
        (recording()[:220], {41, 42}),
    ],
)
def test_a_recording_names_its_processes_as_far_as_it_goes(tmp_path: Path, data: bytes, pids: set[int]):
    assert recorded_pids(write(tmp_path, data)) == pids


@pytest.mark.parametrize("data", [b"", recording()[:50], b"\x7fELF" + bytes(200)])
def test_what_is_no_recording_is_refused_with_a_sentence(tmp_path: Path, data: bytes):
    with pytest.raises(UnreadableReport, match=r"no perf\.data"):
        recorded_pids(write(tmp_path, data))


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=12), st.integers(0, 6000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_damage_anywhere_is_read_or_refused(tmp_path: Path, damage: list[tuple[int, int]], length: int):
    data = bytearray(recording())
    for place, byte in damage:
        data[place % len(data)] = byte
    path = write(tmp_path, bytes(data[:length]))
    with contextlib.suppress(UnreadableReport):
        recorded_pids(path)
