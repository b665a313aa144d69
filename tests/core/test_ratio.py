"""Coverage and false alarms by simulation: processes with offsets of their own, and noise that has a memory."""

from __future__ import annotations

import random
from math import exp, log

import pytest

from profkit.core.inference import ratio_of
from profkit.core.statistics import median_interval

PAIRS = 300


def processes(
    source: random.Random, count: int, samples: int, between: float, within: float, memory: float, by: float
) -> list[list[float]]:
    """Samples around 1 * (1 + by): each process has an offset, and an AR(1) noise."""
    found = []
    for _ in range(count):
        offset, noise, group = source.gauss(0, between), 0.0, []
        for _ in range(samples):
            noise = memory * noise + source.gauss(0, within * (1 - memory**2) ** 0.5)
            group.append((1 + by) * exp(offset + noise))
        found.append(group)
    return found


# 300 pairs: a true rate of 5 % shows up to 8.3 % in 99 of 100 simulations
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("count", "samples", "between", "within", "memory", "most"),
    [
        (1, 40, 0.02, 0.01, 0.0, 0.083),
        (2, 30, 0.01, 0.01, 0.0, 0.083),
        (3, 30, 0.01, 0.01, 0.0, 0.083),
        (3, 60, 0.0, 0.02, 0.9, 0.083),
        (3, 60, 0.01, 0.02, 0.9, 0.083),
        (6, 12, 0.02, 0.01, 0.0, 0.083),
        (10, 8, 0.01, 0.02, 0.5, 0.083),
    ],
)
def test_the_same_thing_twice_is_not_called_different_more_often_than_promised(
    count: int, samples: int, between: float, within: float, memory: float, most: float
) -> None:
    source = random.Random(count * 1000 + samples)
    missed = significant = 0
    for _ in range(PAIRS):
        a, b = (processes(source, count, samples, between, within, memory, 0.0) for _ in range(2))
        found = ratio_of(a, b)
        assert found is not None
        low, high = found.interval(0.95)
        missed += not low <= 1 <= high
        significant += found.p <= 0.05
    assert missed / PAIRS <= most
    assert significant / PAIRS <= most


@pytest.mark.parametrize(("count", "by"), [(3, 0.10), (6, 0.05), (10, -0.05)])
def test_an_interval_covers_the_change_that_was_made(count: int, by: float) -> None:
    source = random.Random(count)
    covered = seen = 0
    for _ in range(PAIRS):
        found = ratio_of(
            processes(source, count, 20, 0.01, 0.01, 0.0, 0.0),
            processes(source, count, 20, 0.01, 0.01, 0.0, by),
        )
        assert found is not None
        low, high = found.interval(0.95)
        covered += low <= 1 + by <= high
        seen += not low <= 1 <= high
    assert covered / PAIRS >= 0.917
    assert seen / PAIRS >= 0.95


def test_a_single_process_on_each_side_is_taken_to_vary_as_processes_do() -> None:
    source = random.Random(3)
    a, b = (processes(source, 1, 40, 0.0, 0.001, 0.0, by) for by in (0.0, 0.03))
    found = ratio_of(a, b)
    assert found is not None
    assert found.assumed
    low, high = found.interval()
    assert low < 1 < high


def test_a_single_process_against_several_is_not_called_different_too_often() -> None:
    source, missed = random.Random(8), 0
    for _ in range(PAIRS):
        found = ratio_of(
            processes(source, 1, 20, 0.02, 0.001, 0.0, 0.0), processes(source, 5, 20, 0.02, 0.001, 0.0, 0.0)
        )
        assert found is not None
        low, high = found.interval()
        missed += not low <= 1 <= high
    assert missed / PAIRS <= 0.083


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([], [[1.0] * 20]),
        ([[]], [[1.0] * 20]),
        ([[0.0] * 20], [[1.0] * 20]),
        ([[-1.0] * 20], [[1.0] * 20]),
        ([[1.0, 1.1, 1.2]], [[1.0, 1.1, 1.2]]),  # one process, and too few samples for an interval
        ([[1.0], [1.0]], [[1.0], [1.0]]),  # readings of a coarse clock
    ],
)
def test_where_nothing_is_known_of_the_error_there_is_no_ratio(
    a: list[list[float]], b: list[list[float]]
) -> None:
    assert ratio_of(a, b) is None


def test_samples_of_absurd_sizes_give_wide_intervals_and_no_overflow() -> None:
    wild = [[1e300, 1e-300] * 20, [1e-300, 1e300] * 20]
    found = ratio_of(wild, [[1.0, 1.1] * 20, [1.2, 1.0] * 20])
    assert found is not None
    low, high = found.interval()
    assert 0 < low < high
    assert found.detectable() > 1


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


def test_a_change_far_larger_than_the_wandering_is_seen() -> None:
    source = random.Random(6)
    seen = 0
    for _ in range(100):
        found = ratio_of([wandering(source, 0.97)], [wandering(source, 0.97, by=0.2)], between=0.01)
        assert found is not None
        seen += found.interval()[0] > 1.02
    assert seen >= 95
