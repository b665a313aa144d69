"""What two processes are taken to differ by, by the clock that timed them and by how steady it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from profkit.core.inference import BETWEEN
from profkit.core.types import RunDocument, SampleSet, Timing
from profkit.regression.compare import compare
from profkit.regression.compare.metrics import DEVICE_SIGMA, STEADY_DEVICE_SIGMA, between_processes
from tests.comparison_documents import run


def timed(
    by: float = 0.0,
    noise: float = 0.001,
    clock: Literal["wall", "cuda-events"] = "cuda-events",
    why: tuple[str, ...] = (),
) -> Timing:
    """One process of 60 samples that lie up to `noise` about their middle."""
    seconds = tuple(80e-6 * (1 + by) * (1 + noise * ((place * 37) % 61 / 30 - 1)) for place in range(60))
    return Timing("norm", "benchmark", (SampleSet(seconds, clock=clock, throttle_reasons=why),), 0.01)


@pytest.mark.parametrize(
    ("first", "second", "spread"),
    [
        (timed(), timed(), STEADY_DEVICE_SIGMA),
        (timed(), timed(noise=0.02), DEVICE_SIGMA),
        (timed(), timed(why=("power limit",)), DEVICE_SIGMA),
        (timed(), timed(clock="wall"), BETWEEN),
        (timed(clock="wall"), timed(clock="wall"), BETWEEN),
        (replace(timed(), processes=()), timed(clock="wall"), BETWEEN),
    ],
)
def test_the_spread_is_that_of_the_clock_and_its_steadiness(
    first: Timing, second: Timing, spread: float
) -> None:
    assert between_processes(first, second) == spread


def gpu(timing: Timing) -> RunDocument:
    return run(timings=(timing,))


def test_a_steady_device_shows_sameness_and_three_per_cent_with_one_process_each() -> None:
    assert compare(gpu(timed()), gpu(timed(0.005))).outcome == "same"
    assert compare(gpu(timed()), gpu(timed(0.012))).outcome == "ambiguous"
    assert compare(gpu(timed()), gpu(timed(0.035))).outcome == "regressed"
    assert compare(gpu(timed(clock="wall")), gpu(timed(0.035, clock="wall"))).outcome == "ambiguous"
