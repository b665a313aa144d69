"""Operators of a CPU in torch's traces: as `key_averages()` of the same recording has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.types import Hotspot
from profkit.profilers.chrome.torch_operators import TorchOperators
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT
from tests.reporting.shown import sections_of, tables_of

TORCH = ROOT / "tests" / "data" / "cuda" / "torch"


def operators(path: Path) -> dict[str, Hotspot]:
    document = summarize_report(path)
    (profile,) = [p for p in document.profiles if p.kind == "operators"]
    return {spot.function: spot for spot in profile.hotspots}


def test_calls_times_and_memory_are_those_of_key_averages() -> None:
    """`key_averages.json`: calls, own and total us, own and total bytes of torch 2.13's own table."""
    spots = operators(TORCH / "torch.cpu.json.gz")
    truths = json.loads(Path(__file__).with_name("key_averages.json").read_text(encoding="utf-8"))
    truths = {name: truth for name, truth in truths.items() if name != "[memory]"}
    assert spots.keys() == truths.keys()
    for name, (calls, own, total, own_bytes, total_bytes) in truths.items():
        spot = spots[name]
        assert spot.calls == calls, name
        assert spot.own * 1e6 == pytest.approx(own, rel=0.01, abs=0.5), name
        assert (spot.total or 0.0) * 1e6 == pytest.approx(total, rel=0.01, abs=0.5), name
        assert (spot.counters["own_bytes"], spot.counters["bytes"]) == (own_bytes, total_bytes), name


def test_the_least_work_of_an_operator_is_that_of_its_calls_and_counts_once() -> None:
    """Three steps of two products of 32 rows: 64 to 128 and 128 to 10; `linear` hands its work on."""
    spots = operators(TORCH / "torch.cpu.json.gz")
    product = spots["aten::addmm"].counters
    assert product["flop"] == 3 * 2 * 32 * (64 * 128 + 128 * 10)
    assert product["needed_bytes"] == 3 * 4 * (
        128 + 32 * 64 + 64 * 128 + 32 * 128 + 10 + 32 * 128 + 1280 + 320
    )
    assert product["needed_seconds"] == pytest.approx(spots["aten::addmm"].own)
    assert "flop" not in spots["aten::linear"].counters
    assert "flop" not in spots["aten::view"].counters


def test_own_times_add_up_to_what_the_outermost_calls_took() -> None:
    spots = operators(TORCH / "torch.cpu.json.gz")
    assert sum(spot.own for spot in spots.values()) == pytest.approx(spots["step"].total or 0.0, rel=0.05)


def test_the_table_has_time_calls_memory_and_the_shapes_of_the_largest_operators() -> None:
    summary = sections_of(summarize_report(TORCH / "torch.cpu.json.gz"))["operators"]
    (table,) = tables_of(summary)
    titles = [column.title for column in table.columns]
    assert titles == [
        "operator", "own", "own time", "with callees", "calls", "own memory", "memory", "shapes",
    ]  # fmt: skip
    row = next(row for row in table.rows if row[0] == "aten::addmm")
    assert row[4] == "6"
    assert row[7] == "[10] [32, 128] [128, 10] and 1 other"


def test_a_call_that_ends_after_its_caller_ends_with_it_and_one_of_no_length_costs_nothing() -> None:
    taken = TorchOperators()
    for name, start, length in (("outer", 0, 100), ("inner", 50, 80), ("empty", 60, 0)):
        taken.call({"name": name, "pid": 1, "tid": 1}, start, length)
    profile = taken.profile()
    assert profile is not None
    times = {spot.function: (spot.own, spot.total) for spot in profile.hotspots}
    assert times == {"outer": (50e-9, 100e-9), "inner": (50e-9, 50e-9), "empty": (0.0, 0.0)}


def test_threads_do_not_lie_within_each_other() -> None:
    taken = TorchOperators()
    for thread in (1, 2):
        taken.call({"name": "aten::mm", "pid": 1, "tid": thread}, 0, 100)
    profile = taken.profile()
    assert profile is not None
    (spot,) = profile.hotspots
    assert (spot.calls, spot.own, spot.total) == (2, 200e-9, 200e-9)
