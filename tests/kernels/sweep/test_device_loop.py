"""Cold times of a sweep on a driver that stands in for NVIDIA's."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("torch")

from profkit.core.statistics import median
from profkit.core.types import SampleSet
from profkit.kernels.operations.definitions import FactError
from profkit.kernels.sweep.device import time_cold
from profkit.runtime.passes.device_samples import FLUSH_PIECES, DeviceWatch, open_clock
from tests.cuda_stand_in import Device
from tests.cuda_stand_in import device as device
from tests.cuda_stand_in import nvidia as nvidia


def timed(device: Device, microseconds: int, budget: float = 5.0) -> SampleSet:
    with open_clock(device.driver) as clock:
        return time_cold(
            device.work(microseconds), clock, DeviceWatch(None), precision=0.05, max_seconds=budget
        )


@pytest.mark.parametrize("kernels", range(8))
@pytest.mark.parametrize("before", range(4))
def test_eight_calls_see_each_of_four_states_twice_however_many_kernels_they_launch(
    kernels: int, before: int
) -> None:
    launched, seen = before, Counter[int]()
    for pieces in FLUSH_PIECES:
        launched += pieces
        seen[launched % 4] += 1  # the state in which the call's first kernel runs
        launched += kernels
    assert seen == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_sample_is_the_mean_of_eight_calls(device: Device) -> None:
    found = timed(device, 40)
    assert found.loops == 8
    assert median(found.seconds) == pytest.approx(40e-6, rel=0.02)
    assert 16 <= len(found.seconds) < 40, "a quiet device needs no more"
    assert found.precise


def test_calls_that_take_long_are_samples_by_themselves(device: Device) -> None:
    found = timed(device, 6000)
    assert found.loops == 1
    assert len(found.seconds) >= 40
    assert median(found.seconds) == pytest.approx(6e-3, rel=0.02)


def test_a_budget_that_is_gone_ends_it_and_what_was_seen_is_told(device: Device) -> None:
    found = timed(device, 2000, budget=1e-3)
    assert found.seconds
    assert not found.precise


def test_work_that_nothing_waits_for_has_no_time(device: Device) -> None:
    with open_clock(device.driver) as clock, pytest.raises(FactError, match="on another stream"):
        time_cold(
            lambda: device.cuda.stand_in_elsewhere(600),
            clock,
            DeviceWatch(None),
            precision=0.05,
            max_seconds=1.0,
        )
