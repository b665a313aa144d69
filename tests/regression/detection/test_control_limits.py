"""The band of quiet nights, and what widens it."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from profkit.regression.detection import rule_for
from profkit.regression.detection.control_limits import autocorrelation, recent_limits, widened_limits
from tests.regression.detection.test_decide import RULE
from tests.regression.detection.years import clinging, gaussian

RATE = rule_for("ipc", {"ipc": {"relative": 0}})  # no floor, so that the band alone is seen


def values(r: float, n: int, seed: int = 1) -> list[float]:
    return [1 + v for v in islice(clinging(r)(random.Random(seed), 0.01), n)]


def test_a_quiet_night_of_a_normal_series_is_outside_in_about_one_of_a_thousand() -> None:
    draws = [1 + v for v in islice(gaussian(random.Random(5), 0.01), 20_000)]
    outside = 0
    for end in range(24, len(draws)):
        band = recent_limits(draws[end - 24 : end], None, RATE)
        outside += not band.low <= draws[end] <= band.high
    assert 0.0002 < outside / len(draws) < 0.004


def test_a_short_level_has_wider_limits_and_less_so_where_its_noise_is_known() -> None:
    level = [1 + v for v in islice(gaussian(random.Random(2), 0.01), 24)]
    whole = recent_limits(level, None, RATE)
    short = recent_limits(level[:7], None, RATE)
    known = recent_limits(level[:7], 0.01, RATE)
    assert (short.high - short.low) / short.sigma > (known.high - known.low) / known.sigma
    assert (known.high - known.low) / known.sigma > (whole.high - whole.low) / whole.sigma
    assert known.sigma == pytest.approx(0.01, rel=0.3)


def test_one_night_in_a_level_of_three_is_judged_by_the_noise_that_was_known() -> None:
    band = recent_limits([1.0, 1.0, 1.0], 0.01, RATE)
    assert band.high - 1.0 > 0.03


@pytest.mark.parametrize(("r", "low", "high"), [(0.0, -0.15, 0.15), (0.3, 0.15, 0.45), (0.6, 0.45, 0.75)])
def test_autocorrelation_is_told_and_a_drift_does_not_pretend_to_it(
    r: float, low: float, high: float
) -> None:
    found = [autocorrelation(values(r, 120, seed)) for seed in range(60)]
    drifting = [
        autocorrelation([v + 0.001 * i for i, v in enumerate(values(r, 120, seed))]) for seed in range(60)
    ]
    assert low < sum(found) / 60 < high
    assert low < sum(drifting) / 60 < high


def test_of_few_nights_autocorrelation_is_a_guess_and_a_constant_has_none() -> None:
    assert autocorrelation(values(0.0, 19), 0.4) == 0.4
    assert autocorrelation([2.0] * 50) == 0.0


def test_correlated_neighbours_widen_the_limits() -> None:
    wider = []
    for seed in range(40):
        level = values(0.6, 120, seed)
        near = recent_limits(level, None, RATE)
        far = widened_limits(near, level, RATE)
        wider.append((far.high - far.low) / (near.high - near.low))
    assert sum(wider) / 40 > 1.2
    level = values(0.0, 120)
    near = recent_limits(level, None, RATE)
    far = widened_limits(near, level, RATE)
    assert (far.high - far.low) / (near.high - near.low) < 1.15


def test_the_night_after_a_candidate_need_not_be_as_far_out_unless_neighbours_are_correlated() -> None:
    shares = []
    for r in (0.0, 0.6):
        level = values(r, 120, 3)
        near = recent_limits(level, None, RATE)
        alone, after = widened_limits(near, level, RATE), widened_limits(near, level, RATE, followed=True)
        shares.append((after.high - after.low) / (alone.high - alone.low))
    assert shares[0] == pytest.approx(2.5 / 4, abs=0.08)
    assert shares[1] > 0.9


def test_the_floor_holds_for_a_following_night_too() -> None:
    level = [1.0 + 0.0001 * (i % 3) for i in range(60)]
    near = recent_limits(level, None, RULE)
    assert widened_limits(near, level, RULE, followed=True).high >= 1.02
