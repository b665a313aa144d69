"""The processes of a sweep, and what they do in which order: a worker for each device, and beside it some that compile.

To compile a shape takes Inductor about a second of one processor, to time it a tenth of that. So on a GPU compile
workers fill the compiler's caches on disk for the coming points while workers measure others. One that cannot start,
dies or hangs costs what it would have saved, and nothing else: the worker compiles for itself then.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import MachineError
from profkit.core.types import GridPoint, Json, MeasuredCeilings
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.job import Batch, FifoQueue, Job, JobOutcome
from profkit.execution.pool import WorkerPool
from profkit.hardware.machine import available_memory, read_limits
from profkit.kernels.devices import device_names
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.places import SlotWork, from_here
from profkit.kernels.sweep.request import SweepRequest

Work: TypeAlias = tuple[GridPoint, tuple[str, ...]]  # a point, and the implementations that are left of it
LOG = "worker.log"
MEASURES = "profkit.kernels.sweep.worker:MeasuringWorker"
COMPILES = "profkit.kernels.sweep.worker:CompileWorker"
COMPILE_WORKER_BYTES = 1.5e9  # of the host
COMPILE_SECONDS = 120.0
TAIL = 8  # points for each of several workers that come last, the largest of them first
MOST = 8  # compile workers for each worker: they compile faster then than it measures
MOST_IN_ALL = 32
WORTH = 6  # shapes for each compile worker


def measuring_workers(request: SweepRequest) -> list[WorkerClient]:
    """A worker for each device; each sees that device alone."""
    return [WorkerClient(command) for command in _commands(request)]


def compile_workers(request: SweepRequest, work: Sequence[Work]) -> Precompile:
    """Compile workers for what Inductor will compile; none on a CPU, nor under a tracer."""
    commands = _commands(request)
    points = [point for point, names in work if COMPILED in names]
    count = compile_worker_count(len(points), len(commands), available_cores(), available_memory())
    if request.device != "cuda" or is_traced(os.environ):
        count = 0
    clients = [
        WorkerClient(
            replace(
                commands[number % len(commands)],
                factory=COMPILES,
                arguments=(_device(request),),
                log=Path(os.devnull),  # what they have to say the worker will say, too
                ends_itself=False,
            )
        )
        for number in range(count)
    ]
    return Precompile(clients, points)


def compile_worker_count(shapes: int, workers: int, cores: int, memory: int | None) -> int:
    """How many compile workers pay for so many shapes that will be compiled.

    The workers measure meanwhile, and each keeps two cores to itself, one for its host code and one for the driver and
    the sweep. `memory`: bytes of the host that are free; None where it is not known.
    """
    room = MOST_IN_ALL if memory is None else int(memory / 2 / COMPILE_WORKER_BYTES)
    return max(0, min(cores - 2 * workers, MOST * workers, MOST_IN_ALL, shapes // WORTH, room))


def slot_work(request: SweepRequest) -> SlotWork:
    """What each slot of another place does: a measuring worker for each GPU that was named, else one."""
    arguments = (_device(request), *map(from_here, request.files))
    if request.device != "cuda":
        environments: tuple[Mapping[str, str], ...] = ({"CUDA_VISIBLE_DEVICES": ""},)
    else:
        environments = tuple({"CUDA_VISIBLE_DEVICES": gpu} for gpu in request.gpus) or ({},)
    locks = request.device == "cuda"
    return SlotWork(MEASURES, arguments, environments, request.files, locks, _check_about)


@dataclass(frozen=True, kw_only=True)
class _About:
    """What a worker says of itself."""

    device: str
    versions: Mapping[str, str]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _FirstAbout(_About):
    roofs: MeasuredCeilings


def _check_about(about: Json, first: bool, title: str) -> Json:  # noqa: ARG001
    from_plain_data(_FirstAbout if first else _About, about)
    return about


def is_traced(env: Mapping[str, str]) -> bool:
    """Whether processes with this environment are under a tracer that loads itself into them: nsys, ncu, a preload."""
    return bool(env.get("LD_PRELOAD")) or any(
        name.endswith("_INJECTION64_PATH") or name.startswith("NSYS_") or name == "PROFKIT_DIRECTIVE"
        for name in env
    )


def _commands(request: SweepRequest) -> list[WorkerCommand]:
    """A worker that is traced may end by itself: nsys writes down what it has of a process when that ends."""
    log = request.folder / LOG
    arguments = (_device(request), *request.files)
    return [
        WorkerCommand(MEASURES, arguments, env=env, log=log, ends_itself=is_traced({**os.environ, **env}))
        for env in _environments(request)
    ]


def available_cores() -> int:
    """Processors that this sweep may use: by its affinity and the limit of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = read_limits().cpus
    return count if limit is None else max(1, min(count, int(limit)))


def _device(request: SweepRequest) -> str:
    return "cuda:0" if request.device == "cuda" else request.device


def _environments(request: SweepRequest) -> list[Mapping[str, str]]:
    """For each worker what its environment says of devices, and of where Triton keeps its kernels.

    A process in which Inductor has run would keep them in Inductor's folder, and not find what others compiled.
    """
    if request.device != "cuda":
        return [{"CUDA_VISIBLE_DEVICES": ""} for _ in request.gpus or ("",)]
    home = Path(os.environ.get("TRITON_HOME") or "~").expanduser()
    cache = os.environ.get("TRITON_CACHE_DIR") or str(home / ".triton" / "cache")
    names = device_names(request.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen: list[dict[str, str]] = [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}]
    return [{"TRITON_CACHE_DIR": cache, **each} for each in seen]


# ---------------------------------------------------------------- what they do


def batch_of(point: GridPoint, names: Sequence[str]) -> Batch:
    """Implementations at one point: they share its inputs and its float64 reference."""
    return Batch(tuple(Job(name) for name in names), to_plain_data(point))


class Precompile:
    """Compile workers, and the points that they still have to compile."""

    def __init__(self, workers: Sequence[WorkerClient], points: Sequence[GridPoint]) -> None:
        self._left = set(points) if workers else set()
        self._changed = threading.Event()
        self._queue = FifoQueue(batch_of(point, (COMPILED,)) for point in points)
        self._pool = WorkerPool(workers, self._settle, timeout=COMPILE_SECONDS)

    def begin(self) -> None:
        """Start the compile workers."""
        if self._left:
            threading.Thread(target=self._run, name="compile", daemon=True).start()

    def is_ready(self, point: GridPoint) -> bool:
        """Whether nothing is gained by waiting: the point is compiled, or no compile worker will do it."""
        return point not in self._left

    def wait(self, seconds: float) -> None:
        """Wait until a point is settled, at most so long."""
        self._changed.wait(seconds)
        self._changed.clear()

    def close(self) -> None:
        """No compile workers, and nothing to wait for."""
        self._pool.close()

    def _run(self) -> None:
        try:
            self._pool.begin()
            self._pool.open()
            self._pool.run(self._queue)
        except MachineError:
            pass
        finally:
            self._left.clear()
            self._changed.set()

    def _settle(self, outcome: JobOutcome) -> None:
        self._left.discard(from_plain_data(GridPoint, outcome.shared))
        self._changed.set()


class PointQueue:
    """What is left to do: a `JobQueue` with a batch for each point.

    All implementations of a point are measured one after the other, so that a drift of the device's clock or
    temperature is in none of them alone.

    What Inductor compiles may have to wait until it is compiled; the others of the point go ahead then, and it follows
    as soon as it can be, before any other point: seconds later, and in the first seconds of a sweep only where
    compiling keeps up. To wait would leave the device idle, to compile in the worker takes ten times as long.
    """

    def __init__(self, work: Sequence[Work], workers: int, precompile: Precompile) -> None:
        self._work, self._precompile = deque(small_last(work, workers)), precompile

    def __len__(self) -> int:
        return len(self._work)

    def take(self) -> Batch | None:
        """The next point; of one that is not compiled yet what can be done without."""
        work = self.next_work(self._precompile.is_ready)
        return None if work is None else batch_of(*work)

    def next_work(self, is_ready: Callable[[GridPoint], bool]) -> Work | None:
        """The next thing to do: the first point of which all can be done, else the first of which something can.

        None where all that is left waits for its compiler, or nothing is left.
        """
        part: int | None = None
        for place, (point, names) in enumerate(self._work):
            if COMPILED not in names or is_ready(point):
                del self._work[place]
                return point, names
            if part is None and len(names) > 1:
                part = place
        if part is None:
            return None
        point, names = self._work[part]
        self._work[part] = (point, (COMPILED,))
        return point, tuple(name for name in names if name != COMPILED)

    def put_back(self, batch: Batch) -> None:
        """What was taken and not done comes first."""
        names = tuple(job.key for job in batch.jobs)
        self._work.appendleft((from_plain_data(GridPoint, batch.shared), names))

    def wait(self, seconds: float) -> None:
        """All that is left waits for a compiler."""
        self._precompile.wait(seconds)

    def drain(self) -> Sequence[Batch]:
        """All that is left."""
        work, self._work = self._work, deque()
        return [batch_of(*each) for each in work]


def small_last(work: Sequence[Work], workers: int) -> tuple[Work, ...]:
    """Where workers share the points, the last ones by falling size: none begins a large one when others are done."""
    count = TAIL * workers if workers > 1 else 0
    split = max(0, len(work) - count)
    return (*work[:split], *sorted(work[split:], key=lambda each: -each[0].elements * len(each[1])))
