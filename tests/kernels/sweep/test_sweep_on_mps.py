"""A sweep on a Mac's GPU, with the CPU in the place of the device: which clock, which checks, and which refusals."""

from __future__ import annotations

import platform
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import GridPoint, SweepDocument
from profkit.kernels.operations.definitions import Problem
from profkit.kernels.sweep import bench, run
from profkit.kernels.sweep.outputs import sweep_as_run
from profkit.kernels.sweep.request import SweepOptions, TimingOptions, make_request
from profkit.runtime.passes import mps_timing

CPU = torch.device("cpu")
MPS = SimpleNamespace(type="mps", index=None)


def on_a(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


def test_a_sweep_on_mps_is_one_of_pytorch_and_its_worker_is_asked_for_that_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_a(monkeypatch, "Darwin", "arm64")
    request = make_request(SweepOptions(device="mps", operations="GELU"), make_folder=False)
    assert (request.device, request.grid.implementations) == ("mps", ("PyTorch",))
    assert [command.arguments for command in run._commands(request)] == [("mps",)]


@pytest.mark.parametrize(("system", "machine"), [("Linux", "x86_64"), ("Darwin", "x86_64")])
def test_where_there_is_no_mps_device_a_sweep_on_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    on_a(monkeypatch, system, machine)
    with pytest.raises(MachineError, match=f"Apple silicon alone, and this is {system}") as refused:
        make_request(SweepOptions(device="mps"), make_folder=False)
    assert (refused.value.exit_code, refused.value.fix) == (3, "--device cpu")
    with pytest.raises(UsageError, match="--gpus are devices of cuda"):
        make_request(SweepOptions(device="mps", gpus="0"), make_folder=False)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The CPU as the device; it counts how often it is waited for."""
    device = SimpleNamespace(waits=0)

    def synchronize() -> None:
        device.waits += 1

    made: Callable[[GridPoint, Any], Problem] = bench.make_problem
    monkeypatch.setattr(bench, "make_problem", lambda point, _: made(point, CPU))
    monkeypatch.setattr(torch, "mps", SimpleNamespace(synchronize=synchronize))
    monkeypatch.setattr(mps_timing, "WARM_SECONDS", 0.0)
    monkeypatch.setattr(mps_timing, "_add_flush", lambda setup: setup or (lambda: None))
    return device


def test_a_case_is_timed_by_a_clock_that_waits_for_the_device(stand_in: SimpleNamespace) -> None:
    on_cpu = bench.Bench("cpu", TimingOptions(0.5, 0.05))
    on_cpu.device = MPS
    steps = list(on_cpu.run(GridPoint("GELU", 2, 3, 8), ("PyTorch",)))
    result = steps[-1][1]
    assert result is not None
    assert (result.state, result.clock, result.cache, result.memory) == (
        "measured",
        "mps-synchronized",
        "cold",
        None,
    ), result.reason
    assert stand_in.waits > result.samples > 0
    document = SweepDocument("2026-01-01T00:00:00+00:00", "Apple M3, GPU", results=(result,), planned=1)
    assert sweep_as_run(document, ("profkit",), "sweep", "/", None, (), 0.01).backend == "mps"
