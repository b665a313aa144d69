"""The fit by itself, against its formula worked out the long way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.regression import change_points
from tests.regression.change_points.series import noise, with_steps

coarse = st.lists(st.integers(-5, 5).map(float), min_size=4, max_size=24)


def cheapest(values: np.ndarray, penalty: float) -> float:
    """The cost of the best fit, by trying every last piece of every beginning."""
    n = len(values)
    cost = [-penalty] + [np.inf] * n
    for end in range(change_points.SHORTEST, n + 1):
        for begin in range(end - change_points.SHORTEST + 1):
            piece = values[begin:end]
            cost[end] = min(cost[end], cost[begin] + penalty + np.abs(piece - np.median(piece)).sum())
    return cost[n]


def cost_of(values: np.ndarray, places: list[int], penalty: float) -> float:
    pieces = np.split(values, places)
    assert min(map(len, pieces)) >= change_points.SHORTEST or not places
    return sum(np.abs(piece - np.median(piece)).sum() for piece in pieces) + penalty * len(places)


@given(coarse, st.floats(0.1, 20))
def test_no_fit_is_cheaper_than_the_one_found(values: list[float], penalty: float) -> None:
    series = np.array(values)
    if len(series) >= 2 * change_points.SHORTEST:
        found = cost_of(series, change_points.best_fit(series, penalty), penalty)
        assert found == pytest.approx(cheapest(series, penalty), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_fit_of_real_numbers_is_cheaper(seed: int) -> None:
    series = with_steps(noise("t3", 110, seed), (31, 3), (38, -3), (77, 2))
    found = cost_of(series, change_points.best_fit(series, 9.0), 9.0)
    assert found == pytest.approx(cheapest(series, 9.0), rel=1e-9)
