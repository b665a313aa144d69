"""Two simulations of two levels each, combined into three levels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import Counter, Report, Scope
from profkit.profilers.valgrind.levels import CacheLevels, combine_levels
from profkit.profilers.valgrind.read import read_callgrind
from tests.spoken import spoken_lines

DATA = Path(__file__).resolve().parents[2] / "data" / "valgrind"
L2, L3 = (read_callgrind(DATA / f"kernels.{level}.callgrind") for level in ("l2", "l3"))
ADD = Scope("region", "add")


def of(levels: CacheLevels, scope: Scope) -> dict[str, Counter]:
    return {c.name: c for c in levels.counters if c.scope == scope}


VALUES = """Ir=393234 Dr=131075 Dw=65539 D1mr=65538 D1mw=32768 I2mr=1 D2mr=65538 D2mw=32768 D2wb=32764 I3mr=1 D3mr=0
    D3mw=0 D3wb=0 Bc=65536 Bcm=15 line_bytes=64"""


def test_each_level_is_counted_by_the_run_that_has_it_last() -> None:
    counters = of(combine_levels(L2, L3), ADD)
    for name, _, value in (word.partition("=") for word in VALUES.split()):
        assert counters[name].value == float(value), name


def test_the_run_its_regions_and_its_hottest_functions_have_counters() -> None:
    scopes = dict.fromkeys((c.scope.kind, c.scope.name) for c in combine_levels(L2, L3).counters)
    expected = [
        ("run", None),
        ("region", "add"),
        ("region", "calls"),
        ("function", "add"),
        ("function", "fib"),
    ]
    assert list(scopes) == expected


def scaled(report: Report, factor: float) -> Report:
    return replace(
        report,
        counters=tuple(
            replace(c, value=None if c.value is None else c.value * factor) for c in report.counters
        ),
    )


@pytest.mark.parametrize(("factor", "same"), [(1.0, True), (1.004, True), (1.01, False), (0.5, False)])
def test_runs_that_did_different_work_are_told_apart(factor: float, same: bool) -> None:
    levels = combine_levels(scaled(L2, factor), L3)
    assert levels.same_work is same
    assert any("different work" in warning for warning in spoken_lines(levels.warnings)) is not same
