"""Tests by ranks, tails, corrections and the one decision, held against counting by hand and published values."""

from __future__ import annotations

import random
from math import inf, nan
from statistics import median

import pytest

from profkit.core import inference as tails
from profkit.core.inference import (
    Interval,
    benjamini_hochberg,
    course_of,
    coverage_of_selected,
    decide,
    signed_rank_interval,
)

SAME, DIFFERENT, AMBIGUOUS = "same", "different", "ambiguous"


@pytest.mark.parametrize(
    ("interval", "word", "by_middle"),
    [
        (Interval(1.1, 1.2, 1.3), DIFFERENT, DIFFERENT),
        (Interval(0.7, 0.8, 0.9), DIFFERENT, DIFFERENT),
        (Interval(1.001, 1.01, 1.02), SAME, SAME),
        (Interval(1 / 1.03, 1.0, 1.03), SAME, SAME),
        (Interval(1.001, 1.02, 1.04), AMBIGUOUS, AMBIGUOUS),  # surely more, and perhaps by less than counts
        (Interval(1.01, 1.05, 1.09), AMBIGUOUS, DIFFERENT),
        (Interval(0.9, 1.2, 1.5), AMBIGUOUS, AMBIGUOUS),
        (Interval(0.6, 0.8, 1.0), AMBIGUOUS, AMBIGUOUS),
        (None, AMBIGUOUS, AMBIGUOUS),
    ],
)
def test_a_ratio_is_different_same_or_ambiguous(interval: Interval | None, word: str, by_middle: str) -> None:
    assert decide(interval, 0.03) == word
    assert decide(interval, 0.03, by_middle=True) == by_middle


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        (Interval(3.1, 4, 5), DIFFERENT),
        (Interval(-5, -4, -3.1), DIFFERENT),
        (Interval(-3, 0, 3), SAME),
        (Interval(-1, 2, 4), AMBIGUOUS),
    ],
)
def test_so_is_a_difference(interval: Interval, word: str) -> None:
    assert decide(interval, 3.0, around=0) == word


def test_the_course_follows_what_is_good_for_the_metric() -> None:
    assert [course_of(1, 2, better) for better in ("lower", "higher", "none")] == [
        "worse",
        "better",
        "neither",
    ]
    assert course_of(2, 2, "lower") == "neither"


# The fifteen p-values of Benjamini and Hochberg's own example (1995, section 3.2): four are rejected at 0.05.
THEIRS = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
)  # fmt: skip


def test_the_example_of_the_authors_rejects_four() -> None:
    assert [p <= 0.05 for p in benjamini_hochberg(THEIRS)] == [True] * 4 + [False] * 11


def test_of_what_is_called_different_no_more_than_a_twentieth_is_false() -> None:
    source, shares = random.Random(2), []
    for _ in range(400):
        p = [source.random() * (1e-4 if place < 10 else 1.0) for place in range(40)]
        called = [place for place, value in enumerate(benjamini_hochberg(p)) if value <= 0.05]
        shares.append(sum(place >= 10 for place in called) / max(1, len(called)))
    assert sum(shares) / len(shares) <= 0.05


def test_intervals_of_what_was_selected_are_wider() -> None:
    assert coverage_of_selected(1, 1) == 0.95
    assert coverage_of_selected(1, 10) == pytest.approx(0.995)
    assert coverage_of_selected(10, 10) == pytest.approx(0.95)
    assert coverage_of_selected(0, 10) == pytest.approx(0.995)


@pytest.mark.parametrize(("n", "cut"), [(6, 1), (7, 3), (8, 4), (10, 9), (15, 26), (20, 53)])
def test_the_signed_rank_interval_has_the_ranks_of_the_published_tables(n: int, cut: int) -> None:
    values = [2.0**place for place in range(n)]
    means = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    assert signed_rank_interval(values, 0.95) == (means[cut - 1], median(means), means[-cut])


def test_the_signed_rank_interval_covers_the_middle_as_often_as_it_says() -> None:
    source = random.Random(5)
    for n in (9, 100):  # exact, and by the normal approximation
        intervals = [signed_rank_interval([source.gauss(0, 1) for _ in range(n)], 0.95) for _ in range(300)]
        covered = sum(low <= 0 <= high for low, _, high in filter(None, intervals))
        assert 0.91 < covered / 300 < 0.985


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
    assert tails.student_two_sided(z, inf) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    ("p", "freedom", "t"),
    [(0.975, 10, 2.2281388519862746), (0.5, 3, 0), (0.025, inf, -1.9599639845400543), (1, 4, inf)],
)
def test_quantiles_of_students_t(p: float, freedom: float, t: float) -> None:
    assert tails.student_quantile(p, freedom) == pytest.approx(t, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tails.student_quantile(1.1, inf),
        lambda: tails.student_quantile(nan, 3),
    ],
)
def test_what_is_not_defined_is_refused(call: object) -> None:
    with pytest.raises(ValueError):
        call()  # type: ignore[operator]
