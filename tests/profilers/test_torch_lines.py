"""A window of torch's own profiler: which operations take a line's time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.account import make_account
from profkit.core.types import (
    BACKWARD_NODES,
    OPERATIONS_MADE,
    CodeSpot,
    Hotspot,
    Peaks,
    Place,
    Profile,
    RunDocument,
    SampleSet,
    Scope,
    Timing,
)
from profkit.profilers.host.torch_lines import read_torch_lines
from profkit.runtime.passes.command import start_up_environment
from tests import documents


def event(category: str, name: str, start: float, length: float, **args: object) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": length,
        "args": args,
    }


FLOAT = {"Input Dims": [[64, 128], [128, 32]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}


def test_operations_belong_to_the_line_around_them_and_not_to_each_other(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    events = [
        event("user_annotation", "profkit-at /app/net.py:7:Net.forward", 0, 100),
        event("cpu_op", "aten::matmul", 10, 60, **FLOAT),
        event("cpu_op", "aten::mm", 15, 50, **FLOAT),
        event("cpu_op", "aten::relu", 75, 20, **{"Input Dims": [[64, 32]], "Input type": ["float"]}),
        event("cpu_op", "aten::mm", 200, 50, **FLOAT),  # of no line
    ]
    trace.write_text(json.dumps({"traceEvents": events}))
    profile = read_torch_lines(trace)
    assert profile is not None
    rows = {one.function: one for one in profile.hotspots}
    assert set(rows) == {"Net.forward", "matmul", "relu"}
    assert rows["Net.forward"].own == pytest.approx(100e-6)
    assert (rows["matmul"].own, rows["matmul"].calls) == (pytest.approx(60e-6), 1)
    assert rows["matmul"].shapes == "[64,128] x [128,32] fp32"
    assert rows["matmul"].counters["flop_fp32"] == 2 * 64 * 128 * 32  # once, not for each of the two


def steps(again: int) -> list[dict[str, object]]:
    """Ten steps, whose backward pass goes `again` times through the nodes of three operations each."""
    events = []
    for step in range(10):
        at = 1000.0 * step
        events.append(event("user_annotation", "profkit-at /app/net.py:7:Net.forward", at, 100))
        events += [
            event("cpu_op", f"aten::{name}", at + 10 * n, 5)
            for n, name in enumerate(("addmm", "tanh", "mul"))
        ]
        events.append(event("user_annotation", "profkit-at /app/net.py:9:train", at + 200, 700))
        for n in range(again):
            for k, name in enumerate(("Addmm", "Tanh", "Mul")):
                node = f"autograd::engine::evaluate_function: {name}Backward0"
                events.append(event("cpu_op", node, at + 210 + 30 * n + 10 * k, 5))
    return events


@pytest.mark.parametrize(("again", "counted"), [(1, {}), (4, {BACKWARD_NODES: 120.0, OPERATIONS_MADE: 30.0})])
def test_nodes_of_a_backward_pass_are_counted_where_they_are_more_than_operations(
    tmp_path: Path, again: int, counted: dict[str, float]
) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": steps(again)}))
    profile = read_torch_lines(trace)
    assert profile is not None
    assert [dict(one.counters) for one in profile.hotspots if one.function == "train"] == [counted]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"traceEvents": 3}', '{"traceEvents": [1, {"ph": "X"}]}', "[" * 9999]
)
def test_half_a_trace_is_no_operation(tmp_path: Path, text: str) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(text)
    assert read_torch_lines(trace) is None


def with_operations(flop: float) -> RunDocument:
    place = Place(function="step", file="/app/net.py", line=7)
    lines = (
        Hotspot("step", 1.0, 1.0, file="/app/net.py", line=7),
        Hotspot(
            "mm", 0.8, calls=10, file="/app/net.py", line=7, shapes="[8,8] fp32", counters={"flop_fp32": flop}
        ),
        Hotspot("silu", 0.15, calls=10, file="/app/net.py", line=7),
    )
    spots = (CodeSpot(0.9, 9.0, "python", place), CodeSpot(0.1, 1.0, "rest"))
    profile = Profile("operations by line", "s", 1.0, lines, "line-operators")
    peaks = Peaks(None, None, None, 1e9, 2, "numpy")
    return replace(documents.empty(), hot_spots=spots, profiles=(profile,), peaks=peaks)


def test_a_line_is_divided_by_its_operations_and_the_rows_add_up() -> None:
    account = make_account(with_operations(0.4e9))
    assert account is not None
    assert account.unit == "run"
    assert [round(row.seconds, 2) for row in account.rows] == [7.2, 1.35, 0.45, 1.0]
    assert sum(row.seconds for row in account.rows) == pytest.approx(account.seconds)
    product = account.rows[0]
    assert (product.what, product.limit) == ("mm [8,8] fp32", "fp32")
    assert product.busy == pytest.approx(0.5)
    assert product.least == pytest.approx(3.6)


def test_what_is_beyond_a_peak_has_no_limit() -> None:
    account = make_account(with_operations(4e9))
    assert account is not None
    assert account.rows[0].limit is None


def test_a_call_that_took_longer_than_all_of_a_step_tells_no_limit() -> None:
    """The window held the first calls alone, which start threads: 0.08 s each, of a place that has 0.024 s."""
    document = with_operations(0.04e9)
    first, *others = document.hot_spots
    short = replace(document, hot_spots=(replace(first, seconds=0.03), *others))
    assert _rows_with_limit(document) == ["mm [8,8] fp32"]
    assert _rows_with_limit(short) == []


def _rows_with_limit(document: RunDocument) -> list[str]:
    account = make_account(document)
    assert account is not None
    return [row.what for row in account.rows if row.limit is not None]


@pytest.mark.thorough
def test_a_real_program_leaves_its_operations_by_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "net.py"
    script.write_text(
        "import time, torch\nfrom torch.nn.functional import silu\na = torch.randn(256, 256)\n"
        "end = time.monotonic() + 3\nwhile time.monotonic() < end:\n    b = silu(a @ a)\n"
        "    c = torch.exp(b * 0.001)\nprint('done')\n"
    )
    env, _ = start_up_environment([sys.executable, "net.py"], "stacks", tmp_path / "stacks.jsonl")
    assert env is not None
    env = {**os.environ, **env, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n"
    profile = read_torch_lines(tmp_path / "stacks.operations.json")
    assert profile is not None
    found = {(one.line, one.function) for one in profile.hotspots}
    assert {(6, "matmul"), (6, "silu"), (7, "exp"), (7, "mul")} <= found
    product = next(one for one in profile.hotspots if one.function == "matmul")
    assert product.counters["flop_fp32"] == (product.calls or 0) * 2 * 256**3


def test_calls_of_one_unit_are_counted_between_the_marks(tmp_path: Path) -> None:
    """Three iterations of two products each; the window opened and closed in the middle of others."""
    events = [event("user_annotation", "profkit-unit entry", -50, 1)]
    for at in (0, 1000, 2000, 3000):
        events += [
            event("user_annotation", "profkit-unit iteration", at, 1),
            event("user_annotation", "profkit-at /app/net.py:7:step", at + 100, 300),
            event("cpu_op", "aten::mm", at + 110, 60, **FLOAT),
            event("cpu_op", "aten::mm", at + 210, 60, **FLOAT),
        ]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    profile = read_torch_lines(trace)
    assert profile is not None
    (product,) = [one for one in profile.hotspots if one.function == "mm"]
    assert (product.calls, product.counters["calls_per_unit"]) == (8, 2)


@pytest.mark.parametrize(("each", "busy"), [(None, None), (1.0, 0.5), (3.0, None)])
def test_a_limit_is_that_of_the_steady_step_where_the_profiler_saw_slower_calls(
    each: float | None, busy: float | None
) -> None:
    """Ten calls took 0.8 s in the profiler; a step has 7.2 ms for one of 3.6 MFLOP at 1 GFLOP/s.

    Three such calls in a step have no limit: they would need more than it takes.
    """
    before = with_operations(36e6)
    (profile,) = before.profiles
    line, product, *others = profile.hotspots
    counters = {"flop_fp32": 36e6} | ({"calls_per_unit": each} if each else {})
    operations = (line, replace(product, counters=counters), *others)
    document = replace(
        before,
        profiles=(replace(profile, hotspots=operations),),
        timings=(Timing("step", "benchmark", (SampleSet((0.01,), 100),), None),),
        readings=(documents.reading("time.median", 0.01, "s", scope=Scope("region", "step"), tool="timing"),),
    )
    account = make_account(document)
    assert account is not None
    assert account.unit == "call"
    row = account.rows[0]
    assert (row.what, row.seconds) == ("mm [8,8] fp32", pytest.approx(0.0072))
    assert row.busy == (pytest.approx(busy) if busy else None)


def test_a_backward_pass_has_its_operations_and_not_the_nodes_around_them(tmp_path: Path) -> None:
    node = "ConvolutionBackward0"
    events = [
        event("user_annotation", "profkit-at /app/net.py:9:train", 0, 900),
        event("cpu_op", f"autograd::engine::evaluate_function: {node}", 10, 800),
        event("cpu_op", node, 12, 790),
        event("cpu_op", "aten::convolution_backward", 15, 700, **FLOAT),
        event("cpu_op", "aten::mkldnn_convolution_backward", 20, 600, **FLOAT),
    ]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    profile = read_torch_lines(trace)
    assert profile is not None
    rows = {one.function: one.own for one in profile.hotspots}
    assert rows == {"train": pytest.approx(900e-6), "convolution_backward": pytest.approx(700e-6)}
