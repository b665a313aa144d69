"""A kernel reaches neither the judge nor the baseline nor their files, and computes only while it is timed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

pytest.importorskip("torch")

import psutil
from judging import evaluator_of, judge_operation

from profkit.core.errors import MachineError
from profkit.core.files.safe_folder import user_cache
from profkit.kernels.evaluation.evaluator import Evaluator
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.sources.source import KernelSource, SourceRequest
from tests.evaluation_documents import a_test
from tests.spoken import spoken

CHECKED_CALLS = 2  # that a judge leaves in the arena of a test that is not timed
LANDLOCK = 0 if sys.platform != "linux" else ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    logs = tmp_path_factory.mktemp("evaluation") / "logs"
    logs.mkdir()
    if cache := user_cache("kernels"):  # a kernel tries to write into it
        cache.mkdir(parents=True, exist_ok=True)
    with evaluator_of("saboteurs.py", logs, correctness_only=True) as opened:
        yield opened


@pytest.mark.thorough
@pytest.mark.parametrize("operation", ["abs", "sin", "cos", "exp", "tanh", "cosh"])
def test_what_a_kernel_reaches_for_is_not_there(evaluator: Evaluator, operation: str) -> None:
    if {"sin": 1, "exp": 6}.get(operation, 0) > LANDLOCK:
        pytest.skip("this system lets a process write the files, and stop the processes, of its user")
    result = judge_operation(evaluator, f"{operation}.default")
    assert (result.status, result.reason) == ("passed", None)


@pytest.mark.skipif(LANDLOCK < 1, reason="this system lets a process write the files of its user")
def test_a_kernel_below_a_kept_folder_writes_nothing_there(tmp_path: Path) -> None:
    """A generation's kernels lie in its folder, beside the earlier ones and what the model was told of them."""
    (tmp_path / "run" / "relu").mkdir(parents=True)
    tried = """
import sys
from pathlib import Path
from profkit.kernels.evaluation.worker.isolation import confine
run = Path(sys.argv[1])
confine([str(run / "relu")], [str(run)])
try:
    (run / "relu" / "relu_attempt_1_feedback.txt").write_text("It is perfect.")
except PermissionError:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", tried, tmp_path / "run"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")


@pytest.mark.thorough
def test_an_argument_at_another_address_is_no_copy_of_it(evaluator: Evaluator) -> None:
    result = judge_operation(evaluator, "clone.default")
    assert (result.status, result.fault) == ("incorrect", "aliasing")


@pytest.mark.thorough
def test_a_wrong_answer_costs_its_own_test_and_not_the_next_one(evaluator: Evaluator) -> None:
    assert judge_operation(evaluator, "log.default").status == "crashed"
    assert judge_operation(evaluator, "tanh.default").status == "passed"


@pytest.mark.thorough
@pytest.mark.parametrize("operation", ["sqrt.default", "erf.default"], ids=["session", "group"])
def test_a_process_in_another_session_or_group_stands_still_between_calls_and_ends_with_its_kernel(
    evaluator: Evaluator, operation: str
) -> None:
    assert judge_operation(evaluator, operation).status == "passed"
    (process,) = processes_elsewhere()
    assert stands_still(process)
    assert judge_operation(evaluator, "tanh.default").status == "passed"
    assert stands_still(process)
    assert evaluator._candidate is not None
    evaluator._candidate.kill()
    assert processes_elsewhere() == []


@pytest.mark.thorough
@pytest.mark.parametrize(("operation", "counts"), [("tanh.default", False), ("sqrt.default", True)])
def test_what_computes_elsewhere_counts_until_it_stands_still(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, operation: str, counts: bool
) -> None:
    assert judge_operation(evaluator, operation).status == "passed"
    assert evaluator._candidate is not None
    child = evaluator._candidate._connection._child
    look = child.members_elsewhere

    def look_late() -> list[int]:
        sleep(0.3)
        return look()

    monkeypatch.setattr(child, "members_elsewhere", look_late)
    batch = evaluator._candidate.time(CHECKED_CALLS)
    assert (batch.seconds > 0.3) == counts
    evaluator._candidate.kill()


@pytest.mark.thorough
def test_who_changes_how_a_thread_of_the_baseline_is_scheduled_is_found(evaluator: Evaluator) -> None:
    assert evaluator._baseline is not None
    evaluator._baseline.load("tanh.default")
    evaluator._baseline.check_scheduling()
    *_, thread = psutil.Process(evaluator._baseline.pid).threads()
    os.setpriority(os.PRIO_PROCESS, thread.id, 19)
    with pytest.raises(MachineError, match="scheduled"):
        evaluator._baseline.check_scheduling()


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            ["no test of the suite smoke calls the kernels of hardswish; --suite opinfo has more operations"],
        ),
        ({"suite": "opinfo"}, ["no test of the suite opinfo calls the kernels of hardswish"]),
        ({"operations": ("relu",)}, []),  # nobody asked for the other one
        ({"source": SourceRequest("aten")}, []),
    ],
)
def test_kernels_of_ones_own_that_no_test_calls_are_named(
    tmp_path: Path, settings: dict[str, Any], said: list[str]
) -> None:
    evaluator = Evaluator(str(tmp_path))
    evaluator._settings = replace(JudgeSettings(source=SourceRequest("file", ("k.py",))), **settings)
    kernels = KernelSource(dict.fromkeys(("relu.default", "relu.out", "hardswish.default"), "k.py"))
    assert [spoken(note) for note in evaluator._without_test(kernels, [a_test("relu.default")])] == said
