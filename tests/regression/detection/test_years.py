"""The decision on years whose changes are known, and on the practitioners' series night by night.

Small; the large table is `python -m tests.performance.simulated_year`.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from profkit.core.statistics import median
from profkit.regression.detection.rules import rule_for
from tests.regression.detection.nights import every_night, series_of
from tests.regression.detection.scoring import ALARMS, Score, by_nights
from tests.regression.detection.years import NOISES, STORIES, make_year

RULE = rule_for("time.median")
SEED = 900  # none of those on which parameters were chosen


def nights_alone(noise: str) -> Score:
    score = Score()
    for story in STORIES:
        year = make_year(noise, story, SEED)
        score.add(year, by_nights(year, RULE))
    return score


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


# ---------------------------------------------------------------- real series, judged by people

FIRST_BAD = {"0002": 14, "0011": 93, "0012": 87, "0013": 113, "0016": 29}


def test_of_the_practitioners_series_the_five_regressions_are_confirmed_by_the_third_night(
    fixtures: Path,
) -> None:
    folder = fixtures / "regression" / "sap_hana_small_2021" / "data"
    if not folder.is_dir():
        pytest.skip(f"the practitioners' series are not here: {folder}")
    files = sorted(folder.glob("*.csv"))
    assert len(files) == 25
    for path in files:
        builds: dict[str, list[float]] = {}
        with path.open() as file:
            for row in csv.DictReader(file):
                builds.setdefault(row["GHC"], []).append(float(row["Measurement"]))
        series = series_of([median(values) for values in builds.values()])
        alarms = [i for i, told in enumerate(every_night(series, RULE)) if told.code in ALARMS]
        bad = FIRST_BAD.get(path.stem)
        assert alarms == ([] if bad is None else [bad + 2]), path.stem
