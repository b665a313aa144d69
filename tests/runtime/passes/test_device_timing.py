"""Timing on a device with a simulated clock: a driver that stands in for NVIDIA's, with work of known length."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.statistics import median
from profkit.runtime.passes import device_timing
from profkit.runtime.passes.benchmark import describe_device
from profkit.runtime.passes.device_samples import (
    DeviceClock,
    open_clock,
)
from profkit.runtime.passes.device_timing import DeviceWatch, EventTimingError
from tests.cuda_stand_in import SIMULATED, Device
from tests.cuda_stand_in import device as device
from tests.cuda_stand_in import nvidia as nvidia
from tests.workload_process import Done, run_workload

ROOT = Path(__file__).resolve().parents[3]


def logged(folder: Path, call: str) -> int:
    return (folder / "log").read_text().split().count(call)


# ---------------------------------------------------------------- warm, back to back


def test_work_that_keeps_the_device_busy_costs_what_the_device_needs(device: Device) -> None:
    found = device.time(device.work(300))
    assert median(found.seconds) == pytest.approx(300e-6, rel=0.01)
    assert found.device_seconds == pytest.approx(300e-6, rel=0.01)
    assert (found.clock, found.cache) == ("cuda-events", "warm")
    assert found.loops >= 8
    assert found.batching == f"{found.loops} calls back to back"


def test_work_shorter_than_its_launch_has_two_times_and_both_are_told(device: Device) -> None:
    launch = device.work(20)

    def fn() -> None:
        device.spin(100)
        launch()

    found = device.time(fn, budget=2)
    assert median(found.seconds) >= 100e-6  # what the workload's loop costs
    assert found.device_seconds == pytest.approx(20e-6, rel=0.05)
    assert found.host_seconds is not None
    assert found.host_seconds >= 100e-6
    assert "queued before the first begins" in (found.batching or "")
    words = "; ".join(describe_device(found))
    assert "launch-bound: the device alone needs 20 µs, to launch it takes the host " in words


def test_a_call_that_waits_for_the_device_inside_has_no_time_of_the_device_alone(device: Device) -> None:
    launch, wait = device.work(200), device.driver.synchronize

    def fn() -> None:
        launch()
        wait()

    found = device.time(fn)
    assert found.device_seconds is None
    assert median(found.seconds) >= 200e-6


# ---------------------------------------------------------------- events that are not believed


def test_work_on_another_stream_escapes_the_events_and_is_seen(device: Device) -> None:
    launch = device.cuda.stand_in_elsewhere
    with pytest.raises(EventTimingError, match="part of the work is on another stream or device"):
        device.time(lambda: launch(400))


def test_nothing_launched_is_nothing_to_time_by_events(device: Device) -> None:
    with pytest.raises(EventTimingError, match="nothing was launched"):
        device.time(lambda: device.spin(50))


# ---------------------------------------------------------------- cold, and with a setup


def test_cold_calls_each_find_a_flushed_l2_and_no_launch_shows(device: Device, tmp_path: Path) -> None:
    launch = device.work(40)

    def fn() -> None:
        device.spin(100)  # as Python's own launches: the device would wait for them
        launch()

    found = device.time(fn, cold=True)
    assert median(found.seconds) == pytest.approx(40e-6, rel=0.02)
    assert (found.cache, found.loops, found.remarks) == ("cold", 1, ())
    assert found.device_seconds == median(found.seconds)
    assert logged(tmp_path, "cuMemsetD8Async") > len(found.seconds)
    assert logged(tmp_path, "cuMemFree_v2") == 1


def test_a_setup_runs_before_every_call_and_outside_of_the_events(device: Device) -> None:
    prepared = device.work(500)
    found = device.time(device.work(30), setup=prepared)
    assert median(found.seconds) == pytest.approx(30e-6, rel=0.02)
    assert found.loops == 1


# ---------------------------------------------------------------- the device meanwhile

HERE = b"0000:00:06.0"


def test_samples_of_a_throttled_device_are_left_out_and_counted(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    throttle = tmp_path / "throttle"
    monkeypatch.setenv("STAND_IN_THROTTLE", str(throttle))
    looks: list[int] = []
    look = device_timing.DeviceWatch.look

    def every_fifth(watch: DeviceWatch) -> device_timing.DeviceState:
        looks.append(0)
        throttle.write_text("68" if len(looks) % 5 == 0 else "1")  # power limit and heat; idle is none
        return look(watch)

    monkeypatch.setattr(device_timing.DeviceWatch, "look", every_fifth)
    found = device.time(device.work(300), address=HERE)
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


@pytest.mark.parametrize(
    ("call", "clock", "remark"),
    [
        ("lambda: cuda.stand_in_elsewhere(400)", "wall", "part of the work is on another stream"),
        ("lambda: cuda.stand_in_work(400), device='cpu', synchronize=cuda.cuCtxSynchronize", "wall", ""),
        ("lambda: cuda.stand_in_elsewhere(400), cold=True", "wall", "by the wall clock, the L2 as it is"),
    ],
)
def test_where_events_do_not_tell_the_wall_clock_waits_for_the_device(
    tmp_path: Path, nvidia: Path, call: str, clock: str, remark: str
) -> None:
    code = f"""
    found = profkit.benchmark({call}, name="a", budget=1, precision=0.05)
    print(found.samples.clock, found.median >= 399e-6, found.samples.remarks)
    """
    line, said = run(tmp_path, nvidia, code).out.splitlines()
    assert said.startswith(f"{clock} True")
    assert remark in said
    assert remark in line


@pytest.mark.parametrize("cold", [False, True])
def test_the_timing_pass_records_all_of_it_and_loads_no_profiler(
    tmp_path: Path, nvidia: Path, cold: bool
) -> None:
    code = """
    import sys
    profkit.benchmark(lambda: cuda.stand_in_work(300), name="a", flops=1e6)
    assert not {"nvtx", "torch", "cProfile"} & set(sys.modules)
    """
    done = run(tmp_path, nvidia, code, pass_name="timing", budget=1, precision=0.05, cold=cold)
    assert (done.code, done.out, done.err) == (0, "", "")
    (timing,) = done.timings
    (samples,) = timing.processes
    assert (samples.clock, samples.cache) == ("cuda-events", "cold" if cold else "warm")
    assert median(samples.seconds) == pytest.approx(300e-6, rel=0.02)
    assert samples.device_seconds == pytest.approx(300e-6, rel=0.02)
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
