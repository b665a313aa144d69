"""What helpers compile a worker finds; and whoever compiles, waits or takes over, every case is settled once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import request_for

from profkit.core.progress import Silent
from profkit.core.types import GridPoint
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.pool import StandbyWorker
from profkit.kernels.operations import precompile as operations_precompile
from profkit.kernels.operations import registry
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep import run, workers
from profkit.kernels.sweep.bench import make_problem
from profkit.kernels.sweep.files import register_files
from profkit.kernels.sweep.run import run_sweep
from profkit.kernels.sweep.schedule import PointQueue, Precompile, batch_of, compile_worker_count

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
WHO = """
import os
from pathlib import Path
from profkit.sweep import implementation

@implementation("GELU", "at once")
def at_once(problem):
    return _called(problem, "at once")

@implementation("GELU", "late")
def late(problem):
    return _called(problem, "late")

def _called(problem, name):
    import torch
    Path(__file__).with_name(name).write_text(str(os.getpid()))
    return lambda: torch.nn.functional.gelu(problem.inputs[0])
"""


def point(number: int) -> GridPoint:
    return GridPoint("GELU", 1, 1, number, "float32", "forward")


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_a_worker_finds_in_the_caches_what_a_helper_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # it pays over many kernels
    # Else six programs are compiled first, which try the processor's vector instructions.
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
    worker = WorkerClient(WorkerCommand(workers.COMPILES, ("cpu",), log=tmp_path / "log"))
    precompile = Precompile([worker], [(POINT, (COMPILED,))])
    precompile.begin()
    while not precompile.is_ready(POINT):
        precompile.wait(1.0)
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

    monkeypatch.setattr(operations_precompile, "compile_operation", compiled)
    one = GridPoint(operation, 2, 4, 8, "float16", "forward")
    operations_precompile.compile_by_inductor(one, torch.device("cpu"))
    wanted = make_problem(one, torch.device("cpu")).inputs
    assert given == [(t.shape, t.stride(), t.dtype, t.device) for t in wanted]


@pytest.mark.parametrize(
    ("shapes", "workers", "cores", "room", "beside", "wanted"),
    [
        (560, 1, 16, None, True, 8),  # as many as keep ahead of one worker
        (560, 4, 64, None, True, 32),
        (560, 4, 16, None, True, 8),  # two cores of each worker are its own
        (560, 1, 2, None, True, 0),
        (560, 1, 16, 3, True, 3),  # a device with little memory
        (20, 1, 16, None, True, 3),
        (5, 1, 16, None, True, 0),
        (560, 1, 4, None, False, 4),  # nothing is measured meanwhile
        (560, 1, 2, None, False, 0),  # on two cores nothing is won
        (120, 1, 16, None, False, 0),  # one would only do what the worker does
        (560, 1, 1, None, False, 0),
    ],
)
def test_helpers_are_as_many_as_pay(
    shapes: int, workers: int, cores: int, room: int | None, beside: bool, wanted: int
) -> None:
    assert compile_worker_count(shapes, workers, cores, room, beside=beside) == wanted


def test_inductor_compiles_each_shape_ahead_and_our_kernels_serve_all_of_a_width() -> None:
    names = ("PyTorch", COMPILED, "Triton")
    sizes = [(16, 8), (16, 64), (1 << 15, 64), (1 << 20, 64)]
    points = [GridPoint("GELU", rows, 1, width, "float32", "forward") for rows, width in sizes]
    work = [(each, names) for each in points]
    inductor = [(each, (COMPILED,)) for each in points]
    assert workers.tasks_of(work, kernels=False) == inductor
    own = [(each, ("Triton",)) for each in points[:3]]  # the last would take too much memory
    assert sorted(workers.tasks_of(work, kernels=True), key=str) == sorted([*own, *inductor], key=str)


def test_what_is_not_compiled_yet_follows_when_it_is_and_the_rest_of_a_point_does_not_wait() -> None:
    both, late = ("eager", "late"), ("late",)
    order = PointQueue([(point(1), both), (point(2), both), (point(3), late)], "late")
    compiled: set[GridPoint] = set()

    def take() -> object:
        return order.next_work(lambda each: each in compiled)

    assert take() == (point(1), ("eager",))
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


def test_helpers_that_cannot_start_keep_nobody_waiting(tmp_path: Path) -> None:
    clients = [WorkerClient(NO_WORKER) for _ in range(2)]
    precompile = Precompile(clients, [(point(number), (COMPILED,)) for number in (1, 2)])
    assert not precompile.is_ready(point(1))
    assert precompile.is_ready(point(3))  # nobody would compile it
    precompile.begin()
    for _ in range(100):
        precompile.wait(0.1)
    assert (precompile.left, precompile.is_ready(point(1)), precompile.is_ready(point(2))) == (0, True, True)


def test_a_standby_worker_measures_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(run, "COMPILED", "late")
    file = tmp_path / "who.py"
    file.write_text(WHO)
    register_files([file])
    request = request_for(tmp_path / "out", "at once", "late", files=(file,))
    command = WorkerCommand(workers.MEASURES, ("cpu", str(file)))
    standby = StandbyWorker(WorkerClient(command))
    monkeypatch.setattr(workers, "standby_workers", lambda *_: [standby])
    document = run_sweep(request, Silent())
    assert [(each.implementation, each.state) for each in document.results] == [
        ("at once", "measured"),
        ("late", "measured"),
    ] * 2
    first, last = ((tmp_path / name).read_text() for name in ("at once", "late"))
    assert first != last


DRIVER = """
import os, sys, torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from profkit.core.types import GridPoint
from profkit.kernels.operations.precompile import build_kernels
from profkit.kernels.operations.triton import flat, rows  # compiled, though taken for interpreted

class Driver:  # of an H100, as far as a compiler asks; it loads and launches nothing
    get_current_device = get_current_stream = lambda self, *_: 0
    get_current_target = lambda self: GPUTarget("cuda", 90, 32)

driver.set_active(Driver())
os.environ["TRITON_INTERPRET"] = "1"
for point in sys.argv[1:]:
    operation, direction, batch = point.split(":")
    build_kernels("Triton", GridPoint(operation, int(batch), 256, 64, "float32", direction), torch.device("cpu"))
"""


def test_tritons_kernels_are_built_without_a_device_and_none_is_launched(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "GELU:forward:128", "LayerNorm:backward:16", "MSE:forward:16"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    built = {path.name.partition(".")[0] for path in tmp_path.glob("*/*.cubin")}
    assert {"_gelu", "_layer_norm", "_layer_norm_backward", "_mse"} <= built
    assert len(list(tmp_path.glob("*/_gelu.cubin"))) > 1  # all that will be tried
