import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.metrics.formula import Formula, parse_sum


@pytest.mark.parametrize(
    ("text", "counts", "value"),
    [
        ("a", {"a": 3}, 3),
        ("64*a + 64*b", {"a": 1, "b": 2}, 192),
        ("64*a + 64*b - c", {"a": 1, "b": 2, "c": 2}, 190),
        ("- a + b", {"a": 1, "b": 5}, 4),
        ("line_bytes*I3mr + 2*D3mr", {"line_bytes": 64, "I3mr": 2, "D3mr": 3}, 134),
        ("L1-dcache-load-misses - branch-misses", {"L1-dcache-load-misses": 7, "branch-misses": 3}, 4),
        ("1.5e3*ls_dispatch.all", {"ls_dispatch.all": 2}, 3000),
        ("a - a", {"a": 5}, 0),
    ],
)
def test_a_sum_is_what_it_says(text, counts, value):
    assert parse_sum(text).value(counts) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "+",
        "a +",
        "a b",
        "+ a",
        "a + + b",
        "64",
        "2*3",
        "a/b",
        "(a)",
        "a*",
        "*a",
        "a + -",
        "import os",
        "a;b",
        "$x",
    ],
)
def test_what_is_no_sum_is_refused(text):
    with pytest.raises(ValueError):
        parse_sum(text)


def test_a_formula_names_each_counter_once():
    formula = Formula(parse_sum("miss"), parse_sum("hit + miss"), 100)
    assert formula.names == ("miss", "hit")
    assert formula.text == "100 * miss / (hit + miss)"


def test_a_difference_below_the_line_keeps_its_brackets():
    assert Formula(parse_sum("a + b"), parse_sum("c - d")).text == "(a + b) / (c - d)"
    assert Formula(parse_sum("a + b")).text == "a + b"


def test_of_several_sums_the_largest_stands_above_the_line():
    sums = (parse_sum("a + b"), parse_sum("2*c"))
    formula = Formula(sums[0], parse_sum("d"), 100, most_of=sums)
    assert formula.above({"a": 1, "b": 2, "c": 1}) == 3
    assert formula.above({"a": 1, "b": 2, "c": 2}) == 4
    assert formula.names == ("a", "b", "c", "d")
    assert formula.text == "100 * most(a + b, 2*c) / d"


def test_a_condition_names_its_counters_too():
    assert Formula(parse_sum("a"), unless_zero=parse_sum("b + a")).names == ("a", "b")


def test_a_number_may_stand_beside_a_counter_and_not_alone():
    assert parse_sum("100 - hit").value({"hit": 80}) == 20
    with pytest.raises(ValueError, match="names no counter"):
        parse_sum("100 - 1")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        assert parse_sum(text).names
