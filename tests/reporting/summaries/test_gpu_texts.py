"""A GPU's run and reports of it, summed up: timeline, kernels by concern, what is not known, and the cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.gpu import trace_readings
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.roofline import place_kernel
from profkit.backends.cuda import CUDA
from profkit.core.types import RUN, GpuTrace
from profkit.profiling.summarize import enrich_document as enrich
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.views.summaries import concern_sections
from tests import gpu_documents as gpu
from tests.reporting.shown import cells_of as cells
from tests.reporting.shown import notes_of, rows_of, table_of
from tests.reporting.shown import sections_of as summed
from tests.spoken import message, spoken

# ---------------------------------------------------------------- concerns


def test_a_report_has_the_concerns_that_it_speaks_of_and_a_run_all() -> None:
    assert list(summed(gpu.of_trace())) == ["kernels", "gpu", "unknown"]
    counters = [
        "kernels",
        "occupancy",
        "bandwidth",
        "access",
        "execution",
        "arithmetic",
        "stalls",
        "unknown",
    ]
    assert list(summed(gpu.of_counters())) == counters
    assert set(summed(gpu.run())) == {"time", "gpu", *counters, "python", "memory"}


# ---------------------------------------------------------------- the timeline


def test_what_a_trace_tells_of_the_run() -> None:
    told = {r.metric: (r.value, r.unit) for r in trace_readings(gpu.trace(), CUDA.tool_lines)}
    assert told == {
        "gpu.utilization": (pytest.approx(90.0), "%"),
        "time.gpu": (pytest.approx(8.3e-3), "s"),
        "time.gpu.idle": (pytest.approx(1e-3), "s"),
        "gpu.starved": (pytest.approx(80.0), "%"),
        "launch.latency": (6e-6, "s"),
        "launch.count": (80.0, "count"),
        "transfer.bytes": (float(160 << 20), "B"),  # what is set is not copied
        "transfer.seconds": (pytest.approx(3e-3), "s"),
    }
    assert {r.scope for r in trace_readings(gpu.trace(), CUDA.tool_lines)} == {RUN}


HOST = replace(gpu.trace(), busy=2e-3, starved=0.9)
UNTOLD = replace(gpu.trace(), busy=2e-3, starved=None)
QUEUED = replace(gpu.trace(), busy=2e-3, starved=0.1)
COPYING = replace(gpu.trace(), copying=5e-3)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (HOST, "The GPU is busy 20.0 % of 10.0 ms. Host-bound: 72.0 % of the time"),
        (QUEUED, "72.0 % of the time it waits although work is queued"),
        (UNTOLD, "80.0 % of the time it is idle; what it waits for is not in the report"),
        (COPYING, "For 50.0 % of the time it only copies."),
        (gpu.trace(), "The GPU is busy 90.0 % of 10.0 ms."),
    ],
)
def test_the_headline_names_the_largest_wait(trace: GpuTrace, words: str) -> None:
    assert words in summed(gpu.report(trace=trace))["gpu"].headline


def test_the_timeline_shows_idle_copies_ranges_and_the_host() -> None:
    summary = summed(gpu.of_trace())["gpu"]
    rows = dict(rows_of(summary, "Timeline"))
    assert (rows["GPU utilization"], rows["Longest gap"]) == ("90.0 %", "200 µs")
    assert "1.00 ms" in rows.values()
    assert "80.0 %" in rows.values()
    assert rows_of(summary, "Copies")[0] == ("host to device", "10", "160 MiB", "3.00 ms", "55.9 GB/s")
    assert rows_of(summary, "Marked ranges")[0][0] == "mlp"
    assert rows_of(summary, "The host's calls")[0] == ("cudaLaunchKernel", "80", "400 µs")


# ---------------------------------------------------------------- joining trace and counters


def test_a_kernel_that_two_tools_spell_differently_is_one_row() -> None:
    rows = kernel_rows(gpu.run())
    assert [row.scope for row in rows] == [gpu.GEMM.scope, gpu.ADD.scope, gpu.SMALL.scope]
    assert rows[1].value("memory.coalescing") == 33.0
    assert rows[2].readings == {}  # the same name in another shape is another kernel


def test_a_join_that_is_not_certain_is_none() -> None:
    twin = replace(gpu.ADD_NCU, name=gpu.ADD_NCU.name.replace("float>,", "float> ,"))
    document = gpu.report(
        trace=gpu.trace(), readings=(*gpu.readings(), gpu.told(twin, "occupancy.achieved", 50.0))
    )
    rows = {row.scope: row for row in kernel_rows(document)}
    assert rows[gpu.ADD.scope].readings == {}
    assert {gpu.ADD_NCU.scope, twin.scope} <= set(rows)


def test_shares_are_of_all_kernels_and_labels_tell_shapes_apart() -> None:
    rows = kernel_rows(gpu.of_trace())
    assert sum(row.share or 0.0 for row in rows) == pytest.approx(1.0)
    assert rows[0].share == pytest.approx(7.0 / 8.3)
    assert all("of 128)" in row.label for row in rows[1:])
    assert len({row.label for row in rows}) == 3


# ---------------------------------------------------------------- kernels by concern


def test_the_table_of_kernels_has_what_decides() -> None:
    summary = summed(gpu.run())["kernels"]
    first = cells(summary, "Kernels by GPU time", 0)
    assert first["kernel"] == gpu.GEMM.name
    assert first["launches"] == "40"
    assert first["GPU time"] == "84.3 %"
    assert first["median"] == "175 µs"
    assert first["limited by"].startswith("tensor cores 95 %")
    assert (first["occupancy"], first["possible"]) == ("14.6 %", "18.8 %")
    assert first["limiter"] == "regs+shared"
    assert first["DRAM"] == "27.0 %"
    assert first["conflicts"] == "129 k"
    assert first["coalesced"] == "-"
    second = cells(summary, "Kernels by GPU time", 1)
    assert (second["limiter"], second["coalesced"]) == ("none", "33.0 %")


def test_the_roofline_of_a_kernel_holds_its_flops_against_the_lower_roof() -> None:
    document = enrich(gpu.run())
    share = {r.scope: r.value for r in document.readings if r.metric == "roofline.share"}
    assert share == {gpu.ADD_NCU.scope: pytest.approx(100 * 5.0e12 / (1.25 * 4.81e12))}
    row = cells(summed(gpu.run())["arithmetic"], "Arithmetic", 1)
    assert row["ceiling"] == "6.01 TFLOP/s"


def test_tensor_cores_have_a_roof_of_their_own_where_their_flops_were_counted() -> None:
    flops = (
        gpu.told(gpu.GEMM, "flops.tensor", 137.4e9, "FLOP"),
        gpu.told(gpu.GEMM, "time.kernel", 180e-6, "s"),
    )
    document = replace(gpu.run(), readings=(*gpu.readings(), *flops))
    (share,) = [
        r for r in enrich(document).readings if r.metric == "roofline.share" and r.scope == gpu.GEMM.scope
    ]
    assert (share.value, share.quality) == (pytest.approx(95.0), "estimated")
    row = cells(summed(document)["arithmetic"], "Arithmetic", 0)
    assert (row["FLOP/s"], row["ceiling"], row["of the ceiling"]) == ("763 TFLOP/s", "804 TFLOP/s", "95.0 %")
    assert "FLOP/s 763 TFLOP/s, tensor pipe" in summed(document)["arithmetic"].headline


@pytest.mark.parametrize(
    ("utilization", "tensor", "f16", "kind"),
    [
        (2.9, 0.0, 0.0, "f32"),  # the pipe is touched, its FLOPs are counted as none
        (2.9, None, 0.0, None),  # nobody counted them
        (60.0, 0.0, 0.0, None),  # types that the counter does not know
        (0.0, None, 5e11, "f32"),  # constants that a compiler loads by half-precision instructions
        (0.0, None, 6e13, "f16"),
    ],
)
def test_the_roof_is_that_of_the_arithmetic_that_is_done(
    utilization: float, tensor: float | None, f16: float, kind: str | None
) -> None:
    more = [
        gpu.told(gpu.SMALL, "tensor.utilization", utilization),
        gpu.told(gpu.SMALL, "flops.rate.f32", 4e11, "FLOP/s"),
        gpu.told(gpu.SMALL, "flops.peak.f32", 6e13, "FLOP/s"),
        gpu.told(gpu.SMALL, "flops.rate.f16", f16, "FLOP/s"),
        gpu.told(gpu.SMALL, "flops.peak.f16", 12e13, "FLOP/s"),
        gpu.told(gpu.SMALL, "bandwidth.dram", 1e12, "B/s"),
        gpu.told(gpu.SMALL, "bandwidth.dram.peak", 4.8e12, "B/s"),
    ]
    if tensor is not None:
        more.append(gpu.told(gpu.SMALL, "flops.tensor", tensor, "FLOP"))
    (row,) = kernel_rows(gpu.report(readings=tuple(more)))
    found = place_kernel(row)
    assert (found.kind if found is not None else None) == kind


def test_flops_of_tensor_cores_that_nobody_counted_make_no_roofline() -> None:
    flops = (
        gpu.told(gpu.GEMM, "flops.rate", 1.0e9, "FLOP/s"),
        gpu.told(gpu.GEMM, "flops.f32", 1.0e5, "FLOP"),
        gpu.told(gpu.GEMM, "flops.peak.f32", 6.0e13, "FLOP/s"),
        gpu.told(gpu.GEMM, "arithmetic_intensity", 0.001, "FLOP/B"),
    )
    document = replace(gpu.run(), readings=(*gpu.readings(), *flops))
    scopes = {r.scope for r in enrich(document).readings if r.metric == "roofline.share"}
    assert scopes == {gpu.ADD_NCU.scope}
    assert any("tensor cores are in no counter" in note for note in notes_of(summed(document)["arithmetic"]))


def test_stalls_are_shares_of_all_waiting_longest_first_and_explained() -> None:
    summary = summed(gpu.run())["stalls"]
    assert cells(summary, "What warps wait for", 0) == {
        "kernel": gpu.GEMM.name,
        "most": "long_scoreboard 60.0 %",
        "then": "barrier 30.0 %",
        "and": "wait 10.0 %",
    }
    assert "60.0 %" in summary.headline
    assert any(note.startswith("barrier: the other warps") for note in notes_of(summary))


# ---------------------------------------------------------------- what is not known, and what it cost


def test_counters_that_nobody_asked_for_are_one_line_however_their_lack_was_worded() -> None:
    reasons = (
        "not collected: it needs a",
        "none of its events was collected",
        "x.sum was not collected",
    )
    names = ("memory.coalescing", "tensor.utilization", "cache.l2.miss_rate")
    readings = tuple(gpu.told(gpu.GEMM, n, None, reason=r) for n, r in zip(names, reasons, strict=True))
    readings = (
        *readings,
        gpu.told(gpu.GEMM, "occupancy.achieved", None, reason="NaN in the report", code=None),
    )
    notes = notes_of(summed(gpu.report(readings=readings, trace=gpu.counted()))["unknown"])
    titles = "Memory coalescing, Tensor core utilization, L2 cache misses"
    assert notes[0].startswith(f"{titles}: unavailable, not collected (ncu --set full")
    assert notes[1] == "Achieved occupancy: unavailable, NaN in the report"


def test_a_doubt_is_told_and_marks_the_number() -> None:
    doubted = tuple(
        replace(r, doubt=message("more than it can be")) if r.metric == "bandwidth.dram" else r
        for r in gpu.readings()
    )
    found = concern_sections(gpu.report(trace=gpu.counted(), readings=doubted))
    assert "Contradicted: DRAM bandwidth: more than it can be." in notes_of(found["unknown"])
    assert cells(found["kernels"], "Kernels by GPU time", 0)["DRAM rate"] == "1.30 TB/s"
    assert table_of(found["kernels"], "Kernels by GPU time").rows[0][8].mark == "doubted"  # type: ignore[union-attr]


# ---------------------------------------------------------------- the time of an iteration


def time_notes(**changes: object) -> str:
    document = gpu.run()
    timing = document.timings[0]
    process = replace(timing.processes[0], **changes)  # type: ignore[arg-type]
    document = replace(document, timings=(replace(timing, processes=(process,)),))
    return " ".join(notes_of(summed(document)["time"]))


def test_a_time_says_warm_clocks_and_throttling() -> None:
    assert "what the iteration before left (warm)" in time_notes()
    assert "SM clock 1.97 GHz" in time_notes()
    assert "between 1.20 GHz and 1.98 GHz" in time_notes(clocks=(1.2e9, 1.98e9))
    assert "3 samples of 63 (4.8 %) thrown away: the device slowed itself down (power cap)" in time_notes()
    assert "slowed itself down all the time (power cap)" in time_notes(throttled=0)


def test_a_gpu_that_only_copies_is_busy_and_yet_misses_a_target() -> None:
    trace = replace(gpu.trace(), busy=9.9e-3, copying=8.2e-3)
    document = judge_document(gpu.report(trace=trace), targets_for("cuda"))
    told = {v.target: v for v in document.verdicts if v.scope == RUN}
    assert (told["gpu-busy"].verdict, told["copies"].verdict) == ("pass", "fail")
    assert spoken(told["copies"].reason) == "for 82.0 % of the time the GPU only copied; target < 20 %"
    summary = summed(document)["gpu"]
    assert summary.headline.endswith("For 82.0 % of the time it only copies.")
    assert "82.0 %" in dict(rows_of(summary, "Timeline")).values()
