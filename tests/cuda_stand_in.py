"""Builds what stands in for NVIDIA's libraries in tests on machines without a GPU. A stand-in shows that calls are made
in the right order and that answers are believed or doubted as they should be; what a real driver answers is shown on a
real one only. Its clock is simulated, and profkit's timing reads the same one.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.types import SampleSet
from profkit.hardware import nvml
from profkit.runtime.passes import benchmark
from profkit.runtime.passes.timing import TimedCalls
from profkit.runtime.region.cuda import CudaDriver
from tests.simulated_clock import put_in_place

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
        self.driver = CudaDriver(str(library))
        self.cuda = ctypes.CDLL(str(library))
        self.cuda.stand_in_now.restype = ctypes.c_int64
        context = ctypes.c_void_p()
        self.driver.check("cuInit", 0)
        self.driver.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.driver.check("cuCtxSetCurrent", context)

    def clock(self) -> float:
        """Seconds of the simulated clock."""
        return int(self.cuda.stand_in_now()) / 1e9

    def spin(self, microseconds: float) -> None:
        """Keep the host busy."""
        self.cuda.stand_in_spin(ctypes.c_int64(int(microseconds * 1000)))

    def work(self, microseconds: int) -> Callable[[], object]:
        """A launch that costs the host about a microsecond and the device this."""
        launch = self.cuda.stand_in_work
        return lambda: launch(microseconds)

    def time(self, fn: Callable[[], object], budget: float = 1.0) -> SampleSet:
        return benchmark.time_function(TimedCalls(fn), precision=0.05, max_seconds=budget)


@pytest.fixture
def device(nvidia: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Device:
    monkeypatch.setattr(nvml, "LIBRARIES", (str(nvidia / "libnvidia-ml.so.1"),))
    monkeypatch.setenv("STAND_IN_LOG", str(tmp_path / "log"))
    made = Device(nvidia / "libcuda.so.1")
    monkeypatch.setattr(benchmark, "driver_in_use", lambda: made.driver)
    put_in_place(monkeypatch, made.clock)
    return made


# A program's first lines, where libcuda.so.1 stands in: the whole process reads the simulated clock.
SIMULATED = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
cuda.stand_in_now.restype = ctypes.c_int64
time.perf_counter = lambda: cuda.stand_in_now() / 1e9
time.sleep = lambda seconds: cuda.stand_in_spin(ctypes.c_int64(int(seconds * 1e9)))
"""
