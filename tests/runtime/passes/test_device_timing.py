"""Timing on a device with a simulated clock: a driver that stands in for NVIDIA's, with work of known length."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.statistics import median
from profkit.runtime.passes import device_samples
from profkit.runtime.passes.benchmark import describe_device
from profkit.runtime.passes.device_samples import (
    DeviceClock,
    open_clock,
)
from tests.cuda_stand_in import SIMULATED, Device
from tests.cuda_stand_in import device as device
from tests.cuda_stand_in import nvidia as nvidia
from tests.workload_process import Done, run_workload

ROOT = Path(__file__).resolve().parents[3]


def logged(folder: Path, call: str) -> int:
    return (folder / "log").read_text().split().count(call)


def test_work_that_keeps_the_device_busy_costs_what_the_device_needs(device: Device) -> None:
    found = device.time(device.work(300))
    assert median(found.seconds) == pytest.approx(300e-6, rel=0.01)
    assert found.clock == "cuda-synchronized"
    assert found.loops * median(found.seconds) >= 10e-3  # so that one wait does not show


def test_work_shorter_than_its_launch_costs_the_launch(device: Device) -> None:
    launch = device.work(20)

    def fn() -> None:
        device.spin(100)
        launch()

    assert median(device.time(fn).seconds) == pytest.approx(101e-6, rel=0.02)


def test_work_on_another_stream_is_waited_for(device: Device) -> None:
    launch = device.cuda.stand_in_elsewhere
    assert median(device.time(lambda: launch(400)).seconds) == pytest.approx(400e-6, rel=0.02)


# ---------------------------------------------------------------- the device meanwhile


def test_samples_of_a_throttled_device_are_left_out_and_counted(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    throttle = tmp_path / "throttle"
    monkeypatch.setenv("STAND_IN_THROTTLE", str(throttle))
    looks: list[int] = []
    look = device_samples.DeviceWatch.look

    def every_fifth(watch: device_samples.DeviceWatch) -> device_samples.DeviceState:
        looks.append(0)
        throttle.write_text("68" if len(looks) % 5 == 0 else "1")  # power limit and heat; idle is none
        return look(watch)

    monkeypatch.setattr(device_samples.DeviceWatch, "look", every_fifth)
    found = device.time(device.work(300))
    assert found.throttled == len(looks) // 5 > 0
    assert found.throttle_reasons == ("power limit", "temperature, by the hardware")
    assert f"{found.throttled} throttled samples left out" in "; ".join(describe_device(found))


# ---------------------------------------------------------------- profkit.benchmark on top of it

PRELUDE = f"""{SIMULATED}
import profkit
context = ctypes.c_void_p()
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
"""


def run(folder: Path, nvidia: Path, code: str, prelude: str = PRELUDE, **directive: object) -> Done:
    return run_workload(folder, prelude + textwrap.dedent(code), directive, LD_LIBRARY_PATH=str(nvidia))


def test_the_timing_pass_records_all_of_it_and_loads_no_profiler(tmp_path: Path, nvidia: Path) -> None:
    code = """
    import sys
    profkit.benchmark(lambda: cuda.stand_in_work(300), name="a", flops=1e6)
    assert not {"nvtx", "torch", "cProfile"} & set(sys.modules)
    """
    done = run(tmp_path, nvidia, code, pass_name="timing", sampling=1, precision=0.05)
    assert (done.code, done.out, done.err) == (0, "", "")
    (timing,) = done.timings
    (samples,) = timing.processes
    assert samples.clock == "cuda-synchronized"
    assert median(samples.seconds) == pytest.approx(300e-6, rel=0.02)
    assert samples.clocks


# ------------------------------------------------------------ test_pipelined_blocks


@pytest.fixture
def clock(device: Device) -> Iterator[DeviceClock]:
    with open_clock(device.driver) as opened:
        yield opened


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
