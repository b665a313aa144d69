"""What else is said of a time: torch.compile as a rival, what a processor can do at all, how many threads were busy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.analysis.evaluation.witnesses import (
    STORED_PER_SECOND,
    describe_launches,
    describe_witnesses,
    impossible_device_rate,
    impossible_rate,
)
from profkit.core.types import Speedup
from profkit.execution.child import WorkerEnded
from profkit.execution.job import JobStatus
from profkit.kernels.evaluation.candidate.arguments import KernelError
from profkit.kernels.evaluation.judging.correctness import Incorrect
from profkit.kernels.evaluation.judging.pairs import PairedTimes
from profkit.kernels.evaluation.judging.reference import count_written
from profkit.kernels.evaluation.judging.trial_timer import CompiledRival
from profkit.kernels.evaluation.sources.source import CompiledSource

TIMES = PairedTimes(Speedup(1.5, 1.4, 1.6, "FASTER", 9), 1e-3, 1e-3, 3, False, 1e-3, 1.0, 1.0)


class Process:
    """Stands in for the process of compiled kernels."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.killed = 0

    def load(self, operation: str) -> None:
        self.loaded.append(operation)

    def kill(self) -> None:
        self.killed += 1


class Trial:
    """A test of which the first call takes 12 s, or ends badly."""

    test = SimpleNamespace(operation="relu.default")

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    def first_call(self, process: object) -> float:
        if self._fault is not None:
            raise self._fault
        return 12.0


def compare(rival: CompiledRival, fault: Exception | None = None) -> tuple[Speedup | None, str]:
    """What becomes of one test."""
    return rival.compare(Trial(fault), lambda _: TIMES)


def test_a_compile_that_fails_costs_its_column_alone_and_a_missing_compiler_is_named_once() -> None:
    process: Any = Process()
    rival = CompiledRival(process)
    assert compare(rival) == (TIMES.speedup, "torch.compile took 12.0 s for its first call")
    failed = KernelError("Unsupported", "no such thing", "")
    assert compare(rival, failed) == (None, "not timed against torch.compile: Unsupported: no such thing")
    hung = WorkerEnded(JobStatus.timeout, "it took longer than 300 s, and was ended")
    assert "longer than 300 s" in compare(rival, hung)[1]
    assert "whose own result is wrong: 3 off" in compare(rival, Incorrect("values", "3 off"))[1]
    assert compare(rival)[0] is not None
    missing = KernelError(
        "InductorError", "InvalidCxxCompiler: No working C++ compiler found in cxx=('g++',)", ""
    )
    said = compare(rival, missing)
    assert said == (None, "not timed against torch.compile: it finds no C++ compiler; apt-get install g++")
    tried = len(process.loaded)
    assert compare(rival) == said
    assert len(process.loaded) == tried


def test_the_compiled_function_stays_the_same_until_another_operation_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []

    def compile_it(operator: Any) -> Any:
        made.append(operator)
        return lambda *args: operator(*args)

    monkeypatch.setattr("profkit.kernels.evaluation.sources.source._compile", compile_it)
    source = CompiledSource()
    first = source.load("relu.default")
    assert source.load("relu.default") is first
    assert first(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    source.load("abs.default")
    assert len(made) == 2


def test_only_what_no_processor_can_write_is_impossible() -> None:
    size = 1 << 26
    quickest = size / (2 * STORED_PER_SECOND)
    assert impossible_rate(size, 1.01 * quickest, 2) == ""
    assert "ended before their results can have been written" in impossible_rate(size, 0.9 * quickest, 2)
    assert impossible_rate(0, 1e-9, 1) == ""  # a view
    old, new = torch.ones(8), torch.ones(16)
    known = {old.untyped_storage().data_ptr()}
    assert count_written([old[2:], new, new[1:], torch.ones(1).expand(1000), torch.zeros(9)], known) == 64 + 4


def test_a_time_below_measured_peaks_and_more_threads_are_remarks() -> None:
    assert describe_witnesses(1.5, 2.0, 1.0, 1.0) == ()
    assert "2.0 times as fast as the measured peaks" in describe_witnesses(1.0, 2.0, 1.0, 1.0)[0]
    assert "keeps 2.0 threads busy, and PyTorch's own 1.0" in describe_witnesses(1.0, None, 2.0, 1.0)[0]
    assert describe_witnesses(1.0, None, 1.9, 1.5) == ()
    assert describe_witnesses(1.0, None, 1.6, 1.0, allowed=1) == ()
    assert (
        "keeps 1.9 processors busy, and --threads allows 1" in describe_witnesses(1.0, None, 1.9, 1.9, 1)[0]
    )


def test_a_gpu_that_would_have_stored_more_than_its_multiprocessors_can_did_not() -> None:
    h100 = 132
    assert impossible_device_rate(4 << 20, 2e-6, h100) == ""  # 2 TB/s
    assert "before their results can have been written" in impossible_device_rate(4 << 20, 5e-8, h100)


def test_launches_are_named_where_they_take_most_of_a_time() -> None:
    assert describe_launches(10e-6, 8e-6) == ""
    assert describe_launches(10e-6, 0.0) == ""
    assert describe_launches(10e-6, 2e-6).startswith("the GPU works 20% of its time, 2.00 µs a call")


def test_what_was_launched_before_the_clock_ran_is_not_said_to_wait_for_the_host() -> None:
    remark = describe_launches(10e-6, 2e-6, gated=True)
    assert remark.startswith("kernels run for 2.00 µs of a call, 20% of its time")
    assert "host" not in remark
