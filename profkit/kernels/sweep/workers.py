"""The processes of a sweep: a worker for each device; where cores are free also standby and compile workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from profkit.core.codec import from_plain_data
from profkit.core.types import Json, MeasuredCeilings
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.pool import StandbyWorker
from profkit.hardware.gpu import read_gpus
from profkit.hardware.machine import available_memory, read_limits
from profkit.kernels import disk_cache
from profkit.kernels.devices import device_names
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.places import SlotWork, from_here
from profkit.kernels.sweep.request import SweepRequest
from profkit.kernels.sweep.schedule import Precompile, Work, compile_worker_count

LOG = "worker.log"
MEASURES = "profkit.kernels.sweep.worker:MeasuringWorker"
COMPILES = "profkit.kernels.sweep.worker:CompileWorker"
CONTEXT_BYTES = 0.65e9  # of the device that a compile worker holds (H200, CUDA 13)
COMPILE_WORKER_BYTES = 1.5e9  # of the host
OUR_KERNELS = ("Triton", "CUDA")
LARGER, LARGEST = (
    1 << 21,
    1 << 24,
)  # elements: some kernels are others from the first on; no more than the second
SHARE = 8  # one in so many of the device's memory is for the compile workers


def measuring_workers(request: SweepRequest) -> list[WorkerClient]:
    """A worker for each device; each sees that device alone."""
    return [WorkerClient(command) for command in _commands(request)]


def standby_workers(request: SweepRequest, work: Sequence[Work]) -> list[StandbyWorker]:
    """One for each worker where something is compiled on a GPU; none where cores are few, and none under a tracer."""
    commands = _commands(request)
    compiles = any(COMPILED in names for _, names in work)
    if (
        request.device != "cuda"
        or not compiles
        or available_cores() < 3 * len(commands)
        or is_traced(os.environ)
    ):
        return []
    return [StandbyWorker(WorkerClient(command)) for command in commands]


def compile_workers(request: SweepRequest, work: Sequence[Work]) -> Precompile:
    """Compile workers for what will be compiled, as many as fit into the memory."""
    beside, commands = request.device == "cuda", _commands(request)
    tasks = tasks_of(work, kernels=beside)
    count = compile_worker_count(
        len(tasks), len(commands), available_cores(), _most_by_memory(beside), beside=beside
    )
    if is_traced(os.environ) or request.device == "mps":  # Metal keeps nothing that another process compiled
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
    return Precompile(clients, tasks, beside=beside, threads=request.timing.threads)


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


def tasks_of(work: Sequence[Work], *, kernels: bool) -> list[Work]:
    """What compile workers do, in the order of the work: Inductor each shape, and where there are `kernels` of our own
    those of one small and one larger shape for each width of rows, which others of that width use, too.
    """
    tasks: list[Work] = []
    listed = set()
    for point, names in work:
        elements = point.batch * point.sequence * point.dimension
        group = replace(point, batch=0, sequence=int(elements >= LARGER))
        own = tuple(name for name in names if name in OUR_KERNELS)
        if kernels and own and elements <= LARGEST and group not in listed:
            listed.add(group)
            tasks.append((point, own))
        if COMPILED in names:
            tasks.append((point, (COMPILED,)))
    return tasks


def available_cores() -> int:
    """Processors that this sweep may use: by its affinity and the limit of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = read_limits().cpus
    return count if limit is None else max(1, min(count, int(limit)))


def _device(request: SweepRequest) -> str:
    return "cuda:0" if request.device == "cuda" else request.device


def bytecode_environment() -> dict[str, str]:
    """What lets processes keep torch's bytecode in profkit's own cache, where nobody has it and none may be written.

    So it is in many containers. Each process would compile all of torch's source then: 4 s, and 9 s more for Inductor.
    """
    torch, folder = find_spec("torch"), disk_cache.cache_folder()
    if not sys.dont_write_bytecode or torch is None or torch.origin is None or folder is None:
        return {}
    if Path(torch.origin).with_name("__pycache__").is_dir():
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder.with_name("bytecode"))}


def _environments(request: SweepRequest) -> list[Mapping[str, str]]:
    """For each worker what its environment says of devices, and of where Triton keeps its kernels.

    A process in which Inductor has run would keep them in Inductor's folder, and not find what others compiled.
    """
    variables = bytecode_environment()
    if request.device != "cuda":
        return [{"CUDA_VISIBLE_DEVICES": "", **variables} for _ in request.gpus or ("",)]
    home = Path(os.environ.get("TRITON_HOME") or "~").expanduser()
    variables["TRITON_CACHE_DIR"] = os.environ.get("TRITON_CACHE_DIR") or str(home / ".triton" / "cache")
    if not request.gpus:
        return [variables]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [{"CUDA_VISIBLE_DEVICES": name, **variables} for name in device_names(request.gpus, visible)]


def _most_by_memory(device: bool) -> int | None:
    """How many compile workers fit into the memory; None where it is not known."""
    free = available_memory()
    counts = [] if free is None else [int(free / 2 / COMPILE_WORKER_BYTES)]
    if device:
        counts += [
            int(gpu.memory_bytes / SHARE / CONTEXT_BYTES) for gpu in read_gpus()[:1] if gpu.memory_bytes
        ]
    return min(counts, default=None)
