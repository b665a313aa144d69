"""Frames, Metal's compiler and shaders, by the columns that recordings of an M1, an M3 Ultra and Xcode 27 have."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from profkit.analysis.summaries.metal import metal_trace_readings
from profkit.profilers.xctrace.report import read_exports
from profkit.profilers.xctrace.tables import read_tables
from profkit.profiling.summarize import judge_document, targets_for
from tests import metal_documents
from tests.conftest import ROOT
from tests.profilers.xctrace.metal_cases import BROWSER, ME, SCREEN, SEC, read, run, work
from tests.profilers.xctrace.test_metal_recorded import plainly, shown
from tests.reporting.shown import run_text
from tests.spoken import spoken
from tests.xctrace_tables import duration, export, label, node, process, text, time

RECORDED = ROOT / "tests" / "data" / "xctrace"
INTERVALS = "metal-gpu-intervals"
COMPILER = "graphics-compiler-activity-intervals"
SHADER_LIST, SHADERS = "metal-shader-profiler-shader-list", "metal-shader-profiler-intervals"
FRAMES, DISPLAYED = "metal-command-buffer-frame-assignment", "displayed-surfaces-interval"


def frame(at, presents=1, owner=ME):
    """A row of metal-command-buffer-frame-assignment."""
    return {"timestamp": at * 1000, "has-present": presents, "process": owner}


def readings(report):
    return {reading.metric: reading for reading in metal_trace_readings(report.metal)}


def absent(report, what):
    (one,) = [one for one in report.metal.absent if one.what == what]
    return one


# ---------------------------------------------------------------- frames


def test_a_frame_takes_from_one_present_of_the_process_to_the_next():
    rows = [frame(0), frame(40, 0), frame(100), frame(220), frame(50, owner=SCREEN)]
    found = readings(read({INTERVALS: [work(0, 300)], FRAMES: rows}))["frame.time"]
    assert found.value == pytest.approx(110 * SEC)
    assert found.source.counter == FRAMES


def test_between_two_stretches_of_a_region_no_frame_lasts():
    tables = {INTERVALS: [work(0, 600)], FRAMES: [frame(at) for at in (0, 10, 500, 510)]}
    assert read(tables, windows=[(0, 40), (490, 540)]).metal.frame == pytest.approx(10 * SEC)


def test_command_buffers_that_present_nothing_are_no_frames_though_metal_numbers_them():
    """As an M1 recorded them: "frame" 1 to 20 of the compositor and 1 to 10 of a terminal, none with a present."""
    recorded = RECORDED / "m1-frames" / "metal-command-buffer-frame-assignment.xml"
    numbers = {(shown(r["process"]), shown(r["frame-number"])) for r in plainly(recorded)}
    assert ("WindowServer (420)", "20") in numbers
    cells = ("timestamp", "has-present", "process")
    rows = [
        dict(zip(cells, row, strict=True)) for table in read_tables(recorded) for row in table.rows(cells)
    ]
    assert {row["has-present"] for row in rows} == {0}
    screen = next(row["process"] for row in rows if row["process"].name == "WindowServer")
    report = read({INTERVALS: [work(0, 10**6, screen)], FRAMES: rows}, contents=run(process=screen))
    found = readings(report)["frame.time"]
    assert (found.value, found.quality) == (None, "unavailable")
    assert (
        spoken(found.reason) == "the process presented no frames (none of its command buffers has a present)"
    )


def test_how_long_frames_stay_on_the_screen_is_read_from_xcode_27s_table(tmp_path: Path):
    recorded = RECORDED / "xcode27" / "displayed-surfaces-interval.xml"
    (tmp_path / recorded.name).write_bytes(recorded.read_bytes())
    (tmp_path / "metal-gpu-intervals.xml").write_bytes(
        (RECORDED / "m1" / "metal-gpu-intervals.xml").read_bytes()
    )
    own = [int(row["duration"].text) for row in plainly(recorded)]
    found = read({DISPLAYED: [{"start": 0, "duration": ns} for ns in own], INTERVALS: [work(0, 10**6)]})
    assert readings(found)["frame.displayed"].value == pytest.approx(16.667e-3, rel=1e-3)
    assert readings(found)["frame.displayed"].value == pytest.approx(statistics.median(own) / 1e9)
    assert read_exports(tmp_path).metal is not None  # the recorded file itself is an export that is read


# ---------------------------------------------------------------- the compiler


def test_metals_compiler_is_timed_for_the_process_in_all_of_the_recording():
    rows = [
        {"start": 0, "duration": 5000, "process": ME},
        {"start": 4000, "duration": 2000, "process": ME},  # side by side with the first
        {"start": 50_000, "duration": 1000, "process": BROWSER},
    ]
    report = read({INTERVALS: [work(100, 10)], COMPILER: rows}, windows=[(100, 110)])
    found = readings(report)
    assert found["compile.time"].value == pytest.approx(6 * SEC)  # before the region, where it belongs
    assert found["compile.count"].value == 2
    assert COMPILER not in [one.what for one in report.metal.absent]


def test_the_compilers_table_is_read_by_the_columns_that_an_m3_ultra_recorded(tmp_path: Path):
    owner = process("python", 99926)
    columns = [
        ("start", "start-time"),
        ("duration", "duration"),
        ("event-plane", "metal-encoding-para"),
        ("compiler", "shader-compiler-name"),
        ("program-type", "formatted-label"),
        ("process", "process"),
        ("event-priority", "metal-workload-priority"),
        ("color", "render-buffer-depth"),
    ]
    rows = [
        (
            time(start),
            duration(ns),
            text("metal-encoding-para", "0"),
            text("shader-compiler-name", "Metal Shader Compiler"),
            label(text("narrative-text", "Compile Compute shader"), owner),
            owner,
            text("metal-workload-priority", "0"),
            text("render-buffer-depth", "3"),
        )
        for start, ns in ((885_143_000, 4_970_000), (890_229_000, 25_170), (890_282_000, 16_380))
    ]
    (tmp_path / "compiler.xml").write_bytes(export(node(COMPILER, columns, rows)))
    (tmp_path / "gpu.xml").write_bytes(
        export(
            node(
                INTERVALS,
                [("start", "start-time"), ("duration", "duration"), ("process", "process")],
                [(time(900_000_000), duration(1_000_000), owner)],
            )
        )
    )
    found = readings(read_exports(tmp_path))
    assert found["compile.time"].value == pytest.approx(5_011_550e-9)
    assert found["compile.count"].value == 3


def test_what_a_recording_does_not_hold_says_why_and_how_to_get_it():
    found = readings(read_exports(RECORDED / "m1"))["compile.time"]
    assert (found.value, found.quality) == (None, "unavailable")
    assert spoken(found.reason) == "graphics-compiler-activity-intervals was not exported"
    assert "xctrace export" in (found.fix or "")
    assert "has no table" in spoken(absent(read({INTERVALS: [work(0, 1)]}), DISPLAYED).reason)


# ---------------------------------------------------------------- shaders


def shader(name, start=0, length=10, owner=ME):
    return {
        "timestamp": start * 1000,
        "start": start * 1000,
        "duration": length * 1000,
        "name": name,
        "process": owner,
    }


def test_shaders_that_were_compiled_for_the_process_are_named_though_none_is_timed():
    """The names as an M3 Ultra recorded them, in a stock template with its Shader Timeline disabled."""
    names = ("copyInteractionCounts (45)", "findBlocksWithInteractions (13)", "sortBoxData (12)")
    rows = [*map(shader, names), shader(names[0]), shader("blur", owner=SCREEN)]
    report = read({INTERVALS: [work(0, 60)], SHADER_LIST: rows, SHADERS: []})
    assert report.metal.shader_names == names
    why = absent(report, SHADERS)
    assert "Shader Timeline: Disabled" in spoken(why.reason)
    assert "Shader Timeline switched on" in (why.fix or "")
    assert "GPU Counters" not in (why.fix or "")  # counters beside it would tell no shader
    shown_text = " ".join(text_of_report(report).split())
    assert (
        "3 shaders compiled for the process. Time by shader is not known: it was recorded with Shader"
        in shown_text
    )
    assert "copyInteractionCounts (45)" in shown_text


def test_timed_shaders_of_the_process_are_summed_up_by_name():
    rows = [
        shader("gemm (45)"),
        shader("gemm (45)", 5),
        shader("silu (3)", 20, 30),
        shader("blur", 0, 99, SCREEN),
    ]
    report = read({INTERVALS: [work(0, 60)], SHADERS: rows})
    assert [(one.name, one.count, one.seconds) for one in report.metal.shaders] == [
        ("silu (3)", 1, pytest.approx(30 * SEC)),
        ("gemm (45)", 2, pytest.approx(20 * SEC)),
    ]
    assert SHADERS not in [one.what for one in report.metal.absent]
    assert "silu (3) takes 60.0 %" in " ".join(text_of_report(report).split())


def test_the_m1s_recording_says_why_no_shader_has_a_time():
    why = absent(read_exports(RECORDED / "m1"), SHADERS)
    assert "Shader Timeline: Disabled" in spoken(why.reason)
    enabled = run(("Shader Timeline: Enabled",), schemas=[SHADERS])
    assert "has no rows" in spoken(
        absent(read({INTERVALS: [work(0, 1)], SHADERS: []}, contents=enabled), SHADERS).reason
    )


def text_of_report(report):
    return run_text(
        judge_document(metal_documents.report(report.metal), targets_for("mps")), color=False, width=120
    )
