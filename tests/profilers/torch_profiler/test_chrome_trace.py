"""Chrome traces of torch.profiler: recorded on an H200 and here, of other versions, cut short, and no traces at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data" / "cuda" / "torch"
NS = 1e-9
US = 1e-6


def read(path: Path) -> Report:
    found = recognise_format(path)
    assert found.name == "torch-chrome-trace"
    return found.read(path)


def event(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, key: int, **more: Any) -> dict[str, Any]:
    shape = {"device": 0, "stream": 7, "correlation": key, "grid": [8, 2, 1], "block": [128, 1, 1],
             "registers per thread": 32, "shared memory": 64, "est. achieved occupancy %": 42}  # fmt: skip
    return event("kernel", name, ts, dur, **{**shape, **more})


def call(name: str, ts: float, dur: float, key: int) -> dict[str, Any]:
    return event("cuda_runtime", name, ts, dur, correlation=key, cbid=211)


def trace(tmp_path: Path, events: list[Any], **top: Any) -> Path:
    path = tmp_path / "a trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], **top, "traceEvents": events}))
    return path


def ordinary() -> list[dict[str, Any]]:
    """Four steps of a kernel of 2 µs, each launched 5 µs before it begins."""
    found = []
    for n in range(4):
        found += [call("cudaLaunchKernel", 100.0 * n, 3.5, n), kernel("void f<int>()", 100.0 * n + 5, 2.0, n)]
    return found


@pytest.mark.parametrize("name", ["torch.both.json.gz", "torch.cuda.json.gz"])
def test_twenty_steps_of_two_products_silu_and_mul(name: str) -> None:
    report = read(DATA / name)
    found = report.trace
    assert found is not None
    assert (found.repeats, [k.launches for k in found.kernels]) == (20, [40, 20, 20])
    gemm = found.kernels[0]
    assert (gemm.kernel.id, gemm.kernel.registers, gemm.kernel.shared) == ("2x66x1 of 384x1x1", 168, 213188)
    assert gemm.median == pytest.approx(172.4e-6, rel=0.01)
    assert found.busy is not None
    assert found.span is not None
    assert 0.95 < found.busy / found.span < 1
    (gpu,) = report.gpus
    assert (gpu.name, gpu.capability, gpu.multiprocessors) == ("NVIDIA H200", "9.0", 132)
    assert report.facts["CUDA"] == "13.0"
    with_annotations = "both" in name
    assert [(r.name, r.entries, r.kernels) for r in found.ranges] == (
        [("step", 20, 80)] if with_annotations else []
    )


def test_times_of_microseconds_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    begin = 1_790_857_026_000_000
    found = read(trace(tmp_path, [kernel("f", begin + n, 0.5, n) for n in (1, 3, 5, 7)])).trace
    assert found is not None
    assert found.busy == pytest.approx(2000 * NS)
    assert found.span == pytest.approx(6500 * NS)


def test_a_region_that_profkit_marked_restricts_the_trace(tmp_path: Path) -> None:
    region = event("user_annotation", "mlp", 95, 120, domain="profkit")
    found = read(trace(tmp_path, [*ordinary(), region])).trace
    assert found is not None
    assert (found.marked, found.launches, found.kernels[0].ranges) == (True, 2, ("mlp",))
    assert found.span == pytest.approx(120_000 * NS)
    assert found.setup_seconds == pytest.approx(2000 * NS)


def test_kernels_of_one_graph_launch_are_its_nodes(tmp_path: Path) -> None:
    events = []
    for n in range(5):
        events.append(call("cudaGraphLaunch", 100.0 * n, 4, n))
        events += [kernel(f"node{k}", 100.0 * n + 10 + 3 * k, 2, n) for k in range(3)]
    found = read(trace(tmp_path, events)).trace
    assert found is not None
    assert (found.repeats, found.launches) == (5, 15)
    assert all(k.graph for k in found.kernels)
    assert found.launch_latency == pytest.approx(10_000 * NS)


def test_a_trace_of_the_cpu_alone_says_so(tmp_path: Path) -> None:
    path = trace(tmp_path, [event("cpu_op", "aten::matmul", 0, 10), event("cpu_op", "aten::mm", 2, 6)])
    document = summarize_report(path)
    assert document.backend == "cpu"
    assert document.verdicts == () or {v.verdict for v in document.verdicts} <= {"not-applicable"}
    assert "2 operators of the CPU and no kernel: only the CPU was traced" in spoken_lines(document.notes)[-1]


@pytest.mark.torch
def test_what_this_torch_exports_is_read(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        torch.ones(64, 64) @ torch.ones(64, 64)
    plain, packed = tmp_path / "plain.json", tmp_path / "packed"
    profiler.export_chrome_trace(str(plain))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        report = read(path)
        assert "operators of the CPU and no kernel" in spoken_lines(report.warnings)[0]
        assert "record_shapes" in report.facts["recorded with"]


@pytest.mark.parametrize("share", [0.4, 0.6, 0.95])
@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_that_was_cut_short_is_read_as_far_as_it_goes(
    tmp_path: Path, share: float, packed: bool
) -> None:
    whole = trace(tmp_path, ordinary() * 200).read_bytes()
    data = gzip.compress(whole) if packed else whole
    path = tmp_path / "cut"
    path.write_bytes(data[: int(len(data) * share)])
    report = read(path)
    assert report.trace is not None
    assert 0 < report.trace.launches < 800
    assert any("cut off" in warning for warning in spoken_lines(report.warnings))


def test_a_step_holds_what_any_thread_launches(tmp_path: Path) -> None:
    backward = [{**call("cudaLaunchKernel", 20, 3, 9), "tid": 8}, kernel("backward", 30, 5, 9)]
    inside = event("user_annotation", "forward", 0, 50)
    step = event("user_annotation", "ProfilerStep#0", 0, 90)
    found = read(trace(tmp_path, [step, inside, *ordinary()[:2], *backward])).trace
    assert found is not None
    assert {r.name: r.kernels for r in found.ranges} == {"ProfilerStep": 2, "forward": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}',
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": {}}',
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ',
        '{"schemaVersion": 1, "trace_id": "x", "other": ' + "[" * 100_000,
    ],
)
def test_a_trace_without_events_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "none.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport) as caught:
        read(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    "text", ['{"schema": "profkit.run/6", "traceEvents": 3}', "[1, 2, 3]", '{"traceEvents": [{"name": "x"}]}']
)
def test_other_json_is_not_taken_for_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport):
        recognise_format(path)
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(UnreadableReport):
        recognise_format(path)


def test_operations_beyond_those_that_are_looked_at_are_told_and_cost_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profkit.profilers.chrome.torch_profiler.MAX_RANGES", 3)
    calls = [event("cpu_op", "aten::add", 100.0 * n - 1, 5.0, **{"Input Dims": [[8]]}) for n in range(1, 5)]
    few = read(trace(tmp_path, [*calls[:3], *ordinary()]))
    assert not any("were read" in line for line in spoken_lines(few.warnings))
    many = read(trace(tmp_path, [*calls, *ordinary()]))
    (told,) = [line for line in spoken_lines(many.warnings) if "were read" in line]
    assert told.startswith("only the first 3 operations and ranges")
    assert many.trace is not None
    assert sum(one.launches for one in many.trace.kernels) == 4


def test_a_trace_with_a_device_makes_no_table_of_operators_and_so_says_nothing_of_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profkit.profilers.chrome.torch_operators.MAX_EVENTS", 2)
    calls = [event("cpu_op", "aten::add", 100.0 * n - 1, 5.0) for n in range(1, 5)]
    report = read(trace(tmp_path, [*calls, *ordinary()]))
    assert not any("table of operators" in line for line in spoken_lines(report.warnings))
    alone = read(trace(tmp_path, calls))
    assert any("table of operators" in line for line in spoken_lines(alone.warnings))
