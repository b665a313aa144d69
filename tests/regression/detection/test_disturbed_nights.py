"""Nights in which others had the processor: what they count for the control limits of those after them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from profkit.core.types import Disturbance, Series
from profkit.regression.detection import rule_for
from profkit.regression.detection.control_limits import (
    nights_of,
    recent_limits,
    weight_of,
    weighted_median,
    widened_limits,
)
from profkit.regression.detection.decide import decide
from profkit.regression.history import entry_of, open_history
from tests.documents import document
from tests.regression.detection.nights import every_night, series_of

RULE = rule_for("time.median")
# Five nights beside a busy neighbour, and nine within 3 %.
BUSY = (1.31, 2.04, 1.62, 1.45, 1.88)
CALM = (1.012, 0.996, 1.004, 1.014, 0.989, 1.001, 0.993, 1.008, 0.999)


def beside(values: Sequence[float], lost: Sequence[float]) -> Series:
    """The series, with the share of each night that others had; the later ones had nothing taken away."""
    series = series_of(values)
    shares = [*lost, *[0.0] * (len(values) - len(lost))]
    points = tuple(replace(p, lost=share) for p, share in zip(series.points, shares, strict=True))
    return replace(series, points=points)


def test_disturbed_nights_are_forgotten_once_there_are_quiet_ones() -> None:
    values = [*BUSY, *CALM]
    blind = decide(series_of(values), RULE)
    seeing = decide(beside(values, [1 - 1 / value for value in BUSY]), RULE)
    assert blind.detectable is not None
    assert seeing.detectable is not None
    assert blind.detectable > 1
    assert seeing.detectable <= 0.10
    assert (seeing.outcome, seeing.code) == ("pass", "held")


def test_a_step_that_disturbed_nights_would_hide_is_seen_after_them() -> None:
    values = [*BUSY, *CALM, 1.15]
    assert decide(series_of(values), RULE).outcome == "pass"
    lost = [1 - 1 / value for value in BUSY]
    assert decide(beside(values, lost), RULE).code == "suspect"


@pytest.mark.parametrize("lost", [0.002, 0.3])
def test_nights_that_were_all_disturbed_alike_count_as_if_none_was(lost: float) -> None:
    draw = random.Random(3)
    values = [draw.gauss(1, 0.01) for _ in range(150)]
    bare = recent_limits(values, None, RULE)
    weights = [weight_of(lost)] * len(values)
    limits = recent_limits(values, None, RULE, weights)
    wide = widened_limits(limits, values, RULE, weights=weights)
    assert (limits.centre, limits.sigma, limits.high) == pytest.approx((bare.centre, bare.sigma, bare.high))
    assert wide.high == pytest.approx(widened_limits(bare, values, RULE).high)
    outcomes = every_night(beside(values, [lost] * len(values)), RULE)
    assert [o.outcome for o in outcomes] == [o.outcome for o in every_night(series_of(values), RULE)]


def test_a_machine_that_is_hardly_ever_quiet_is_judged_all_the_same() -> None:
    draw = random.Random(4)
    lost = [0.0 if night % 12 == 0 else draw.uniform(0.3, 0.6) for night in range(60)]
    values = [draw.gauss(1, 0.01) / (1 - share) for share in lost]
    outcomes = every_night(beside(values, lost), RULE)
    assert {o.outcome for o in outcomes[30:]} <= {"pass", "ambiguous", "improved"}
    assert outcomes[-1].outcome == "pass"


def test_what_a_night_counts_falls_with_the_share_that_it_lost() -> None:
    assert weight_of(0.0) == 1
    assert weight_of(0.05) == pytest.approx(0.5)
    assert weight_of(0.5) == pytest.approx(0.1)
    assert nights_of([1.0] * 9) == 9
    assert nights_of([1.0] * 9 + [0.1] * 5) == pytest.approx(10, abs=0.1)
    assert weighted_median([1, 2, 3, 4], [1, 1, 1, 1]) == 2.5
    assert weighted_median([1, 2, 9], [1, 1, 0.1]) == 2


def test_a_history_keeps_which_share_of_its_time_a_run_lost(tmp_path: object) -> None:
    from pathlib import Path

    lost = (Disturbance(10.0, cpu=6.0, stolen=1.0, others=3.0, waited=2.0),)
    run = replace(document(), disturbances=lost)
    with open_history(Path(str(tmp_path)) / "history.sqlite") as history:
        history.add(entry_of(run))
        (point, *_) = history.series()[0].points
    assert point.lost == pytest.approx(0.3)
    assert "time lost" not in entry_of(document()).facts
