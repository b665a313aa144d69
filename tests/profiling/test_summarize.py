"""Anybody's GPU report, told by its fields and not by its tool; and a binary one that its tool has to convert first."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.comparability import fingerprint_of
from profkit.cli.options import verdict_exit
from profkit.core.errors import MachineError
from profkit.core.types import Counter, GpuTrace, Report, Scope
from profkit.profilers.profiler import Conversion, Format
from profkit.profiling import summarize as examine
from profkit.profiling.summarize import summarize_report
from profkit.reporting import json as json_report
from profkit.reporting.views.run_text import actions
from tests import gpu_documents as gpu
from tests.conftest import ROOT
from tests.profilers.ncu import writer
from tests.profilers.ncu.test_rep_recorded import sample
from tests.reporting.shown import run_markdown, run_text
from tests.spoken import spoken_lines

BASE = Report("some-tool", "some-format", "1.0", {"command": "python x.py", "clocks": "not locked"})
KERNEL = Counter("anything", 1.0, "measured", scope=Scope("kernel", "f", "1x1x1 of 32x1x1"))


@pytest.mark.parametrize(
    ("report", "backend"),
    [
        (BASE, "cpu"),
        (replace(BASE, counters=(replace(KERNEL, scope=Scope("function", "f")),)), "cpu"),
        (replace(BASE, tool="ncu", counters=(KERNEL,)), "cuda"),
        (replace(BASE, tool="nsys", trace=GpuTrace("nsys", ())), "cuda"),
        (replace(BASE, tool="nsys", gpus=(gpu.H200,)), "cuda"),
    ],
)
def test_a_report_of_a_device_is_told_by_what_it_holds(report: Report, backend: str, tmp_path: Path) -> None:
    path = tmp_path / "any.report"
    path.touch()
    document = examine.report_as_run(report, path)
    assert document.backend == backend
    assert document.workload.command == ("python", "x.py")
    assert document.facts["clocks"] == "not locked"
    noted = "clocks: not locked" in spoken_lines(document.notes)
    assert noted is (backend == "cpu")  # a report of a device shows its facts in a place of their own


# ---------------------------------------------------------------- a report that only its own tool can read

CONVERTER = """
import sqlite3, sys
source, target = sys.argv[1:3]
assert target.endswith(".sqlite"), target
with open(source, "rb") as file:
    value = file.read().decode()
with sqlite3.connect(target) as database:
    database.execute("create table facts (value text)")
    database.execute("insert into facts values (?)", (value,))
"""


def read_database(path: Path) -> Report:
    with sqlite3.connect(path) as database:
        ((value,),) = database.execute("select value from facts").fetchall()
    return replace(BASE, facts={"value": value})


def binary_format(argv: tuple[str, ...]) -> Format:
    return Format(
        "some-binary",
        "some-tool",
        "a binary report",
        lambda head: True,
        read_database,
        conversion=Conversion(
            lambda source, target: (*argv, str(source), str(target)),
            "converted.sqlite",
            "some-tool export -o {stem}.sqlite {name}",
        ),
    )


def read_with(argv: tuple[str, ...], path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    path.write_bytes(b"inside")
    monkeypatch.setattr(examine, "recognise_format", lambda _: binary_format(argv))
    return examine.read_report(path)


def test_a_binary_report_is_converted_into_the_file_that_its_format_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = read_with((sys.executable, "-c", CONVERTER), tmp_path / "a b;c.rep", monkeypatch)
    assert report.facts == {"value": "inside"}
    assert [file.name for file in tmp_path.iterdir()] == [
        "a b;c.rep"
    ]  # nothing is left beside somebody's report


@pytest.mark.parametrize(
    "argv", [("/nowhere/some-tool",), ("sh", "-c", "echo some-tool: not found; exit 127")]
)
def test_where_the_tool_is_missing_the_line_for_where_it_is_stands_in_the_fix(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineError) as fault:
        read_with(argv, tmp_path / "it's mine.rep", monkeypatch)
    assert "only some-tool can read" in fault.value.message
    line = "some-tool export -o 'it'\"'\"'s mine'.sqlite 'it'\"'\"'s mine.rep'"
    assert fault.value.fix == f"where it was recorded: {line}, then read that"


# ---------------------------------------------------------------- recorded reports

RECORDED = sorted(
    file
    for file in (ROOT / "tests" / "data" / "cuda").rglob("*")
    if file.is_file() and file.suffix != ".md" and not {"texts", "timeline"} & set(file.parts)
)


@pytest.mark.thorough
@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name)
def test_every_report_that_we_recorded_has_a_screen_a_page_and_a_document(file: Path) -> None:
    document = examine.summarize_report(file)
    for width in (40, 80, 200):
        text = run_text(document, width=width, color=False)
        assert max(len(line) for line in text.split("\n")) <= width
    assert run_markdown(document)
    assert json_report.run(document)
    again = examine.judge_document(document, ())
    assert (again.summaries, again.readings) == (document.summaries, document.readings)


# What is true of some of them.
TRUTHS = {
    "h200.gated_mlp.nsys.sqlite": ("The GPU is busy", "Launches 60"),
    "h200.gated_mlp.full.ncu-rep": ("14.6 %", "18.8 %", "82.9 %"),
    "h200.gated_mlp.60-launches.ncu-rep": ("14.6 %", "18.8 %", "27.0 %", "127 k"),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_a_recorded_report_is_shown_with_what_is_true_of_it(name: str, reports: Path) -> None:
    text = run_text(examine.summarize_report(reports / "cuda" / name), width=80, color=False)
    words = (*TRUTHS[name], "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT")
    assert [one for one in words if one not in " ".join(text.split())] == []


def test_a_report_of_nothing_keeps_no_target_and_says_why(tmp_path: Path) -> None:
    empty = writer.write(tmp_path / "empty.ncu-rep", writer.simple([]))
    for file, why in (
        (empty, "no kernel was profiled"),
        (ROOT / "tests" / "data" / "cuda" / "nsys" / "nocuda.sqlite", "no kernel was recorded"),
    ):
        document = examine.summarize_report(file)
        assert {v.verdict for v in document.verdicts} == {"unknown"}
        assert {"occupancy", "memory-bandwidth"} <= {v.target for v in document.verdicts}
        assert verdict_exit(document, judged=True, strict=True) == 5
        assert verdict_exit(document, judged=True, strict=False) == 0
        assert why in " ".join(run_text(document, color=False, details=False).split())


# ------------------------------------------------------------ test_summarize_samples

TARGETS = ("occupancy", "memory-bandwidth", "bank-conflicts", "warp-efficiency", "coalescing")
VERDICTS = {
    "transposeNoBankConflicts": "pass pass pass pass pass",
    "transposeCoalesced": "pass fail fail pass pass",
    "addConstDouble": "not-applicable pass pass pass pass",  # DRAM saturated: more warps would not help
    "addConstDouble3": "pass pass pass pass fail",  # 66 % of the sectors wasted
    "sobelFloat": "pass not-applicable pass pass not-applicable",
    "sobelDouble": "pass not-applicable pass pass not-applicable",
}
CLASSES = {
    "transposeNoBankConflicts": "dram",  # "Start by analyzing DRAM"
    "transposeCoalesced": "shared",  # "Start by analyzing L1"; 96.39 % of the wavefronts of loads are conflicts
    "addConstDouble": "dram",
    "addConstDouble3": "dram",
    "sobelFloat": "issue",  # "Compute is more heavily utilized than Memory", and no pipe above 57.7 %
    "sobelDouble": "fp64",  # "FP64 is the highest-utilized pipeline (86.4 %)"
}
WORDS = {
    "transposeNoBankConflicts": ("95.6/100.0 %", "88.7 %"),
    "transposeCoalesced": ("93.9/100.0 %", "61.9 %", "65.0 M bank conflicts", "(53 % of their waiting time)"),
    "addConstDouble": ("73.5/100.0 %", "90.6 %"),
    "addConstDouble3": (
        "33.3 % of the sectors",
        "3.15 M sectors too many",
        "24.0 sectors per request of loads",
    ),
    "sobelFloat": ("1.51 TFLOP/s in FP32", "11.3 FLOP/B", "11.2 %"),  # "11% of this device's fp32 peak"
    "sobelDouble": ("123 GFLOP/s in FP64", "18.3 FLOP/B", "52.5 %"),  # "53% of its fp64 peak"
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_sample_is_judged_as_an_engineer_would_by_numbers_that_are_known(name: str) -> None:
    document = examine.summarize_report(sample(name))
    of_run = {v.target: v.verdict for v in document.verdicts if v.scope.kind == "run"}
    assert " ".join(of_run[target] for target in TARGETS) == VERDICTS[name]
    assert {target for target, word in of_run.items() if word == "fail"} <= set(TARGETS)
    assert "unknown" not in of_run.values()
    assert [one.bound for one in document.kernels] == [CLASSES[name]]
    assert [r.metric for r in document.readings if r.doubt is not None] == []
    text = " ".join(run_text(document, width=120, color=False).split())
    assert [words for words in WORDS[name] if words not in text] == []


def test_the_conflicts_are_to_be_mended_before_the_bandwidth() -> None:
    found = actions(examine.summarize_report(sample("transposeCoalesced")))
    assert [action.about.target for action in found if action.about] == ["bank-conflicts", "memory-bandwidth"]


# ------------------------------------------------------------ test_summarize_xctrace

M1 = ROOT / "tests" / "data" / "xctrace" / "m1"


def test_of_a_recording_its_start_and_what_decides_comparability_are_told() -> None:
    document = summarize_report(M1)
    assert document.started == "2026-03-31T01:55:31+00:00"
    told = {f.name: f.value for f in fingerprint_of(document)}
    assert (told["macos.major"], told["macos.version"], told["tool.xctrace"]) == ("26", "26.3.1", "26")
    assert (told["mode.template"], told["mode.induced"]) == ("Metal System Trace", "Default")
    assert told["gpu.name"] == "Apple M1"


def test_a_table_of_metal_that_nobody_reads_is_no_report_of_a_processor() -> None:
    assert summarize_report(M1 / "metal-driver-intervals.xml").backend == "mps"
    assert summarize_report(M1 / "time-profile.xml").backend == "cpu"
