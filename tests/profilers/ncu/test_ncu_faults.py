"""What ncu says when it cannot: in words, with the line that mends it. Texts as recorded, or as users posted them."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.profilers.ncu.probe import counters_fault, explain, open_counters
from tests.conftest import ROOT

TEXTS = ROOT / "tests" / "data" / "cuda" / "texts"
NOTHING = "\n==WARNING== No kernels were profiled.\n"


# What ncu prints, a part of what it means, a part of what mends it.
TOLD = r"""
ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.
  only administrators | NVreg_RestrictProfilingToAdminUsers=0
Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is
  another tool holds | dcgmi profile --pause
An error was reported by the driver:\n==ERROR== Cuda driver is not compatible with Nsight Compute.
  ncu is newer than the driver | newer driver
Failed to find metric regex:^derived__local_spilling_requests\.(sum|min|max|avg|pct)$\n==ERROR== Failed to profile "x"
  no metric derived__local_spilling_requests | newer Nsight Compute
Unable to access the following 8 metrics: nvlrx__bytes.avg, nvlrx__bytes.max, nvltx__bytes.sum.
  does not let ncu read nvlrx__bytes.avg | without the metric
\n==WARNING== Backing up device memory in system memory.\nUnhandled C++ exception: bad allocation
  no memory to save | --depth gate
Failed to save memory for replay
  no memory to save | application
Failed to connect to process 4711
  another profiler is in it | unset CUDA_INJECTION64_PATH
UnknownError
  bad state | newer Nsight Compute
Failed to prepare kernel for profiling\n==ERROR== Unknown Error on device 0.
  bad state | newer Nsight Compute
LaunchFailed\n==PROF== Trying to shutdown target application
  failed while ncu replayed | compute-sanitizer
LibraryNotLoaded
  library of its own | reinstall
Failed to open/create lock file (/tmp/nsight-compute-lock). Please check that this process has write permissions
  cannot take its lock | TMPDIR
Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL)
  under WSL | Windows 11
Profiling is not supported on device 0. To find out supported GPUs refer --list-chips
  does not support this GPU | newer
unrecognised option '--import-sass'. Use --help for further details.
  option --import-sass | 2022.4
option '--kernel-id' cannot be specified more than once.
  --kernel-id twice |
\nsudo: ncu: command not found
  PATH of its own | sudo -E env
\n==WARNING== Profiling kernels launched by child processes requires the --target-processes all option.
  child process | --target-processes all
Something that nobody has seen.
  it says: Something that nobody has seen. |
"""
CASES = list(zip(*[iter(TOLD.strip().splitlines())] * 2, strict=True))


@pytest.mark.parametrize(("text", "told"), CASES)
def test_an_error_of_ncu_is_told_in_words_with_what_mends_it(text, told):
    printed = f"==ERROR== {text}".replace("\\n", "\n") + NOTHING
    reason, fix = (part.strip() for part in told.split("|"))
    fault = explain(printed, 0)
    assert fault is not None
    assert reason in fault.reason
    assert bool(fix) == (fault.fix is not None)
    assert fix in (fault.fix or "")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (
            "error.no-kernels.txt",
            "no kernel of the chosen name was launched. ncu saw chase, divergent, fma16",
        ),
        ("error.no-cuda.txt", "launched nothing on the GPU"),
        ("error.exists.txt", "exists already"),
    ],
)
def test_what_was_recorded_is_understood(file, reason):
    assert reason in explain((TEXTS / file).read_text(), 0).reason


def test_a_workload_that_ends_otherwise_is_no_fault_of_ncu():
    for file in (*TEXTS.glob("ends.ncu.*.txt"), TEXTS / "appreplay.log", TEXTS / "range.log"):
        assert explain(file.read_text(), 1) is None, file


def test_a_killed_ncu_has_a_fault_and_a_quiet_one_has_none():
    assert "SIGKILL" in explain("", -9).reason
    assert explain("==PROF== Report: x.ncu-rep", 0) is None


# ------------------------------------------------------------ who may count


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


RESTRICTED = {"proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"}
NOBODY = {"proc/self/status": "CapEff:\t0000000000000000\n"}
ADMIN = {"proc/self/status": "CapEff:\t000001ffffffffff\n"}
CONTAINER_ROOT = {"proc/self/status": "CapEff:\t00000000a80425fb\n"}  # docker's default: no CAP_SYS_ADMIN


@pytest.mark.parametrize(
    ("files", "closed"),
    [
        ({**RESTRICTED, **NOBODY}, True),
        ({**RESTRICTED, **ADMIN}, False),
        ({**RESTRICTED, **CONTAINER_ROOT}, True),
        ({"proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n", **NOBODY}, False),
        ({**NOBODY}, False),  # the driver does not say: only trying tells
        ({**RESTRICTED, "proc/self/status": "CapEff:\tnonsense\n"}, True),
    ],
)
def test_counters_are_closed_where_the_driver_says_so_and_the_user_has_no_right(tmp_path, files, closed):
    fault = counters_fault(tree(tmp_path, files))
    assert (fault is not None) == closed
    if fault is not None:
        assert fault.fix


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n"}, "NVIDIA Control Panel"),
        ({".dockerenv": ""}, "--cap-add=SYS_ADMIN"),
        ({}, "sudo -E env"),
        ({}, "/etc/modprobe.d/"),
    ],
)
def test_the_line_that_opens_them_is_the_one_for_this_machine(tmp_path, files, words):
    assert words in open_counters(tree(tmp_path, files))
