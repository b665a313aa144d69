"""The compressed report: read where something here unpacks it, else refused with the line that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.ncu import rep
from profkit.profilers.ncu.rep import read_ncu_rep
from profkit.profilers.registry import recognise_format
from tests.profilers.ncu import writer as w

PLAIN = w.simple([w.KernelResult("k", {"gpu__time_duration.sum": 1500.0})])


def frame(content: bytes) -> bytes:
    """A Zstandard frame of raw blocks (RFC 8878, 3.1.1): compressed by nobody, unpacked by everybody."""
    out = b"\x28\xb5\x2f\xfd" + b"\x00\x58"  # no content size, window of 2 MiB
    pieces = [content[at : at + 65536] for at in range(0, len(content), 65536)] or [b""]
    for number, piece in enumerate(pieces):
        out += (len(piece) << 3 | (number == len(pieces) - 1)).to_bytes(3, "little") + piece
    return out


def test_a_compressed_report_is_told_by_content_and_without_any_library_refused_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rep, "_unpacker", lambda: None)
    path = w.write(tmp_path / "my report.ncu-repz", frame(PLAIN))
    found = recognise_format(path)
    assert found.name == "ncu-repz"
    with pytest.raises(UnreadableReport, match="compressed") as fault:
        found.read(path)
    assert fault.value.fix is not None
    assert f"zstd -d '{path}' -o 'my report.ncu-rep'" in fault.value.fix


@pytest.mark.skipif(rep._unpacker() is None, reason="nothing here unpacks Zstandard (pip install zstandard)")
def test_a_compressed_report_reads_as_the_plain_one(tmp_path: Path) -> None:
    plain = w.write(tmp_path / "plain.ncu-rep", PLAIN)
    packed = w.write(tmp_path / "packed.ncu-repz", frame(PLAIN))
    assert rep.read_ncu_repz(packed) == read_ncu_rep(plain)


@pytest.mark.skipif(rep._unpacker() is None, reason="nothing here unpacks Zstandard (pip install zstandard)")
@pytest.mark.parametrize(
    "content",
    [frame(b"some other file"), frame(b""), frame(PLAIN)[:40], frame(PLAIN)[:-3], b"\x28\xb5\x2f\xfd"],
)
def test_what_is_compressed_and_no_whole_report_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnreadableReport):
        rep.read_ncu_repz(w.write(tmp_path / "packed.ncu-repz", content))


def test_copying_stops_where_there_is_no_room(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as target, pytest.raises(UnreadableReport, match="too large"):
        rep._copy(tmp_path, iter([b"NVR\0" + b"x" * 1000] * 10), target, room=2000)
    assert (tmp_path / "out").stat().st_size <= 2000
