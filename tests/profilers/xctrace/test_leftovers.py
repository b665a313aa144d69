import os
import tempfile

import pytest

from profkit.profilers.xctrace.find import leftover_note


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "a folder"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def raw_trace(folder, name, size, when):
    with open(folder / name, "wb") as file:
        file.truncate(size)
    os.utime(folder / name, (when, when))


def test_raw_traces_of_this_recording_are_told_with_the_line_that_removes_them(folder):
    raw_trace(folder, "instruments_1.ktrace", 60_000_000, 1000)
    raw_trace(folder, "instruments_2.ktrace", 40_000_000, 1001)
    raw_trace(folder, "instruments_0.ktrace", 900_000_000, 500)
    raw_trace(folder, "mine.ktrace", 900_000_000, 1001)
    note = leftover_note(1000)
    assert "2 raw traces" in note
    assert f"rm '{folder}'/instruments*.ktrace" in note
    assert len(list(folder.iterdir())) == 4


def test_little_and_nothing_are_no_news(folder):
    assert leftover_note(0) is None
    raw_trace(folder, "instruments_1.ktrace", 1_000_000, 1000)
    assert leftover_note(0) is None
