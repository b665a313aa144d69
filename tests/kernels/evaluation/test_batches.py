"""How many calls a timed batch has. No process is started, and no GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from profkit.kernels.evaluation.batches import FreshCall, calls_in_batch, fit_latch
from profkit.kernels.evaluation.devices import BatchLimits, JudgedDevice, cuda_batch_limits
from profkit.kernels.evaluation.judging.judge import BaselineFailed
from profkit.kernels.evaluation.worker.arguments import KernelError

CPU, CUDA = JudgedDevice.batch, cuda_batch_limits(8 << 30)
SMALL_CUDA = cuda_batch_limits(1 << 30)


@pytest.mark.parametrize(
    ("limits", "estimate", "call_bytes", "count"),
    [
        (CPU, 1e-6, 64, 256),  # 2 ms would be 2,001 calls: the number decides
        (CPU, 9e-5, 64, 23),  # the first number that fills 2 ms
        (CPU, 1e-6, 1 << 24, 16),  # 16 MiB each: 256 MiB decide
        (CPU, 1e-6, 1 << 29, 1),  # one call is always timed
        (CPU, 1.0, 64, 1),
        (CPU, 0.0, 0, 256),
        (CUDA, 1e-6, 64, 512),
        (CUDA, 9e-5, 64, 112),  # the first number that fills 10 ms
        (CUDA, 1e-6, 1 << 24, 256),  # 4 GiB decide
        (SMALL_CUDA, 1e-6, 1 << 24, 48),  # three quarters of 1 GiB decide
    ],
)
def test_the_tightest_limit_decides_how_many_calls_are_timed_together(
    limits: BatchLimits, estimate: float, call_bytes: int, count: int
) -> None:
    assert calls_in_batch(estimate, call_bytes, limits) == count


class Latched:
    """A worker whose calls take `seconds` each; at most `most` of them can wait at the latch."""

    def __init__(self, seconds: float, most: int = 1000, fault: Exception | None = None) -> None:
        self.seconds, self.most, self.fault = seconds, most, fault
        self.tried: list[int] = []
        self.killed = False

    def lay_out(self, recipe: Any, count: int) -> list[list[Any]]:
        self.tried.append(count)
        return []

    def launch(self, outputs: int) -> tuple[float, tuple[int, ...]] | None:
        if self.fault is not None:
            raise self.fault
        return None if outputs > 2 * self.most else (0.0, (0,))

    def time(self, outputs: int, *, launched: Any) -> Any:
        assert launched == (0,)
        return SimpleNamespace(seconds=outputs / 2 * self.seconds)

    def kill(self) -> None:
        self.killed = True


def fitted(candidate: Latched, baseline: Latched, count: int) -> int:
    fake: Any = None
    parts: Any = (candidate, baseline, FreshCall(fake, (), fake, outputs=2), count)
    return fit_latch(*parts)


def test_all_calls_wait_where_both_can() -> None:
    assert fitted(Latched(1e-4), Latched(1e-5), 512) == 512


def test_a_quarter_is_tried_until_the_calls_of_both_fit() -> None:
    candidate, baseline = Latched(1e-4, most=100), Latched(1e-4, most=200)
    assert fitted(candidate, baseline, 512) == 32
    assert (baseline.tried, candidate.tried) == ([512, 1, 128], [128, 1, 32])


@pytest.mark.parametrize("waits_for_the_device", ["candidate", "baseline"])
def test_nothing_waits_where_a_single_call_cannot(waits_for_the_device: str) -> None:
    workers = {
        "candidate": Latched(1e-4),
        "baseline": Latched(1e-4),
        waits_for_the_device: Latched(1e-4, most=0),
    }
    assert fitted(workers["candidate"], workers["baseline"], 512) == 0


@pytest.mark.parametrize(("seconds", "count"), [(1.25e-6, 512), (1.15e-6, 0)])  # 0.64 and 0.59 ms in all
def test_a_batch_of_the_baseline_that_is_over_at_once_does_not_wait(seconds: float, count: int) -> None:
    assert fitted(Latched(1.0), Latched(seconds), 512) == count


def test_a_fault_of_the_baseline_is_not_the_candidates() -> None:
    broken = Latched(1e-4, fault=KernelError("OSError", "no such kernel", ""))
    with pytest.raises(BaselineFailed):
        fitted(Latched(1e-4), broken, 8)
    assert broken.killed
    with pytest.raises(KernelError):
        fitted(Latched(1e-4, fault=KernelError("OSError", "no such kernel", "")), Latched(1e-4), 8)
