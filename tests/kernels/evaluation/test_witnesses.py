"""What else is said of a time: torch.compile as a rival, what a processor can do at all, how many threads were busy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

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
from profkit.kernels.evaluation.candidate.arguments import KernelError
from profkit.kernels.evaluation.judging.correctness import Incorrect
from profkit.kernels.evaluation.judging.pairs import PairedTimes
from profkit.kernels.evaluation.judging.reference import count_written
from profkit.kernels.evaluation.judging.trial import time_against_compiled
from profkit.kernels.evaluation.sources.source import CompiledSource

TIMES = PairedTimes(Speedup(1.5, 1.4, 1.6, "FASTER", 9), 1e-3, 1e-3, 3, False, 1e-3, 1.0, 1.0)


@pytest.mark.parametrize(
    "fault", [None, KernelError("Unsupported", "no such thing", ""), Incorrect("values", "3 off")]
)
def test_a_compile_that_fails_costs_its_column_alone(fault: Exception | None) -> None:
    trial = SimpleNamespace(
        test=SimpleNamespace(operation="relu.default"), first_call=Mock(side_effect=fault)
    )
    process: Any = Mock()
    speedup, said = time_against_compiled(process, trial, lambda _: TIMES)  # type: ignore[arg-type]
    assert (speedup is None, process.kill.called) == (fault is not None, fault is not None)
    assert said == (f"not timed against torch.compile: {fault}" if fault else "")


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
