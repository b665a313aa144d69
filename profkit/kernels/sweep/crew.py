"""The processes of a sweep: a worker for each device, and where cores are free a relief for each, and helpers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from profkit.core.types import GridPoint
from profkit.hardware.container import available_memory, read_limits
from profkit.hardware.gpu import read_gpus
from profkit.kernels.operations.compiled import NAME as COMPILED
from profkit.kernels.operations.cuda import cache
from profkit.kernels.sweep.ahead import Ahead, how_many
from profkit.kernels.sweep.hand import Hand, traced
from profkit.kernels.sweep.order import Work
from profkit.kernels.sweep.relief import Relief
from profkit.kernels.sweep.sweep_request import SweepRequest

LOG = "worker.log"
CONTEXT_BYTES = 0.65e9  # of the device that a helper holds (H200, CUDA 13)
HELPER_BYTES = 1.5e9  # of the host
OUR_KERNELS = ("Triton", "CUDA")
LARGER, LARGEST = (
    1 << 21,
    1 << 24,
)  # elements: some kernels are others from there on; a helper holds no more than these
SHARE = 8  # one in so many of the memory is the helpers'


def workers(request: SweepRequest) -> list[Hand]:
    """A worker for each device; each sees that device alone."""
    return [
        Hand(request.python, _device(request), request.files, env, request.folder / LOG)
        for env in _places(request)
    ]


def reliefs(request: SweepRequest, work: Sequence[Work]) -> list[Relief]:
    """One for each worker where something is compiled on a GPU; none where cores are few, and none under a tracer."""
    places = _places(request)
    if request.device == "cpu" or not _compiles(work) or cores() < 3 * len(places) or traced(os.environ):
        return []
    log = request.folder / LOG
    return [Relief(Hand(request.python, _device(request), request.files, env, log)) for env in places]


def ahead(request: SweepRequest, work: Sequence[Work]) -> Ahead:
    """Helpers for what will be compiled, as many as there is room for."""
    beside, places = request.device != "cpu", _places(request)
    tasks = tasks_of(work, kernels=beside)
    count = how_many(len(tasks), len(places), cores(), _room(beside), beside=beside)
    if traced(os.environ):
        count = 0
    nowhere, device = Path(os.devnull), _device(request)  # what they have to say the worker will say, too
    hands = [
        Hand(request.python, device, (), places[number % len(places)], nowhere, kind="helper")
        for number in range(count)
    ]
    return Ahead(hands, tasks, beside=beside, threads=request.wish.threads)


def tasks_of(work: Sequence[Work], *, kernels: bool) -> list[Work]:
    """What helpers compile, in the order of the work: Inductor each shape, and where there are `kernels` of our own
    those of one small and one larger shape for each width of rows, which others of that width use, too.
    """
    tasks: list[Work] = []
    seen = set()
    for point, names in work:
        elements = point.batch * point.sequence * point.dimension
        group = replace(point, batch=0, sequence=int(elements >= LARGER))
        own = tuple(name for name in names if name in OUR_KERNELS)
        if kernels and own and elements <= LARGEST and group not in seen:
            seen.add(group)
            tasks.append((point, own))
        if COMPILED in names:
            tasks.append((point, (COMPILED,)))
    return tasks


def device_names(gpus: Sequence[str], visible: str | None) -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES names each by: where only some are visible, number 0 is the first of these."""
    if visible is None:
        return tuple(gpus)
    names = [name.strip() for name in visible.split(",")]
    return tuple(names[int(gpu)] for gpu in gpus)


def cores() -> int:
    """Processors that this sweep may use: by its affinity and the limit of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = read_limits().cpus
    return count if limit is None else max(1, min(count, int(limit)))


def _compiles(work: Sequence[Work]) -> list[GridPoint]:
    return [point for point, names in work if COMPILED in names]


def _device(request: SweepRequest) -> str:
    return "cpu" if request.device == "cpu" else "cuda:0"


def bytecode() -> dict[str, str]:
    """What lets processes keep torch's bytecode in profkit's own cache, where nobody has it and none may be written.

    So it is in many containers. Each process would compile all of torch's source then: 4 s, and 9 s more for Inductor.
    """
    torch, folder = find_spec("torch"), cache.folder()
    if not sys.dont_write_bytecode or torch is None or torch.origin is None or folder is None:
        return {}
    if Path(torch.origin).with_name("__pycache__").is_dir():
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder.with_name("bytecode"))}


def _places(request: SweepRequest) -> list[Mapping[str, str]]:
    """For each worker what its environment says of devices, and of where Triton keeps its kernels.

    A process in which Inductor has run would keep them in Inductor's folder, and not find what others compiled.
    """
    kept = bytecode()
    if request.device == "cpu":
        return [{"CUDA_VISIBLE_DEVICES": "", **kept} for _ in request.gpus or ("",)]
    home = Path(os.environ.get("TRITON_HOME") or "~").expanduser()
    kept["TRITON_CACHE_DIR"] = os.environ.get("TRITON_CACHE_DIR") or str(home / ".triton" / "cache")
    if not request.gpus:
        return [kept]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [{"CUDA_VISIBLE_DEVICES": name, **kept} for name in device_names(request.gpus, visible)]


def _room(device: bool) -> int | None:
    """Helpers that the memory has room for; None where nobody tells."""
    free = available_memory()
    rooms = [] if free is None else [int(free / 2 / HELPER_BYTES)]
    if device:
        rooms += [
            int(gpu.memory_bytes / SHARE / CONTEXT_BYTES) for gpu in read_gpus()[:1] if gpu.memory_bytes
        ]
    return min(rooms, default=None)
