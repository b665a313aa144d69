"""The limits of quiet nights, what widens them, and nights in which others had the processor."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from profkit.core.types import Disturbance, Series
from profkit.regression.detection.decide import decide
from profkit.regression.detection.nights import NightValue, control_limits
from profkit.regression.detection.rules import rule_for
from profkit.regression.history import entry_of, open_history
from tests.documents import document
from tests.regression.detection.nights import series_of
from tests.regression.detection.years import gaussian

RULE = rule_for("time.median")
BARE = rule_for("ipc", {"ipc": {"relative": 0}})  # no floor, so that the limits alone are seen
# Five nights beside a busy neighbour, and nine within 3 %.
BUSY = (1.31, 2.04, 1.62, 1.45, 1.88)
CALM = (1.012, 0.996, 1.004, 1.014, 0.989, 1.001, 0.993, 1.008, 0.999)


def level(values: Sequence[float]) -> list[NightValue]:
    return [NightValue(place, value, 0.0) for place, value in enumerate(values)]


def beside(values: Sequence[float], lost: Sequence[float]) -> Series:
    """The series, with the share of each night that others had; the later ones had nothing taken away."""
    series = series_of(values)
    shares = [*lost, *[0.0] * (len(values) - len(lost))]
    points = tuple(replace(p, lost=share) for p, share in zip(series.points, shares, strict=True))
    return replace(series, points=points)


def test_a_quiet_night_of_a_normal_series_is_outside_in_about_one_of_a_thousand() -> None:
    draws = level([1 + v for v in islice(gaussian(random.Random(5), 0.01), 10_000)])
    outside = sum(
        bool(control_limits(draws[end - 24 : end], BARE).inner_side(draws[end].value))
        for end in range(24, len(draws))
    )
    assert 0.0002 < outside / len(draws) < 0.004


def test_a_short_level_has_wider_limits_and_a_night_that_follows_one_outside_narrower_ones() -> None:
    draws = level([1 + v for v in islice(gaussian(random.Random(2), 0.01), 24)])
    whole, short = control_limits(draws, BARE), control_limits(draws[:7], BARE)
    assert (short.high - short.low) / short.sigma > 1.4 * (whole.high - whole.low) / whole.sigma
    following = control_limits(draws, BARE, following=True)
    assert (following.high - following.low) / (whole.high - whole.low) == pytest.approx(2.5 / 4)


def test_disturbed_nights_are_forgotten_once_there_are_quiet_ones() -> None:
    values, lost = [*BUSY, *CALM], [1 - 1 / value for value in BUSY]
    blind, seeing = decide(series_of(values), RULE), decide(beside(values, lost), RULE)
    assert blind.detectable is not None
    assert seeing.detectable is not None
    assert blind.detectable > 0.9
    assert seeing.detectable <= 0.10
    assert (seeing.outcome, seeing.code) == ("pass", "held")
    stepped = [*values, 1.15]
    assert decide(series_of(stepped), RULE).outcome == "pass"
    assert decide(beside(stepped, lost), RULE).code == "suspect"


def test_a_history_keeps_which_share_of_its_time_a_run_lost(tmp_path: Path) -> None:
    lost = (Disturbance(10.0, cpu=6.0, stolen=1.0, others=3.0, waited=2.0),)
    run = replace(document(), disturbances=lost)
    with open_history(tmp_path / "history.sqlite") as history:
        history.add(entry_of(run))
        (point, *_) = history.series()[0].points
    assert point.lost == pytest.approx(0.3)
    assert "time lost" not in entry_of(document()).facts
