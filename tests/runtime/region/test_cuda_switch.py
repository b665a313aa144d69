"""The CUDA switch in a workload's process, against a driver that stands in for NVIDIA's and notes what is called."""

from __future__ import annotations

import textwrap
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import pytest

from profkit.runtime.passes.read import region_timings
from profkit.runtime.region.active import LOOK_PAUSE, DeviceWait
from tests.cuda_stand_in import SIMULATED
from tests.cuda_stand_in import nvidia as nvidia
from tests.workload_process import Done, run_workload

# What a CUDA runtime does when it is first used: the device's primary context, current in this thread.
USE_CUDA = """
def use_cuda():
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    return cuda
"""
# nvtx, as the package is called; notes ranges in the same log.
NVTX = """
import os, sys, types
def say(text):
    with open(os.environ["STAND_IN_LOG"], "a") as log: log.write(text + "\\n")
class Nvtx(types.ModuleType):
    def start_range(self, message, domain):
        say(f"range {message} in {domain}")
        return message
    def end_range(self, which): say(f"end {which}")
sys.modules["nvtx"] = Nvtx("nvtx")
"""


def run(
    folder: Path, nvidia: Path, code: str, pass_name: str = "trace", **env: str
) -> tuple[Done, list[str]]:
    """The workload, and the calls that the stand-in noted."""
    clock = SIMULATED if "stand_in_work" in code else ""  # the others ask whether libcuda is loaded at all
    full = NVTX + clock + USE_CUDA + "import profkit\n" + textwrap.dedent(code)
    log = folder / "log"
    more = {"LD_LIBRARY_PATH": str(nvidia), "STAND_IN_LOG": str(log), **env}
    done = run_workload(folder, full, {"pass_name": pass_name, "switch": {"kind": "cuda"}}, **more)
    return done, log.read_text().splitlines() if log.exists() else []


def without_own(calls: list[str]) -> list[str]:
    """Without the calls that a workload makes itself."""
    return [call for call in calls if call not in {"cuInit", "cuCtxSetCurrent", "cuDevicePrimaryCtxRetain"}]


ENTRY = [
    "cuCtxSynchronize",  # the thread's context, then
    "cuCtxSynchronize",  # the devices that are in use
    "cuProfilerStart",
    "range a in profkit",
    "cuCtxSynchronize",
    "cuCtxSynchronize",
    "end a",
    "cuProfilerStop",
]


def test_a_region_waits_starts_marks_and_the_other_way_round(tmp_path: Path, nvidia: Path) -> None:
    done, calls = run(tmp_path, nvidia, "use_cuda()\nwith profkit.region('a'): say('work')")
    assert without_own(calls) == [*ENTRY[:4], "work", *ENTRY[4:]]
    assert (done.notes, done.err) == ((), "")


def test_cuda_that_is_linked_but_not_begun_is_begun_for_the_start(tmp_path: Path, nvidia: Path) -> None:
    code = """
    import ctypes; ctypes.CDLL("libcuda.so.1")
    with profkit.region('a'): use_cuda()
    """
    done, calls = run(tmp_path, nvidia, code)
    assert calls[:3] == ["cuInit", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"]
    assert calls.count("cuProfilerStart") == calls.count("cuProfilerStop") == 1
    assert done.notes == ()


def test_a_process_without_cuda_loads_nothing_and_says_so(tmp_path: Path, nvidia: Path) -> None:
    code = """
    with profkit.region('a'): pass
    print(any("libcuda" in line for line in open("/proc/self/maps")))
    """
    done, calls = run(tmp_path, nvidia, code)
    assert (done.out, calls) == ("False\n", ["range a in profkit", "end a"])
    assert done.notes == ("the region used no CUDA in this process",)
    assert done.err == ""  # a remark, no fault


@pytest.mark.parametrize(
    ("env", "note", "said"),
    [
        (
            {"STAND_IN_INIT": "100"},
            "CUDA cannot be initialised: CUDA_ERROR_NO_DEVICE",
            "cuda not initialised: CUDA_ERROR_NO_DEVICE",
        ),
        (
            {"STAND_IN_START": "999"},
            "cuProfilerStart: error 999",
            "driver refused: cuProfilerStart: error 999",
        ),
        (
            {"STAND_IN_SYNC": "700"},
            "CudaSwitch failed: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
            "switch failed: CudaSwitch: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
        ),
    ],
)
def test_a_driver_that_refuses_is_a_note_and_not_the_workloads_end(
    tmp_path: Path, nvidia: Path, env: dict[str, str], note: str, said: str
) -> None:
    code = """
    use_cuda()
    for _ in range(3):
        with profkit.region('a'): pass
    print("done")
    """
    done, _ = run(tmp_path, nvidia, code, **env)
    assert (done.code, done.out, done.notes) == (0, "done\n", (note,))
    assert done.err == f"profkit: {said}\n"


def test_a_forked_child_leaves_its_parents_cuda_alone(tmp_path: Path, nvidia: Path) -> None:
    code = """
    import os
    use_cuda()
    with profkit.region('a'): pass
    say("fork")
    if os.fork() == 0:
        with profkit.region('b'): pass
        os._exit(0)
    os.wait()
    say("joined")
    with profkit.region('c'): pass
    """
    _, calls = run(tmp_path, nvidia, code)
    assert calls.index("joined") == calls.index("fork") + 1
    assert calls.count("cuProfilerStart") == 2


# ---------------------------------------------------------------- the timing pass

TIMED = """
cuda = use_cuda()
cuda.stand_in_work(400_000)  # left over from before
with profkit.region('outer'):
    cuda.stand_in_work(10_000)
    with profkit.region('inner'): cuda.stand_in_work(20_000)
"""


def test_a_timed_region_holds_its_own_work_on_the_device_and_no_other(tmp_path: Path, nvidia: Path) -> None:
    done, calls = run(tmp_path, nvidia, TIMED, "timing")
    seconds = {region.name: region.seconds[0] for region in done.record.regions}
    assert 0.020 <= seconds["inner"] < 0.021
    assert 0.030 <= seconds["outer"] < 0.031
    assert "cuProfilerStart" not in calls  # no instrument is there while time is measured
    assert done.notes == ()


@pytest.mark.parametrize(("bits", "held"), [("4", ("power limit",)), ("1", ())])  # 1: it is idle
def test_a_timed_region_of_a_device_notes_the_clock_and_what_holds_it(
    tmp_path: Path, nvidia: Path, bits: str, held: tuple[str, ...]
) -> None:
    (tmp_path / "throttle").write_text(bits)
    done, _ = run(tmp_path, nvidia, TIMED, "timing", STAND_IN_THROTTLE=str(tmp_path / "throttle"))
    assert set(done.record.clocks) == {1.755e9}
    assert done.record.held_by == held
    samples = region_timings([done.record])[0].processes[0]
    assert (samples.clocks, samples.throttle_reasons) == (done.record.clocks, held)


def test_what_held_the_clock_in_one_look_of_many_is_not_why_it_was_low() -> None:
    words = iter([("power limit",), (), (), ()])
    watch = SimpleNamespace(look=lambda: SimpleNamespace(clock=1.5e9, words=next(words)))
    wait = DeviceWait(lambda: SimpleNamespace(synchronize=lambda: None), watch_of=lambda _: watch)
    wait.wait()
    for _ in range(4):
        wait.look()
        wait._look_at = 0.0
    assert (wait.clocks, wait.held_by) == ([1.5e9] * 4, ())


def test_regions_of_microseconds_look_at_the_device_seldom() -> None:
    watch = SimpleNamespace(look=lambda: SimpleNamespace(clock=1.5e9, words=()))
    wait = DeviceWait(lambda: SimpleNamespace(synchronize=lambda: None), watch_of=lambda _: watch)
    wait.look()
    assert wait.clocks == []  # nothing uses the device yet
    wait.wait()
    begin = perf_counter()
    for _ in range(1000):
        wait.look()
    assert len(wait.clocks) <= 1 + (perf_counter() - begin) / LOOK_PAUSE
