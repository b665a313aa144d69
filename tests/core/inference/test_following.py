"""Samples that follow each other so closely that no ranks give an interval: what is said of them, how often wrongly."""

from __future__ import annotations

import random
from math import log

import pytest

from profkit.core.inference import ratio_of
from profkit.core.statistics import median_interval

PAIRS = 300


def wandering(
    source: random.Random, memory: float, samples: int = 125, by: float = 0.0, between: float = 0.006
) -> list[float]:
    """One process: an offset of `between`, and a noise of 1.2 % that has a memory (AR(1))."""
    offset, noise = 1 + source.gauss(0, between), source.gauss(0, 0.012)
    found = []
    for _ in range(samples):
        noise = memory * noise + source.gauss(0, 0.012 * (1 - memory**2) ** 0.5)
        found.append((1 + by) * offset * (1 + noise))
    return found


@pytest.mark.parametrize(
    ("memory", "most", "beyond"), [(0.95, 0.05, 0.01), (0.97, 0.05, 0.01), (0.99, 0.10, 0.02)]
)
def test_equal_pairs_of_wandering_samples_seldom_lie_outside(
    memory: float, most: float, beyond: float
) -> None:
    source = random.Random(5)
    outside = false = few = 0
    for _ in range(PAIRS):
        a, b = wandering(source, memory), wandering(source, memory)
        few += median_interval([log(v) for v in a]) is None
        found = ratio_of([a], [b], between=0.01)
        assert found is not None
        low, high = found.interval()
        outside += not low <= 1 <= high
        false += low > 1.02 or high < 1 / 1.02
    assert few > PAIRS / 2  # else this tries what ranks do
    assert outside / PAIRS <= most
    assert false / PAIRS <= beyond


@pytest.mark.parametrize("memory", [0.95, 0.97])
def test_the_noise_inside_alone_covers_what_it_moves(memory: float) -> None:
    source, outside = random.Random(9), 0
    for _ in range(PAIRS):
        a, b = (wandering(source, memory, between=0.0) for _ in range(2))
        found = ratio_of([a], [b], between=0.0)
        assert found is not None
        low, high = found.interval()
        outside += not low <= 1 <= high
    assert outside / PAIRS <= 0.083  # 300 pairs: a true rate of 5 % shows up to this in 99 of 100 simulations


def test_a_change_far_larger_than_the_wandering_is_seen() -> None:
    source = random.Random(6)
    seen = 0
    for _ in range(100):
        found = ratio_of([wandering(source, 0.97)], [wandering(source, 0.97, by=0.2)], between=0.01)
        assert found is not None
        seen += found.interval()[0] > 1.02
    assert seen >= 95


def test_it_is_said_how_many_the_samples_are_worth() -> None:
    source = random.Random(7)
    close, free = wandering(source, 0.98), wandering(source, 0.0)
    found, apart = ratio_of([close], [close[::-1]]), ratio_of([free], [free[::-1]])
    assert found is not None
    assert apart is not None
    assert found.independent is not None
    assert 1 <= found.independent < 6
    assert apart.independent is None
