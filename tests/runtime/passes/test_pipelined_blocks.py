"""Two blocks of single calls side by side, on a driver that stands in for NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from profkit.core.statistics import median
from profkit.runtime.passes.device_samples import (
    MOST_MISSES,
    DeviceCalls,
    DeviceClock,
    PipelinedBlocks,
    open_clock,
)
from tests.cuda_stand_in import Device
from tests.cuda_stand_in import device as device
from tests.cuda_stand_in import nvidia as nvidia


class Counted:
    """A call that says how often it was made, and takes the host some time before its launch."""

    def __init__(self, device: Device, microseconds: int, host: float = 0.0) -> None:
        self.made = 0
        self._device, self._launch, self._host = device, device.work(microseconds), host

    def __call__(self) -> None:
        self.made += 1
        self._device.spin(self._host)
        self._launch()


@pytest.fixture
def clock(device: Device) -> Iterator[DeviceClock]:
    with open_clock(device.driver) as opened:
        yield opened


def blocks(fn: Counted, clock: DeviceClock, calls: int = 8) -> PipelinedBlocks:
    timed = DeviceCalls(fn, clock, cold=True)
    timed.fit_blocks(timed.back_to_back(1))
    timed.ahead = calls
    fn.made = 0
    return PipelinedBlocks(timed)


def test_the_next_block_is_launched_before_the_last_one_is_read(device: Device, clock: DeviceClock) -> None:
    fn = Counted(device, 40)
    pipelined = blocks(fn, clock)
    assert len(pipelined.next_block(wanted=100)) == 8
    assert fn.made == 16
    assert len(pipelined.next_block(wanted=92)) == 8
    assert fn.made == 24


def test_what_a_call_takes_is_the_device_alone_in_every_block(device: Device, clock: DeviceClock) -> None:
    pipelined = blocks(Counted(device, 40, host=100), clock)
    found = [second for _ in range(6) for second in pipelined.next_block(wanted=100)] + pipelined.last_block()
    assert len(found) >= 16
    assert median(found) == pytest.approx(40e-6, rel=0.02)
    assert max(found) < 100e-6, "the host shows in no sample"


def test_a_long_block_is_not_launched_before_it_is_known_to_be_needed(
    device: Device, clock: DeviceClock
) -> None:
    fn = Counted(device, 2000)
    pipelined = blocks(fn, clock)
    pipelined.next_block(wanted=9)
    pipelined.next_block(wanted=1)
    assert fn.made == 16
    assert pipelined.last_block() == []


def test_a_host_that_waits_for_the_device_inside_is_told_as_without_a_flight(
    device: Device, clock: DeviceClock
) -> None:
    launch, wait = device.work(200), device.driver.synchronize

    def fn() -> None:
        launch()
        wait()

    timed = DeviceCalls(fn, clock, cold=True)
    timed.fit_blocks(timed.back_to_back(1))
    timed.ahead = 2
    pipelined, found = PipelinedBlocks(timed), []
    for _ in range(MOST_MISSES + 40):
        found += pipelined.next_block(wanted=100)
    assert timed.hurried
    assert min(found) >= 200e-6


def test_a_flush_in_pieces_writes_as_much_as_one_in_one(
    device: Device, clock: DeviceClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, int]] = []
    check = device.driver.check

    def seen(name: str, *arguments: object) -> None:
        if name == "cuMemsetD8Async":
            place, _, size, _ = arguments
            written.append((place.value, size.value))  # type: ignore[attr-defined]
        check(name, *arguments)

    clock.flush()
    monkeypatch.setattr(device.driver, "check", seen)
    clock.flush(4)
    first = written[0][0]
    assert [place - first for place, _ in written] == [0, 1 << 19, 2 << 19, 3 << 19]
    assert sum(size for _, size in written) == 2 << 20
