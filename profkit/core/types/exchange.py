"""What goes between profkit and the workload's own process: what it is told, and what it records.

That process loads no other type but those that these are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types.readings import PassName


@dataclass(frozen=True)
class Switch:
    """How `profkit.region` turns the instrument of this pass on and off."""

    kind: Literal["perf-control", "valgrind", "cuda", "signpost"]
    control: str | None = None  # perf: the fifo that takes `enable` and `disable`
    ack: str | None = None  # perf: the fifo that answers `ack`


@dataclass(frozen=True)
class Directive:
    """What the workload's own process is told, as JSON in the environment variable PROFKIT_DIRECTIVE.

    `record` is a path prefix: every process that enters a region leaves `<record>.<pid>.json` there.
    `iterations`, or else `seconds`, say how long `profkit.benchmark` keeps an instrument fed after `warmup` calls.
    """

    pass_name: PassName
    record: str
    switch: Switch | None = None
    iterations: int | None = None
    seconds: float | None = None
    warmup: int = 1
    precision: float = 0.01
    budget: float = 30.0  # timing: wall seconds for warm-up and samples of one process
    cold: bool = False  # timing on a device: its L2 is flushed before each call
    # Wall seconds after which an instrument of Python's own stops; the program goes on without it. None: at its end.
    longest: float | None = None
    delay: float | None = None  # wall seconds after which a simulation of an unmarked program begins
    # How many entries of regions (of each process) the switch leaves out, and in how many it then runs; None: in all.
    entries: tuple[int, int] | None = None


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
    # The device's caches before each iteration; None: not a device
    cache: Literal["warm", "cold"] | None = None
    # How launch overhead was amortised: "100 calls queued before the first begins"
    batching: str | None = None
    # What one iteration costs each side alone: the device, with all its work queued beforehand, and the host, which
    # only launches it. `seconds` is about the larger of the two; None where that could not be told.
    device_seconds: float | None = None
    host_seconds: float | None = None
    clocks: tuple[float, ...] = ()  # the device's SM clock in Hz, between samples; empty where not told
    throttled: int = 0  # samples thrown away because the device slowed itself down, and
    throttle_reasons: tuple[str, ...] = ()  # why it did; with none thrown away, it did so all the time
    remarks: tuple[str, ...] = ()  # what else must be known to believe these seconds
    # Seconds of a fixed piece of arithmetic, timed now and then between the samples: how fast the processor was.
    reference_loop: tuple[float, ...] = ()
