"""The judge on reports of an H200: a GEMM near the tensor cores' peak is no failure, whatever its occupancy is."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.types import RUN, RunDocument, VerdictWord
from profkit.profiling.summarize import summarize_report
from tests.spoken import spoken

FIVE = ("occupancy", "memory-bandwidth", "bank-conflicts", "warp-efficiency", "coalescing")


def words(document: RunDocument, kernel: str) -> dict[str, VerdictWord]:
    return {v.target: v.verdict for v in document.verdicts if kernel in (v.scope.name or "")}


@pytest.fixture(scope="module")
def full(reports: Path) -> RunDocument:
    return summarize_report(reports / "cuda" / "h200.gated_mlp.full.ncu-rep")


def test_a_gemm_at_14_per_cent_occupancy_on_saturated_tensor_cores_fails_nothing(full: RunDocument) -> None:
    gemm, silu = full.kernels
    assert (gemm.bound, silu.bound) == ("tensor", "dram")
    assert spoken(gemm.reason).startswith("tensor pipe at 95 % of its peak")
    told = words(full, "nvjet")
    assert "fail" not in told.values()
    assert [told[name] for name in FIVE] == [
        "not-applicable",
        "not-applicable",
        "pass",
        "pass",
        "not-applicable",
    ]


def test_the_elementwise_kernel_misses_the_peak_of_dram_and_that_alone(full: RunDocument) -> None:
    told = words(full, "silu_mul")
    assert {name for name, word in told.items() if word == "fail"} == {"memory-bandwidth"}
    run = next(v for v in full.verdicts if v.scope == RUN and v.target == "memory-bandwidth")
    assert run.verdict == "fail"
    assert run.weight == pytest.approx(0.113, abs=1e-3)


def test_the_report_agrees_with_itself(full: RunDocument) -> None:
    assert not [r for r in full.readings if r.doubt is not None]


def test_raw_conflicts_without_the_accesses_they_belong_to_are_no_failure(reports: Path) -> None:
    """Eleven metrics on 60 launches: 129 thousand raw conflicts, and neither tensor pipe nor shared passes."""
    found = summarize_report(reports / "cuda" / "h200.gated_mlp.60-launches.ncu-rep")
    gemm = found.kernels[0]
    assert (gemm.bound, round(gemm.nearest or 0)) == ("compute", 90)
    assert "fail" not in words(found, "nvjet").values()


def test_a_trace_says_how_busy_the_gpu_was_and_leaves_the_rest_unknown(reports: Path) -> None:
    found = summarize_report(reports / "cuda" / "h200.gated_mlp.nsys.sqlite")
    run = {v.target: v.verdict for v in found.verdicts if v.scope.kind in ("run", "region")}
    assert run["gpu-busy"] == "pass"
    assert {run[name] for name in FIVE} == {"unknown"}
