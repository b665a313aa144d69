"""What `ncu --csv` prints, with log lines, scaled units, other versions' columns; and units by name."""

from __future__ import annotations

import gzip
import re
from contextlib import suppress
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.tables import load_yaml
from profkit.core.types import Counter, Report
from profkit.profilers.ncu.csv_report import read_ncu_csv, unit_factor
from profkit.profilers.ncu.launches import unit_of
from profkit.profilers.registry import recognise_format
from tests.conftest import ROOT
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data" / "cuda"
LABELS = ROOT / "profkit" / "profilers" / "ncu" / "labels.yaml"
BASE, SCALED = DATA / "ncu.truths.raw.base-units.csv", DATA / "ncu.truths.raw.auto-units.csv"
TIME = "gpu__time_duration.sum"
COLUMNS = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC"
RAW = ",".join(f'"{column}"' for column in COLUMNS.split(","))
OF = '"{id}","7","app","127.0.0.1","k(float*, int)","1","7","(256, 1, 1)","(132, 2, 1)","0","9.0"'


def read(tmp_path: Path, *lines: str) -> Report:
    path = tmp_path / "printed.txt"
    path.write_text("\n".join(lines) + "\n")
    assert recognise_format(path).name == "ncu-csv"
    return read_ncu_csv(path)


def values(report: Report) -> dict[str, float | None]:
    return {c.name: c.value for c in report.counters}


def named(report: Report, metric: str, kernel: str) -> Counter:
    (found,) = (c for c in report.counters if c.name == metric and (c.scope.name or "").startswith(kernel))
    return found


RAW_PAGE = f"""
{TIME} 146080.0 ns
dram__bytes.sum.per_second 3529675355969.33 byte/s
dram__bytes_read.sum 268454144.0 byte
dram__throughput.avg.pct_of_peak_sustained_elapsed 73.37 %
dram__cycles_elapsed.avg.per_second 3198630887.19 hz
launch__shared_mem_per_block_static 4224.0 byte/block
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum 154951.0
"""
SCALED_PAGE = f"""
{TIME} 144992.0
dram__bytes.sum.per_second 3556356000000.0
dram__bytes_write.sum 247186688.0
dram__cycles_elapsed.avg.per_second 3198448000.0
launch__shared_mem_config_size 102400.0
"""


def test_a_recorded_raw_page_is_read_and_scaled_units_come_back_to_base_units() -> None:
    report, scaled = read_ncu_csv(BASE), read_ncu_csv(SCALED)
    for metric, value, *unit in map(str.split, RAW_PAGE.strip().splitlines()):
        counter = named(report, metric, "void transpose<1>")
        assert (counter.value, counter.unit, counter.state) == (float(value), "".join(unit), "measured")
        assert counter.scope.id == "256x256x1 of 32x8x1"
    for metric, value in map(str.split, SCALED_PAGE.strip().splitlines()):
        assert named(scaled, metric, "void transpose<1>").value == pytest.approx(float(value))
    assert any("scaled units" in warning for warning in spoken_lines(scaled.warnings))


def test_the_log_lines_tell_clocks_and_the_columns_the_device() -> None:
    report = read_ncu_csv(BASE)
    assert report.facts["clocks"] == "not locked"
    assert report.warnings == ()
    (gpu,) = report.gpus
    assert (gpu.name, gpu.capability, gpu.chip, gpu.multiprocessors) == ("NVIDIA H200", "9.0", "GH100", 132)
    assert report.trace is not None
    assert len(report.trace.kernels) == 3


def test_what_the_workload_prints_between_the_rows_is_not_the_tools(tmp_path: Path) -> None:
    report = read(
        tmp_path,
        "epoch 1: loss 0.25, accuracy 0.9",
        "==PROF== Connected to process 7 (/home/me/app)",
        '==PROF== Profiling "k" - 0: 0%....50%....100% - 9 passes',
        "1, 2, 3",
        f'{RAW},"{TIME}"',
        ",".join(['""'] * 11 + ['"ns"']),
        f'{OF.format(id=0)},"1,500"',
        '"done", "and", "quoted"',
        f'{OF.format(id=1)},"2,500"',
        "==WARNING== Something to know",
    )
    assert report.trace is not None
    assert report.trace.kernels[0].launches == 2
    assert report.trace.kernels[0].kernel.id == "132x2x1 of 256x1x1"
    assert report.facts["replay passes"] == "9"
    assert spoken_lines(report.warnings) == ("Something to know",)


def test_the_details_page_is_read_by_the_labels_that_are_known() -> None:
    report = read_ncu_csv(DATA / "ncu.scale.details.csv")
    assert values(report) == pytest.approx(
        {**values(report)}
        | {
            "sm__warps_active.avg.pct_of_peak_sustained_active": 66.81,
            # "Memory Throughput" stands there twice
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 22.04,
            "dram__bytes.sum.per_second": 846_193_548_387.10,
            "l1tex__t_sector_hit_rate.pct": 50.0,
            "launch__registers_per_thread": 16.0,
            "launch__waves_per_multiprocessor": 3.88,
        }
    )
    assert report.trace is not None
    (time,) = report.trace.kernels
    assert (time.kernel.name, time.launches, time.total) == ("k(float *)", 1, pytest.approx(4.96e-6))
    assert not any("damaged" in line for line in spoken_lines(report.warnings))


def test_a_table_of_metrics_has_a_row_for_each_of_a_launch() -> None:
    report = read_ncu_csv(DATA / "ncu.scale.metrics.csv")
    assert values(report)["dram__bytes_read.sum"] == 4_197_376
    assert values(report)["sm__warps_active.avg.pct_of_peak_sustained_active"] == 70.6
    assert report.trace is not None
    assert report.trace.kernels[0].total == pytest.approx(5.44e-6)


def test_rows_of_metrics_are_a_launch_each_and_in_base_units(tmp_path: Path) -> None:
    long = f'{RAW},"Section Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'{OF.format(id=n)},"","{name}","{unit}","{value}"'
        for n, (time, moved) in enumerate([("1.50", "2.25"), ("2.50", "4.25")])
        for name, unit, value in (
            ("Duration", "usecond", time),
            ("dram__bytes_read.sum", "Mbyte", moved),
            ("A label of another version", "%", "9.00"),
        )
    ]
    report = read(tmp_path, long, *rows)
    assert report.trace is not None
    assert (report.trace.kernels[0].launches, report.trace.kernels[0].total) == (2, pytest.approx(4e-6))
    assert values(report)["dram__bytes_read.sum"] == pytest.approx(3_250_000)


def test_every_label_stands_for_the_metric_that_a_recorded_report_pairs_it_with() -> None:
    with gzip.open(ROOT / "tests/data/reports/cuda/h200.gated_mlp.full.ncu-rep.gz") as file:
        recorded = file.read()
    # A block size has a label of its own in no section file that the report holds.
    labels = {label: names for label, names in load_yaml(LABELS).items() if label not in ("Block Size",)}
    for label, names in labels.items():
        for name in names:
            # a protobuf's two strings, each behind its tag and its length
            pair = re.escape(name.encode()) + rb"[\x10-\x1a]." + re.escape(label.encode())
            assert re.search(pair, recorded, re.DOTALL), (label, name)


def test_cut_at_any_offset_it_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    whole = {(c.scope, c.name): c.value for c in read_ncu_csv(BASE).counters}
    for size in range(0, 10_000, 499):
        path.write_bytes(BASE.read_bytes()[:size])
        with suppress(UnreadableReport):
            assert {(c.scope, c.name): c.value for c in read_ncu_csv(path).counters}.items() <= whole.items()


UNITS = """
ns gpu__time_duration.sum
byte dram__bytes.sum dram__bytes_op_read.sum launch__shared_mem_config_size
byte/s dram__bytes.sum.per_second
byte/cycle dram__bytes.sum.peak_sustained
hz dram__cycles_elapsed.avg.per_second
cycle gpc__cycles_elapsed.max
% dram__throughput.avg.pct_of_peak_sustained_elapsed sm__maximum_warps_per_active_cycle_pct
% launch__occupancy_cluster_pct smsp__sass_average_branch_targets_threads_uniform.pct
warp sm__warps_active.avg.per_cycle_active
inst smsp__inst_executed.sum smsp__inst_executed_op_shared_ld.sum inst_executed
inst/cycle sm__inst_executed.avg.per_cycle_active smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed
sector lts__t_sectors.sum
request lts__t_requests_srcunit_tex.sum
register/thread launch__registers_per_thread
byte/block launch__shared_mem_per_block_static
block launch__occupancy_limit_registers
pass profiler__replayer_passes
- l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum launch__waves_per_multiprocessor no_metric
- smsp__thread_inst_executed_per_inst_executed.ratio device__attribute_max_warps_per_multiprocessor
"""
FACTORS = """nsecond=1 us=1e3 second=1e9 Kbyte=1e3 Gbyte/s=1e9 Gbyte/second=1e9 byte/nsecond=1e9 Ghz=1e9
    cycle/nsecond=1e9 cycle/second=1 Kbyte/block=1e3 inst/cycle=1 %=1 =1"""


def test_a_metrics_unit_follows_from_its_name_and_a_printed_one_comes_back_to_its_base() -> None:
    for unit, *names in map(str.split, UNITS.strip().splitlines()):
        assert {unit_of(name) for name in names} == {unit.replace("-", "")}, names
    for printed, _, factor in (word.partition("=") for word in FACTORS.split()):
        assert unit_factor(printed) == float(factor), printed
