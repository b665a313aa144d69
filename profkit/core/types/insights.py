"""What is wrong with a workload: the problem, its evidence, the place, the change, and the most that can be won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types.readings import Reading

InsightSource = Literal["profkit", "nsight"]


@dataclass(frozen=True)
class Place:
    """Where a problem is, as far as it is known. `operation` is that of a framework: `aten::mm [64, 32] x [32, 8]`.

    `label`: the kernel as tables name it, with its launch configuration where it ran in several. `share`: that
    configuration's part of the GPU time (0..1).
    """

    kernel: str | None = None
    operation: str | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    label: str | None = None
    share: float | None = None


@dataclass(frozen=True)
class Gain:
    """The most that can be won: a share (0..1) of the time that `of` names. `bound` says how it follows.

    `objection`: of an estimate of others, why it cannot be reached.
    """

    at_most: float
    of: str  # "the GPU time", "the run's time", "the time of a step"
    bound: str
    objection: str | None = None


@dataclass(frozen=True)
class Insight:
    """One conclusion. `title` is the change in a few words, `change` how it is made, `evidence` the numbers,
    without the kernel and its share, which stand in `where`.

    `source`: who concluded it, profkit or a rule of NVIDIA's Nsight Compute that was stored in the report.
    `gain` None: no bound follows from what was measured.
    """

    rule: str
    title: str
    evidence: str
    change: str
    where: Place = Place()
    gain: Gain | None = None
    source: InsightSource = "profkit"
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class TimeSplit:
    """Where the wall time of one run of the workload went. Times in seconds; None where it was not measured.

    `startup` comes before the steady part, `waiting` is wall time in which no thread ran or could run, `queued` that in
    which one could run and had no processor, `cpu` the processor time of all threads, `threads` that over the time in
    which it worked, `repeats` how often what repeats was seen. `runnable` threads on average ran or could run in the
    time in which it worked, `thread_count` is the most that there were. `system` is the part of `cpu` in the kernel;
    `read` and `written` are bytes of `io_calls` calls, `stored` those that a device moved.
    """

    wall: float
    startup: float | None = None
    steady: float | None = None
    waiting: float | None = None
    queued: float | None = None
    cpu: float | None = None
    gpu: float | None = None
    threads: float | None = None
    repeats: int | None = None
    runnable: float | None = None
    thread_count: int | None = None
    system: float | None = None
    read: float | None = None
    written: float | None = None
    stored: float | None = None
    io_calls: int | None = None
