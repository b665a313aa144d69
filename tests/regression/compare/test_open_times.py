"""A time that is open: why, what would decide it, and what other evidence makes of it."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import Change, Comparison, Reading, RunDocument, SampleSet
from profkit.regression.compare import compare
from tests.comparison_documents import run, timing
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


def test_samples_that_follow_each_other_still_show_a_large_change() -> None:
    found = compare(alone(swing=0.06), alone(0.57, swing=0.06))
    assert found.outcome == "regressed"
    assert "neighbouring samples are correlated" in spoken(time_of(found))
