"""The Mann-Whitney test held against counting by hand, and the interval that follows from it."""

from __future__ import annotations

import itertools
import random
from statistics import median

import pytest

from profkit.core.inference import mann_whitney, shift_interval, signed_rank_interval


def by_hand(a: list[float], b: list[float]) -> float:
    """Every arrangement of the values, counted."""
    values = sorted([*a, *b])
    rank = {v: values.index(v) * 2 + values.count(v) + 1 for v in values}
    sums = [sum(rank[v] for v in chosen) for chosen in itertools.combinations([*a, *b], len(a))]
    seen = sum(rank[v] for v in a)
    tails = sum(s <= seen for s in sums), sum(s >= seen for s in sums)
    return min(1.0, 2 * min(tails) / len(sums))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2, 3], [4, 5, 6]),
        ([1, 2, 2, 3], [2, 3, 4, 4]),
        ([5, 5, 5], [5, 5, 6, 7, 8]),
        ([9, 1, 4, 4, 2, 7], [4, 3]),
        ([1], [2, 3, 4, 5, 6, 7, 8]),
        ([3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8]),
    ],
)
def test_p_is_what_counting_every_arrangement_gives(a: list[float], b: list[float]) -> None:
    assert mann_whitney(a, b) == pytest.approx(by_hand(a, b), rel=1e-12)
    assert mann_whitney(b, a) == pytest.approx(by_hand(a, b), rel=1e-12)


def test_p_is_that_of_scipy() -> None:
    """scipy 1.17.1, mannwhitneyu(method="exact"); the second of 80 values."""
    assert mann_whitney([1, 2, 3, 7, 9, 11, 13], [4, 5, 6, 8, 10, 12, 20, 21]) == pytest.approx(
        0.28096348096348
    )
    source = random.Random(4)
    a = [source.gauss(0, 1) for _ in range(40)]
    b = [source.gauss(0.8, 1) for _ in range(40)]
    assert mann_whitney(a, b) == pytest.approx(3.3026105757941e-05)


@pytest.mark.parametrize(("shifted", "most"), [(0.2, 1.01), (0.3, 1.02), (0.5, 1.12), (0.8, 1.7)])
def test_beyond_what_is_counted_the_approximation_errs_to_the_safe_side(shifted: float, most: float) -> None:
    source = random.Random(4)
    a = [source.gauss(0, 1) for _ in range(40)]
    b = [source.gauss(shifted, 1) for _ in range(40)]
    exact = mann_whitney(a, b)
    from profkit.core import inference as ranks

    order = ranks._double_midranks([*a, *b])
    assert 0.99 <= ranks._normal_p(order, 40, 40, sum(order[:40])) / exact <= most


def test_the_interval_of_the_shift_is_what_the_test_does_not_reject() -> None:
    source = random.Random(5)
    a = [source.gauss(0, 1) for _ in range(7)]
    b = [source.gauss(1, 1) for _ in range(9)]
    found = shift_interval(a, b, 0.95)
    assert found is not None
    low, high = found
    assert low < median([y - x for x in a for y in b]) < high
    for inside in (low + 1e-9, high - 1e-9):
        assert mann_whitney(a, [y - inside for y in b]) > 0.05
    for outside in (low - 1e-9, high + 1e-9):
        assert mann_whitney(a, [y - outside for y in b]) <= 0.05


def test_too_few_values_have_no_interval() -> None:
    assert shift_interval([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 0.95) is None
    assert shift_interval([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], 0.95) == (-3.0, 3.0)
    assert shift_interval([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], 0.99) is None


@pytest.mark.parametrize(("n", "cut"), [(6, 1), (7, 3), (8, 4), (10, 9), (15, 26), (20, 53)])
def test_the_signed_rank_interval_has_the_ranks_of_the_published_tables(n: int, cut: int) -> None:
    values = [2.0**place for place in range(n)]
    means = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    assert signed_rank_interval(values, 0.95) == (means[cut - 1], median(means), means[-cut])


def test_the_signed_rank_interval_needs_six_values_and_forgives_one_in_four() -> None:
    assert signed_rank_interval([1.0] * 5, 0.95) is None
    assert signed_rank_interval([1.0] * 7, 0.99) is None
    found = signed_rank_interval([*[1.0, 1.1] * 8, 50.0, 60.0, 70.0], 0.95)
    assert found is not None
    assert found[1] < 1.2


def test_the_signed_rank_interval_covers_the_middle_as_often_as_it_says() -> None:
    source = random.Random(5)
    for n in (9, 100):  # exact, and by the normal approximation
        intervals = [signed_rank_interval([source.gauss(0, 1) for _ in range(n)], 0.95) for _ in range(300)]
        covered = sum(low <= 0 <= high for low, _, high in filter(None, intervals))
        assert 0.91 < covered / 300 < 0.985
