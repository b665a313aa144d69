"""The gate before the calls of a batch on a device, as far as it goes without one: its page, and who fits behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

pytest.importorskip("torch")

import torch

from profkit.execution.child import WorkerEnded
from profkit.execution.job import JobStatus
from profkit.kernels.evaluation.candidate.arguments import Arena, KernelError, Recipe
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.cuda_memory import WAITING, IdleProbe
from profkit.kernels.evaluation.candidate.memory import DONE, OPEN, PAGE, JudgeGate
from profkit.kernels.evaluation.judging.pairs import ReferenceFailed, fit_gate


def number_at(page: Arena, offset: int) -> int:
    return int.from_bytes(page.memory[offset : offset + 4], "little")


def test_a_batch_waits_until_the_gate_opens_and_is_done_when_the_device_says_its_number() -> None:
    waiting: set[int] = set()
    gate = JudgeGate(waiting)
    device = Arena.inherited(gate.fd, PAGE)
    number = gate.next_batch()
    assert number_at(device, OPEN) < number
    assert len(waiting) == 1
    gate.open()
    assert number_at(device, OPEN) == number
    assert not gate.is_done
    device.memory[DONE : DONE + 4] = number.to_bytes(4, "little")
    assert gate.is_done
    gate.leave()
    assert not waiting
    assert gate.next_batch() == number + 1
    assert not gate.is_done  # that was the batch before
    gate.close()
    assert not waiting


def test_while_something_waits_at_a_gate_an_answer_may_take_longer() -> None:
    probe = IdleProbe(lambda: None, clock=iter(range(10_000)).__next__)
    probe.idle_seconds = 10e-6
    usual = probe.busy_seconds
    gate = JudgeGate(probe.waiting)
    gate.next_batch()
    assert probe.busy_seconds == WAITING > usual
    gate.close()
    assert probe.busy_seconds == usual


@pytest.mark.parametrize(
    ("answers", "idle"),
    [((1, 1), True), ((9, 1, 1), True), ((9, 9, 9, 1, 1), True), ((9, 1, 9, 1, 9), False), ((9,) * 5, False)],
)
def test_a_device_is_idle_when_it_answers_at_once_twice(answers: Sequence[float], idle: bool) -> None:
    now = 0.0

    def ask() -> None:
        nonlocal now
        now += next(left, 1e-5)

    left = iter([1e-5] * 51)
    probe = IdleProbe(ask, lambda: now)
    left = iter([1e-3 * each if each > 1 else 1e-5 for each in answers])
    assert probe.is_idle is idle


class Process:
    """Kernels that fit behind a gate up to `most` calls, or fail; a call takes so many `seconds`."""

    def __init__(self, most: int, error: Exception | None = None, seconds: float = 1.0) -> None:
        self.most, self.error, self.seconds, self.ran = most, error, seconds, 0

    def place(self, recipe: Recipe, count: int) -> list[list[torch.Tensor]]:
        assert recipe
        self.slots = [[torch.zeros(4)] for _ in range(count)]
        return self.slots

    def launch_slots(self, outputs: int) -> tuple[float, Sequence[int]] | None:
        if self.error:
            raise self.error
        assert all(bool((slot[0] == 7).all()) for slot in self.slots)  # no kernel reads an index that is none
        return (0.0, ()) if outputs <= 2 * self.most else None

    def run_launched(self) -> float:
        self.ran += 1
        return len(self.slots) * self.seconds

    def kill(self) -> None:
        pass


def fit(candidate: Process, reference: Process, count: int) -> int:
    recipe = Recipe("", (0,), (16,), 64)
    both: Any = cast("tuple[KernelProcess, KernelProcess]", (candidate, reference))
    return fit_gate(*both, recipe, [torch.full((4,), 7.0)], 2, count)


def test_as_many_calls_as_both_processes_can_launch_ahead_wait_at_the_gate() -> None:
    assert fit(Process(1000), Process(1000), 512) == 512
    assert fit(Process(1000), Process(200), 512) == 128
    assert fit(Process(40), Process(200), 512) == 32
    assert fit(Process(1), Process(200), 512) == 1
    assert fit(Process(1000), Process(1000), 1) == 1


def test_a_kernel_that_waits_for_the_device_is_found_by_one_call_and_waits_at_no_gate() -> None:
    candidate = Process(0)
    assert fit(candidate, Process(1000), 512) == 0
    assert candidate.ran == 0
    assert fit(Process(1000), Process(0), 1) == 0


def test_a_batch_that_is_over_at_once_does_not_wait_at_the_gate() -> None:
    assert fit(Process(1000), Process(1000, seconds=2e-6), 512) == 512
    assert fit(Process(1000), Process(1000, seconds=1e-6), 512) == 0
    assert fit(Process(1000), Process(100, seconds=2e-6), 512) == 0  # only 32 of them fit
    assert fit(Process(100, seconds=2e-6), Process(1000, seconds=2e-6), 512) == 0
    assert (
        fit(Process(1000, seconds=1e-6), Process(1000, seconds=2e-6), 512) == 512
    )  # it may be as fast as it likes


def test_who_fails_at_the_gate_is_blamed() -> None:
    with pytest.raises(KernelError):
        fit(Process(1, KernelError("ValueError", "", "")), Process(1), 8)
    with pytest.raises(ReferenceFailed):
        fit(Process(1), Process(1, WorkerEnded(JobStatus.crash, "it died")), 8)
