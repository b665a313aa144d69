"""What a Metal trace says in numbers: how busy the GPU was and for whom, its gaps, queue, command buffers, frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.metal_state import slowed
from profkit.analysis.summaries.metal_told import (
    ALLOCATED,
    COMPLETED,
    ENCODERS,
    INTERVALS,
    SHADERS,
    STATES,
    SUBMITTED,
    idle_of,
    share,
    told,
    window_of,
)
from profkit.core.formatting import quantity
from profkit.core.types import GpuTrace, MetalTrace, MetalWork, Moment, Quality, Reading, Spread

SLACK = (
    0.05  # the two tables are told by different parts of the system; in 37 recordings of an M1 none came near
)
CLOCKS = 1e-4  # seconds; ends of intervals
NOTHING_RAN = "the process had nothing on the GPU"


def trace_readings(
    metal: MetalTrace, trace: GpuTrace | None = None, moments: Sequence[Moment] = ()
) -> tuple[Reading, ...]:
    """All readings of the time line, for the run; times in s, shares in %.

    gpu.utilization is the union of the intervals of the process over its window, gpu.utilization.device the union
    of the device's Active intervals over the whole part that counts, whoever caused them. `moments` are looks at the
    machine around the timing pass.
    """
    return (
        *_doubted(metal, [*_busy(metal, trace), longest(metal)]),
        *_queue(metal),
        *_frames(metal),
        slowed(metal, moments),
        *_memory(metal),
    )


def _busy(metal: MetalTrace, trace: GpuTrace | None) -> list[Reading]:
    window, busy, idle = window_of(metal), metal.process_busy, idle_of(metal)
    waiting = metal.blocked if metal.blocked is not None else metal.others
    most = None if busy is None or waiting is None else busy + waiting
    starved = share(metal.unsubmitted, idle)
    if starved is None and trace is not None and trace.starved is not None and idle:
        starved = 100 * trace.starved
    total = sum(work.seconds for work in metal.encoders) if metal.encoders else None
    tables = (INTERVALS,)
    where = "region" if metal.marked else "window of the process"
    nothing = NOTHING_RAN if busy == 0 else "the process's own intervals are not in the trace"
    found = [
        told(
            metal,
            "gpu.utilization",
            share(busy, window),
            tables,
            f"100 * union of the process / {where}",
            otherwise=nothing,
        ),
        told(
            metal,
            "gpu.utilization.device",
            share(metal.device_busy, metal.span),
            *_of_device(metal),
        ),
        told(
            metal,
            "gpu.utilization.alone",
            share(most, window),
            tables,
            "100 * (union of the process + time in which others had the GPU instead) / window",
        ),
        told(
            metal,
            "gpu.others",
            share(metal.others, metal.span),
            tables,
            "100 * others alone on the GPU / span",
        ),
        told(metal, "gpu.window", window, tables, where),
        told(metal, "time.gpu", total, (ENCODERS, INTERVALS), "sum of all encoders' times"),
        told(metal, "time.gpu.idle", idle, tables, "window - union of the process"),
        told(
            metal,
            "gpu.starved",
            starved,
            (SUBMITTED, INTERVALS),
            "100 * idle time in which the host had submitted nothing / idle time",
            otherwise="the GPU did not idle" if idle == 0 else "the submissions are not in the trace",
        ),
        told(metal, "gpu.gap", metal.longest_gap, tables, "longest time without an interval of the process"),
    ]
    if metal.marked:
        found.append(told(metal, "gpu.entries", float(metal.entries), tables, "entries of the marked region"))
    return found


def _of_device(metal: MetalTrace) -> tuple[tuple[str, ...], str]:
    """What the device's own time was taken from: where its states are not told, from everybody's intervals."""
    if metal.device_busy is not None and any(one.what == STATES for one in metal.absent):
        return (INTERVALS,), "100 * union of the intervals of all processes / span"
    return (STATES,), "100 * union of Active / span"


def _doubted(metal: MetalTrace, readings: list[Reading]) -> list[Reading]:
    """The readings, with what contradicts them: a process cannot work for longer than its device is active.

    Where it is a guess whose work counts, nothing that is said of it is said of the program that was profiled; nor of
    the region, where that was marked and not found.
    """
    doubt = metal.lost
    if metal.guessed is not None:
        doubt = f"{metal.guessed}; the table of contents (toc.xml) tells which one was profiled"
    if doubt is not None:
        of_device = ("gpu.utilization.device", "gpu.window")
        return [
            replace(r, doubt=doubt) if r.metric not in of_device and r.value is not None else r
            for r in readings
        ]
    device, busy = metal.device_busy if metal.marked else metal.window_busy, metal.process_busy
    if device is None or busy is None or busy <= device * (1 + SLACK) + CLOCKS:
        return readings
    doubt = (
        f"the process had work on the GPU for {quantity(busy, 's')}, and the device was active for"
        f" {quantity(device, 's')} of that time: one of {INTERVALS} and {STATES} is not whole"
    )
    names = ("gpu.utilization", "gpu.utilization.device", "gpu.utilization.alone", "time.gpu.idle")
    return [replace(r, doubt=doubt) if r.metric in names and r.value is not None else r for r in readings]


def _queue(metal: MetalTrace) -> list[Reading]:
    buffers, latency, done = metal.command_buffers, metal.latency, metal.completion
    submitted, intervals = (SUBMITTED, COMPLETED), (INTERVALS,)
    # Where no completion is told each counts until it ended on the GPU, which is 0.1 ms or so earlier.
    whole, until = (True, "completed") if done is not None else (False, "ended on the GPU")
    quality: Quality = "measured" if whole else "estimated"
    remark = None if whole else "until the end on the GPU: completions are not in the trace"
    return [
        told(
            metal,
            "queue.latency",
            _median(latency),
            intervals,
            "median of the begin on the GPU - the submission",
        ),
        told(
            metal,
            "queue.depth",
            metal.queue_depth,
            submitted,
            f"mean of submitted - {until} over the time",
            quality=quality,
            remark=remark,
        ),
        told(
            metal,
            "queue.most",
            float(metal.queue_most) if metal.queue_most is not None else None,
            submitted,
            f"largest number of submitted and not {until}",
            quality=quality,
            remark=remark,
        ),
        told(
            metal,
            "buffer.count",
            float(buffers.count) if buffers is not None else None,
            intervals,
            "command buffers of the process",
        ),
        told(
            metal, "buffer.time", _median(buffers), intervals, "median of the union of each one's intervals"
        ),
        told(metal, "buffer.completion", _median(done), submitted, "median of completion - submission"),
    ]


def _median(spread: Spread | None) -> float | None:
    return spread.median if spread is not None and spread.count else None


def _frames(metal: MetalTrace) -> list[Reading]:
    """Only where there are frames: compute work has none, and nobody misses them."""
    if metal.frames is None or not metal.frames.count:
        return []
    return [told(metal, "frame.time", metal.frames.median, (INTERVALS,), "median from frame to frame")]


def top_work(metal: MetalTrace) -> tuple[MetalWork, float] | None:
    """The shader, else the encoder, with most of the process's GPU time, and its share of all of them (0..1)."""
    works = metal.shaders or metal.encoders
    total = sum(work.seconds for work in works)
    if total <= 0:
        return None
    top = max(works, key=lambda work: work.seconds)
    return top, top.seconds / total


def longest(metal: MetalTrace) -> Reading:
    """gpu.longest: the share of the GPU time in one shader (or encoder); which one stands in its remark."""
    top = top_work(metal)
    table = SHADERS if metal.shaders else ENCODERS
    name = f"{top[0].kind} {top[0].name}" if top is not None else None
    return told(
        metal,
        "gpu.longest",
        100 * top[1] if top is not None else None,
        (table, INTERVALS),
        "100 * its time / the time of all of them",
        remark=name,
        otherwise=NOTHING_RAN,
    )


def _memory(metal: MetalTrace) -> list[Reading]:
    found = []
    if metal.memory_peak is not None or any(one.what == ALLOCATED for one in metal.absent):
        peak = float(metal.memory_peak) if metal.memory_peak is not None else None
        found.append(told(metal, "memory.device_peak", peak, (ALLOCATED,), "largest size allocated by Metal"))
    if metal.memory_recommended is not None:
        most = float(metal.memory_recommended)
        found.append(
            told(
                metal, "memory.device_recommended", most, ("metal-gpu-info",), "recommendedMaxWorkingSetSize"
            )
        )
    return found
