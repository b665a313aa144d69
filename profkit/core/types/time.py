"""The timing pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SampleSet:
    """Samples of one process in seconds per iteration, in the order they were taken.

    `loops` iterations were run per sample (so that a sample is long enough for the clock) and divided out.
    """

    seconds: tuple[float, ...]
    loops: int = 1
    warmup: tuple[float, ...] = ()
    warm: bool = True  # drift was gone before sampling began
    precise: bool = True  # the interval became as narrow as asked before the budget ended
    pid: int | None = None
    spent: float = 0.0  # wall seconds for warm-up and samples together
    # Which clock the seconds are of; "mps-synchronized": the wall clock, with the GPU waited for at both ends.
    clock: Literal["wall", "cuda-events", "mps-synchronized"] = "wall"
    # Wall seconds per iteration over the clock's, from the same samples: 1.2 says that the host added a fifth.
    wall_ratio: float | None = None
    cache: Literal["warm", "cold"] | None = (
        None  # the device's caches before each iteration; None: not a device
    )
    batching: str | None = (
        None  # how launch overhead was amortised: "100 calls queued before the first begins"
    )
    # What one iteration costs each side alone: the device, with all its work queued beforehand, and the host, which
    # only launches it. `seconds` is about the larger of the two; None where that could not be told.
    device_seconds: float | None = None
    host_seconds: float | None = None
    single_seconds: float | None = None  # one call that is launched to an idle device and waited for
    graph_seconds: float | None = (
        None  # one iteration of many in a CUDA graph, where the benchmark asks for it
    )
    clocks: tuple[float, ...] = ()  # the device's SM clock in Hz, between samples; empty where not told
    throttled: int = 0  # samples thrown away because the device slowed itself down, and
    throttle_reasons: tuple[str, ...] = ()  # why it did; with none thrown away, it did so all the time
    remarks: tuple[str, ...] = ()  # what else must be known to believe these seconds


@dataclass(frozen=True)
class Timing:
    """The timing pass of one region (or of the whole process): samples per process, and what the work is."""

    name: str
    kind: Literal["benchmark", "region", "process"]
    processes: tuple[SampleSet, ...]
    precision: float  # asked relative half-width of the interval, 0.01 is ±1 %
    flops: float | None = None  # per iteration, as the workload declares them
    bytes: float | None = None
    # What it is a case of, where cases are held against each other together: of a sweep `Triton: GELU forward float32`.
    group: str | None = None
