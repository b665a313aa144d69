"""Which files are exports of one recording, whatever they are called, and what a folder of them comes to."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UnreadableReport
from profkit.profilers.registry import recognise_format
from profkit.profilers.xctrace import EXPORTED_TABLES
from profkit.profilers.xctrace.report import find_exports, read_exports
from profkit.profilers.xctrace.toc import read_toc
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT
from tests.spoken import spoken_lines
from tests.xctrace_tables import EMPTY, duration, export, node, process, text, time

STATES = (("start", "start-time"), ("duration", "duration"), ("state", "gpu-state"))
ROWS = [[time(n * 100), duration(50), text("gpu-state", "Active" if n % 2 else "Idle")] for n in range(8)]
HOST = [[time(5), process("host", 17)]]
TOC = """<?xml version="1.0"?>
<trace-toc><run number="1"><info><target>
  <device model="MacBook Air" name="Somebody&apos;s" os-version="26.3 (25D)" platform="macOS"/>
  <process name="my host" pid="17" arguments="--n 3" return-exit-status="0"/></target>
  <summary><start-date>2026-03-30T18:55:31</start-date><duration>1.5</duration>
  <instruments-version>26.0 (17A)</instruments-version><template-name>Metal System Trace</template-name>
  <intruments-recording-settings><instrument name="Metal Application"><array><dictionary><key name="GPU">
    <value>Counter Set: (null)</value><value>Shader Timeline: Disabled</value></key></dictionary></array></instrument>
  </intruments-recording-settings></summary></info>
  <data><table schema="tick"/><table schema="metal-gpu-state-intervals" target-pid="SINGLE"/></data></run></trace-toc>
"""


def states(path: Path, run: int = 1, position: int = 2, rows: list[list[object]] | None = None) -> Path:
    made = node("metal-gpu-state-intervals", STATES, rows or ROWS, run=run, position=position)  # type: ignore[arg-type]
    path.write_bytes(export(made))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Exports of one recording under names that tell nothing, and other files."""
    folder = tmp_path / "what 'it' was <b>"
    folder.mkdir()
    states(folder / "b.txt")
    (folder / "a").write_text(TOC)
    (folder / "c.xml").write_bytes(EMPTY)
    (folder / "notes.md").write_text("# <trace-toc> was exported")
    (folder / "x.plist").write_text('<?xml version="1.0"?><!DOCTYPE plist><plist/>')
    (folder / "inner").mkdir()
    return folder


def test_exports_are_told_by_what_is_in_them(folder: Path) -> None:
    assert recognise_format(folder).name == "xctrace-folder"
    assert recognise_format(folder / "b.txt").name == "xctrace-table"
    assert recognise_format(folder / "c.xml").name == "xctrace-table"
    assert recognise_format(folder / "a").name == "xctrace-toc"
    for other in ("notes.md", "x.plist"):
        with pytest.raises(UnreadableReport):
            recognise_format(folder / other)


def test_a_folder_becomes_one_report(folder: Path) -> None:
    report = read_exports(folder)
    assert (report.tool, report.version) == ("xctrace", "26.0 (17A)")
    assert report.facts | {"command": ""} == report.facts | {
        "Instruments": "26.0 (17A)",
        "template": "Metal System Trace",
        "device model": "MacBook Air",
        "system": "macOS 26.3 (25D)",
        "counter set": "none",
        "command": "",
    }
    assert report.facts["command"] == "'my host' --n 3"
    assert "Somebody" not in str(report)


def test_the_same_table_in_two_files_is_refused(folder: Path) -> None:
    shutil.copy(folder / "b.txt", folder / "copy of b.xml")
    with pytest.raises(UnreadableReport, match="are both the table metal-gpu-state-intervals"):
        find_exports(folder)


def test_several_recordings_in_one_folder_are_refused(folder: Path) -> None:
    (folder / "other toc.xml").write_text(TOC.replace("1.5", "2.5"))
    with pytest.raises(UnreadableReport, match=r"exports of 2 recordings: a, other toc\.xml") as caught:
        find_exports(folder)
    assert caught.value.fix == "put the exports of each recording into a folder of its own"


def test_of_several_runs_the_last_is_read(tmp_path: Path) -> None:
    states(tmp_path / "1", run=1)
    states(tmp_path / "2", run=2)
    assert find_exports(tmp_path).run == 2
    report = read_exports(tmp_path)
    assert report.metal is not None
    assert report.metal.device_busy is not None


def test_a_table_of_contents_alone_says_how_it_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "toc").write_text(TOC)
    for path in (tmp_path / "toc", tmp_path):
        report = read_exports(path)
        assert report.facts["template"] == "Metal System Trace"
        assert any(note.startswith("only a table of contents") for note in spoken_lines(report.warnings))


def test_an_export_of_nothing_is_refused_with_the_way_on(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(EMPTY)
    for place in (path, tmp_path):
        with pytest.raises(UnreadableReport, match="nothing in the recording matched") as caught:
            read_exports(place)
        assert caught.value.fix is not None
        assert "--toc" in caught.value.fix


@pytest.mark.parametrize(
    "inside", [["Trace1.run"], ["corespace", "form.template"], ["instrument_data", "open.creq"]]
)
def test_a_document_of_instruments_says_how_it_is_exported_where_no_xctrace_is(
    inside: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROFKIT_XCTRACE", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    document = tmp_path / "my run.trace"
    for name in inside:
        (document / name).mkdir(parents=True)
    assert recognise_format(document).name == "xctrace-document"
    with pytest.raises(MachineError, match="which only xctrace can read") as caught:
        summarize_report(document)
    if os.uname().sysname != "Darwin":
        assert caught.value.fix is not None
        assert f"xctrace export --input {shlex.quote(document.name)} --toc" in caught.value.fix
        assert "[@schema=\"'$t'\"]" in caught.value.fix


def test_the_page_on_macs_exports_the_same_tables_by_hand_as_an_error_does() -> None:
    page = (ROOT / "docs" / "mps.md").read_text()
    (shown,) = re.findall(r"for t in (.*?); do", page, re.DOTALL)
    assert tuple(shown.replace("\\\n", " ").split()) == EXPORTED_TABLES


def test_the_table_of_contents_of_the_recorded_trace() -> None:
    (run,) = read_toc(ROOT / "tests" / "data" / "xctrace" / "m1" / "toc.xml")
    assert run.number == 1
    assert run.has("metal-gpu-counter-intervals")
    assert not run.has("counters-profile")
    assert run.settings.get("Induced GPU Performance State") == "Default"
    assert run.summary["end-reason"] == "Target app exited"
