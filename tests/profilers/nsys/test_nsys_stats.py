"""Tables of nsys stats as other versions and other options print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import GpuTrace
from profkit.profilers.registry import recognise_format
from tests.spoken import spoken_lines

SUM = (
    "Time (%),Total Time ({unit}),Instances,Avg ({unit}),Med ({unit}),Min ({unit}),Max ({unit}),StdDev ({unit}),"
    "Name\n"
)


def read(tmp_path: Path, text: str) -> tuple[GpuTrace, tuple[str, ...]]:
    file = tmp_path / "stats.csv"
    file.write_text(text, encoding="utf-8")
    report = recognise_format(file).read(file)
    assert report.format == "nsys-stats-csv"
    assert report.trace is not None
    return report.trace, spoken_lines(report.warnings)


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1.0), ("usec", 1e-3), ("s", 1e-9)])
def test_times_are_read_in_the_unit_of_their_header(tmp_path: Path, unit: str, factor: float) -> None:
    times = ",".join(f"{value * factor!r}" for value in (250.0, 240.0, 200.0, 320.0, 5.0))
    row = f'100.0,{1000 * factor},4,{times},"void f<int, char>(int, char)"\n'
    (kernel,) = read(tmp_path, SUM.format(unit=unit) + row)[0].kernels
    assert (kernel.kernel.name, kernel.launches) == ("void f<int, char>(int, char)", 4)
    assert (kernel.total, kernel.median) == (pytest.approx(1e-6), pytest.approx(240e-9))
    assert (kernel.least, kernel.most) == (pytest.approx(200e-9), pytest.approx(320e-9))


def test_several_reports_in_one_text_are_told_apart_though_their_columns_are_the_same(tmp_path: Path) -> None:
    text = (
        "Generating SQLite file a.sqlite from a.nsys-rep\n"
        "Processing [a.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]... \n"
        + SUM.format(unit="ns")
        + "100.0,1000,4,250.0,240.0,200,320,5.0,cuteKernel\n\n"
        "Processing [a.sqlite] with [/opt/reports/cuda_gpu_mem_time_sum.py]... \n"
        "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
        "100.0,500,2,250.0,250.0,200,300,5.0,[CUDA memcpy HtoD]\n\n"
        "Processing [a.sqlite] with [/opt/reports/nvtx_kern_sum.py]... \n"
        "SKIPPED: a.sqlite does not contain NV Tools Extension (NVTX) data.\n\n"
        "Processing [a.sqlite] with [/opt/reports/cuda_api_sum.py]... \n"
        "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "90.0,9000,4,2250.0,2200.0,2000,2500,5.0,cudaLaunchKernel\n"
    )
    trace, warnings = read(tmp_path, text)
    assert [(k.kernel.name, k.launches) for k in trace.kernels] == [("cuteKernel", 4)]
    assert trace.transfers == ()
    assert [(a.name, a.calls) for a in trace.api] == [("cudaLaunchKernel", 4)]
    assert trace.launch_call == pytest.approx(2.2e-6)
    assert any("does not contain NV Tools Extension" in warning for warning in warnings)


def test_a_text_that_only_skipped_is_an_error_with_its_fix(tmp_path: Path) -> None:
    text = "Processing [a.sqlite] with [/x/cuda_gpu_kern_sum.py]... \n"
    text += "SKIPPED: a.sqlite does not contain CUDA kernel data.\n"
    with pytest.raises(UnreadableReport) as caught:
        read(tmp_path, text)
    assert caught.value.fix is not None
    assert "--cuda-graph-trace=node" in caught.value.fix


@pytest.mark.parametrize(
    "head",
    [
        "NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Kernel Name\n",
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,Device,Strm,Name\n",
    ],
)
def test_tables_of_ranges_and_launches_are_no_sums(tmp_path: Path, head: str) -> None:
    text = f"Processing [a.sqlite] with [/x/some.py]... \n{head}1,2,3,4,5,6,7,8,k\n"
    with pytest.raises(UnreadableReport, match="no CSV table of nsys stats") as caught:
        read(tmp_path, text)
    assert "SQLite" in str(caught.value.fix)
