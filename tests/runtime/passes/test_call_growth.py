"""How the time of calls changes from the first to the last, by looks at a profile while it counts."""

from __future__ import annotations

import cProfile
import sys
import time

import pytest

from profkit.runtime.passes.host.calls import CallGrowth, grows, parts_of


def sums_of(seconds: list[float], every: int = 2) -> list[tuple[int, float]]:
    """Calls and seconds so far, at looks after each few calls that take so long."""
    return [(0, 0.0)] + [(n, sum(seconds[:n])) for n in range(every, len(seconds) + 1, every)]


def test_the_mean_of_each_eighth_is_told() -> None:
    parts = parts_of(sums_of([float(n) for n in range(64)]))
    assert parts == pytest.approx([3.5 + 8 * n for n in range(8)])


def test_a_first_look_that_comes_late_counts_from_the_beginning() -> None:
    assert parts_of(sums_of([1.0] * 64, every=4)[1:]) == pytest.approx([1.0] * 8)


def test_few_looks_tell_of_quarters() -> None:
    assert parts_of(sums_of([float(n) for n in range(64)], every=16), 4) == pytest.approx(
        [7.5, 23.5, 39.5, 55.5]
    )


def test_too_few_looks_tell_nothing() -> None:
    assert parts_of(sums_of([float(n) for n in range(64)], every=32)) == []


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], True),
        ([1.0, 2.0, 3.0, 2.9, 3.1, 4.0, 4.0, 4.1], True),  # the machine was a little slower once
        ([1.0] * 8, False),
        ([1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4], False),
        ([1.0, 3.0, 5.0, 1.0, 3.0, 5.0, 7.0, 8.0], False),  # it begins again
        ([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], False),
        ([1.0, 7.0, 19.0, 37.0], True),  # by the square of their number
        ([4.5e-5, 1.06e-4, 3.34e-4, 3.2e-4], False),  # longer from one time on: another caller, a collector
        ([4.4e-4, 4.3e-4, 4.4e-4, 2.0e-3], False),
        ([], False),
    ],
)
def test_what_grows_is_longer_in_each_part(parts: list[float], said: bool) -> None:
    assert grows(parts) == said


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a profiler is one for all threads")
def test_a_function_whose_calls_take_longer_is_found_and_its_neighbour_is_not() -> None:
    kept: list[int] = []

    def longer() -> None:
        kept.append(1)
        time.sleep(0.001 * len(kept))

    def alike() -> None:
        time.sleep(0.005)

    profile = cProfile.Profile()
    growth = CallGrowth(profile)
    growth.start()
    profile.enable()
    for _ in range(64):
        longer()
        alike()
    profile.disable()
    names = [row[2] for row in growth.rows()]
    assert "longer" in names
    assert "alike" not in names
