"""Somebody's exports of Instruments, examined: when and with what they were recorded, and what may be compared."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from profkit.analysis.comparability import fingerprint_of
from profkit.profiling.summarize import summarize_report
from profkit.regression.compare import compare
from tests.conftest import ROOT
from tests.reporting.shown import run_junit as junit
from tests.reporting.shown import run_markdown as markdown
from tests.reporting.shown import run_page as render
from tests.reporting.shown import run_text as terminal

M1 = ROOT / "tests" / "data" / "xctrace" / "m1"
FOREIGN = re.compile(
    r"\b(?:kernels?(?! release)|SMs?|NVTX|multiprocessors?|CUDA|warps?|nsys|ncu|NVIDIA)\b", re.I
)


def test_a_report_began_when_it_was_recorded() -> None:
    assert summarize_report(M1).started == "2026-03-31T01:55:31+00:00"


def test_a_time_that_is_none_is_that_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "m1"
    shutil.copytree(M1, folder)
    toc = folder / "toc.xml"
    for odd in ("9999-12-31T23:59:59-14:00", "yesterday", "2026-03-30T18:55:31"):
        toc.write_text(re.sub(r"<start-date>.*?<", f"<start-date>{odd}<", (M1 / "toc.xml").read_text()))
        assert (
            summarize_report(folder).started[:4]
            == summarize_report(M1 / "metal-gpu-intervals.xml").started[:4]
        )


def test_what_decides_comparability_is_told() -> None:
    told = {f.name: f.value for f in fingerprint_of(summarize_report(M1)).features}
    assert told["macos.major"] == "26"
    assert told["macos.version"] == "26.3.1"
    assert told["tool.xctrace"] == "26"
    assert told["mode.template"] == "Metal System Trace"
    assert told["mode.induced"] == "Default"
    assert told["gpu.name"] == "Apple M1"


def test_a_report_is_the_same_as_itself() -> None:
    assert compare(summarize_report(M1), summarize_report(M1)).outcome == "same"


def test_no_report_of_it_has_a_word_of_cuda() -> None:
    document = summarize_report(M1)
    page = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", render(document), flags=re.DOTALL)
    for said in (page, terminal(document), markdown(document), junit([document])):
        assert FOREIGN.findall(said) == []


def test_one_table_says_that_the_folder_tells_more_and_a_folder_does_not() -> None:
    alone = summarize_report(M1 / "metal-gpu-intervals.xml").notes
    assert any(note.startswith("one table alone: the folder of all exports") for note in alone)
    assert not any("alone" in note for note in summarize_report(M1).notes)


def test_a_table_of_metal_that_nobody_reads_is_no_report_of_a_processor() -> None:
    assert summarize_report(M1 / "metal-driver-intervals.xml").backend == "mps"
    assert summarize_report(M1 / "time-profile.xml").backend == "cpu"
