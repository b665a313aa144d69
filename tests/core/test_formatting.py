"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from profkit.core.formatting import (
    format_percent,
    format_quantity,
    shorten,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.13e-3, "s", "4.13 ms"),
        (61.234, "s", "61.2 s"),
        (1.5e-9, "s", "1.50 ns"),
        (0.0, "s", "0 s"),
        (15.2e9, "B/s", "15.2 GB/s"),
        (3.6e6, "B", "3.43 MiB"),
        (12.0, "B", "12 B"),
        (-2048.0, "B/iteration", "-2.00 KiB/iteration"),
        (54e6, "FLOP", "54.0 MFLOP"),
        (0.0209, "%", "0.02 %"),
        (99.96, "%", "100.0 %"),
        (0.0, "%", "0.0 %"),
        (41.2e6, "count", "41.2 M"),
        (600.0, "count", "600"),
        (2.134, "instructions/cycle", "2.13 instructions/cycle"),
        (3.1e9, "Hz", "3.10 GHz"),
        (None, "s", "-"),
        (math.nan, "s", "-"),
        (math.inf, "B", "-"),
    ],
)
def test_a_quantity_has_three_figures_and_a_fitting_prefix(value: float | None, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"), [(9.0, "9.0"), (0.95, "0.9"), (0.2, "0.20"), (0.004, "0.004"), (-3.0, "-3.0")]
)
def test_a_small_percentage_does_not_read_as_nothing(value: float, text: str) -> None:
    assert format_percent(value) == text


def test_a_long_name_keeps_both_its_ends() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 7) == "abcd…ij"
    assert [len(shorten("x" * 50, width)) for width in range(12)] == list(range(12))
