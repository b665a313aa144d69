"""Pairs of runs for comparisons: of one program, and of one that was changed in a way that is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from profkit.core.types import (
    RUN,
    GpuTrace,
    Kernel,
    KernelTime,
    Reading,
    RunDocument,
    SampleSet,
    Scope,
    Source,
    Timing,
)
from tests import documents, gpu_documents


def timing(
    by: float = 0.0,
    *,
    processes: int = 5,
    samples: int = 30,
    between: float = 0.003,
    seed: int = 1,
    centre: float = 1e-3,
    kind: Literal["benchmark", "region", "process"] = "benchmark",
    clock: Literal["wall", "cuda-events"] = "wall",
    clocks: tuple[float, ...] = (),
) -> Timing:
    """Samples around `centre` * (1 + by), with processes that lie `between` apart."""
    source = random.Random(seed)
    sets = []
    for pid in range(processes):
        offset = 1 + source.gauss(0, between)
        seconds = tuple(centre * (1 + by) * offset * (1 + source.gauss(0, 0.005)) for _ in range(samples))
        sets.append(SampleSet(seconds, pid=pid, clock=clock, clocks=clocks))
    return Timing("mlp", kind, tuple(sets), 0.01)


def value(metric: str, value: float, unit: str = "", tool: str = "valgrind", scope: Scope = RUN) -> Reading:
    """One reading of a metric."""
    quality: Literal["simulated", "measured"] = "simulated" if tool == "valgrind" else "measured"
    return Reading(metric, value, unit, quality, scope, Source(tool))


def run(by: float = 0.0, *readings: Reading, seed: int = 1, **changes: object) -> RunDocument:
    """A run on a CPU of its own, no guest, whose time is `by` off."""
    plain = replace(
        documents.document(),
        machine=replace(documents.machine(), virtual=None),
        timings=(timing(by, seed=seed),),
        readings=readings,
        profiles=(),
        tools={},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def kernel(name: str, registers: int = 32, grid: int = 132, mangled: str | None = None) -> Kernel:
    """A launch configuration of 128 threads a block."""
    return Kernel(name, (grid, 1, 1), (128, 1, 1), mangled, registers, 0)


def traced(
    kernels: Sequence[tuple[Kernel, int, float]], *readings: Reading, busy: float = 0.95, starved: float = 0.2
) -> RunDocument:
    """A report of nsys: of each kernel its launches and seconds in all."""
    times = tuple(KernelTime(k, launches, total) for k, launches, total in kernels)
    total = sum(time.total for time in times)
    trace = GpuTrace(
        "nsys",
        times,
        span=total / busy,
        busy=total,
        launches=sum(time.launches for time in times),
        starved=starved,
        repeats=10,
    )
    shared = (
        value("time.gpu", total, "s", "nsys"),
        value("launch.count", float(trace.launches), "count", "nsys"),
        value("gpu.utilization", 100 * busy, "%", "nsys"),
    )
    return gpu_documents.report(
        trace=trace, gpus=(gpu_documents.H200,), readings=(*shared, *readings), tools={"nsys": "2025.3.2"}
    )
