"""A time that is open: why, what would decide it, and what other evidence makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import Change, Comparison, Reading, RunDocument, SampleSet
from profkit.regression.compare import compare
from tests.comparison_documents import run, timing, value
from tests.spoken import spoken


def alone(by: float = 0.0, *readings: Reading, seed: int = 1, swing: float = 0.0) -> RunDocument:
    """A run of one process; `swing`: its samples rise by that and fall again, three times."""
    told = timing(by, processes=1, samples=120, seed=seed)
    if swing:
        seconds = tuple(1e-3 * (1 + by) * (1 + swing * abs((place / 20) % 2 - 1)) for place in range(120))
        told = replace(told, processes=(SampleSet(seconds),))
    return run(0.0, *readings, timings=(told,))


def time_of(found: Comparison) -> Change:
    return next(change for change in found.changes if change.metric == "time.median")


def gpu(seconds: float) -> Reading:
    return value("time.gpu", seconds, "s", "nsys")


def test_samples_that_follow_each_other_still_show_a_large_change() -> None:
    found = compare(alone(swing=0.06), alone(0.57, swing=0.06))
    assert found.outcome == "regressed"
    assert "neighbouring samples are correlated" in spoken(time_of(found))


def test_kernels_that_rose_decide_where_the_open_time_points_the_same_way() -> None:
    found = compare(alone(0.0, gpu(9e-4)), alone(0.05, gpu(9.9e-4), seed=2))
    assert time_of(found).word == "ambiguous"
    assert found.outcome == "regressed"
    assert spoken(found).startswith("Worse: time.gpu rose by 10")
    assert "time.median of mlp" in spoken(found)
    assert "changed in the same direction" in spoken(found)


@pytest.mark.parametrize(
    ("by", "after"),
    [
        (0.0, 9.9e-4),  # kernels may overlap with more than before
        (-0.05, 9.9e-4),
        (0.05, 9.2e-4),  # within what one trace differs from the next
        (0.05, 8e-4),
    ],
)
def test_kernels_alone_or_against_the_time_decide_nothing(by: float, after: float) -> None:
    found = compare(alone(0.0, gpu(9e-4)), alone(by, gpu(after), seed=2))
    assert found.outcome == "ambiguous"
