"""A time line that Perfetto takes, and stacks for speedscope."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.timeline.trace_events import Tracks, microseconds
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.progress import Silent
from profkit.core.run_folder import write_run
from profkit.profiling.summarize import read_judged
from profkit.reporting.exports import find_sources, stack_pieces, time_line_pieces
from tests import documents
from tests.conftest import ROOT

NSYS = ROOT / "tests" / "data" / "cuda" / "nsys"
TORCH = ROOT / "tests" / "data" / "cuda" / "torch"


def exported(path: Path) -> Any:
    text = "".join(time_line_pieces(find_sources(path), lambda: read_judged(path), Silent()))
    return json.loads(text, parse_float=Decimal)


def check_events(document: Any) -> list[dict[str, Any]]:
    """The slices of a document that is as the Trace Event Format says, and as Perfetto wants it."""
    events = document["traceEvents"]
    needed = {"X": {"name", "ts", "dur"}, "M": {"name", "args"}, "s": {"id", "ts"}, "f": {"id", "ts", "bp"}}
    for event in events:
        assert {"ph", "pid", "tid"} | needed[event["ph"]] <= set(event), event
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    tracks = defaultdict(list)
    for event in slices:
        tracks[event["pid"], event["tid"]].append((Decimal(event["ts"]), Decimal(event["dur"])))
    assert set(tracks) <= named
    for track in tracks.values():
        ends: list[Decimal] = []
        for start, length in sorted(track, key=lambda one: (one[0], -one[1])):
            assert length >= 0
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start + length <= ends[-1], "slices overlap on one track"
            ends.append(start + length)
    return slices


@pytest.mark.parametrize("name", ["hostbound.sqlite", "graphs.node.sqlite", "graphs.graph.sqlite"])
def test_every_kernel_copy_call_and_range_of_nsys_is_a_slice(name: str) -> None:
    slices = check_events(exported(NSYS / name))
    with closing(sqlite3.connect(NSYS / name)) as base:
        tables = {row[0] for row in base.execute("SELECT name FROM sqlite_master")}
        wanted = {
            "gpu": ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"),
            "cuda": ("RUNTIME",),
        }
        for category, kinds in wanted.items():
            names = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in kinds]
            rows = sum(base.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for n in names if n in tables)
            assert sum(s["cat"] == category for s in slices) == rows


def test_a_kernel_keeps_its_nanoseconds_its_shape_and_its_launch() -> None:
    document = exported(NSYS / "truths.sqlite")
    with closing(sqlite3.connect(NSYS / "truths.sqlite")) as base:
        start, end, grid, block, key = base.execute(
            "SELECT start, end, gridX, blockX, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start"
        ).fetchone()
    kernels = [e for e in check_events(document) if e["cat"] == "gpu" and "grid" in e.get("args", {})]
    first = min(kernels, key=lambda event: event["ts"])
    assert first["ts"] == Decimal(start) / 1000
    assert first["dur"] == Decimal(end - start) / 1000
    assert first["args"]["grid"].startswith(f"{grid}x")
    assert first["args"]["block"].startswith(f"{block}x")
    assert "whole name" in first["args"]
    arrows = [e for e in document["traceEvents"] if e["ph"] in "sf" and int(e["id"], 16) & 0xFFFFFFFF == key]
    assert sorted(e["ph"] for e in arrows) == ["f", "s"]


def test_torchs_own_trace_is_given_as_it_is() -> None:
    import gzip

    path = TORCH / "torch.cuda.json.gz"
    text = "".join(time_line_pieces(find_sources(path), lambda: read_judged(path), Silent()))
    assert text.encode() == gzip.decompress(path.read_bytes())


def test_what_has_no_times_is_told_so_with_the_line_that_makes_some() -> None:
    path = ROOT / "tests" / "data" / "valgrind" / "kernels.l2.callgrind"
    with pytest.raises(UsageError, match="has no times to put on a line") as caught:
        exported(path)
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("profkit profile --backend cpu --passes timing,trace -- ")


def test_a_damaged_trace_is_refused_in_words(tmp_path: Path) -> None:
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes((NSYS / "hostbound.sqlite").read_bytes()[:30000])
    with pytest.raises(UnreadableReport):
        exported(cut)
    packed = tmp_path / "torch.json.gz"
    packed.write_bytes((TORCH / "torch.cuda.json.gz").read_bytes()[:4000])
    with pytest.raises(UnreadableReport, match="cut short"):
        exported(packed)


def test_slices_that_overlap_get_a_track_each_and_those_that_nest_share_one() -> None:
    tracks = Tracks()
    spans = [(0, 10), (2, 8), (3, 9), (8, 10), (10, 12), (11, 20)]
    assert [tracks.place(*span) for span in spans] == [0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("time", "text"),
    [(0, "0.000"), (999, "0.999"), (-1, "-0.001"), (-1500, "-1.500"), (2**62 + 1, "4611686018427387.905")],
)
def test_times_keep_all_their_digits(time: int, text: str) -> None:
    assert microseconds(time) == text


# ---------------------------------------------------------------- stacks


def stacks(path: Path) -> list[dict[str, Any]]:
    """The profiles of a document that is as speedscope's schema (file-format-schema.json of 1.25) says."""
    text = "".join(stack_pieces(find_sources(path), lambda: read_judged(path), Silent()))
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no number"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line", "col"} and frame["name"] for frame in frames)
    for profile in document["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
        assert all(0 <= number < len(frames) for stack in profile["samples"] for number in stack)
    profiles: list[dict[str, Any]] = document["profiles"]
    return profiles


def test_a_run_has_the_whole_stacks_of_its_artifacts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, documents.document())
    with pytest.raises(UsageError, match="no stacks and no kernels") as caught:
        stacks(run)
    assert "--passes stacks,trace" in str(caught.value.fix)
    (run / "artifacts").mkdir()
    text = (ROOT / "tests" / "data" / "perf" / "script.two-events.txt").read_text()
    (run / "artifacts" / "trace.script.txt").write_text(text)
    assert max(len(stack) for stack in stacks(run)[0]["samples"]) > 2


def test_gpu_time_stands_under_its_range() -> None:
    profile = stacks(NSYS / "hostbound.sqlite")[0]
    assert profile["name"] == "GPU time by range and kernel"
    assert profile["unit"] == "seconds"
