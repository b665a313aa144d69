"""Exports of Instruments on a time line: each interval on the track of its process and channel, none overlapping."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from profkit.analysis.timeline.trace_events import TraceMark, mark_events
from profkit.core.errors import UnreadableReport, UsageError
from tests.conftest import ROOT
from tests.reporting.test_exports import check_events, exported
from tests.xctrace_tables import Spec, export, node, number

M1 = ROOT / "tests" / "data" / "xctrace" / "m1"


def tracks(document: Any) -> dict[tuple[int, int], str]:
    """`process: track` by its numbers."""
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"] if e["ph"] == "M"}
    return {place: f"{named[place[0], 0]}: {name}" for place, name in named.items() if place[1]}


def rows(table: str) -> int:
    return len(list(ElementTree.parse(M1 / f"{table}.xml").getroot().iter("row")))


def test_every_row_with_a_time_is_a_slice() -> None:
    counted = Counter(one["cat"] for one in check_events(exported(M1)))
    assert counted["gpu"] == rows("metal-gpu-intervals")
    assert counted["encoder"] == rows("metal-application-encoders-list")
    assert counted["driver"] == rows("metal-driver-intervals")
    assert counted["sample"] == rows("time-profile")
    states = ElementTree.parse(M1 / "metal-gpu-state-intervals.xml").getroot()
    assert 0 < counted["state"] < len(list(states.iter("row")))  # idle is no slice


def test_work_on_the_gpu_stands_by_process_and_channel_under_the_name_of_its_encoder() -> None:
    document = exported(M1)
    found = tracks(document)
    work = [one for one in check_events(document) if one["cat"] == "gpu"]
    named = Counter((found[one["pid"], one["tid"]], one["name"]) for one in work)
    assert named["GPU M1: metal_probe (17804): Compute", "Compute Command 0"] > 80
    assert any(track.startswith("GPU M1: Terminal (") for track, _ in named)
    first = min((one for one in work if "Compute Command" in one["name"]), key=lambda one: one["ts"])
    assert first["args"]["encoder id"].startswith("0x")
    assert first["args"]["state"] == "Active"


def test_a_command_buffer_lasts_from_what_began_it_to_its_completion() -> None:
    document = exported(M1)
    buffers = [one for one in check_events(document) if one["cat"] == "buffer"]
    encoders = {one["ts"] for one in check_events(document) if one["cat"] == "encoder"}
    assert buffers
    assert all(one["ts"] in encoders and one["args"]["begins"] == "from its first encoder" for one in buffers)


def test_a_sample_names_what_ran_with_its_callers() -> None:
    samples = [one for one in check_events(exported(M1)) if one["cat"] == "sample"]
    assert max(len(one.get("args", {}).get("stack", "").splitlines()) for one in samples) > 3
    assert all(one["dur"] <= 1000 for one in samples)


def test_a_whole_recording_has_the_intervals_that_it_is_known_to_have(fixtures: Path) -> None:
    document = exported(fixtures / "xctrace" / "m1-metal-system-trace")
    found = tracks(document)
    own = [
        one
        for one in check_events(document)
        if one["cat"] == "gpu" and found[one["pid"], one["tid"]].endswith("(17804): Compute")
    ]
    assert len(own) == 1001
    assert sum(one["dur"] for one in own) == pytest.approx(Decimal("8260"), rel=Decimal("0.01"))


def test_marks_in_any_order_nest_on_their_tracks() -> None:
    source = random.Random(7)
    starts = [source.randrange(10**6) for _ in range(20_000)]
    marks = [TraceMark(at, at + source.randrange(500), "p", "t", "x", "gpu") for at in starts]
    document = json.loads("".join(mark_events(marks, "xctrace")), parse_float=Decimal)
    assert len(check_events(document)) == len(marks)


def test_names_that_are_more_than_names_stay_names() -> None:
    told = '</script>"\n\ud800' + "x" * 500
    document = json.loads(
        "".join(mark_events([TraceMark(0, 1, told, told, told, "gpu", {told: told})], "xctrace"))
    )
    assert len(document["traceEvents"][0]["name"]) <= 200
    assert "\ud800" not in document["traceEvents"][0]["args"].popitem()[1]


@pytest.mark.parametrize("name", ["toc.xml", "metal-shader-profiler-intervals.xml"])
def test_what_has_no_times_says_so(name: str) -> None:
    with pytest.raises((UsageError, UnreadableReport), match=r"no times|no table with times") as caught:
        exported(M1 / name)
    assert caught.value.fix


def test_a_table_that_is_cut_off_is_told(tmp_path: Path) -> None:
    whole = (M1 / "metal-gpu-intervals.xml").read_bytes()
    (tmp_path / "cut.xml").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableReport, match="cut off"):
        exported(tmp_path / "cut.xml")


def test_stacks_of_instruments_are_a_file_for_speedscope() -> None:
    from profkit.core.progress import Silent
    from profkit.profiling.summarize import read_judged
    from profkit.reporting.exports import find_sources, stack_pieces

    told = json.loads("".join(stack_pieces(find_sources(M1), lambda: read_judged(M1), Silent())))
    names = [profile["name"] for profile in told["profiles"]]
    assert any(profile["unit"] == "seconds" and len(profile["samples"]) > 1 for profile in told["profiles"])
    assert not any("kernel" in name for name in names)


def test_a_document_is_exported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from profkit.profiling.export import ExportOptions
    from profkit.profiling.export import export as made

    stand_in = ROOT / "tests" / "stand_ins" / "xctrace" / "xctrace"
    monkeypatch.setenv("PROFKIT_XCTRACE", str(stand_in))
    document = tmp_path / "run.trace"
    words = (
        "--template",
        "Metal System Trace",
        "--output",
        str(document),
        "--launch",
        "--",
        "/bin/sleep",
        "0",
    )
    subprocess.run([str(stand_in), "record", *words], check=True, capture_output=True)
    told = "".join(made(ExportOptions((document,), "perfetto")).pieces)
    assert Counter(one["cat"] for one in check_events(json.loads(told, parse_float=Decimal)))["encoder"] > 10
    assert "CPU" in "".join(made(ExportOptions((document,), "speedscope")).pieces)


def test_the_region_that_counts_stands_where_the_clock_of_the_recording_puts_it(tmp_path: Path) -> None:
    from profkit.core.run_folder import write_run
    from profkit.runtime.region.record import RegionRecord, RegionTimes, encode_record
    from tests import metal_documents

    run = tmp_path / "run"
    write_run(run, metal_documents.run())
    exports = run / "artifacts" / "trace.xctrace"
    shutil.copytree(M1, exports)
    epoch, at, length = 10**12, 870_000_000, 5_000_000
    columns = [("mabs-epoch", "mach-absolute-time"), ("timebase-info", "mach-timebase-info")]
    row = [number("mach-absolute-time", epoch), Spec("mach-timebase-info", "1/1", "1/1")]
    clock = export(node("time-info", columns, [row]))
    (exports / "time-info.xml").write_bytes(clock)
    begin = epoch + at
    record = RegionRecord(
        1, "trace", (RegionTimes("step", 1, 1, (0.005,)),), spans=((begin, begin + length),)
    )
    (run / "artifacts" / "trace.region.1.json").write_text(encode_record(record))
    (run / "artifacts" / "trace.region.2.json").write_text("{")
    (region,) = [one for one in check_events(exported(run)) if one["cat"] == "region"]
    assert (region["ts"], region["dur"]) == (Decimal(870_000), Decimal(5_000))


def test_a_sample_ends_where_the_next_of_its_thread_begins(tmp_path: Path) -> None:
    columns = [("time", "sample-time"), ("thread", "thread"), ("weight", "weight"), ("stack", "backtrace")]
    thread = Spec("thread", "", "Main Thread 0x7 (probe, pid: 9)", (number("tid", 7, "0x7"),))
    rows = [[number("sample-time", at), thread, number("weight", 1_000_000), None] for at in (0, 990_000)]
    (tmp_path / "samples.xml").write_bytes(export(node("time-profile", columns, rows)))
    document = exported(tmp_path / "samples.xml")
    assert [(one["ts"], one["dur"]) for one in check_events(document)] == [(0, 990), (990, 1000)]
    assert list(tracks(document).values()) == ["probe (9): CPU samples, Main Thread 0x7"]
