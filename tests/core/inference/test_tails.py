"""Tails against values that mpmath gives with 40 digits, and against what must hold for any of them."""

from __future__ import annotations

from math import inf, nan

import pytest

from profkit.core import inference as tails


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [
        (1, 1, 0.5),
        (2.5, 3, 0.087706647008065547),
        (7, 1, 0.090334470601733097),
        (5, 48, 8.0616651814710411e-6),
        (10, 10, 1.589553175596412e-6),
        (1.3, 4.7, 0.25369729586461016),
        (3, 363, 0.0028862310262832306),
        (1e-6, 10, 0.99999922178323207),
        (36, 30, 3.0414632300377789e-26),
        (3, inf, 0.0026997960632601891),
    ],
)
def test_two_sided_tails_of_students_t(t: float, freedom: float, p: float) -> None:
    assert tails.student_two_sided(t, freedom) == pytest.approx(p, rel=1e-11)
    assert tails.student_two_sided(-t, freedom) == tails.student_two_sided(t, freedom)


@pytest.mark.parametrize(
    ("z", "p"),
    [
        (0, 1),
        (0.5, 0.61707507745197379),
        (8, 1.2441921148543568e-15),
        (30, 9.8134278542963741e-198),
        (inf, 0),
    ],
)
def test_two_sided_tails_of_the_normal_distribution(z: float, p: float) -> None:
    assert tails.normal_two_sided(z) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    ("p", "freedom", "t"),
    [(0.975, 10, 2.2281388519862746), (0.5, 3, 0), (0.025, inf, -1.9599639845400543), (1, 4, inf)],
)
def test_quantiles_of_students_t(p: float, freedom: float, t: float) -> None:
    assert tails.student_quantile(p, freedom) == pytest.approx(t, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tails.normal_quantile(1.1),
        lambda: tails.student_quantile(nan, 3),
    ],
)
def test_what_is_not_defined_is_refused(call: object) -> None:
    with pytest.raises(ValueError):
        call()  # type: ignore[operator]
