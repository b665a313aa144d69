"""The unit of a metric by its name: those that NVIDIA's package gives, of 2,800 names in recorded reports."""

from __future__ import annotations

import pytest

from profkit.profilers.ncu.csv_report import decimal_sign, parse_number, unit_factor
from profkit.profilers.ncu.launches import unit_of
from profkit.profilers.ncu.sets import chip_name


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("gpu__time_duration.sum", "ns"),
        ("dram__bytes.sum", "byte"),
        ("dram__bytes.sum.per_second", "byte/s"),
        ("dram__bytes.sum.peak_sustained", "byte/cycle"),
        ("dram__bytes_op_read.sum", "byte"),
        ("dram__cycles_elapsed.avg.per_second", "hz"),
        ("gpc__cycles_elapsed.max", "cycle"),
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
        ("sm__maximum_warps_per_active_cycle_pct", "%"),
        ("smsp__sass_average_branch_targets_threads_uniform.pct", "%"),
        ("launch__occupancy_cluster_pct", "%"),
        ("sm__warps_active.avg.per_cycle_active", "warp"),
        ("smsp__thread_inst_executed_per_inst_executed.ratio", ""),
        ("smsp__inst_executed.sum", "inst"),
        ("smsp__inst_executed_op_shared_ld.sum", "inst"),
        ("sm__inst_executed.avg.per_cycle_active", "inst/cycle"),
        ("lts__t_sectors.sum", "sector"),
        ("lts__t_requests_srcunit_tex.sum", "request"),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", ""),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed", "inst/cycle"),
        ("launch__registers_per_thread", "register/thread"),
        ("launch__shared_mem_per_block_static", "byte/block"),
        ("launch__shared_mem_config_size", "byte"),
        ("launch__occupancy_limit_registers", "block"),
        ("launch__waves_per_multiprocessor", ""),
        ("device__attribute_max_warps_per_multiprocessor", ""),
        ("profiler__replayer_passes", "pass"),
        ("inst_executed", "inst"),
        ("what is no metric", ""),
        ("", ""),
    ],
)
def test_a_metrics_unit_follows_from_its_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit


@pytest.mark.parametrize(
    ("printed", "factor"),
    [
        ("nsecond", 1.0),
        ("us", 1e3),
        ("second", 1e9),
        ("Kbyte", 1e3),
        ("Gbyte/s", 1e9),
        ("Gbyte/second", 1e9),
        ("byte/nsecond", 1e9),
        ("Ghz", 1e9),
        ("cycle/nsecond", 1e9),
        ("cycle/second", 1.0),
        ("Kbyte/block", 1e3),
        ("inst/cycle", 1.0),
        ("%", 1.0),
        ("", 1.0),
    ],
)
def test_a_printed_unit_comes_back_to_its_base(printed: str, factor: float) -> None:
    assert unit_factor(printed) == factor


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        (["1.234", "12.5"], "."),
        (["1.234", "12,5"], ","),
        (["1,234,567.891"], "."),
        (["1.234.567,891"], ","),
        (["1,234"], None),
        (["7", "text", ""], None),
    ],
)
def test_the_decimal_sign_is_told_by_a_cell_that_can_mean_but_one(cells: list[str], sign: str | None) -> None:
    assert decimal_sign(cells) == sign


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1,234.5", 1234.5), ("-3", -3.0), ("1e3", 1000.0), ("1_000", None), ("No-CC", None), ("", None)],
)
def test_a_cell_is_a_number_or_text(cell: str, value: float | None) -> None:
    assert parse_number(cell) == value


@pytest.mark.parametrize(
    ("number_", "name"),
    [(384, "GH100"), (370, "GA102"), (360, "TU116"), (0x1B2, "GB202"), (1, None), (None, None)],
)
def test_a_chips_number_is_its_name(number_: int | None, name: str | None) -> None:
    assert chip_name(number_) == name
