"""One file of a recording of Metal alone: a screen of what it tells, not of all that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_runner import profkit
from tests.xctrace_tables import duration, export, node, process, text, time

STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
TOC = f"""<?xml version="1.0"?><trace-toc><run number="1"><info><target><process name="train" pid="7"/></target>
<summary><duration>1.5</duration><template-name>Metal System Trace</template-name></summary></info>
<data><table schema="{STATES}"/><table schema="{INTERVALS}"/></data></run></trace-toc>"""
SPAN = (("start", "start-time"), ("duration", "duration"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toc.xml").write_text(TOC)
    states = [
        [time(n * 1000), duration(1000), text("gpu-state", ("Active", "Idle")[n % 2])] for n in range(100)
    ]
    (tmp_path / "states.xml").write_bytes(export(node(STATES, (*SPAN, ("state", "gpu-state")), states)))
    work = [[time(n * 1000), duration(400), process("train", 7)] for n in range(100)]
    (tmp_path / "work.xml").write_bytes(
        export(node(INTERVALS, (*SPAN, ("process", "process")), work, position=2))
    )
    return tmp_path


@pytest.mark.parametrize(
    ("file", "what", "tells"),
    [
        ("toc.xml", "a table of contents alone", "Metal System Trace"),
        ("states.xml", "one table alone", "50.0 %"),
        ("work.xml", "one table alone", "keeps the GPU busy 40.2 %"),
    ],
)
def test_a_file_alone_is_told_in_a_few_lines(folder: Path, file: str, what: str, tells: str) -> None:
    said = profkit("summarize", file, cwd=folder)
    assert said.code == 0
    words = " ".join(said.out.split())
    assert words.count(what) == 1
    assert tells in words
    assert "read that: profkit summarize FOLDER" in words
    assert "unavailable" not in words
    assert "UNKNOWN" not in words
    assert len(said.out.splitlines()) < 60


def test_its_json_and_its_check_tell_all_that_is_not_there(folder: Path) -> None:
    told = profkit("summarize", "toc.xml", "--format", "json", cwd=folder).json()
    assert {one["verdict"] for one in told["verdicts"]} == {"unknown"}
    assert not any("read that" in note for note in told["notes"])
    assert "UNKNOWN" in profkit("check", "toc.xml", cwd=folder).out


def test_a_folder_is_told_as_a_whole(folder: Path) -> None:
    said = profkit("summarize", ".", cwd=folder).out
    assert "UNKNOWN" in said
    assert "read that" not in said
