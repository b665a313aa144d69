"""What Instruments saw of an Apple GPU: whose work it did and when, in which state it was, and what was counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types.readings import ReasonCode


@dataclass(frozen=True)
class Spread:
    """Many times of one kind, in seconds."""

    count: int
    median: float
    p95: float
    longest: float
    total: float


@dataclass(frozen=True)
class MetalWork:
    """All work of one name on the GPU, of the process that counts. Times in seconds.

    `seconds` adds up what may have run side by side, `busy` is the union of it.
    """

    name: str
    kind: Literal["encoder", "shader", "channel"]
    count: int
    seconds: float
    busy: float | None = None
    median: float | None = None
    longest: float | None = None


@dataclass(frozen=True)
class MetalProcess:
    """One process that used the GPU. `busy` is the union of its intervals, in seconds; `pid` None: not told."""

    name: str
    pid: int | None
    busy: float
    intervals: int
    target: bool = False  # it is what was profiled


@dataclass(frozen=True)
class MetalState:
    """How long the GPU (or the machine) was in one state: "Minimum", "Nominal".

    `busy` is the part of it in which the process had work on the GPU: one with nothing to do rests in a low state.
    """

    name: str
    seconds: float
    busy: float | None = None


@dataclass(frozen=True)
class MetalCounter:
    """One counter of the GPU over the part that counts; it speaks of the whole device, not of a process.

    `mean` is weighted by how long each sample held. `unit` is as the table's own label says it, in base units ("%",
    "B/s"), "" where it says none. `covered` is the share of the time (0..1) that samples speak of. `active` is the mean
    over those samples alone in which the process had work on the GPU; None where the recording does not tell when.
    `filled` is the share (0..1) of the time of those samples in which it had: the rest of it is in `active` as well.
    """

    name: str
    unit: str
    mean: float
    least: float
    most: float
    samples: int
    covered: float | None = None
    active: float | None = None
    filled: float | None = None


@dataclass(frozen=True)
class MetalAbsent:
    """What the trace does not give: `what` is the schema of the table, with the reason and the way to get it."""

    what: str
    reason: str
    fix: str | None = None
    code: ReasonCode | None = None


@dataclass(frozen=True)
class MetalOverTime:
    """What was recorded in slices of one length, from the begin of the first part that counts to the end of the last.

    `device` and `process` are shares of each slice (0..1) in which they were busy, `performance` the state that the GPU
    was in for most of it ("" where none is told). What is not in the trace is empty.
    """

    seconds: float  # of all slices together
    device: tuple[float, ...] = ()
    process: tuple[float, ...] = ()
    performance: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetalTrace:
    """A Metal System Trace, restricted to the part that counts. Times in seconds; None: not in the trace.

    `span` is the length of that part. `device_busy` is the union of the device's Active intervals, whoever caused
    them; `process_busy` that of the intervals of the process that was profiled; `others` the time in which that process
    had nothing on the GPU while somebody else had. `window` is the part of the span from the first submission (or work)
    of the process to its last (marked: all of the span): what lies around it is start-up and end. Of the time in the
    window in which the process had nothing on the GPU, `unsubmitted` is that in which all was done that the host had
    submitted, and `blocked` that in which something was submitted, and somebody else had the GPU.
    """

    span: float | None = None
    device_busy: float | None = None
    process_busy: float | None = None
    others: float | None = None
    longest_gap: float | None = None  # in the window, in which the process had nothing on the GPU
    processes: tuple[MetalProcess, ...] = ()  # busiest first
    channels: tuple[MetalWork, ...] = ()
    encoders: tuple[MetalWork, ...] = ()  # largest first
    shaders: tuple[MetalWork, ...] = ()  # largest first
    command_buffers: Spread | None = None  # GPU time of each
    completion: Spread | None = None  # of each, from when it was submitted until it was completed
    latency: Spread | None = None  # from the host's submission to the begin on the GPU: a queue, no stall
    queue_depth: float | None = None  # command buffers submitted and not yet completed, mean over the window
    queue_most: int | None = None
    performance: tuple[MetalState, ...] = ()  # performance states of the GPU, longest first
    thermal: tuple[MetalState, ...] = ()  # thermal states of the device, longest first
    induced: str | None = None  # the performance state that the recording asked for; None: the default
    counters: tuple[MetalCounter, ...] = ()
    absent: tuple[MetalAbsent, ...] = ()
    marked: bool = False  # only what happened in a marked region is counted
    entries: int = 0  # of the region
    window: float | None = None
    unsubmitted: float | None = None
    blocked: float | None = None
    low_power: bool | None = None  # low power mode was on
    over_time: MetalOverTime | None = None
    device: str | None = None  # the GPU that all of this speaks of: the one that the process used most
    window_busy: float | None = None  # part of `device_busy` in the window
    # As the recording was set: "Performance Limiters"; None: none, or not told
    counter_set: str | None = None
    guessed: str | None = None  # why the process that counts may be another than was profiled
    lost: str | None = None  # why all of the trace counts, although a region was marked
    # Of command buffers, from their end on the GPU until the host was told of it
    notice: Spread | None = None
    alone: bool = False  # one file of its exports was read, without the others
