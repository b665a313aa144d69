"""What is found and what is not: series as in practice, noise without a change, and series made to mislead."""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from profkit.regression.change_points import examine_series
from tests.regression.practice import QUIET, REGRESSED, Practice


def places(values: object) -> list[int]:
    return [change.index for change in examine_series(values).change_points]  # type: ignore[arg-type]


# ---------------------------------------------------------------- series as in practice


@pytest.mark.parametrize("series", REGRESSED, ids=repr)
def test_a_regression_of_practice_is_found_where_it_is(series: Practice) -> None:
    (found,) = places(series.values())
    assert abs(found - (series.first_bad or 0)) <= 2


@pytest.mark.parametrize("series", QUIET, ids=repr)
def test_nothing_is_found_where_only_single_builds_are_slow_or_all_differ(series: Practice) -> None:
    assert places(series.values()) == []


# ---------------------------------------------------------------- noise alone


@pytest.mark.parametrize(
    ("kind", "most"), [("gauss", 0.01), ("t3", 0.02), ("exp", 0.02), ("ar.3", 0.05), ("ar.6", 0.08)]
)
def test_noise_without_a_change_alarms_seldom(kind: str, most: float) -> None:
    alarms = sum(bool(examine_series(100 + noise(kind, 365, seed)).change_points) for seed in range(100))
    assert alarms <= most * 100


# ---------------------------------------------------------------- steps in noise


@pytest.mark.parametrize("kind", ["gauss", "t3", "exp", "ar.3"])
@pytest.mark.parametrize("height", [4, -4])
def test_a_step_is_found_where_it_is(kind: str, height: float) -> None:
    values = 100 + with_steps(noise(kind, 200, 7), (120, height))
    [change] = examine_series(values).change_points
    assert abs(change.index - 120) <= 2
    assert change.before == pytest.approx(float(np.median(values[: change.index])))
    assert change.after == pytest.approx(float(np.median(values[change.index :])))


def test_places_count_the_nights_without_a_value() -> None:
    values: list[float | None] = [*(100 + with_steps(noise("gauss", 100, 3), (60, 8)))]
    gaps: list[float | None] = list(values)
    for missing, at in ((None, 5), (nan, 5), (inf, 30), (None, 60), (None, 99)):
        gaps.insert(at, missing)
    [change] = examine_series(gaps).change_points
    assert change.index == 64  # three nights are missing before it, and the one at 60 + 3 itself


# ---------------------------------------------------------------- series made to mislead


def test_one_huge_spike_is_no_change_and_hides_none() -> None:
    quiet = 100 + noise("gauss", 365, 1)
    quiet[50] = 1e9
    assert places(quiet) == []
    assert places(with_steps(quiet, (200, 5))) == [200]


@pytest.mark.filterwarnings("error")
@given(st.lists(st.floats() | st.none() | st.sampled_from([0.0, 1.0, 1e9]), max_size=60))
@settings(max_examples=60)
def test_whatever_the_values_what_is_said_is_finite(values: list[float | None]) -> None:
    findings = examine_series(values)
    indices = [change.index for change in findings.change_points]
    assert indices == sorted(set(indices))
    for change in findings.change_points:
        assert 0 < change.index < len(values)
        assert isfinite(change.before)
        assert isfinite(change.after)
    for figure in (findings.noise, findings.autocorrelation):
        assert figure is None or isfinite(figure)


# ---------------------------------------------------------------- what else is said


# ---------------------------------------------------------------- the fit


coarse = st.lists(st.integers(-5, 5).map(float), min_size=4, max_size=24)


Values = NDArray[np.float64]


def noise(kind: str, nights: int, seed: int) -> Values:
    """Stationary noise of about unit spread: gauss, t3, exp, or ar.3 for an AR(1) process of coefficient .3."""
    random = np.random.default_rng([seed, nights])
    if kind == "gauss":
        return random.normal(size=nights)
    if kind == "t3":
        return random.standard_t(3, size=nights)
    if kind == "exp":
        return random.exponential(size=nights)
    coefficient, settle = float(kind.removeprefix("ar")), 50
    values = random.normal(size=nights + settle) * np.sqrt(1 - coefficient**2)
    for k in range(1, len(values)):
        values[k] += coefficient * values[k - 1]
    return values[settle:]


def with_steps(values: Values, *steps: tuple[int, float]) -> Values:
    """The values with every (index, height) added from that index on."""
    stepped = values.copy()
    for index, height in steps:
        stepped[index:] += height
    return stepped
