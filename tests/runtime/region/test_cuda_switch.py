"""The CUDA switch in a workload's process, against a driver that stands in for NVIDIA's and notes what is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from profkit.runtime.region.record import decode_record
from tests.cuda_stand_in import SIMULATED
from tests.cuda_stand_in import nvidia as nvidia

ROOT = Path(__file__).resolve().parents[3]

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


class Seen:
    """What the stand-in noted and what the process recorded."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.done = done
        log = folder / "log"
        self.calls = log.read_text().splitlines() if log.exists() else []
        self.records = [decode_record(path.read_text()) for path in sorted(folder.glob("r.*.json"))]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for record in self.records for note in record.notes)

    @property
    def order(self) -> list[str]:
        """Without the calls that a workload makes itself."""
        own = {"cuInit", "cuCtxSetCurrent", "cuDevicePrimaryCtxRetain"}
        return [call for call in self.calls if call not in own]


def run(folder: Path, nvidia: Path, code: str, *, nvtx: bool = True, **env: str) -> Seen:
    program = folder / "work.py"
    missing = "import sys\nsys.modules['nvtx'] = None\n"
    clock = SIMULATED if "stand_in_work" in code else ""  # the others ask whether libcuda is loaded at all
    program.write_text(
        (NVTX if nvtx else missing) + clock + USE_CUDA + "import profkit\n" + textwrap.dedent(code)
    )
    directive = {"pass_name": "trace", "record": str(folder / "r"), "switch": {"kind": "cuda"}}
    full = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(nvidia)}
    full |= {"PROFKIT_DIRECTIVE": json.dumps(directive), "STAND_IN_LOG": str(folder / "log"), **env}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=full, timeout=60
    )
    return Seen(folder, done)


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
    seen = run(tmp_path, nvidia, "use_cuda()\nwith profkit.region('a'): say('work')")
    assert seen.order == [*ENTRY[:4], "work", *ENTRY[4:]]
    assert (seen.notes, seen.done.stderr) == ((), "")


def test_cuda_that_is_linked_but_not_begun_is_begun_for_the_start(tmp_path: Path, nvidia: Path) -> None:
    code = """
    import ctypes; ctypes.CDLL("libcuda.so.1")
    with profkit.region('a'): use_cuda()
    """
    seen = run(tmp_path, nvidia, code)
    assert seen.calls[:3] == ["cuInit", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"]
    assert seen.calls.count("cuProfilerStart") == seen.calls.count("cuProfilerStop") == 1
    assert seen.notes == ()


def test_a_process_without_cuda_loads_nothing_and_says_so(tmp_path: Path, nvidia: Path) -> None:
    code = """
    with profkit.region('a'): pass
    print(any("libcuda" in line for line in open("/proc/self/maps")))
    """
    seen = run(tmp_path, nvidia, code)
    assert (seen.done.stdout, seen.order) == ("False\n", ["range a in profkit", "end a"])
    assert seen.notes == ("the region used no CUDA in this process",)
    assert seen.done.stderr == ""  # a remark, no fault


@pytest.mark.parametrize(
    ("env", "note"),
    [
        ({"STAND_IN_INIT": "100"}, "CUDA cannot be initialised: CUDA_ERROR_NO_DEVICE"),
        ({"STAND_IN_START": "999"}, "cuProfilerStart: error 999"),
        ({"STAND_IN_SYNC": "700"}, "CudaSwitch failed: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_a_driver_that_refuses_is_a_note_and_not_the_workloads_end(
    tmp_path: Path, nvidia: Path, env: dict[str, str], note: str
) -> None:
    code = """
    use_cuda()
    for _ in range(3):
        with profkit.region('a'): pass
    print("done")
    """
    seen = run(tmp_path, nvidia, code, **env)
    assert (seen.done.returncode, seen.done.stdout, seen.notes) == (0, "done\n", (note,))
    assert seen.done.stderr.count("profkit:") == 1


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
    seen = run(tmp_path, nvidia, code)
    between = seen.order[seen.order.index("fork") + 1 : seen.order.index("joined")]
    assert between == []
    assert seen.order.count("cuProfilerStart") == 2


# ---------------------------------------------------------------- the timing pass

TIMED = """
cuda = use_cuda()
cuda.stand_in_work(400_000)  # left over from before
with profkit.region('outer'):
    cuda.stand_in_work(10_000)
    with profkit.region('inner'): cuda.stand_in_work(20_000)
"""


def test_a_timed_region_holds_its_own_work_on_the_device_and_no_other(tmp_path: Path, nvidia: Path) -> None:
    directive = {"pass_name": "timing", "record": str(tmp_path / "r"), "switch": {"kind": "cuda"}}
    seen = run(tmp_path, nvidia, TIMED, PROFKIT_DIRECTIVE=json.dumps(directive))
    seconds = {region.name: region.seconds[0] for region in seen.records[0].regions}
    assert 0.020 <= seconds["inner"] < 0.021
    assert 0.030 <= seconds["outer"] < 0.031
    assert "cuProfilerStart" not in seen.calls  # no instrument is there while time is measured
    assert seen.notes == ()
