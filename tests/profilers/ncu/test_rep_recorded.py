"""What was recorded on an H200, of kernels whose truth is known (tests/data/cuda/README.md), as the readers tell it."""

from __future__ import annotations

import pytest

from profkit.core.types import Counter, Report
from profkit.profilers.ncu.csv_report import read_ncu_csv
from profkit.profilers.ncu.launches import NvtxRange
from profkit.profilers.ncu.rep import read_launches, read_ncu_rep
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "cuda"
REPORTS = sorted((DATA / "ncu").glob("*.ncu-rep"))
N = 64 * 2**20  # floats


def counter(report: Report, kernel: str, metric: str) -> Counter:
    (found,) = (c for c in report.counters if c.name == metric and str(c.scope.name).startswith(kernel))
    return found


@pytest.mark.parametrize(
    ("kernel", "metric", "truth"),
    [
        ("stream_copy", "dram__bytes_read.sum", pytest.approx(4 * N, rel=0.01)),
        ("strided_read", "dram__bytes_read.sum", pytest.approx(8 * 4 * N, rel=0.01)),
        ("void transpose<(int)1>", "derived__memory_l1_wavefronts_shared_excessive", 0.0),
        ("divergent", "smsp__thread_inst_executed_per_inst_executed.ratio", pytest.approx(8.3, abs=0.1)),
        ("fma32", "smsp__thread_inst_executed_per_inst_executed.ratio", 32.0),
        ("tiny", "launch__grid_size", 1.0),
        ("tiny", "profiler__replayer_passes", 38.0),
    ],
)
def test_the_truth_of_a_kernel_is_in_its_counters(kernel: str, metric: str, truth: float) -> None:
    told = counter(read_ncu_rep(DATA / "ncu" / "truths.full.ncu-rep"), kernel, metric)
    assert (told.value, told.state) == (truth, "measured")


def test_the_same_numbers_stand_in_what_the_tool_printed() -> None:
    """Printed by ncu from this report, in scaled units; transpose<(int)1> of the file is transpose<1> in the text."""
    recorded = read_ncu_rep(DATA / "ncu" / "truths.gate.ncu-rep")
    printed = read_ncu_csv(DATA / "ncu.truths.raw.auto-units.csv")
    assert len(printed.counters) > 150
    for told in printed.counters:
        kernel = str(told.scope.name).replace("<1>", "<(int)1>")
        other = counter(recorded, kernel, told.name)
        assert told.unit == other.unit
        # Scaled to the thousand and cut: 0.003 Mbyte.
        assert told.value == pytest.approx(other.value, rel=0.2, abs=0.006), told.name


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "truths.full",
            {"set": "full", "replay": "kernel", "profile from start": "off", "replay passes": "38"},
        ),
        ("truths.appreplay", {"replay": "application", "kernel filter": "regex:transpose"}),
        ("truths.range", {"replay": "range", "results": "1 range", "replay passes": "3"}),
        ("graphs.graph", {"graph profiling": "graph", "results": "4 CUDA graphs"}),
        ("graphs.node", {"results": "5 kernel launches"}),
        ("hostbound.nvtx", {"NVTX filter": "step/"}),
    ],
)
def test_how_a_session_was_kept_is_told(name: str, facts: dict[str, str]) -> None:
    told = read_ncu_rep(DATA / "ncu" / f"{name}.ncu-rep").facts
    assert told.items() >= (facts | {"clocks": "not locked", "cache control": "all", "CUDA": "13.0"}).items()


def test_kernels_in_an_nvtx_range_name_it() -> None:
    path = DATA / "ncu" / "hostbound.nvtx.ncu-rep"
    assert [launch.ranges for launch in read_launches(path)] == [(NvtxRange("step"),)] * 2


@pytest.mark.parametrize(("name", "scope"), [("truths.range", "range"), ("graphs.graph", "CUDA graph")])
def test_kernels_counted_as_one_are_one_region_and_no_kernel(name: str, scope: str) -> None:
    report = read_ncu_rep(DATA / "ncu" / f"{name}.ncu-rep")
    assert {(c.scope.kind, c.scope.name) for c in report.counters} == {("region", scope)}
    assert len({c.scope for c in report.counters}) == 1
    assert report.trace is None
