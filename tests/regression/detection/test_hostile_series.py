"""Values as no benchmark gives them: an outcome for every one, no exception, and no number that is none."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from profkit.core.codec import to_plain_data
from profkit.core.types import AcceptedChange
from profkit.regression.detection import decide, rule_for
from profkit.reporting.views.night_words import reason_of
from tests.regression.detection.nights import every_night, series_of

POOLS = {
    "zeros": [0.0],
    "zeros and ones": [0.0, 0.0, 0.0, 1.0],
    "signs": [-1.0, 1.0, 0.5, -0.25],
    "huge": [1e308, 1.7e308, -1.7e308, 1e300],
    "tiny": [5e-324, 1e-320, 1e-310, 0.0],
    "all at once": [0.0, 1e308, -1e308, 5e-324, 1.0, float("inf"), float("nan"), float("-inf")],
    "whole": [3.0, 4.0, 5.0, 10**15],
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("better", ["lower", "higher", "none"])
def test_every_value_has_an_outcome(pool: str, better: str) -> None:
    rng = random.Random(f"{pool}{better}")
    for metric in ("time.median", "ipc"):
        rule = replace(rule_for(metric), gates=True, relative=rng.choice([0.0, 0.02]))
        values = [rng.choice(POOLS[pool]) for _ in range(90)]
        series = series_of(values, "".join(rng.choice("aab") for _ in values), better)  # type: ignore[arg-type]
        told = every_night(series, rule, [AcceptedChange("gated_mlp", "2026-02-01", "word")])
        assert len(told) == len(values)
        last = decide(series, rule)
        assert reason_of(last)
        json.dumps([to_plain_data(one) for one in (*told, replace(last, trend=None))], allow_nan=False)


def test_a_count_that_was_nothing_and_is_something_is_told_in_its_own_unit() -> None:
    rule = rule_for("shared.bank_conflicts", {"shared.bank_conflicts": {"gates": True}})
    series = series_of([0.0] * 30 + [4096.0] * 3, metric="shared.bank_conflicts", unit="count")
    told = decide(series, rule)
    assert told.outcome == "regressed"
    assert reason_of(told).startswith("4.10 k above 0 for 3 nights")
    assert told.detectable is None
