"""The decision on years whose changes are known, and on series as in practice night by night.

Small; the large table is `python -m tests.performance.simulated_year`.
"""

from __future__ import annotations

import pytest

from profkit.regression.detection.rules import rule_for
from tests.regression.detection.nights import every_night, series_of
from tests.regression.detection.scoring import ALARMS, Score, by_nights
from tests.regression.detection.years import NOISES, STORIES, make_year
from tests.regression.practice import QUIET, REGRESSED, Practice

RULE = rule_for("time.median")
SEED = 900  # none of those on which parameters were chosen


def nights_alone(noise: str) -> Score:
    score = Score()
    for story in STORIES:
        year = make_year(noise, story, SEED)
        score.add(year, by_nights(year, RULE))
    return score


@pytest.mark.thorough
@pytest.mark.parametrize("noise", NOISES)
def test_by_nights_alone_steps_of_twice_the_floor_are_found_and_hardly_anything_else(noise: str) -> None:
    """Half of them within three nights; in plain noise drifts of a quarter per cent a week, too."""
    score = nights_alone(noise)
    assert (score.recall() or 0) >= 0.85  # of spikes a second step on top of an open one is lost
    assert len(score.wrong) <= 2  # of 8,355 nights
    if noise in ("gaussian", "tails", "ar .3", "ar .6"):
        assert (score.delay() or 0) <= 3
    if noise == "gaussian":
        assert (score.recall(0.0025, "drift") or 0) == 1.0


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03])
def test_a_quiet_gaussian_year_has_no_alarm(sigma: float) -> None:
    years = [make_year("gaussian", "quiet", seed, sigma) for seed in range(SEED, SEED + 10)]
    assert [year.name for year in years if by_nights(year, RULE)] == []


# ---------------------------------------------------------------- series as in practice


@pytest.mark.parametrize("series", [*REGRESSED, *QUIET], ids=repr)
def test_of_series_as_in_practice_the_regressions_are_confirmed_by_the_third_night(series: Practice) -> None:
    nights = every_night(series_of(series.values()), RULE)
    alarms = [i for i, told in enumerate(nights) if told.code in ALARMS]
    assert alarms == ([] if series.first_bad is None else [series.first_bad + 2])
