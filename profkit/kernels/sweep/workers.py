"""The processes of a sweep, a worker for each device, and what they do in which order.

All implementations of a point are measured one after the other, so that a drift of the device's clock or temperature is
in none of them alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.types import GridPoint, Json, MeasuredCeilings
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.job import Batch, Job
from profkit.kernels.devices import device_names
from profkit.kernels.places import SlotWork, from_here
from profkit.kernels.sweep.request import SweepRequest

Work: TypeAlias = tuple[GridPoint, tuple[str, ...]]  # a point, and the implementations that are left of it
LOG = "worker.log"
MEASURES = "profkit.kernels.sweep.bench:MeasuringWorker"
TAIL = 8  # points for each of several workers that come last, the largest of them first


def measuring_workers(request: SweepRequest) -> list[WorkerClient]:
    """A worker for each device; each sees that device alone."""
    return [WorkerClient(command) for command in _commands(request)]


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


def small_last(work: Sequence[Work], workers: int) -> tuple[Work, ...]:
    """Where workers share the points, the last ones by falling size: none begins a large one when others are done."""
    count = TAIL * workers if workers > 1 else 0
    split = max(0, len(work) - count)
    return (*work[:split], *sorted(work[split:], key=lambda each: -each[0].elements * len(each[1])))
