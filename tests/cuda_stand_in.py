"""Builds what stands in for NVIDIA's libraries in tests on machines without a GPU. A stand-in shows that calls are made
in the right order and that answers are believed or doubted as they should be; what a real driver answers is shown on a
real one only.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest

from profkit.core.types import SampleSet
from profkit.hardware import nvml
from profkit.runtime.passes.device_clock import open_clock
from profkit.runtime.passes.device_samples import DeviceCalls
from profkit.runtime.passes.device_timing import time_on_device
from profkit.runtime.passes.device_watch import Watch
from profkit.runtime.region.cuda_driver import Driver

SOURCES = Path(__file__).parent / "stand_ins" / "cuda"


@pytest.fixture(scope="session")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libcuda.so.1 and libnvidia-ml.so.1; the test is skipped where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler builds the stand-ins for NVIDIA's libraries")
    folder = tmp_path_factory.mktemp("nvidia")
    for source, name in (("driver.c", "libcuda.so.1"), ("nvml.c", "libnvidia-ml.so.1")):
        # Without a soname: by that, one that a test loaded by its path would be found by name in all tests after it.
        argv = [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", str(folder / name)]
        subprocess.run([*argv, str(SOURCES / source)], check=True, capture_output=True)
    return folder


class Device:
    """The stand-in, with a context as a runtime makes it."""

    def __init__(self, library: Path) -> None:
        self.driver = Driver(str(library))
        self.cuda = ctypes.CDLL(str(library))
        context = ctypes.c_void_p()
        self.driver.check("cuInit", 0)
        self.driver.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.driver.check("cuCtxSetCurrent", context)

    def work(self, microseconds: int) -> Callable[[], object]:
        """A launch that costs the host about a microsecond and the device this."""
        launch = self.cuda.stand_in_work
        return lambda: launch(microseconds)

    def time(
        self,
        fn: Callable[[], object],
        *,
        cold: bool = False,
        graph: bool = False,
        setup: Callable[[], object] | None = None,
        budget: float = 1.0,
        address: bytes | None = None,
    ) -> SampleSet:
        with open_clock(self.driver) as clock:
            calls = DeviceCalls(fn, clock, setup, cold=cold, graph=graph)
            return time_on_device(calls, Watch(address), precision=0.05, budget=budget)


@pytest.fixture
def device(nvidia: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Device:
    monkeypatch.setattr(nvml, "LIBRARIES", (str(nvidia / "libnvidia-ml.so.1"),))
    monkeypatch.setenv("STAND_IN_LOG", str(tmp_path / "log"))
    return Device(nvidia / "libcuda.so.1")


def spin(microseconds: float) -> None:
    """Keep the host busy."""
    end = perf_counter() + microseconds * 1e-6
    while perf_counter() < end:
        pass
