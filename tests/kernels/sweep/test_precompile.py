"""What workers that compile leave a worker finds; and whoever compiles or waits, every case is settled once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from profkit.core.types import GridPoint
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.kernels.operations import pytorch
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep import workers
from profkit.kernels.sweep.bench import make_problem
from profkit.kernels.sweep.workers import PointQueue, Precompile, batch_of, compile_worker_count

ROOT = Path(__file__).resolve().parents[3]
POINT = GridPoint("GELU", 2, 4, 8, "float32", "backward")
CALLED = """
import torch
from profkit.core.types import GridPoint
from profkit.kernels.operations.registry import build_call as build
from profkit.kernels.sweep.bench import make_problem
call = build("torch.compile", make_problem(GridPoint("GELU", 2, 4, 8, "float32", "backward"), torch.device("cpu")))
call()
call()  # the backward half is called again and again
from torch._dynamo.utils import counters
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
print(counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"])
"""
NO_WORKER = WorkerCommand("", python="/bin/false")


def point(number: int) -> GridPoint:
    return GridPoint("GELU", 1, 1, number, "float32", "forward")


def wait_for(precompile: Precompile, *points: GridPoint) -> None:
    for _ in range(600):
        if all(precompile.is_ready(each) for each in points):
            return
        precompile.wait(0.2)


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_a_worker_finds_in_the_caches_what_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # it pays over many kernels
    # Else six programs are compiled first, which try the processor's vector instructions.
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
    worker = WorkerClient(WorkerCommand(workers.COMPILES, ("cpu",), log=tmp_path / "log"))
    precompile = Precompile([worker], [POINT])
    precompile.begin()
    wait_for(precompile, POINT)
    precompile.close()
    done = subprocess.run(
        [sys.executable, "-c", CALLED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["2", "0", "1", "0"], done.stderr  # the forward half and the backward one


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_compiled_ahead_has_the_shapes_of_what_is_timed(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    given: list[tuple[object, ...]] = []

    def compiled(*_: object, **__: object) -> object:
        return lambda *inputs: given.extend((t.shape, t.stride(), t.dtype, t.device) for t in inputs)

    monkeypatch.setattr(pytorch, "compile_operation", compiled)
    one = GridPoint(operation, 2, 4, 8, "float16", "forward")
    pytorch.compile_ahead(OPERATIONS[operation], one, torch.device("cpu"))
    wanted = make_problem(one, torch.device("cpu")).inputs
    assert given == [(t.shape, t.stride(), t.dtype, t.device) for t in wanted]


@pytest.mark.parametrize(
    ("shapes", "measuring", "cores", "memory", "wanted"),
    [
        (560, 1, 16, None, 8),  # as many as keep ahead of one worker
        (560, 4, 64, None, 32),
        (560, 4, 16, None, 8),  # two cores of each worker are its own
        (560, 1, 2, None, 0),
        (560, 1, 16, int(9e9), 3),
        (20, 1, 16, None, 3),
        (5, 1, 16, None, 0),
    ],
)
def test_as_many_compile_as_pay(
    shapes: int, measuring: int, cores: int, memory: int | None, wanted: int
) -> None:
    assert compile_worker_count(shapes, measuring, cores, memory) == wanted


def test_what_is_not_compiled_yet_follows_when_it_is_and_the_rest_of_a_point_does_not_wait() -> None:
    both, late = ("PyTorch", COMPILED), (COMPILED,)
    order = PointQueue([(point(1), both), (point(2), both), (point(3), late)], 1, Precompile((), ()))
    compiled: set[GridPoint] = set()

    def take() -> object:
        return order.next_work(lambda each: each in compiled)

    assert take() == (point(1), ("PyTorch",))
    compiled.add(point(1))
    assert take() == (point(1), late)  # before any other
    compiled.add(point(2))
    assert take() == (point(2), both)
    assert take() is None
    assert len(order) == 1
    compiled.add(point(3))
    assert take() == (point(3), late)
    order.put_back(batch_of(point(3), late))
    assert take() == (point(3), late)
    assert (take(), len(order)) == (None, 0)


def test_workers_that_cannot_start_keep_nobody_waiting() -> None:
    precompile = Precompile([WorkerClient(NO_WORKER) for _ in range(2)], [point(1), point(2)])
    assert not precompile.is_ready(point(1))
    assert precompile.is_ready(point(3))  # nobody would compile it
    precompile.begin()
    wait_for(precompile, point(1), point(2))
    assert precompile.is_ready(point(1))
