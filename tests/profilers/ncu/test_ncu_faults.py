"""What ncu says when it cannot: in words, with the line that mends it. Texts as recorded, or as users posted them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from profkit.profilers.ncu.faults import counters_fault, explain, open_counters, superuser_line
from tests.conftest import ROOT

TEXTS = ROOT / "tests" / "data" / "cuda" / "texts"
NOTHING = "\n==WARNING== No kernels were profiled.\n"


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters "
            "on the target device 0. For instructions see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
            + NOTHING,
            "only administrators",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool "
            "(like DCGM) is concurrently collecting profiling data. See https://docs.nvidia.com/..."
            + NOTHING,
            "another tool holds",
            "dcgmi profile --pause",
        ),
        (
            "==ERROR== An error was reported by the driver:\n"
            "==ERROR== Cuda driver is not compatible with Nsight Compute.\n"
            "==ERROR== The application returned an error code (11)." + NOTHING,
            "ncu is newer than the driver",
            "newer driver",
        ),
        (
            "==ERROR== Failed to find metric regex:^derived__local_spilling_requests\\.(sum|min|max|avg|pct)$\n"
            '==ERROR== Failed to profile "copy_f32" in process 1987' + NOTHING,
            "no metric derived__local_spilling_requests",
            "newer Nsight Compute",
        ),
        (
            "==ERROR== Unable to access the following 8 metrics: nvlrx__bytes.avg, nvlrx__bytes.max, nvltx__bytes.sum."
            + NOTHING,
            "does not let ncu read nvlrx__bytes.avg",
            "without the metric",
        ),
        (
            "==WARNING== Backing up device memory in system memory. Kernel replay might be slow. Consider using "
            '"--replay-mode application" to avoid memory save-and-restore.\n'
            "Unhandled C++ exception: bad allocation" + NOTHING,
            "no memory to save",
            "--depth gate",
        ),
        ("==ERROR== Failed to save memory for replay" + NOTHING, "no memory to save", "application"),
        (
            "==ERROR== Failed to connect to process 4711" + NOTHING,
            "another profiler is in it",
            "unset CUDA_INJECTION64_PATH",
        ),
        ("==ERROR== UnknownError" + NOTHING, "bad state", "newer Nsight Compute"),
        (
            "==ERROR== Failed to prepare kernel for profiling\n==ERROR== Unknown Error on device 0.\n==ERROR== "
            'Failed to profile "const:" in process 1' + NOTHING,
            "bad state",
            "newer Nsight Compute",
        ),
        (
            "==ERROR== LaunchFailed\n==PROF== Trying to shutdown target application" + NOTHING,
            "failed while ncu replayed",
            "compute-sanitizer",
        ),
        ("==ERROR== LibraryNotLoaded" + NOTHING, "library of its own", "reinstall"),
        (
            "==ERROR== Failed to open/create lock file (/tmp/nsight-compute-lock). Please check that this process has "
            "write permissions on the file." + NOTHING,
            "cannot take its lock",
            "TMPDIR",
        ),
        (
            "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL)"
            + NOTHING,
            "under WSL",
            "Windows 11",
        ),
        (
            "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips"
            + NOTHING,
            "does not support this GPU",
            "newer",
        ),
        (
            "==ERROR== unrecognised option '--import-sass'. Use --help for further details.",
            "option --import-sass",
            "2022.4",
        ),
        ("==ERROR== option '--kernel-id' cannot be specified more than once.", "--kernel-id twice", None),
        ("sudo: ncu: command not found", "PATH of its own", "sudo -E env"),
        (
            "==WARNING== No kernels were profiled.\n==WARNING== Profiling kernels launched by child processes requires "
            "the --target-processes all option.",
            "child process",
            "--target-processes all",
        ),
        (
            "==ERROR== Something that nobody has seen." + NOTHING,
            "it says: Something that nobody has seen.",
            None,
        ),
    ],
)
def test_an_error_of_ncu_is_told_in_words_with_what_mends_it(text, reason, fix):
    fault = explain(text, 0)
    assert fault is not None
    assert reason in fault.reason
    assert (fix is None) == (fault.fix is None) or fix in (fault.fix or "")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("error.no-kernels.txt", "none of the chosen name was launched. ncu saw chase, divergent, fma16"),
        ("error.no-cuda.txt", "launched nothing on the GPU"),
        ("error.exists.txt", "there already"),
    ],
)
def test_what_was_recorded_is_understood(file, reason):
    assert reason in explain((TEXTS / file).read_text(), 0).reason


@pytest.mark.parametrize(
    "file",
    [
        "ends.ncu.exit3.txt",
        "ends.ncu.kill.txt",
        "ends.ncu._exit.txt",
        "ends.ncu.raise.txt",
        "appreplay.log",
        "range.log",
    ],
)
def test_a_workload_that_ends_otherwise_is_no_fault_of_ncu(file):
    assert explain((TEXTS / file).read_text(), 1) is None


def test_of_many_kernels_the_first_are_named_and_the_rest_counted():
    listed = "\n".join(f"{number}. kernel_{number}" for number in range(1, 31))
    reason = explain(f"==WARNING== No kernels were profiled.\nAvailable Kernels:\n{listed}\n", 0).reason
    assert "kernel_12 and 18 more" in reason
    assert "kernel_13" not in reason


def test_kernels_are_named_by_their_functions_each_once():
    """Instances of a template with signatures of a thousand characters are one name to choose."""
    listed = (
        "1. void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4>(long)\n"
        "2. void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int, T2, T3)\n"
        "3. void at::native::vectorized_elementwise_kernel<(int)2, at::native::FillFunctor<long>>(int, T2, T3)\n"
    )
    reason = explain(f"==WARNING== No kernels were profiled.\nAvailable Kernels:\n{listed}", 0).reason
    assert reason.endswith(
        "ncu saw distribution_elementwise_grid_stride_kernel, vectorized_elementwise_kernel"
    )


def test_a_killed_ncu_has_a_fault_and_a_quiet_one_has_none():
    assert "SIGKILL" in explain("", -9).reason
    assert explain("==PROF== Report: x.ncu-rep", 0) is None


@pytest.mark.parametrize(
    "text", ["", "\0" * 1000, "==ERROR==", "==ERROR== ", "Available Kernels:\n" * 1000, "{0} {1} ==ERROR=="]
)
def test_any_text_is_explained_or_not_and_never_breaks(text):
    explain(text, 0)
    explain(text + NOTHING, 1)


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


def test_the_line_for_root_names_this_python_whole(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cuda/lib64")
    line = superuser_line()
    assert sys.executable in line
    assert '"PATH=$PATH"' in line
    assert '"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"' in line
    assert os.environ["PATH"] not in line
