"""A kernel reaches neither the judge nor the reference nor their files, and computes only while it is timed."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from time import monotonic, sleep

import pytest

pytest.importorskip("torch")

import psutil
import torch
from judging import judge_of, judge_operation

from profkit.kernels.evaluation.judge import Judge

LANDLOCK = 0 if sys.platform != "linux" else ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    threads = torch.get_num_threads()
    logs = tmp_path_factory.mktemp("evaluation") / "logs"
    logs.mkdir()
    with judge_of("saboteurs.py", logs, correctness_only=True) as opened:
        yield opened
    torch.set_num_threads(threads)
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("operation", ["abs", "sin", "cos", "exp", "tanh"])
def test_what_a_kernel_reaches_for_is_not_there(judge: Judge, operation: str) -> None:
    if {"sin": 1, "exp": 6}.get(operation, 0) > LANDLOCK:
        pytest.skip("this system lets a process write the files, and stop the processes, of its user")
    result = judge_operation(judge, f"{operation}.default")
    assert (result.status, result.reason) == ("passed", "")


def test_an_argument_at_another_address_is_no_copy_of_it(judge: Judge) -> None:
    result = judge_operation(judge, "clone.default")
    assert (result.status, result.fault) == ("incorrect", "aliasing")


def test_a_wrong_answer_costs_its_own_test_and_not_the_next_one(judge: Judge) -> None:
    assert judge_operation(judge, "log.default").status == "crashed"
    assert judge_operation(judge, "tanh.default").status == "passed"


def test_a_process_in_another_session_stands_still_between_calls_and_ends_with_its_kernel(
    judge: Judge,
) -> None:
    assert judge_operation(judge, "sqrt.default").status == "passed"
    (process,) = processes_elsewhere()
    assert stands_still(process)
    assert judge_operation(judge, "tanh.default").status == "passed"
    assert stands_still(process)
    assert judge._candidate is not None
    judge._candidate.kill()
    assert processes_elsewhere() == []


def processes_elsewhere() -> list[psutil.Process]:
    """Those that a kernel of the file has left in another session."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "# computes elsewhere" in " ".join(process.cmdline()):
                found.append(process)
    return found


def stands_still(process: psutil.Process) -> bool:
    """One that waits for a processor is stopped when it gets one, before it does anything."""
    deadline = monotonic() + 2.0
    while process.status() != psutil.STATUS_STOPPED and monotonic() < deadline:
        sleep(0.01)
    return process.status() == psutil.STATUS_STOPPED
