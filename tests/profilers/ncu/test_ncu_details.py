"""Single instructions and the results of NVIDIA's rules, out of a full report of an H200."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.types import Report
from profkit.profilers.ncu.rep import read_ncu_rep


@pytest.fixture(scope="module")
def report(fixtures: Path) -> Report:
    return read_ncu_rep(fixtures / "cuda" / "h200.gated_mlp.full.ncu-rep")


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


def test_shares_are_of_the_kernels_own_total(report: Report) -> None:
    for kernel in {one.kernel for one in report.instructions}:
        own = [one for one in report.instructions if one.kernel == kernel]
        assert 0 < sum(one.samples for one in own) <= 1
        assert sum(one.excess_sectors for one in own) <= 1.0000001


def test_rules_come_with_the_estimate_that_ncu_prints(report: Report) -> None:
    stalls = next(rule for rule in report.rules if rule.name == "CPIStall" and rule.kernel.name == "silu_mul")
    assert stalls.title == "Long Scoreboard Stalls"
    assert 0 < stalls.speedup < 1
    assert "@" not in stalls.text


def test_an_optimised_build_is_no_debug_build(report: Report) -> None:
    assert "debug build" not in report.facts
