"""Exports and tables that nsys wrote on an H200, and what is known of the programs in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import GpuTrace, RunDocument
from profkit.profilers.nsys.sqlite import read_sqlite
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data" / "cuda" / "nsys"
TEXTS = DATA.parent / "texts"


def trace_of(path: Path) -> GpuTrace:
    trace = recognise_format(path).read(path).trace
    assert trace is not None
    return trace


def test_every_case_of_a_sweep_is_a_region_with_what_was_launched_in_it() -> None:
    trace = trace_of(DATA / "sweep.sqlite")
    assert trace.marked
    cases = {one.name: one for one in trace.ranges}
    assert sorted(cases) == [
        f"{name}: Swish forward float32 16x512x512" for name in ("CUDA", "PyTorch", "torch.compile")
    ]
    assert {one.domain for one in trace.ranges} == {"profkit"}
    of_case = {timed.kernel.name.split("<")[0].split("(")[0]: timed for timed in trace.kernels}
    assert of_case["swish"].ranges == ("CUDA: Swish forward float32 16x512x512",)
    assert of_case["triton_poi_fused_silu_0"].ranges == ("torch.compile: Swish forward float32 16x512x512",)
    assert sum(one.kernels for one in cases.values()) == sum(timed.launches for timed in trace.kernels)


def test_the_gated_mlp_has_its_two_configurations_and_its_region(reports: Path) -> None:
    report = read_sqlite(reports / "cuda" / "h200.gated_mlp.nsys.sqlite")
    trace = report.trace
    assert trace is not None
    gemm, silu = trace.kernels
    assert (gemm.kernel.name[:6], gemm.launches, gemm.kernel.id) == ("nvjet_", 40, "2x66x1 of 384x1x1")
    assert (silu.kernel.name, silu.launches) == ("silu_mul", 20)
    assert trace.marked
    assert gemm.total + silu.total == pytest.approx(7.434660e-3)
    # By hand from the tables: the range's own ends, and kernels with memsets, none of which overlap.
    assert trace.span == pytest.approx((18701895 - 10678604) * 1e-9)
    assert trace.busy == pytest.approx(7.434660e-3 + 3.744e-5)
    assert [(t.kind, t.count, t.bytes) for t in trace.transfers] == [("memset", 40, 160)]
    assert trace.launch_call == pytest.approx(5.236e-6)
    assert gemm.ranges[0] == "measure"
    assert len([r for r in trace.ranges if r.name.startswith("iter") and r.kernels == 3]) == 20
    assert (report.version, report.facts["driver"], report.facts["CUDA"]) == (
        "2025.3.2.0",
        "580.159.04",
        "13.0",
    )
    (gpu,) = report.gpus
    assert (gpu.name, gpu.chip, gpu.capability, gpu.multiprocessors) == (
        "NVIDIA H200",
        "GH100",
        "9.0",
        132,
    )
    assert gpu.bandwidth == pytest.approx(4.814e12, rel=1e-3)


def test_a_host_bound_loop_waits_for_its_host() -> None:
    trace = trace_of(DATA / "hostbound.sqlite")
    assert trace.launches == 2010
    assert trace.span is not None
    assert trace.busy is not None
    assert trace.busy / trace.span < 0.05  # it sleeps 300 µs in each step, which has 9 µs of kernels
    assert trace.starved is not None
    assert trace.starved > 0.8
    assert trace.launch_latency == pytest.approx(6e-6, rel=0.1)
    (step,) = trace.ranges
    assert (step.name, step.entries, step.kernels) == ("step", 200, 2010)
    assert {t.kind: t.count for t in trace.transfers} == {
        "host to device": 10,
        "device to host": 10,
        "memset": 10,
    }
    assert {t.kind: t.bytes for t in trace.transfers}["host to device"] == 10 * 4 * (1 << 22)


def test_fifty_replays_of_a_graph_are_the_workload_whichever_way_they_were_traced() -> None:
    nodes, wholes = trace_of(DATA / "graphs.node.sqlite"), trace_of(DATA / "graphs.graph.sqlite")
    assert (nodes.repeats, wholes.repeats) == (50, 50)
    assert [k.launches for k in nodes.kernels] == [50, 50, 50]
    assert all(k.graph and k.setup_launches == 3 for k in nodes.kernels)
    assert wholes.kernels == ()
    assert nodes.busy == pytest.approx(wholes.busy, rel=0.05)
    warnings = spoken_lines(read_sqlite(DATA / "graphs.graph.sqlite").warnings)
    assert any("50 launches of CUDA graphs" in w and "--cuda-graph-trace=node" in w for w in warnings)


def test_the_tables_of_nsys_stats_agree_with_the_export_they_were_made_of(tmp_path: Path) -> None:
    export = trace_of(DATA / "hostbound.sqlite")
    text = tmp_path / "all.csv"
    reports = ("cuda_gpu_kern_gb_sum", "cuda_api_sum")
    text.write_text("".join(f"\nProcessing [x.sqlite] with [/opt/reports/{name}.py]... \n"
                            + (DATA / "stats" / f"hostbound_{name}.csv").read_text() for name in reports))  # fmt: skip
    tables = trace_of(text)
    assert [(k.kernel.name, k.kernel.id, k.launches) for k in tables.kernels] == [
        (k.kernel.name, k.kernel.id, k.launches) for k in export.kernels
    ]
    for table, exported in zip(tables.kernels, export.kernels, strict=True):
        assert table.total == pytest.approx(exported.total)
        assert table.median == pytest.approx(exported.median)
    assert tables.launch_call == pytest.approx(export.launch_call)
    calls = {call.name: call.calls for call in tables.api}
    del calls["cuProfilerStart"]  # it is where the part that counts begins
    assert calls == {call.name: call.calls for call in export.api}


def test_nsys_stats_that_found_nothing_is_an_error_though_it_ended_with_0() -> None:
    with pytest.raises(UnreadableReport, match="no CSV table of nsys stats"):
        trace_of(TEXTS / "stats.nocuda.stdout.txt")


DATA_2 = Path(__file__).parents[2] / "data" / "cuda" / "nsys" / "operations.sqlite"
FORWARD = "aten::mm [4096,768] x [768,50257]"


@cache
def document() -> RunDocument:
    return summarize_report(DATA_2)


def trace() -> GpuTrace:
    found = document().trace
    assert found is not None
    return found


def test_each_kernel_has_its_innermost_operation_and_a_backward_kernel_its_forward_one() -> None:
    assert [(time.operation, time.backward_of) for time in trace().kernels[:3]] == [
        (FORWARD, None),
        ("aten::mm [4096,50257] x [50257,768]", FORWARD),
        ("aten::mm [50257,4096] x [4096,768]", FORWARD),
    ]
    pairs = {(time.operation or "").split()[0]: (time.backward_of or "").split() for time in trace().kernels}
    assert pairs["aten::_log_softmax_backward_data"][0] == "aten::_log_softmax"
    assert pairs["aten::native_layer_norm_backward"][0] == "aten::native_layer_norm"
    assert all(time.operation is not None for time in trace().kernels)


def test_the_odd_dimension_is_read_off_the_shapes() -> None:
    (found,) = [one for one in document().insights if one.rule == "unaligned-matrix-product"]
    assert found.title == "Pad the dimension of 50,257 to 50,304"
    assert found.where.operation == FORWARD
