"""Recorded .ncu-rep files of an H200, of kernels whose truth is known: what is known of them comes out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from profkit.core.types import Counter, Report
from profkit.profilers.ncu.csv_report import read_ncu_csv
from profkit.profilers.ncu.rep import read_ncu_rep
from profkit.profilers.registry import recognise_format
from tests.conftest import ROOT
from tests.profilers.ncu import writer as w
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data" / "cuda"
REPORTS = sorted((DATA / "ncu").glob("*.ncu-rep"))
N = 64 * 2**20  # floats
FULL, MANY = "h200.gated_mlp.full.ncu-rep", "h200.gated_mlp.60-launches.ncu-rep"
GEMM = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT"


def counter(report: Report, kernel: str, metric: str) -> Counter:
    (found,) = (c for c in report.counters if c.name == metric and str(c.scope.name).startswith(kernel))
    return found


# File, kernel, counter: how far the truth may lie beside it; truths of ../shared/reports/README.md, cuda/.
# 73.7 % of DRAM in the run of the README; another launch of the same kernel lies a few points beside it.
TRUTHS = f"""
truths.full stream_copy dram__bytes_read.sum {4 * N} 1%
truths.full strided_read dram__bytes_read.sum {8 * 4 * N} 1%
truths.full void_transpose<(int)1> derived__memory_l1_wavefronts_shared_excessive 0 0
truths.full divergent smsp__thread_inst_executed_per_inst_executed.ratio 8.3 0.1
truths.full fma32 smsp__thread_inst_executed_per_inst_executed.ratio 32 0
truths.full tiny launch__grid_size 1 0
truths.full tiny profiler__replayer_passes 38 0
FULL nvjet sm__warps_active.avg.pct_of_peak_sustained_active 14.6 0.05
FULL nvjet sm__maximum_warps_per_active_cycle_pct 18.75 0
FULL nvjet gpu__time_duration.sum 179872 0
FULL nvjet launch__registers_per_thread 168 0
FULL silu_mul sm__warps_active.avg.pct_of_peak_sustained_active 82.8 1
FULL silu_mul gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed 73.7 4
"""


@pytest.mark.parametrize("line", TRUTHS.strip().splitlines())
def test_the_truth_of_a_kernel_is_in_its_counters(reports: Path, line: str) -> None:
    file, kernel, metric, truth, around = line.split()
    path = reports / "cuda" / FULL if file == "FULL" else DATA / "ncu" / f"{file}.ncu-rep"
    told = counter(read_ncu_rep(path), kernel.replace("_transpose", " transpose"), metric)
    far = float(truth) / 100 if around == "1%" else float(around)
    assert told.state == "measured"
    assert told.value == pytest.approx(float(truth), abs=far)


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


@pytest.mark.parametrize(("name", "results"), [("truths.range", "1 result"), ("graphs.graph", "4 results")])
def test_kernels_counted_as_one_are_left_out_and_told(name: str, results: str) -> None:
    report = read_ncu_rep(DATA / "ncu" / f"{name}.ncu-rep")
    assert (report.counters, report.trace) == ((), None)
    assert spoken_lines(report.warnings)[0].startswith(f"left out: {results} of ranges or graphs")


@pytest.mark.parametrize("name", [FULL, MANY])
def test_the_format_is_told_by_content(reports: Path, name: str) -> None:
    found = recognise_format(reports / "cuda" / name)
    assert (found.name, found.tool) == ("ncu-rep", "ncu")


def test_sixty_launches_are_two_configurations_with_medians_and_summed_times(reports: Path) -> None:
    path = reports / "cuda" / MANY
    trace = read_ncu_rep(path).trace
    assert trace is not None
    assert [(t.kernel.name, t.kernel.id, t.launches, t.first) for t in trace.kernels] == [
        (GEMM, "2x66x1 of 384x1x1", 40, 0),
        ("silu_mul", "16384x1x1 of 128x1x1", 20, 2),
    ]
    durations = [
        launch.values["gpu__time_duration.sum"]
        for launch in w.read_launches(path)
        if launch.kernel.name == "silu_mul"
    ]
    assert trace.kernels[1].total == pytest.approx(math.fsum(map(float, durations)) * 1e-9)  # type: ignore[arg-type]
    assert (trace.span, trace.busy) == (None, None)


def test_the_session_and_the_device_are_told(reports: Path) -> None:
    report = read_ncu_rep(reports / "cuda" / MANY)
    assert report.version == "2025.3.1"
    assert report.facts["command"] == "python3 benchmark/gated_mlp.py --impl triton"
    said = {name: report.facts[name] for name in ("clocks", "cache control", "replay", "driver", "CUDA")}
    assert said == {
        "clocks": "not locked",
        "cache control": "all",
        "replay": "kernel",
        "driver": "580.159",
        "CUDA": "13.0",
    }
    (gpu,) = report.gpus
    assert (gpu.name, gpu.capability, gpu.chip) == ("NVIDIA H200", "9.0", "GH100")
    assert (gpu.multiprocessors, gpu.memory_bytes, gpu.l2_bytes) == (132, 150109880320, 62914560)
    assert gpu.bandwidth == pytest.approx(4.814e12, rel=1e-3)


@pytest.fixture(scope="module")
def report(reports: Path) -> Report:
    return read_ncu_rep(reports / "cuda" / FULL)


def test_the_costliest_instruction_of_a_triton_kernel_has_its_line(report: Report) -> None:
    own = [one for one in report.instructions if one.kernel.name == "silu_mul"]
    first = max(own, key=lambda one: one.samples)
    assert first.file is not None
    assert first.file.endswith("gated_mlp.py")
    assert first.line == 11
    assert first.stall == "long_scoreboard"
    assert first.samples == pytest.approx(0.74, abs=0.01)


def test_a_librarys_kernel_without_line_information_has_none(report: Report) -> None:
    own = [one for one in report.instructions if "nvjet" in (one.kernel.name or "")]
    assert own
    assert {one.file for one in own} == {None}


def test_rules_come_with_the_estimate_that_ncu_prints(report: Report) -> None:
    stalls = next(rule for rule in report.rules if rule.name == "CPIStall" and rule.kernel.name == "silu_mul")
    assert stalls.title == "Long Scoreboard Stalls"
    assert 0 < stalls.speedup < 1
    assert "@" not in stalls.text


# The reports that come with Nsight Compute itself (an RTX A4500, version 2023.3), where an installation is here.
INSTALLED = (
    "opt/nvidia/nsight-compute/*/extras/samples",
    "usr/local/cuda*/nsight-compute*/extras/samples",
    "usr/local/cuda*/extras/samples",
)


def sample(name: str) -> Path:
    folders = [folder for place in INSTALLED for folder in Path("/").glob(place)]
    found = [path for folder in folders for path in folder.rglob(f"{name}.ncu-rep")]
    if not found:
        pytest.skip("no installation of Nsight Compute with its samples is here")
    return found[0]
