"""A small sweep on the CPU, with implementations that misbehave as real ones do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import CaseResult, MeasuredCeilings
from profkit.execution.child import WorkerClient
from profkit.kernels.sweep import run
from profkit.kernels.sweep.request import SweepGrid, SweepRequest, TimingOptions
from tests.journals import DEVICE, store_sweep

CEILINGS = MeasuredCeilings(1e10, 1e11)
MISBEHAVING = """
import os
from profkit.sweep import Unavailable, implementation

@implementation("GELU", "wrong")
def wrong(problem):
    import torch
    return lambda: torch.zeros_like(problem.inputs[0])

@implementation("GELU", "dies")
def dies(problem):
    os.kill(os.getpid(), 11)

@implementation("GELU", "raises")
def raises(problem):
    raise ValueError("no kernel for <script>alert(1)</script>")

@implementation("GELU", "prints")
def prints(problem):
    import torch
    print('{"event": "done"}', flush=True)
    (x,) = problem.inputs
    return lambda: torch.nn.functional.gelu(x)

@implementation("GELU", "cannot be had")
def cannot(problem):
    raise Unavailable("needs a coprocessor", "buy one")

@implementation("GELU", "too much")
def too_much(problem):
    import torch
    return lambda: torch.empty(1 << 55, dtype=torch.float32)
"""


def request_for(folder: Path, *names: str, files: tuple[Path, ...] = (), **more: object) -> SweepRequest:
    """A sweep of GELU over two shapes."""
    grid = SweepGrid(("GELU",), names, (2,), (3,), (8, 16))
    defaults: dict[str, object] = {"timing": TimingOptions(0.5, 0.02, threads=1), "timeout": 60.0}
    return SweepRequest(
        grid=grid,
        folder=folder,
        device="cpu",
        files=tuple(map(str, files)),
        **{**defaults, **more},
    )  # type: ignore[arg-type]


def settled(request: SweepRequest, cases: int | None = None, about: Mapping[str, Any] | None = None) -> None:
    """A journal as a sweep leaves it that settled its first `cases`, without anything being measured."""
    points = [(point, name) for point in request.grid.points() for name in request.grid.implementations]
    results = []
    for number, (point, name) in enumerate(points[:cases]):
        seconds = tuple(1e-5 * (number + 1) + n % 7 * 1e-8 for n in range(20))
        results.append(
            CaseResult(
                point, name, "measured", median=seconds[3], seconds=seconds, samples=20, bytes=8.0, flops=8.0
            )
        )
    store_sweep(request, results, {**DEVICE, **(about or {})})


# torch's profiler, which measures the memory of a call, serves one thread of a process.
ONE_AT_A_TIME = threading.Lock()


class InProcess(WorkerClient):
    """A worker that measures in the process of the tests: what is not about processes needs none to start."""

    def __init__(self) -> None:
        super().__init__("")
        self._worker: Any = None

    @property
    def running(self) -> bool:
        return self._worker is not None

    def open(self, settings: Mapping[str, object], timeout: float) -> Any:
        from profkit.kernels.sweep.bench import MeasuringWorker

        self._worker = MeasuringWorker("cpu")
        return self._worker.open(dict(settings))

    def run(self, data: Any, timeout: float) -> dict[str, Any]:
        with ONE_AT_A_TIME:
            return {"event": "result", "value": json.loads(json.dumps(self._worker.run(data)))}

    def kill(self) -> None:
        self._worker = None


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sweeps measure in this process, which is left as it was."""
    import torch

    threads = torch.get_num_threads()
    monkeypatch.setattr("profkit.kernels.sweep.bench.limit_memory", lambda *_: None)
    monkeypatch.setattr("profkit.kernels.sweep.device.measure_ceilings", lambda _: CEILINGS)
    monkeypatch.setattr(
        run, "measuring_workers", lambda request: [InProcess() for _ in request.gpus or ("",)]
    )
    yield
    torch.set_num_threads(threads)
