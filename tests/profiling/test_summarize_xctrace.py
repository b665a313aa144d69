"""Somebody's exports of Instruments, examined: when and with what they were recorded, and what may be compared."""

from __future__ import annotations

from profkit.analysis.comparability import fingerprint_of
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT

M1 = ROOT / "tests" / "data" / "xctrace" / "m1"


def test_a_report_began_when_it_was_recorded() -> None:
    assert summarize_report(M1).started == "2026-03-31T01:55:31+00:00"


def test_what_decides_comparability_is_told() -> None:
    told = {f.name: f.value for f in fingerprint_of(summarize_report(M1)).features}
    assert told["macos.major"] == "26"
    assert told["macos.version"] == "26.3.1"
    assert told["tool.xctrace"] == "26"
    assert told["mode.template"] == "Metal System Trace"
    assert told["mode.induced"] == "Default"
    assert told["gpu.name"] == "Apple M1"


def test_one_table_says_that_the_folder_tells_more_and_a_folder_does_not() -> None:
    alone = summarize_report(M1 / "metal-gpu-intervals.xml").notes
    assert any(note.startswith("one table alone: the folder of all exports") for note in alone)
    assert not any("alone" in note for note in summarize_report(M1).notes)


def test_a_table_of_metal_that_nobody_reads_is_no_report_of_a_processor() -> None:
    assert summarize_report(M1 / "metal-driver-intervals.xml").backend == "mps"
    assert summarize_report(M1 / "time-profile.xml").backend == "cpu"
