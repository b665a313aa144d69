"""Each detector by itself, against its formula worked out the long way."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.regression.change_points import detectors
from profkit.regression.change_points.find import gather_votes
from tests.regression.change_points.series import noise, with_steps

coarse = st.lists(st.integers(-5, 5).map(float), min_size=4, max_size=24)


def test_the_scan_weighs_the_nearest_values_most() -> None:
    values = with_steps(noise("gauss", 80, 1), (40, 4))
    before, after = values[16:40], values[40:52]
    weights_before, weights_after = np.arange(1, 25) / 24, np.arange(12, 0, -1) / 12
    a = (before * weights_before).sum() / weights_before.sum()
    b = (after * weights_after).sum() / weights_after.sum()
    error = sqrt(((before - a) ** 2).sum() / 23 / 24 + ((after - b) ** 2).sum() / 11 / 12)
    assert detectors.welch_statistic(values)[40] == pytest.approx(abs(b - a) / error)
    assert detectors.welch_scan(values) == [40]


def test_the_scan_is_blind_at_both_ends() -> None:
    values = with_steps(noise("gauss", 60, 1), (23, 50), (49, 50))
    t = detectors.welch_statistic(values)
    assert not t[:24].any()
    assert not t[49:].any()
    assert t[24] > 0
    assert t[48] > 0


def test_of_places_near_each_other_the_scan_keeps_the_strongest() -> None:
    values = with_steps(0.01 * noise("gauss", 120, 1), (50, 1), (55, 1), (80, 1))
    places = detectors.welch_scan(values)
    assert min(np.diff(places)) > detectors.SCAN_APART
    assert 80 in places


def test_constant_windows_differ_or_do_not() -> None:
    assert detectors.welch_scan(np.full(48, 0.1)) == []
    assert detectors.welch_scan(with_steps(np.full(48, 0.1), (24, 1e-6))) == [24]


def cheapest(values: np.ndarray, penalty: float) -> float:
    """The cost of the best fit, by trying every last piece of every beginning."""
    n = len(values)
    cost = [-penalty] + [np.inf] * n
    for end in range(detectors.SHORTEST, n + 1):
        for begin in range(end - detectors.SHORTEST + 1):
            piece = values[begin:end]
            cost[end] = min(cost[end], cost[begin] + penalty + np.abs(piece - np.median(piece)).sum())
    return cost[n]


def cost_of(values: np.ndarray, places: list[int], penalty: float) -> float:
    pieces = np.split(values, places)
    assert min(map(len, pieces)) >= detectors.SHORTEST or not places
    return sum(np.abs(piece - np.median(piece)).sum() for piece in pieces) + penalty * len(places)


@given(coarse, st.floats(0.1, 20))
def test_no_fit_is_cheaper_than_the_one_found(values: list[float], penalty: float) -> None:
    series = np.array(values)
    if len(series) >= 2 * detectors.SHORTEST:
        found = cost_of(series, detectors.l1_partition(series, penalty), penalty)
        assert found == pytest.approx(cheapest(series, penalty), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_fit_of_real_numbers_is_cheaper(seed: int) -> None:
    series = with_steps(noise("t3", 110, seed), (31, 3), (38, -3), (77, 2))
    found = cost_of(series, detectors.l1_partition(series, 9.0), 9.0)
    assert found == pytest.approx(cheapest(series, 9.0), rel=1e-9)


def test_pieces_longer_than_what_is_looked_at_in_one_go_are_found() -> None:
    series = with_steps(noise("gauss", 3000, 1), (1200, 3), (2400, -3))
    assert detectors.l1_partition(series, 24.0) == [1200, 2400]


def test_a_spike_makes_no_piece() -> None:
    assert detectors.l1_partition(with_steps(noise("gauss", 60, 1), (30, 1e6), (31, -1e6)), 12.0) == []


def q_the_long_way(x: list[float], y: list[float]) -> float:
    n, m = len(x), len(y)
    q = 2 / (m + n) * sum(abs(a - b) for a in x for b in y)
    if n > 1:
        q -= 2 * m / ((m + n) * (n - 1)) * sum(abs(a - b) for i, a in enumerate(x) for b in x[:i])
    if m > 1:
        q -= 2 * n / ((m + n) * (m - 1)) * sum(abs(a - b) for i, a in enumerate(y) for b in y[:i])
    return q


@given(coarse)
@settings(max_examples=40)
def test_the_split_has_the_largest_energy_distance(values: list[float]) -> None:
    n = len(values)
    largest = max(q_the_long_way(values[:t], values[t:k]) for t in range(1, n) for k in range(t + 1, n + 1))
    split = detectors._best_split(np.array(values), 0, n)
    assert split.q == pytest.approx(largest, abs=1e-9)
    assert any(
        q_the_long_way(values[: split.place], values[split.place : k]) == pytest.approx(largest, abs=1e-9)
        for k in range(split.place + 1, n + 1)
    )


# What Apache Otava 0.8.0 finds in these series (compute_change_points, window_len=50, max_pvalue=1e-5, min_magnitude=0)
OTAVA = {
    ("gauss", 1): [60, 120, 150],
    ("t3", 2): [60, 120],
    ("exp", 3): [60, 120, 148, 169, 170],
    ("ar.3", 4): [60, 120, 153],
}


@pytest.mark.parametrize(("kind", "seed"), OTAVA)
def test_e_divisive_finds_what_otava_finds(kind: str, seed: int) -> None:
    values = 100 + with_steps(noise(kind, 200, seed), (60, 4), (120, -5), (150, 2))
    assert detectors.e_divisive(values) == OTAVA[kind, seed]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [1.0, 1.0, 2.0]])
def test_too_few_values_have_no_split(values: list[float]) -> None:
    assert detectors.e_divisive(np.array(values)) == []
    assert detectors.welch_scan(np.array(values)) == []
    assert detectors.l1_partition(np.array(values), 1.0) == []


def test_places_within_three_of_the_first_are_one_change() -> None:
    found = gather_votes({"scan": [10, 40], "pelt": [12, 44, 70], "e-divisive": [13, 43, 71]})
    assert [(c.place, c.votes) for c in found] == [
        (12, ("e-divisive", "pelt", "scan")),
        (41, ("e-divisive", "scan")),
        (44, ("pelt",)),
        (70, ("e-divisive", "pelt")),
    ]
