"""Statistics of timings: medians, their intervals, drift, and processes together."""

from __future__ import annotations

import random
from math import exp

import pytest
from hypothesis import strategies as st

from profkit.core import statistics as s
from profkit.core.inference import combine_processes
from profkit.core.statistics import drift_bound
from profkit.runtime.passes.timing import assess_samples

floats = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("n", "rank"),
    [(0, 0), (5, 0), (6, 1), (10, 2), (12, 3), (20, 6), (30, 10), (100, 40), (1000, 469), (2000, 956)],
)
def test_rank_of_the_median_interval(n: int, rank: int) -> None:
    assert s.median_rank(n) == rank


@pytest.mark.parametrize(
    ("values", "middle"),
    [([3.0], 3.0), ([1.0, 2.0], 1.5), ([9.0, 1.0, 5.0], 5.0), ([4.0, 1.0, 3.0, 2.0], 2.5)],
)
def test_median(values: list[float], middle: float) -> None:
    assert s.median(values) == middle


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1.0), (25, 2.0), (50, 3.0), (90, 4.6), (100, 5.0), (150, 5.0)]
)
def test_percentiles_are_linear_between_neighbours(percent: float, value: float) -> None:
    assert s.percentile([5.0, 1.0, 3.0, 2.0, 4.0], percent) == pytest.approx(value)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9])
def test_effective_size_of_an_ar1_process(rho: float) -> None:
    n = 4000
    truth = n * (1 - rho) / (1 + rho)
    sizes = [s.effective_size(_ar1(rho, n, seed)) for seed in range(5)]
    assert 0.6 * truth < s.median(sizes) < 1.15 * truth


def test_wild_values_do_not_hide_the_correlation_of_the_rest() -> None:
    values = _ar1(0.9, 400, 3)
    rng = random.Random(4)
    spiked = [value * 50 if rng.random() < 0.05 else value for value in values]
    assert s.effective_size(spiked) < 200


def test_no_interval_below_six_independent_samples() -> None:
    assert s.median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert s.median_interval([]) is None
    assert s.median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == s.MedianInterval(1.0, 6.0, 6.0)


def test_the_interval_of_independent_samples_is_the_order_statistics() -> None:
    values = [float(i * 7 % 20) for i in range(20)]
    found = s.median_interval(values)
    assert found is not None
    if found.effective == 20:
        assert (found.low, found.high) == (5.0, 14.0)  # 6th and 15th of 0..19


def test_correlated_samples_get_a_wider_interval() -> None:
    values = _ar1(0.9, 500, 1)
    shuffled = values[:]
    random.Random(2).shuffle(shuffled)
    wide, narrow = s.median_interval(values), s.median_interval(shuffled)
    assert wide is not None
    assert narrow is not None
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_coverage_of_the_interval_is_ninety_five_percent(rho: float) -> None:
    held = 0
    for seed in range(300):
        found = s.median_interval(_ar1(rho, 100, seed))
        held += found is not None and found.low <= 1.0 <= found.high
    assert held >= 276  # 95 % less 2 sigma of 300 trials


def test_a_quiet_series_has_no_drift() -> None:
    false = sum(s.relative_drift(_ar1(0.0, 100, seed)) != 0.0 for seed in range(200))
    assert false <= 12


@pytest.mark.parametrize(("end", "sign"), [(1.3, 1), (0.7, -1)])
def test_a_ramp_is_a_drift_with_its_sign(end: float, sign: int) -> None:
    rng = random.Random(5)
    ramp = [1 + (end - 1) * i / 100 + rng.gauss(0, 0.02) for i in range(100)]
    assert s.relative_drift(ramp) * sign > 0.05


def test_warm_up_is_cut_off() -> None:
    rng = random.Random(6)
    values = [rng.gauss(1, 0.01) + exp(-i / 4) for i in range(200)]
    start = s.settling_index(values)
    assert start is not None
    assert 8 <= start <= 60
    assert s.median(values[start:]) == pytest.approx(1.0, abs=0.005)


def test_a_series_that_never_settles_says_so() -> None:
    assert s.settling_index([1 + i / 50 for i in range(100)]) is None


def test_a_lucky_memory_layout_shows_between_processes() -> None:
    quiet = (tuple(m * v for v in _ar1(0.0, 50, i, 0.001)) for i, m in enumerate((1.0, 1.0, 1.1)))
    centre = combine_processes(tuple(quiet))
    assert centre is not None
    assert centre.between_spread == pytest.approx(0.1, abs=0.005)
    assert centre.median == pytest.approx(1.0, abs=0.002)
    assert centre.high is not None
    assert centre.high > 1.1  # three processes cannot say more


def test_whole_processes_of_one_value_each_have_an_interval_from_what_is_between_them() -> None:
    centre = combine_processes(((1.00,), (1.02,), (0.98,), (1.01,)))
    assert centre is not None
    assert centre.low is not None
    assert 0.9 < centre.low < 0.99


def test_slope_ignores_a_wild_point() -> None:
    points = [(float(i), 3.0 * i) for i in range(30)]
    points[10] = (10.0, 1e9)
    value, low, _ = s.theil_sen_slope(points) or (0.0, None, None)
    assert value == pytest.approx(3.0)
    assert low is not None
    assert low > 2.9


def test_slope_of_noise_has_zero_inside() -> None:
    inside = 0
    for seed in range(100):
        rng = random.Random(seed)
        _, low, high = s.theil_sen_slope([(float(i), rng.gauss(0, 1)) for i in range(30)]) or (
            0.0,
            None,
            None,
        )
        assert low is not None
        assert high is not None
        inside += low <= 0 <= high
    assert inside >= 89


def _ar1(rho: float, n: int, seed: int, sigma: float = 0.05) -> list[float]:
    rng = random.Random(f"{rho} {n} {seed}")
    x, values = rng.gauss(0, sigma), []
    for _ in range(n):
        values.append(1 + x)
        x = rho * x + rng.gauss(0, sigma * (1 - rho * rho) ** 0.5)
    return values


def noisy(count: int, seed: int) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(1.0, 0.01) for _ in range(count)]


def usual_bound(count: int) -> float:
    return sorted(drift_bound(noisy(count, seed)) or 0.0 for seed in range(41))[20]


def test_more_samples_leave_less_room_for_a_hidden_drift() -> None:
    few, some, many = map(usual_bound, (16, 128, 1024))
    assert few > 2 * some
    assert some > 2 * many
    assert many < 0.003


def test_a_change_between_the_halves_is_in_the_bound() -> None:
    values = noisy(200, seed=1)
    shifted = [*(value * 1.05 for value in values[:100]), *values[100:]]
    assert 0.045 < (drift_bound(shifted) or 0) < 0.06


def test_few_samples_are_not_enough_while_they_could_hide_a_drift() -> None:
    done = [assess_samples(noisy(32, seed), 0.01).done for seed in range(40)]
    undoubted = [assess_samples(noisy(32, seed), 0.01, doubt=False).done for seed in range(40)]
    assert not any(done)
    assert sum(undoubted) > 20
    assert sum(assess_samples(noisy(120, seed), 0.01).done for seed in range(40)) > 35
