"""What a drift that does not show could still be worth."""

from __future__ import annotations

import random

from profkit.core.statistics import drift_bound
from profkit.runtime.passes.timing import assess_samples


def noisy(count: int, seed: int) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(1.0, 0.01) for _ in range(count)]


def usual_bound(count: int) -> float:
    return sorted(drift_bound(noisy(count, seed)) or 0.0 for seed in range(41))[20]


def test_more_samples_leave_less_room_for_a_hidden_drift() -> None:
    few, some, many = map(usual_bound, (16, 128, 1024))
    assert few > 2 * some
    assert some > 2 * many
    assert many < 0.003


def test_a_change_between_the_halves_is_in_the_bound() -> None:
    values = noisy(200, seed=1)
    shifted = [*(value * 1.05 for value in values[:100]), *values[100:]]
    assert 0.045 < (drift_bound(shifted) or 0) < 0.06


def test_seven_values_bound_nothing() -> None:
    assert drift_bound(noisy(7, seed=1)) is None


def test_few_samples_are_not_enough_while_they_could_hide_a_drift() -> None:
    done = [assess_samples(noisy(32, seed), 0.01).done for seed in range(40)]
    undoubted = [assess_samples(noisy(32, seed), 0.01, doubt=False).done for seed in range(40)]
    assert not any(done)
    assert sum(undoubted) > 20
    assert sum(assess_samples(noisy(120, seed), 0.01).done for seed in range(40)) > 35
