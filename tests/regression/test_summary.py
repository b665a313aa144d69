"""What an overview says of a series: its level, how it was 30 days before, and from which change on one counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.types import SeriesSummary
from profkit.regression.history import open_history
from profkit.regression.trends import summarize_history
from tests.regression.history.entries import entry, value

NOISE = (0.0, 1e-6, -1e-6, 2e-6, -2e-6)


def summary_of(
    path: Path, values: dict[int, float], days: int | None = None, **machines: str
) -> SeriesSummary:
    with open_history(path) as history:
        for night, number in values.items():
            machine = machines.get(f"m{night}", machines.get("machine", "abcdef012345"))
            history.add(entry(night, value(number=number + NOISE[night % 5]), machine=machine))
        (one,) = summarize_history(history, days=days).series
        return one


def test_the_level_is_the_median_of_a_week_and_is_compared_with_that_of_30_days_before(
    tmp_path: Path,
) -> None:
    one = summary_of(tmp_path / "h", {night: 1e-3 if night < 40 else 1.1e-3 for night in range(60)})
    assert (one.gates, one.level, one.before) == (True, pytest.approx(1.1e-3), pytest.approx(1e-3))
    assert one.counts == pytest.approx(0.02, rel=0.2)  # the floor of time.median: its noise is smaller


def test_a_level_begins_at_the_last_change(tmp_path: Path) -> None:
    one = summary_of(tmp_path / "h", {night: 1e-3 if night < 54 else 2e-3 for night in range(60)})
    assert [change.index for change in one.trend.change_points] == [54]
    assert one.level == pytest.approx(2e-3, rel=1e-2)
