"""The plot of a line: every value has a dot, in its column and at its height."""

from __future__ import annotations

import math

import pytest

from profkit.reporting.text_plots import plot


def number(value: float) -> str:
    return f"{value:g}"


def dots(lines: list[str]) -> int:
    return sum(
        bin(ord(sign) - 0x2800).count("1") for line in lines for sign in line if 0x2800 <= ord(sign) < 0x2900
    )


def test_every_value_has_a_dot() -> None:
    values = [float(n % 13) for n in range(80)]
    assert dots(plot(values, number, width=60)) == 80


def test_the_largest_is_at_the_top_and_the_least_at_the_bottom() -> None:
    lines = plot([5.0, 1.0, 3.0], number, width=30, height=5)
    assert lines[0].startswith("5 ┤")
    assert lines[-1].startswith("1 ┤")
    assert [dots([line]) for line in lines] == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("count", [1, 2, 50, 365, 5000])
@pytest.mark.parametrize("width", [20, 64, 100])
def test_it_is_never_wider_than_asked(count: int, width: int) -> None:
    lines = plot(
        [math.sin(n) for n in range(count)], number, width=width, bars=[count // 2], marks=[count - 1]
    )
    assert max(map(len, lines)) <= width


def test_a_mark_stands_below_its_value() -> None:
    values = [1.0] * 30 + [2.0] * 30
    lines = plot(values, number, width=60, marks=[30])
    first = min(at for at, sign in enumerate(lines[0]) if at > 3 and sign != " ")
    assert lines[-1].index("▲") == first


def test_a_segment_begins_with_a_line() -> None:
    lines = plot([1.0, 2.0] * 30, number, width=60, bars=[40])
    assert any("┊" in line for line in lines)


def test_what_is_not_there_has_no_dot_and_keeps_its_place() -> None:
    lines = plot([1.0, None, math.nan, math.inf, 2.0], number, width=30)
    assert dots(lines) == 2


def test_nothing_is_no_plot() -> None:
    assert plot([], number) == []
    assert plot([None, math.nan], number) == []


def test_equal_values_are_a_line_in_the_middle() -> None:
    lines = plot([7.0] * 20, number, height=7)
    assert dots([lines[3]]) == 20


@pytest.mark.parametrize(("low", "high"), [(-1.7e308, 1.7e308), (0.0, 5e-324), (1.7e308, 1.7e308)])
def test_values_at_the_ends_of_what_a_float_holds_have_their_place(low: float, high: float) -> None:
    assert dots(plot([low, high], number, width=30)) == 2
