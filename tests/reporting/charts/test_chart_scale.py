"""Scales and their ticks: round, told apart, as many as asked, whatever the range."""

from __future__ import annotations

import random

import pytest

from profkit.reporting.charts.draw import curve, fitted, number, width
from profkit.reporting.charts.marks import Scale, linear, ticks


def test_ends_of_the_range_stand_at_the_ends() -> None:
    scale = Scale(10, 20, 100, 300)
    assert [scale(10), scale(15), scale(20), scale(99)] == [100, 200, 300, 300]


@pytest.mark.parametrize(
    ("scale", "unit", "labels"),
    [
        (Scale(0.0, 1.0, 0, 1), "", ["0", "0.200", "0.400", "0.600", "0.800", "1"]),
        (Scale(4.01e-3, 4.09e-3, 0, 1), "s", ["4.02 ms", "4.04 ms", "4.06 ms", "4.08 ms"]),
        (Scale(0.0, 100.0, 0, 1), "%", ["0.0 %", "20.0 %", "40.0 %", "60.0 %", "80.0 %", "100.0 %"]),
    ],
)
def test_ticks_are_round_in_the_unit_that_people_read(scale: Scale, unit: str, labels: list[str]) -> None:
    assert [tick.label for tick in ticks(scale, unit, 6)] == labels


def test_any_range_has_ticks_inside_of_it_that_are_told_apart() -> None:
    dice = random.Random(1)
    for _ in range(3000):
        middle, extent = 10 ** dice.uniform(-14, 17), 10 ** dice.uniform(-9, 2)
        values = [middle, middle * (1 + extent)]
        scale = linear(values, 0, 1)
        for unit in ("s", "B", "B/s", "%", "", "FLOP/B"):
            found = ticks(scale, unit, 5)
            labels = [tick.label for tick in found]
            assert 1 <= len(found) <= 5, (values, unit, scale)
            assert len(set(labels)) == len(labels), (values, unit, labels)
            assert all(scale.low * 0.999 <= tick.value <= scale.high * 1.001 for tick in found)


@pytest.mark.parametrize(
    "values", [[], [0.0], [0.0, 0.0], [float("nan")], [float("inf"), 1.0], [1e308, -1e308]]
)
def test_a_scale_of_nothing_or_of_strange_values_still_is_one(values: list[float]) -> None:
    scale = linear(values, 0, 1)
    assert scale.high > scale.low
    assert ticks(scale, "s")


def test_a_name_is_cut_in_its_middle_to_the_room_there_is() -> None:
    name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(T1::Params)"
    short = fitted(name, 120)
    assert width(short) <= 120
    assert short.startswith("void")
    assert short.endswith("s)")
    assert fitted("short", 120) == "short"
    assert fitted(name, 10) == ""


def test_what_is_no_number_is_no_place() -> None:
    assert number(-0.01) == "0"
    assert number(2.96) == "3"
    with pytest.raises(ValueError, match="not a place"):
        number(float("nan"))
    with pytest.raises(ValueError, match="not a place"):
        curve([(0, float("inf"))], "line")
